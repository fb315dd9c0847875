//! Positions in texts, as language clients count them.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What the character of a position counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Encoding {
    Utf8,
    Utf16,
}

impl Encoding {
    /// The one that costs nobody anything, if the client offers it; else the one that every client knows.
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

/// A place in a text, from line 0 and character 0 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) struct Position {
    pub(super) line: usize,
    pub(super) character: usize,
}

/// A stretch of a text.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Range {
    pub(super) start: Position,
    pub(super) end: Position,
}

/// What changed in a document: a stretch of it, or all.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct ContentChange {
    pub(super) range: Option<Range>,
    pub(super) text: String,
}

/// The byte that a position means; the nearest one before it that begins a character, if it means none.
///
/// Lines end with `\n` only. The specification would have a lone `\r` end one too, but Helix, Kakoune, Neovim and Vim do
/// not count it, and editors that would count it do not keep it in a text.
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

/// The position of a byte that begins a character.
pub(super) fn position(text: &str, offset: usize, encoding: Encoding) -> Position {
    let before = &text[..offset];
    let start = before.rfind('\n').map_or(0, |end| end + 1);
    Position {
        line: before.bytes().filter(|byte| *byte == b'\n').count(),
        character: encoding.length(&before[start..]),
    }
}

/// The position behind the character at a position.
pub(super) fn behind(text: &str, place: Position, encoding: Encoding) -> Position {
    let start = offset(text, place, encoding);
    let length = text[start..].chars().next().map_or(0, char::len_utf8);
    position(text, start + length, encoding)
}

/// The byte at a count of UTF-16 code units that splits no character.
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

/// A text whose lines are asked for again and again.
pub(super) struct Lines<'text> {
    text: &'text str,
    starts: Vec<usize>,
}

impl<'text> Lines<'text> {
    pub(super) fn of(text: &'text str) -> Self {
        let ends = text.match_indices('\n').map(|(end, _)| end + 1);
        Self {
            text,
            starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    /// The stretch of whole lines, without the last one's ending; of the line that comes next, if there are no lines.
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

    /// Some lines, without their endings.
    pub(super) fn take(&self, first: usize, count: usize) -> impl Iterator<Item = &'text str> {
        let starts = self.starts.iter().skip(first).take(count);
        starts.map(|start| content(&self.text[*start..]))
    }
}

/// Carries a change out; gives the byte behind it.
pub(super) fn apply(text: &mut String, change: ContentChange, encoding: Encoding) -> usize {
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
    fn positions_are_counted_as_was_agreed() {
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
    fn a_position_that_means_nothing_is_moved_to_one_that_does() {
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
            "a lone carriage return ends no line"
        );
    }

    #[test]
    fn behind_the_last_character_of_a_line_comes_the_next_line() {
        assert_eq!(behind(TEXT, at(1, 0), Encoding::Utf16), at(1, 2));
        assert_eq!(behind(TEXT, at(2, 0), Encoding::Utf16), at(3, 0));
        assert_eq!(behind(TEXT, at(3, 4), Encoding::Utf16), at(3, 4));
    }

    #[test]
    fn changes_are_carried_out_one_after_the_other() {
        let mut text = TEXT.to_owned();
        let change = |range: Option<(Position, Position)>, new: &str| ContentChange {
            range: range.map(|(start, end)| Range { start, end }),
            text: new.to_owned(),
        };
        apply(&mut text, change(Some((at(0, 0), at(1, 2))), "new "), Encoding::Utf16);
        assert_eq!(text, "new ü x\n\nlast");
        let behind = apply(&mut text, change(Some((at(2, 4), at(2, 4))), "!"), Encoding::Utf16);
        assert_eq!((text.as_str(), behind), ("new ü x\n\nlast!", text.len()));
        apply(&mut text, change(None, "all"), Encoding::Utf16);
        assert_eq!(text, "all");
    }

    #[test]
    fn whole_lines_reach_to_their_last_character() {
        let lines = Lines::of(TEXT);
        let range = |first, count| lines.range(first, count, Encoding::Utf16);
        assert_eq!((range(0, 2).start, range(0, 2).end), (at(0, 0), at(1, 5)));
        assert_eq!((range(0, 1).end, range(2, 0).end), (at(0, 2), at(2, 0)));
        assert_eq!((range(9, 3).start, range(9, 3).end), (at(3, 0), at(3, 4)));
        assert_eq!(lines.take(0, 2).collect::<Vec<_>>(), ["ab", "🦀ü x"]);
    }

    #[test]
    fn bytes_are_counted_only_with_a_client_that_can() {
        let offer = |names: &[&str]| Encoding::negotiate(&json!({ "general": { "positionEncodings": names } }));
        assert_eq!(offer(&["utf-32", "utf-8"]), Encoding::Utf8);
        assert_eq!(offer(&["utf-16"]), Encoding::Utf16);
        assert_eq!(Encoding::negotiate(&json!({})), Encoding::Utf16);
    }
}
