//! What is drawn in front of a view.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use crate::model::{Companion, Model, Overlay};

use super::list::cut_left;
use super::{Pieces, popup, row, wrapped};

impl Model {
    pub(super) fn draw_overlay(&self, body: Rect, keys: Rect, buffer: &mut Buffer) {
        match self.overlay.as_ref() {
            None | Some(Overlay::Edit(_)) => {}
            Some(Overlay::Help { top }) => self.draw_help(*top, body, buffer),
            Some(Overlay::Context { top }) => self.draw_context(*top, body, buffer),
            Some(Overlay::Companions { selected }) => self.draw_companions(*selected, body, buffer),
            Some(Overlay::Agents { selected }) => self.draw_agents(*selected, body, buffer),
            Some(Overlay::Confirm { question, .. }) => self.draw_question(question, body, buffer),
            Some(Overlay::Input(input)) => {
                let theme = self.options.theme;
                let pieces: Pieces = vec![
                    (format!(" {}: ", input.purpose.label()), theme.accent()),
                    (input.text().to_owned(), Style::new()),
                ];
                buffer.set_style(keys, Style::reset());
                for x in keys.left()..keys.right() {
                    buffer[(x, keys.y)].reset();
                }
                row(&pieces, keys, Style::new(), buffer);
            }
        }
    }

    fn draw_question(&self, question: &str, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let width = area.width.min(64);
        let lines = wrapped(question, usize::from(width.saturating_sub(4)));
        let height = u16::try_from(lines.len() + 4).unwrap_or(u16::MAX);
        let inside = popup(area, width, height, "Confirm", theme.warning(), buffer);
        let keys: Pieces = vec![
            ("y".to_owned(), theme.accent()),
            (" yes   ".to_owned(), Style::new()),
            ("n".to_owned(), theme.accent()),
            (" no".to_owned(), Style::new()),
        ];
        let all = lines
            .into_iter()
            .map(|line| vec![(line, Style::new())])
            .chain([Vec::new(), keys]);
        draw_lines(all, inside, 0, buffer);
    }

    fn draw_companions(&self, selected: usize, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let mut lines: Vec<Pieces> = Vec::new();
        if self.running.is_empty() {
            lines.push(vec![("No other companion is running.".to_owned(), theme.quiet())]);
        }
        let width = area.width.min(70);
        for (index, running) in self.running.iter().enumerate() {
            let mark = if index == selected { "▌ " } else { "  " };
            let folders: Vec<String> = running
                .workspace
                .iter()
                .map(|folder| folder.display().to_string())
                .collect();
            let folders = cut_left(
                &folders.join(", "),
                usize::from(width).saturating_sub(running.name.len() + 10),
            );
            lines.push(vec![
                (mark.to_owned(), theme.accent()),
                (running.name.clone(), theme.strong()),
                (format!("  {folders}"), theme.quiet()),
            ]);
        }
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let inside = popup(area, width, height, "Attach a companion", theme.quiet(), buffer);
        draw_lines(lines, inside, 0, buffer);
    }

    fn draw_context(&self, top: usize, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let width = area.width.min(80);
        let inner = usize::from(width.saturating_sub(4));
        let mut lines: Vec<Pieces> = Vec::new();
        for companion in &self.companions {
            if self.companions.len() > 1 {
                lines.push(vec![(companion.name(), theme.strong())]);
            }
            self.context_lines(companion, inner, &mut lines);
        }
        let height = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let inside = popup(area, width, height, "What agents see", theme.quiet(), buffer);
        let last = lines.len().saturating_sub(usize::from(inside.height));
        draw_lines(lines, inside, top.min(last), buffer);
    }

    fn context_lines(&self, companion: &Companion, width: usize, lines: &mut Vec<Pieces>) {
        let theme = self.options.theme;
        let quiet = |text: &str| vec![(text.to_owned(), theme.quiet())];
        if companion.agents.is_empty() {
            lines.push(quiet("No agents connected."));
        }
        for agent in &companion.agents {
            let state = if agent.listening {
                "connected"
            } else {
                "reconnecting…"
            };
            lines.push(vec![
                (
                    "● ".to_owned(),
                    if agent.listening { theme.good() } else { theme.warning() },
                ),
                (agent.identity.to_string(), Style::new()),
                (format!("  {state}"), theme.quiet()),
            ]);
        }
        lines.push(Vec::new());
        let files = &companion.context.workspace_state.open_files;
        if files.is_empty() {
            lines.push(quiet("No open files."));
        }
        for file in files {
            let is_active = file.is_active == Some(true);
            let mut pieces: Pieces = vec![(
                cut_left(companion.short(&file.path), width.saturating_sub(12)),
                if is_active { theme.strong() } else { Style::new() },
            )];
            if let Some(cursor) = file.cursor {
                pieces.push((format!(":{}:{}", cursor.line, cursor.character), theme.quiet()));
            }
            lines.push(pieces);
            if let Some(text) = &file.selected_text {
                let shown: Vec<&str> = text.lines().take(6).collect();
                for line in &shown {
                    lines.push(vec![
                        ("  │ ".to_owned(), theme.accent()),
                        ((*line).to_owned(), Style::new()),
                    ]);
                }
                let rest = text.lines().count().saturating_sub(shown.len());
                if rest > 0 {
                    lines.push(quiet(&format!("  │ … {rest} more selected lines")));
                }
            }
        }
        if !companion.hidden.is_empty() {
            lines.push(Vec::new());
            lines.push(quiet("Hidden from agents:"));
        }
        for hidden in &companion.hidden {
            lines.push(vec![
                (cut_left(companion.short(&hidden.path), width / 2), Style::new()),
                (format!("  {}", hidden.reason), theme.quiet()),
            ]);
        }
        for problem in &companion.problems {
            lines.extend(
                wrapped(problem, width)
                    .into_iter()
                    .map(|line| vec![(line, theme.bad())]),
            );
        }
    }
}

pub(super) fn draw_lines(lines: impl IntoIterator<Item = Pieces>, inside: Rect, top: usize, buffer: &mut Buffer) {
    for (offset, line) in (0..inside.height).zip(lines.into_iter().skip(top)) {
        let place = Rect {
            x: inside.x + 1,
            y: inside.y + offset,
            width: inside.width.saturating_sub(2),
            height: 1,
        };
        row(&line, place, Style::new(), buffer);
    }
}
