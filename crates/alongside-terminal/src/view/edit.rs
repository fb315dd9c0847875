//! The draft while it is edited in place, and where the terminal's cursor is.

use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui_textarea::TextArea;

use crate::cells::{Drawn, width};
use crate::edit::Edit;
use crate::model::{Model, Overlay, View};

use super::list::cut_left;
use super::row;

impl Model {
    pub(super) fn draw_edit_head(&self, edit: &Edit, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let path = self.open.as_ref().map_or("", |open| &*open.summary.path);
        let path = self.companions[edit.key.companion].short(path);
        let state = if edit.is_saving { " saving… " } else { " editing " };
        let room = usize::from(area.width).saturating_sub(10);
        let pieces = [
            (state.to_owned(), theme.accent()),
            (cut_left(path, room), theme.strong()),
        ];
        row(&pieces, area, theme.bar(), buffer);
    }

    pub(super) fn draw_edit(&self, edit: &Edit, area: Rect, buffer: &mut Buffer) {
        let theme = self.options.theme;
        let lines = edit.area.lines();
        let digits = gutter_digits(lines.len());
        let selection = edit.area.selection_range();
        for offset in 0..area.height {
            let index = edit.top + usize::from(offset);
            let Some(line) = lines.get(index) else { break };
            let place = Rect {
                y: area.y + offset,
                height: 1,
                ..area
            };
            let used = row(
                &[(format!("{:>digits$}  ", index + 1), theme.quiet())],
                place,
                Style::new(),
                buffer,
            );
            let selected = selection.and_then(|(start, end)| selected_bytes(line, index, start, end));
            let drawn = Drawn {
                line,
                skip: edit.left,
                style: |at| match &selected {
                    Some(range) if range.contains(&at) => Style::new().add_modifier(Modifier::REVERSED),
                    _ => Style::new(),
                },
                special: theme.special(),
                rest: Style::new(),
            };
            let text = Rect {
                x: place.x + used,
                width: place.width.saturating_sub(used),
                ..place
            };
            drawn.draw(text, buffer);
        }
    }

    /// Where the terminal's cursor belongs, if something is being typed.
    pub(super) fn cursor_position(&self) -> Option<(u16, u16)> {
        let screen = self.screen();
        let Some(overlay) = self.overlay.as_ref() else {
            return (self.view == View::Chat)
                .then(|| self.composer_cursor(screen.body))
                .flatten();
        };
        match overlay {
            Overlay::Edit(edit) => {
                let (row, column) = place(&edit.area);
                let gutter = gutter_digits(edit.area.lines().len()) + 2;
                let x = gutter + column.checked_sub(edit.left)?;
                let y = row.checked_sub(edit.top)?;
                let x = screen.body.x.checked_add(u16::try_from(x).ok()?)?;
                let y = screen.body.y.checked_add(u16::try_from(y).ok()?)?;
                (x < screen.body.right() && y < screen.body.bottom()).then_some((x, y))
            }
            Overlay::Input(input) => {
                let (_, column) = place(&input.area);
                let start = width(&input.purpose.label(), 200) + 3;
                let x = screen.keys.x.checked_add(u16::try_from(start + column).ok()?)?;
                Some((x.min(screen.keys.right().saturating_sub(1)), screen.keys.y))
            }
            _ => None,
        }
    }
}

fn gutter_digits(lines: usize) -> usize {
    lines.max(1).to_string().len().max(3)
}

/// The row of the cursor, and the columns before it.
pub(crate) fn place(area: &TextArea<'_>) -> (usize, usize) {
    let cursor = area.cursor();
    let line = area.lines().get(cursor.0).map_or("", String::as_str);
    let before = line.char_indices().nth(cursor.1).map_or(line, |(end, _)| &line[..end]);
    (cursor.0, width(before, 100_000))
}

fn selected_bytes(
    line: &str,
    row: usize,
    start: (usize, usize),
    end: (usize, usize),
) -> Option<std::ops::Range<usize>> {
    if row < start.0 || row > end.0 {
        return None;
    }
    let byte = |column: usize| line.char_indices().nth(column).map_or(line.len(), |(at, _)| at);
    let from = if row == start.0 { byte(start.1) } else { 0 };
    let to = if row == end.0 { byte(end.1) } else { line.len() };
    Some(from..to)
}
