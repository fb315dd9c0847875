//! Text from elsewhere, cut into cells that are safe to draw.
//!
//! Nothing reaches the terminal but what [`cells`] yields: control characters, characters that reorder text and invisible ones are spelled
//! out, tabs are spaces, and a character with more marks than a cell should have is cut.

use std::borrow::Cow;

use alongside_core::printable::is_harmful;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

const TAB_WIDTH: usize = 4;
/// More marks on one character would overflow into other lines in some terminals.
const MAX_CELL_CHARS: usize = 8;

/// What is drawn in one or more columns.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Cell<'a> {
    pub(crate) symbol: Cow<'a, str>,
    pub(crate) width: usize,
    /// Where it is in the text, in bytes.
    pub(crate) at: usize,
    /// Whether it stands for something that cannot be drawn.
    pub(crate) is_spelled: bool,
}

/// Cuts a line lazily: only what is looked at costs time, however long the line is.
pub(crate) fn cells(line: &str) -> impl Iterator<Item = Cell<'_>> {
    let mut column = 0;
    pieces(line).map(move |(at, piece)| {
        let cell = cell(at, piece, column);
        column += cell.width;
        cell
    })
}

/// Like [`UnicodeSegmentation::grapheme_indices`], but a run of marks without an end is not searched for its end.
fn pieces(line: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut start = 0;
    std::iter::from_fn(move || {
        let rest = &line[start..];
        if rest.is_empty() {
            return None;
        }
        let window = rest
            .char_indices()
            .nth(MAX_CELL_CHARS * 2)
            .map_or(rest.len(), |(end, _)| end);
        let piece = rest[..window].graphemes(true).next()?;
        let at = start;
        start += piece.len();
        Some((at, piece))
    })
}

fn cell(at: usize, piece: &str, column: usize) -> Cell<'_> {
    if piece == "\t" {
        let width = TAB_WIDTH - column % TAB_WIDTH;
        return Cell {
            symbol: Cow::Borrowed(&"    "[..width]),
            width,
            at,
            is_spelled: false,
        };
    }
    let harmful = piece.chars().any(is_harmful);
    let too_long = piece.chars().nth(MAX_CELL_CHARS).is_some();
    let width = piece.width();
    if !harmful && !too_long && width > 0 {
        return Cell {
            symbol: Cow::Borrowed(piece),
            width,
            at,
            is_spelled: false,
        };
    }
    let symbol: String = if too_long {
        format!("{}…", piece.chars().next().map(spelled).unwrap_or_default())
    } else {
        piece.chars().map(spelled).collect()
    };
    let width = symbol.width();
    Cell {
        symbol: symbol.into(),
        width,
        at,
        is_spelled: true,
    }
}

fn spelled(character: char) -> String {
    match character {
        '\u{0}'..='\u{1f}' => format!("^{}", char::from(character as u8 + b'@')),
        '\u{7f}' => "^?".to_owned(),
        _ if is_harmful(character) || unicode_width::UnicodeWidthChar::width(character).unwrap_or(0) == 0 => {
            format!("<U+{:04X}>", u32::from(character))
        }
        _ => character.to_string(),
    }
}

/// A line with its styles.
pub(crate) struct Drawn<'a, S: Fn(usize) -> Style> {
    pub(crate) line: &'a str,
    /// Columns that are scrolled out on the left.
    pub(crate) skip: usize,
    pub(crate) style: S,
    /// For what is spelled out.
    pub(crate) special: Style,
    /// For what is left of the row.
    pub(crate) rest: Style,
}

impl<S: Fn(usize) -> Style> Drawn<'_, S> {
    /// Draws one row and returns the columns used.
    pub(crate) fn draw(&self, area: Rect, buffer: &mut Buffer) -> u16 {
        let width = usize::from(area.width);
        if width == 0 || area.height == 0 {
            return 0;
        }
        buffer.set_style(Rect { height: 1, ..area }, self.rest);
        let (mut column, mut used) = (0, 0);
        for cell in cells(self.line) {
            let (start, end) = (column, column + cell.width);
            column = end;
            if end <= self.skip {
                continue;
            }
            if start >= self.skip + width {
                // There is more.
                put(buffer, area, width - 1, "›", self.special);
                return area.width;
            }
            let style = if cell.is_spelled {
                (self.style)(cell.at).patch(self.special)
            } else {
                (self.style)(cell.at)
            };
            let is_whole = start >= self.skip && end <= self.skip + width;
            if is_whole && !cell.is_spelled && !cell.symbol.starts_with(' ') {
                put(buffer, area, start - self.skip, &cell.symbol, style);
            } else {
                // A tab, or something spelled out: column by column, cut at the edges.
                let mut place = start;
                for letter in cell.symbol.chars() {
                    let letter_width = unicode_width::UnicodeWidthChar::width(letter).unwrap_or(0).max(1);
                    if place >= self.skip && place + letter_width <= self.skip + width {
                        let letter = if is_whole || cell.is_spelled { letter } else { ' ' };
                        put(buffer, area, place - self.skip, letter.encode_utf8(&mut [0; 4]), style);
                    }
                    place += letter_width;
                }
            }
            used = (end - self.skip).min(width);
        }
        u16::try_from(used).unwrap_or(area.width)
    }
}

fn put(buffer: &mut Buffer, area: Rect, column: usize, symbol: &str, style: Style) {
    let Ok(column) = u16::try_from(column) else { return };
    let x = area.x.saturating_add(column);
    if let Some(cell) = buffer.cell_mut((x, area.y)) {
        cell.set_symbol(symbol).set_style(style);
    }
    // The second half of a wide character must not show what was there before.
    for next in 1..u16::try_from(symbol.width()).unwrap_or(1) {
        if let Some(cell) = buffer.cell_mut((x + next, area.y)) {
            cell.set_symbol(" ").set_style(style);
        }
    }
}

/// The columns that a text takes, up to a limit.
pub(crate) fn width(line: &str, limit: usize) -> usize {
    let mut sum = 0;
    for cell in cells(line) {
        sum += cell.width;
        if sum >= limit {
            return limit;
        }
    }
    sum
}

/// Text as one safe line, cut to a width.
pub(crate) fn label(text: &str, limit: usize) -> String {
    let mut shown = String::new();
    let mut columns = 0;
    for cell in cells(text) {
        if columns + cell.width > limit {
            while columns + 1 > limit {
                let Some(last) = shown.pop() else { return shown };
                columns -= unicode_width::UnicodeWidthChar::width(last).unwrap_or(0);
            }
            shown.push('…');
            return shown;
        }
        columns += cell.width;
        shown.push_str(&cell.symbol);
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(line: &str, skip: usize, width: u16) -> String {
        let area = Rect::new(0, 0, width, 1);
        let mut buffer = Buffer::empty(area);
        let drawn = Drawn {
            line,
            skip,
            style: |_| Style::default(),
            special: Style::default(),
            rest: Style::default(),
        };
        drawn.draw(area, &mut buffer);
        (0..width).map(|x| buffer[(x, 0)].symbol().to_owned()).collect()
    }

    #[test]
    fn control_characters_are_spelled_out() {
        assert_eq!(shown("a\x1b[2Jb\x07\x7f", 0, 14), "a^[[2Jb^G^?   ");
        assert_eq!(shown("a\u{9b}2J", 0, 12), "a<U+009B>2J ");
        assert_eq!(shown("x\r\n", 0, 6), "x^M^J ");
    }

    #[test]
    fn characters_that_reorder_or_hide_text_are_spelled_out() {
        assert_eq!(shown("\u{202e}a\u{2066}", 0, 18), "<U+202E>a<U+2066> ");
        assert_eq!(shown("\u{feff}a\u{200b}", 0, 18), "<U+FEFF>a<U+200B> ");
        assert_eq!(shown("\u{301}a", 0, 10), "<U+0301>a ");
    }

    #[test]
    fn wide_characters_at_an_edge_are_not_cut_in_half() {
        assert_eq!(shown("漢字", 0, 4), "漢 字 ");
        assert_eq!(shown("漢字", 1, 4), " 字  ");
        assert_eq!(shown("a漢字", 0, 2), "a›");
    }

    #[test]
    fn tabs_end_at_multiples_of_four() {
        assert_eq!(shown("a\tb", 0, 6), "a   b ");
        assert_eq!(shown("a\tb", 2, 6), "  b   ");
    }

    #[test]
    fn marks_without_end_take_one_cell() {
        let line = format!("a{}b", "\u{301}".repeat(1_000_000));
        let first = cells(&line).next().unwrap();
        assert_eq!((first.symbol.as_ref(), first.width), ("a…", 2));
    }

    #[test]
    fn long_line_is_read_only_as_far_as_it_is_shown() {
        let line = "x".repeat(5_000_000);
        assert_eq!(shown(&line, 0, 5), "xxxx›");
        assert_eq!(label(&line, 5), "xxxx…");
        assert_eq!(width(&line, 100), 100);
    }
}
