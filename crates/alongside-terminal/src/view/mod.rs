//! What is drawn. Everything that comes from elsewhere goes through [`crate::cells`].

mod chat;
mod edit;
mod help;
mod list;
mod panels;
mod review;
mod status;

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::widgets::{Clear, Widget};

use crate::cells::Drawn;
use crate::model::{Model, Overlay, View};

/// A line of pieces, each with its style.
pub(crate) type Pieces = Vec<(String, Style)>;

impl Model {
    pub fn draw(&self, frame: &mut Frame<'_>) {
        let screen = self.screen();
        let buffer = frame.buffer_mut();
        match self.overlay.as_ref() {
            Some(Overlay::Edit(edit)) => {
                self.draw_edit_head(edit, screen.head, buffer);
                self.draw_edit(edit, screen.body, buffer);
            }
            _ => match (self.view, self.open.as_ref()) {
                (View::Review, Some(open)) => {
                    self.draw_review_head(open, screen.head, buffer);
                    self.draw_review(open, screen.body, buffer);
                }
                (View::Chat, _) => {
                    self.draw_chat_head(screen.head, buffer);
                    self.draw_chat(screen.body, buffer);
                }
                _ => {
                    self.draw_list_head(screen.head, buffer);
                    self.draw_list(screen.body, buffer);
                }
            },
        }
        self.draw_notice(screen.notice, buffer);
        self.draw_keys(screen.keys, buffer);
        self.draw_status(screen.status, buffer);
        self.draw_overlay(screen.body, screen.keys, buffer);
        if let Some((x, y)) = self.cursor_position() {
            frame.set_cursor_position((x, y));
        }
    }
}

/// Draws pieces on one row, cut at its end.
pub(crate) fn row(pieces: &[(String, Style)], area: Rect, style: Style, buffer: &mut Buffer) -> u16 {
    buffer.set_style(
        Rect {
            height: area.height.min(1),
            ..area
        },
        style,
    );
    let mut used = 0;
    for (text, piece_style) in pieces {
        let rest = Rect {
            x: area.x + used,
            width: area.width - used,
            ..area
        };
        if rest.width == 0 {
            break;
        }
        let patched = style.patch(*piece_style);
        let drawn = Drawn {
            line: text,
            skip: 0,
            style: |_| patched,
            special: patched,
            rest: style,
        };
        used += drawn.draw(rest, buffer);
    }
    used
}

/// Draws pieces at the end of a row, if they fit after `used` columns.
pub(crate) fn right(pieces: &[(String, Style)], area: Rect, used: u16, style: Style, buffer: &mut Buffer) {
    let width: usize = pieces.iter().map(|(text, _)| crate::cells::width(text, 1000)).sum();
    let Ok(width) = u16::try_from(width) else { return };
    if used + width < area.width {
        let place = Rect {
            x: area.x + area.width - width,
            width,
            ..area
        };
        row(pieces, place, style, buffer);
    }
}

/// Text cut into lines of a width, at spaces where possible.
pub(crate) fn wrapped(text: &str, width: usize) -> Vec<String> {
    let width = width.max(4);
    let mut lines = Vec::new();
    for paragraph in text.split('\n') {
        let mut line = String::new();
        let mut columns = 0;
        for word in paragraph.split_inclusive(' ') {
            let length = crate::cells::width(word.trim_end(), 100_000);
            if columns + length > width && columns > 0 {
                lines.push(std::mem::take(&mut line));
                columns = 0;
            }
            if length > width {
                for cell in crate::cells::cells(word) {
                    if columns + cell.width > width {
                        lines.push(std::mem::take(&mut line));
                        columns = 0;
                    }
                    line.push_str(&cell.symbol);
                    columns += cell.width;
                }
            } else {
                line.push_str(word);
                columns += crate::cells::width(word, 100_000);
            }
        }
        lines.push(line);
    }
    lines
}

/// A box in the middle of an area, and what is inside of it.
pub(crate) fn popup(area: Rect, width: u16, height: u16, title: &str, style: Style, buffer: &mut Buffer) -> Rect {
    use ratatui::widgets::{Block, BorderType};
    let width = width.min(area.width);
    let height = height.min(area.height);
    let place = Rect {
        x: area.x + (area.width - width) / 2,
        y: area.y + (area.height - height) / 2,
        width,
        height,
    };
    Clear.render(place, buffer);
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(style)
        .title(format!(" {title} "));
    let inside = block.inner(place);
    block.render(place, buffer);
    inside
}
