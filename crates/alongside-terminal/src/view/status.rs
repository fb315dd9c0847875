//! The last rows: a notice, the keys that work here, and the status.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::cells::{label, width};
use crate::model::{Connection, Model, Overlay, View};

use super::{Pieces, right, row};

impl Model {
    pub(super) fn draw_notice(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let is_problem = self.notice.as_ref().is_some_and(|notice| notice.is_problem);
        let style = if is_problem { theme.bad() } else { theme.accent() };
        for (offset, line) in (0..area.height).zip(self.notice_lines()) {
            let place = Rect {
                y: area.y + offset,
                height: 1,
                ..area
            };
            row(&[(format!(" {line}"), style)], place, Style::new(), buffer);
        }
    }

    pub(super) fn draw_keys(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let is_ready = |open: &crate::review::OpenReview| {
            open.is_armed(self.now) && !open.is_deciding && self.is_connected(open.key.companion)
        };
        let armed = self.open.as_ref().is_some_and(is_ready);
        let accept = self
            .open
            .as_ref()
            .map(crate::review::OpenReview::accept_label)
            .unwrap_or_default();
        // Whether it decides something.
        let keys: Vec<(&str, &str, bool)> = match (&self.overlay, self.view) {
            (Some(Overlay::Edit(_)), _) => vec![
                ("Esc", "save", false),
                ("Ctrl-C", "discard", false),
                ("Ctrl-U", "undo", false),
            ],
            (Some(Overlay::Companions { .. }), _) => vec![("Enter", "attach", false), ("Esc", "close", false)],
            (Some(Overlay::Agents { .. }), _) => vec![("Enter", "connect", false), ("Esc", "close", false)],
            (Some(Overlay::Help { .. } | Overlay::Context { .. }), _) => vec![("Esc", "close", false)],
            (Some(_), _) => vec![],
            (None, View::List) => vec![
                ("Enter", "open", false),
                ("v", "context", false),
                ("c", "chat", false),
                ("?", "help", false),
                ("q", "quit", false),
            ],
            (None, View::Chat) if self.chat.is_writing => vec![
                ("Enter", "send", false),
                ("Ctrl-X", "cancel", false),
                ("Ctrl-O", "agent", false),
                ("Alt-C", "reviews", false),
                ("Esc", "read", false),
                ("Ctrl-E", "details", false),
            ],
            (None, View::Chat) => vec![
                ("i", "write", false),
                ("x", "cancel", false),
                ("d", "remove queued", false),
                ("c", "reviews", false),
                ("?", "help", false),
                ("q", "quit", false),
            ],
            (None, View::Review) => vec![
                ("a", "accept", true),
                ("r", "reject hunk", true),
                ("A", accept.as_str(), true),
                ("R", "reject", true),
                ("u", "undo", true),
                ("n/p", "hunk", false),
                ("i", "edit", false),
                ("?", "help", false),
            ],
        };
        let mut pieces: Pieces = Vec::new();
        let mut used = 0;
        for (key, meaning, decides) in keys {
            let length = width(key, 20) + width(meaning, 60) + 3;
            if used + length > usize::from(area.width) {
                break;
            }
            used += length;
            let is_inert = decides && !armed;
            let key_style = if is_inert { theme.quiet() } else { theme.accent() };
            pieces.push((format!(" {key}"), key_style));
            pieces.push((format!(" {meaning} "), theme.quiet()));
        }
        row(&pieces, area, Style::new(), buffer);
    }

    pub(super) fn draw_status(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let mut pieces: Pieces = Vec::new();
        for companion in &self.companions {
            let (sign, style) = match companion.connection {
                Connection::Connected if companion.problems.is_empty() => ("●", theme.good()),
                Connection::Connected => ("●", theme.warning()),
                Connection::Connecting | Connection::Reconnecting { .. } => ("○", theme.warning()),
            };
            pieces.push((format!(" {sign} "), style));
            pieces.push((label(&companion.name(), 24), theme.strong()));
            match &companion.connection {
                Connection::Connecting => pieces.push((" connecting…".to_owned(), theme.quiet())),
                Connection::Reconnecting { .. } => pieces.push((" reconnecting…".to_owned(), theme.warning())),
                Connection::Connected => {
                    let agents: Vec<String> = companion
                        .agents
                        .iter()
                        .map(|agent| agent.identity.name.clone())
                        .collect();
                    let agents = if agents.is_empty() {
                        "no agents".to_owned()
                    } else {
                        agents.join(", ")
                    };
                    pieces.push((format!("  {}", label(&agents, 40)), theme.quiet()));
                }
            }
            let files = &companion.context.workspace_state.open_files;
            if let Some(file) = files.first() {
                let name = companion.short(&file.path);
                let line = file
                    .cursor
                    .map_or_else(String::new, |cursor| format!(":{}", cursor.line));
                let selected = if file.selected_text.is_some() { " selection" } else { "" };
                let more = if files.len() > 1 {
                    format!(" +{}", files.len() - 1)
                } else {
                    String::new()
                };
                let shown = super::list::cut_left(name, 30);
                pieces.push((format!("  {shown}{line}{selected}{more}"), theme.quiet()));
            }
        }
        let pending = match self.listed().len() {
            0 => String::new(),
            pending => format!(" {pending} pending "),
        };
        let room = area.width.saturating_sub(u16::try_from(pending.len()).unwrap_or(0));
        row(&[], area, theme.bar(), buffer);
        row(&pieces, Rect { width: room, ..area }, theme.bar(), buffer);
        right(&[(pending, theme.warning())], area, 0, theme.bar(), buffer);
    }
}
