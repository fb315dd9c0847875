//! The chat: where the agent runs, the conversation, what is queued, and the message box.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use alongside_protocol::chat::Locality;
use alongside_protocol::{ChatPhase, ChatWrites};

use crate::cells::{Drawn, label};
use crate::chat::session_end;
use crate::model::{Model, stacked};

use super::edit::place;
use super::{Pieces, popup, right, row, wrapped};

const MAX_COMPOSER_ROWS: usize = 8;
const MAX_QUEUED_ROWS: usize = 3;

/// Where the parts of the chat are.
pub(crate) struct ChatScreen {
    locality: Rect,
    pub(crate) log: Rect,
    state: Rect,
    queue: Rect,
    composer: Rect,
}

impl Model {
    pub(crate) fn chat_screen(&self, area: Rect) -> ChatScreen {
        let rows = |count: usize| Some(u16::try_from(count).unwrap_or(1));
        let composer = self.chat.composer.lines().len().clamp(1, MAX_COMPOSER_ROWS);
        let queue = self.chat.shown().queue.len().min(MAX_QUEUED_ROWS);
        let locality = usize::from(self.chat.is_reachable() && self.chat.shown().session.is_some());
        let [locality, log, state, queue, composer] =
            stacked(area, [rows(locality), None, rows(1), rows(queue), rows(composer)]);
        ChatScreen {
            locality,
            log,
            state,
            queue,
            composer,
        }
    }

    pub(super) fn draw_chat_head(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let shown = self.chat.shown();
        let mut pieces: Pieces = vec![(" Chat ".to_owned(), theme.strong())];
        if let Some(session) = &shown.session {
            pieces.push((label(&session.agent, 30), theme.accent()));
        }
        if !shown.title.is_empty() {
            pieces.push((format!("  {}", label(&shown.title, 60)), theme.quiet()));
        }
        let used = row(&pieces, area, theme.bar(), buffer);
        let mut details = Vec::new();
        if let Some(mode) = &shown.modes.current {
            details.push(mode.clone());
        }
        if let Some(model) = shown.model() {
            details.push(label(model, 24));
        }
        if let Some((used, size)) = shown.context.filter(|(_, size)| *size > 0) {
            details.push(format!("{} % of context", used * 100 / size));
        } else if let Some(tokens) = shown.tokens {
            details.push(format!("{} tokens", tokens.total_tokens));
        }
        right(
            &[(format!("{} ", details.join(" · ")), theme.quiet())],
            area,
            used,
            theme.bar(),
            buffer,
        );
    }

    pub(super) fn draw_chat(&self, area: Rect, buffer: &mut Buffer) {
        let screen = self.chat_screen(area);
        self.draw_locality(screen.locality, buffer);
        let laid = &self.chat.laid;
        let count = laid.count();
        if count == 0 {
            self.draw_no_conversation(screen.log, buffer);
        }
        let last = count.saturating_sub(self.chat.up);
        let first = last.saturating_sub(usize::from(screen.log.height));
        for (offset, line) in (0..screen.log.height).zip(laid.rows(first, last)) {
            let place = Rect {
                y: screen.log.y + offset,
                height: 1,
                ..screen.log
            };
            row(line, place, Style::new(), buffer);
        }
        self.draw_chat_state(screen.state, buffer);
        self.draw_queue(screen.queue, buffer);
        self.draw_composer(screen.composer, buffer);
    }

    fn draw_locality(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        if area.height == 0 {
            return;
        }
        let Some(session) = &self.chat.shown().session else {
            return;
        };
        let (kind, sentence, style) = match (&session.locality, self.chat.changed.writes) {
            (Locality::Daemon { .. }, _) => (
                " daemon ",
                "Uses the files, MCP servers, skills and credentials of the daemon’s host, not those of the companion.",
                theme.warning(),
            ),
            (Locality::Child, ChatWrites::Review) => (" local agent ", "File writes go through review.", theme.good()),
            (Locality::Child, ChatWrites::Allow) => (" local agent ", "File writes are not reviewed.", theme.warning()),
        };
        row(
            &[(kind.to_owned(), style), (sentence.to_owned(), theme.quiet())],
            area,
            Style::new(),
            buffer,
        );
    }

    fn draw_no_conversation(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let text = match self.chat.changed.phase {
            ChatPhase::Connecting => "Connecting to the agent…".to_owned(),
            ChatPhase::Connected | ChatPhase::Interrupted => "Write a message, then press Enter.".to_owned(),
            ChatPhase::Idle | ChatPhase::Ended => match &self.chat.shown().over {
                Some(reason) => session_end(reason),
                None => "No agent is connected. Press Ctrl-O to choose one.".to_owned(),
            },
        };
        let lines = wrapped(&text, usize::from(area.width.saturating_sub(4)));
        for (offset, line) in (0..area.height.saturating_sub(1)).zip(lines) {
            let place = Rect {
                x: area.x + 1,
                y: area.y + 1 + offset,
                width: area.width.saturating_sub(1),
                height: 1,
            };
            row(&[(line, theme.quiet())], place, Style::new(), buffer);
        }
    }

    fn draw_chat_state(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let shown = self.chat.shown();
        let asked = self.chat.asked();
        let plan = shown.plan.iter().find(|entry| entry.status == "in_progress");
        let (text, style) = if let Some(request) = asked {
            let is_armed = self.chat.is_armed(&request.request_id, self.now);
            let keys = if self.chat.is_writing { "Alt-1 … 9" } else { "1 … 9" };
            let what = if request.is_question() {
                "asks a question"
            } else {
                "asks for permission"
            };
            let sign = if is_armed { "●" } else { "○" };
            let keys = if request.is_question() {
                format!("{keys} chooses, Enter")
            } else {
                keys.to_owned()
            };
            (
                format!("{sign} The agent {what}; {keys} answers."),
                if is_armed { theme.warning() } else { theme.quiet() },
            )
        } else if let Some(reason) = &shown.interrupted {
            (format!("Reconnecting… {reason}"), theme.warning())
        } else if let Some(reason) = shown.over.as_ref().filter(|_| !self.chat.is_reachable()) {
            (session_end(reason), theme.warning())
        } else if let Some(turn) = &shown.turn {
            let what = match (turn.is_cancelling, plan) {
                (true, _) => "Cancelling…".to_owned(),
                (false, Some(entry)) => format!("{}…", entry.content),
                (false, None) => "Working…".to_owned(),
            };
            (what, theme.accent())
        } else if !shown.suggestion.is_empty() {
            (format!("Tab: {}", shown.suggestion), theme.quiet())
        } else if self.chat.up > 0 {
            (format!("{} rows below", self.chat.up), theme.quiet())
        } else {
            (String::new(), theme.quiet())
        };
        let rule = "─".repeat(usize::from(area.width));
        row(&[(rule, theme.quiet())], area, Style::new(), buffer);
        if !text.is_empty() {
            let text = format!(" {} ", label(&text, usize::from(area.width.saturating_sub(6))));
            let place = Rect {
                x: area.x + 2.min(area.width),
                width: area.width.saturating_sub(2),
                ..area
            };
            row(&[(text, style)], place, Style::new(), buffer);
        }
    }

    fn draw_queue(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let queue = &self.chat.shown().queue;
        for (offset, queued) in (0..area.height).zip(queue) {
            let place = Rect {
                y: area.y + offset,
                height: 1,
                ..area
            };
            let text = queued.text.replace('\n', " ");
            row(
                &[("  queued  ".to_owned(), theme.warning()), (text, theme.quiet())],
                place,
                Style::new(),
                buffer,
            );
        }
    }

    fn draw_composer(&self, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let composer = &self.chat.composer;
        let (cursor, column) = place(composer);
        let top = (cursor + 1).saturating_sub(usize::from(area.height));
        let width = usize::from(area.width.saturating_sub(3));
        let left = (column + 1).saturating_sub(width.max(1));
        for (offset, line) in (0..area.height).zip(composer.lines().iter().skip(top)) {
            let sign = if offset == 0 { "> " } else { "  " };
            let style = if self.chat.is_writing {
                theme.accent()
            } else {
                theme.quiet()
            };
            let here = Rect {
                y: area.y + offset,
                height: 1,
                ..area
            };
            let used = row(&[(sign.to_owned(), style)], here, Style::new(), buffer);
            let drawn = Drawn {
                line,
                skip: left,
                style: |_| Style::new(),
                special: theme.special(),
                rest: Style::new(),
            };
            let text = Rect {
                x: here.x + used,
                width: here.width.saturating_sub(used),
                ..here
            };
            drawn.draw(text, buffer);
        }
    }

    /// Where the cursor of the message box is.
    pub(super) fn composer_cursor(&self, area: Rect) -> Option<(u16, u16)> {
        if !self.chat.is_writing {
            return None;
        }
        let area = self.chat_screen(area).composer;
        let (cursor, column) = place(&self.chat.composer);
        let top = (cursor + 1).saturating_sub(usize::from(area.height));
        let width = usize::from(area.width.saturating_sub(3));
        let left = (column + 1).saturating_sub(width.max(1));
        let x = area.x.checked_add(u16::try_from(column - left + 2).ok()?)?;
        let y = area.y.checked_add(u16::try_from(cursor - top).ok()?)?;
        (x < area.right() && y < area.bottom()).then_some((x, y))
    }

    pub(super) fn draw_agents(&self, selected: usize, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let width = area.width.min(70);
        let mut lines: Vec<Pieces> = Vec::new();
        if self.chat.agents.is_empty() {
            lines.push(vec![("Loading…".to_owned(), theme.quiet())]);
        }
        for (index, agent) in self.chat.agents.iter().enumerate() {
            let mark = if index == selected { "▌ " } else { "  " };
            let style = if agent.problem.is_some() {
                theme.quiet()
            } else {
                theme.strong()
            };
            lines.push(vec![(mark.to_owned(), theme.accent()), (agent.name.clone(), style)]);
            if let Some(problem) = &agent.problem {
                let problem = wrapped(problem, usize::from(width.saturating_sub(8)));
                lines.extend(
                    problem
                        .into_iter()
                        .map(|line| vec![(format!("    {line}"), theme.quiet())]),
                );
            }
        }
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let inside = popup(area, width, height, "Connect to an agent", theme.quiet(), buffer);
        super::panels::draw_lines(lines, inside, 0, buffer);
    }
}
