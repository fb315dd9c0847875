//! The list of pending reviews.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

use alongside_protocol::ReviewSummary;

use crate::cells::{label, width};
use crate::message::ReviewKey;
use crate::model::{Connection, Model};
use crate::update::count;

use super::{Pieces, right, row, wrapped};

impl Model {
    pub(super) fn draw_list_head(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let listed = self.listed().len();
        let mut pieces: Pieces = vec![(" Reviews ".to_owned(), theme.strong())];
        if listed > 0 {
            pieces.push((format!("{listed} pending"), theme.warning()));
        }
        row(&pieces, area, theme.bar(), buffer);
    }

    pub(super) fn draw_list(&self, area: Rect, buffer: &mut Buffer) {
        let listed = self.listed();
        if listed.is_empty() {
            self.draw_empty(area, buffer);
            return;
        }
        let visible = usize::from(area.height / 2).max(1);
        let first = (self.selected + 1).saturating_sub(visible);
        for (index, (key, summary)) in listed.iter().enumerate().skip(first).take(visible) {
            let y = area.y + u16::try_from((index - first) * 2).unwrap_or(0);
            self.draw_entry(
                *key,
                summary,
                index == self.selected,
                Rect { y, height: 1, ..area },
                buffer,
            );
        }
    }

    fn draw_entry(&self, key: ReviewKey, summary: &ReviewSummary, is_selected: bool, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let companion = &self.companions[key.companion];
        let style = if is_selected { theme.selected() } else { Style::new() };
        let mark = if is_selected { "▌" } else { " " };
        let size = format!("+{} −{} ", summary.size.added, summary.size.removed);
        let name_width = usize::from(area.width).saturating_sub(10 + width(&size, 40));
        let path = companion.short(&summary.path);
        let name = cut_left(path, name_width);
        let pieces: Pieces = vec![
            (mark.to_owned(), theme.accent()),
            (format!("{:>4} ", summary.id), theme.quiet()),
            (name, theme.strong()),
        ];
        let used = row(&pieces, area, style, buffer);
        let sizes: Pieces = vec![
            (format!("+{} ", summary.size.added), theme.good()),
            (format!("−{} ", summary.size.removed), theme.bad()),
        ];
        right(&sizes, area, used, style, buffer);
        let mut about = vec![summary.agent_identity().to_string()];
        if self.companions.len() > 1 {
            about.push(companion.name());
        }
        if summary.new_file {
            about.push("new".to_owned());
        }
        if summary.revision > 1 {
            about.push(format!("revision {}", summary.revision));
        }
        if summary.edited {
            about.push("edited".to_owned());
        }
        let mut below: Pieces = vec![
            (mark.to_owned(), theme.accent()),
            ("     ".to_owned(), Style::new()),
            (
                label(&about.join(" · "), usize::from(area.width).saturating_sub(7)),
                theme.quiet(),
            ),
        ];
        if summary.conflicts > 0 {
            below.push((format!(" · {}", count(summary.conflicts, "conflict")), theme.bad()));
        }
        row(&below, Rect { y: area.y + 1, ..area }, style, buffer);
    }

    fn draw_empty(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let (title, text) = match &self.companions[0].connection {
            Connection::Connecting => ("Connecting…".to_owned(), String::new()),
            Connection::Reconnecting { reason } => ("Reconnecting…".to_owned(), reason.clone()),
            Connection::Connected => (
                "No pending changes.".to_owned(),
                "Changes that agents propose appear here.".to_owned(),
            ),
        };
        let lines = wrapped(&text, usize::from(area.width.saturating_sub(4)));
        let top = area.y + (area.height / 3).min(area.height.saturating_sub(1));
        let styles = std::iter::once((title, Style::new().add_modifier(Modifier::BOLD)))
            .chain(lines.into_iter().map(|line| (line, theme.quiet())));
        for (y, (line, style)) in (top..).zip(styles) {
            if y >= area.y + area.height {
                break;
            }
            let line_width = u16::try_from(width(&line, usize::from(area.width))).unwrap_or(0);
            let x = area.x + (area.width - line_width) / 2;
            row(&[(line, style)], Rect::new(x, y, line_width, 1), Style::new(), buffer);
        }
    }
}

/// The end of a path, which says more than its start.
pub(super) fn cut_left(path: &str, limit: usize) -> String {
    if width(path, limit + 1) <= limit {
        return label(path, limit);
    }
    let mut start = 0;
    for (at, _) in path.match_indices('/') {
        if width(&path[at..], limit + 1) < limit {
            start = at;
            break;
        }
    }
    if start == 0 {
        let name = path.rsplit('/').next().unwrap_or(path);
        return label(name, limit);
    }
    format!("…{}", label(&path[start..], limit.saturating_sub(1)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_keep_their_end() {
        assert_eq!(cut_left("src/main.rs", 20), "src/main.rs");
        assert_eq!(cut_left("crates/alongside/src/main.rs", 16), "…/src/main.rs");
        assert_eq!(cut_left("a/very_long_file_name.rs", 10), "very_long…");
    }
}
