//! Positions in texts, as language clients count them.

use serde_json::Value;

use crate::types::{Position, Range, TextDocumentContentChangeEvent};

/// What `character` counts in a position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// UTF-8 if the client offers it, because it needs no conversion; otherwise UTF-16, which every client supports.
    pub(super) fn negotiate(capabilities: &Value) -> Self {
        let offered = capabilities["general"]["positionEncodings"].as_array();
        let has_utf8 = offered.is_some_and(|offered| offered.iter().any(|name| name == "utf-8"));
        if has_utf8 { Self::Utf8 } else { Self::Utf16 }
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Utf8 => "utf-8",
            Self::Utf16 => "utf-16",
        }
    }

    fn length(self, text: &str) -> usize {
        match self {
            Self::Utf8 => text.len(),
            Self::Utf16 => text.chars().map(char::len_utf16).sum(),
        }
    }
}

/// The byte offset of a position; if that is inside a character, the start of the character.
///
/// Lines end with `\n` only. In the specification a lone `\r` ends one too, but Helix, Kakoune, Neovim and Vim disagree, and editors
/// that agree do not keep it in a text.
pub(super) fn offset(text: &str, position: Position, encoding: Encoding) -> usize {
    let Some(start) = line_start(text, position.line) else {
        return text.len();
    };
    let line = content(&text[start..]);
    match encoding {
        Encoding::Utf8 => start + line.floor_char_boundary(position.character),
        Encoding::Utf16 => {
            let mut units = 0;
            let characters = line.char_indices();
            let passed = characters
                .take_while(|(_, character)| {
                    units += character.len_utf16();
                    units <= position.character
                })
                .last();
            start + passed.map_or(0, |(at, character)| at + character.len_utf8())
        }
    }
}

/// The position of a byte offset at the start of a character.
pub(super) fn position(text: &str, offset: usize, encoding: Encoding) -> Position {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    Position {
        line: before.bytes().filter(|byte| *byte == b'\n').count(),
        character: encoding.length(&before[start..]),
    }
}

/// The position after the character at a position.
pub(super) fn position_after(text: &str, place: Position, encoding: Encoding) -> Position {
    let start = offset(text, place, encoding);
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    position(text, start + length, encoding)
}

/// The byte offset of an offset in UTF-16 code units, at the start of a character.
pub(super) fn utf16_offset(text: &str, units: usize) -> usize {
    let mut passed = 0;
    let mut characters = text.char_indices();
    let found = characters.find(|(_, character)| {
        let is_there = passed >= units;
        passed += character.len_utf16();
        is_there
    });
    found.map_or(text.len(), |(at, _)| at)
}

/// A text with an index of its lines.
pub(super) struct Lines<'text> {
    text: &'text str,
    starts: Vec<usize>,
}

impl<'text> Lines<'text> {
    pub(super) fn new(text: &'text str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// The range of whole lines, without the last line ending; with a count of 0, of the next line.
    pub(super) fn range(&self, first: usize, count: usize, encoding: Encoding) -> Range {
        let last_line = self.starts.len() - 1;
        let first = first.min(last_line);
        let last = (first + count.saturating_sub(1)).min(last_line);
        let line = content(&self.text[self.starts[last]..]);
        Range {
            start: Position {
                line: first,
                character: 0,
            },
            end: Position {
                line: last,
                character: encoding.length(line),
            },
        }
    }

    /// Some lines without their endings.
    pub(super) fn take(&self, first: usize, count: usize) -> impl Iterator<Item = &'text str> {
        let starts = self.starts.iter().skip(first).take(count);
        starts.map(|start| content(&self.text[*start..]))
    }
}

/// Applies a change and returns the byte offset after it.
pub(super) fn apply(text: &mut String, change: TextDocumentContentChangeEvent, encoding: Encoding) -> usize {
    let Some(range) = change.range else {
        *text = change.text;
        return 0;
    };
    let start = offset(text, range.start, encoding);
    let end = offset(text, range.end, encoding).max(start);
    text.replace_range(start..end, &change.text);
    start + change.text.len()
}

fn line_start(text: &str, line: usize) -> Option<usize> {
    match line.checked_sub(1) {
        None => Some(0),
        Some(before) => text.match_indices('\n').nth(before).map(|(end, _)| end + 1),
    }
}

/// The first line without its ending.
fn content(text: &str) -> &str {
    let line = text.find('\n').map_or(text, |end| &text[..end]);
    line.strip_suffix('\r').unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const TEXT: &str = "ab\r\n🦀ü x\n\nlast";

    fn at(line: usize, character: usize) -> Position {
        Position { line, character }
    }

    #[test]
    fn positions_use_the_negotiated_encoding() {
        assert_eq!(offset(TEXT, at(1, 3), Encoding::Utf16), 4 + "🦀ü".len());
        assert_eq!(offset(TEXT, at(1, 6), Encoding::Utf8), 4 + "🦀ü".len());
        for encoding in [Encoding::Utf8, Encoding::Utf16] {
            for (byte, _) in TEXT
                .char_indices()
                .filter(|(_, character)| !matches!(character, '\r' | '\n'))
            {
                assert_eq!(offset(TEXT, position(TEXT, byte, encoding), encoding), byte);
            }
        }
    }

    #[test]
    fn out_of_range_position_is_clamped() {
        assert_eq!(
            offset(TEXT, at(0, 99), Encoding::Utf16),
            2,
            "before the whole line ending"
        );
        assert_eq!(offset(TEXT, at(1, 1), Encoding::Utf16), 4, "not into a character");
        assert_eq!(offset(TEXT, at(1, 2), Encoding::Utf8), 4, "not into a character");
        assert_eq!(offset(TEXT, at(99, 0), Encoding::Utf8), TEXT.len());
        assert_eq!(
            offset("a\rb", at(0, 2), Encoding::Utf8),
            2,
            "a lone carriage return does not end a line"
        );
    }

    #[test]
    fn position_after_the_line_ending_is_on_the_next_line() {
        assert_eq!(position_after(TEXT, at(1, 0), Encoding::Utf16), at(1, 2));
        assert_eq!(position_after(TEXT, at(2, 0), Encoding::Utf16), at(3, 0));
        assert_eq!(position_after(TEXT, at(3, 4), Encoding::Utf16), at(3, 4));
    }

    #[test]
    fn changes_are_applied_in_order() {
        let mut text = TEXT.to_owned();
        let change = |range: Option<(Position, Position)>, new: &str| TextDocumentContentChangeEvent {
            range: range.map(|(start, end)| Range { start, end }),
            text: new.to_owned(),
        };
        apply(&mut text, change(Some((at(0, 0), at(1, 2))), "new "), Encoding::Utf16);
        assert_eq!(text, "new ü x\n\nlast");
        let end = apply(&mut text, change(Some((at(2, 4), at(2, 4))), "!"), Encoding::Utf16);
        assert_eq!((text.as_str(), end), ("new ü x\n\nlast!", text.len()));
        apply(&mut text, change(None, "all"), Encoding::Utf16);
        assert_eq!(text, "all");
    }

    #[test]
    fn range_of_lines_ends_after_their_last_character() {
        let lines = Lines::new(TEXT);
        let range = |first, count| lines.range(first, count, Encoding::Utf16);
        assert_eq!((range(0, 2).start, range(0, 2).end), (at(0, 0), at(1, 5)));
        assert_eq!((range(0, 1).end, range(2, 0).end), (at(0, 2), at(2, 0)));
        assert_eq!((range(9, 3).start, range(9, 3).end), (at(3, 0), at(3, 4)));
        assert_eq!(lines.take(0, 2).collect::<Vec<_>>(), ["ab", "🦀ü x"]);
    }

    #[test]
    fn utf8_is_used_only_if_the_client_offers_it() {
        let offer = |names: &[&str]| Encoding::negotiate(&json!({ "general": { "positionEncodings": names } }));
        assert_eq!(offer(&["utf-32", "utf-8"]), Encoding::Utf8);
        assert_eq!(offer(&["utf-16"]), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(&json!({})), Encoding::Utf16);
    }
}
