//! An edit of a text as front ends send and receive it: a range and its new text.
//!
//! Offsets count UTF-16 code units, as editors in browsers and most editor protocols do.

use serde::{Deserialize, Serialize};
use thiserror::Error;

const BLOCK: usize = 4096;

/// A replaced range.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextChange {
    /// Start in the old text.
    pub from: usize,
    /// End in the old text.
    pub to: usize,
    pub insert: String,
}

/// An edit that is out of range.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error(
    "the edit from {from} to {to} does not fit the draft: offsets are UTF-16 code units, must ascend, and must not split a character"
)]
pub struct InvalidEdit {
    pub from: usize,
    pub to: usize,
}

impl TextChange {
    /// The single edit between two texts; `None` if they are equal.
    pub fn between(old: &str, new: &str) -> Option<Self> {
        if old == new {
            return None;
        }
        let start = common_prefix(old, new);
        let (old_rest, new_rest) = (&old[start..], &new[start..]);
        let end = common_suffix(old_rest, new_rest);
        let from = utf16_length(&old[..start]);
        Some(Self {
            from,
            to: from + utf16_length(&old_rest[..old_rest.len() - end]),
            insert: new_rest[..new_rest.len() - end].to_owned(),
        })
    }

    /// The same edit, moved by some UTF-16 code units.
    pub(crate) fn moved(self, units: usize) -> Self {
        Self {
            from: self.from + units,
            to: self.to + units,
            insert: self.insert,
        }
    }

    /// Applies ascending, disjoint edits; all offsets are into the old text.
    pub fn apply_all(text: &str, changes: &[Self]) -> Result<String, InvalidEdit> {
        let mut result = String::with_capacity(text.len());
        // The current position in both units.
        let (mut units, mut bytes) = (0, 0);
        for change in changes {
            let misplaced = InvalidEdit {
                from: change.from,
                to: change.to,
            };
            let from = advance(text, &mut units, &mut bytes, change.from).ok_or(misplaced)?;
            result.push_str(&text[from.0..from.1]);
            result.push_str(&change.insert);
            advance(text, &mut units, &mut bytes, change.to).ok_or(misplaced)?;
        }
        result.push_str(&text[bytes..]);
        Ok(result)
    }
}

/// Advances to an offset in UTF-16 code units and returns the bytes passed.
fn advance(text: &str, units: &mut usize, bytes: &mut usize, to: usize) -> Option<(usize, usize)> {
    let start = *bytes;
    while *units < to {
        // Most blocks are ASCII, in which each byte is a unit.
        let block = text.as_bytes()[*bytes..].get(..BLOCK);
        if to - *units >= BLOCK && block.is_some_and(<[u8]>::is_ascii) {
            *units += BLOCK;
            *bytes += BLOCK;
            continue;
        }
        let before = *bytes;
        for character in text[before..].chars().take(BLOCK) {
            if *units >= to {
                break;
            }
            *units += character.len_utf16();
            *bytes += character.len_utf8();
        }
        if *bytes == before {
            return None;
        }
    }
    (*units == to).then_some((start, *bytes))
}

pub(crate) fn utf16_length(text: &str) -> usize {
    // In ASCII text this is the number of bytes.
    if text.is_ascii() {
        text.len()
    } else {
        text.chars().map(char::len_utf16).sum()
    }
}

fn common_prefix(one: &str, other: &str) -> usize {
    let (one_bytes, other_bytes) = (one.as_bytes(), other.as_bytes());
    // Blocks first: much faster than byte by byte, and most of a text is unchanged.
    let blocks = one_bytes.chunks_exact(BLOCK).zip(other_bytes.chunks_exact(BLOCK));
    let start = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    let rest = one_bytes[start..].iter().zip(&other_bytes[start..]);
    let same = start + rest.take_while(|(one, other)| one == other).count();
    one.floor_char_boundary(same).min(other.floor_char_boundary(same))
}

fn common_suffix(one: &str, other: &str) -> usize {
    let (one_bytes, other_bytes) = (one.as_bytes(), other.as_bytes());
    let blocks = one_bytes.rchunks_exact(BLOCK).zip(other_bytes.rchunks_exact(BLOCK));
    let start = blocks.take_while(|(one, other)| one == other).count() * BLOCK;
    let (one_rest, other_rest) = (&one_bytes[..one.len() - start], &other_bytes[..other.len() - start]);
    let rest = one_rest.iter().rev().zip(other_rest.iter().rev());
    let mut same = start + rest.take_while(|(one, other)| one == other).count();
    while !one.is_char_boundary(one.len() - same) || !other.is_char_boundary(other.len() - same) {
        same -= 1;
    }
    same
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn change_between_texts_round_trips(old in "[aé😀\r\n]{0,12}", new in "[aé😀\r\n]{0,12}") {
            let changes: Vec<TextChange> = TextChange::between(&old, &new).into_iter().collect();
            prop_assert_eq!(TextChange::apply_all(&old, &changes), Ok(new));
        }
    }

    fn change(from: usize, to: usize, insert: &str) -> TextChange {
        TextChange {
            from,
            to,
            insert: insert.to_owned(),
        }
    }

    #[test]
    fn change_in_the_middle_of_a_long_text_is_found() {
        let old = "é line\n".repeat(4000);
        let new = old.replacen("é line\né line\n", "é line\nè line\n", 1500);
        let change = TextChange::between(&old, &new).unwrap();
        assert_eq!(TextChange::apply_all(&old, &[change]), Ok(new));
    }

    #[test]
    fn offsets_count_the_same_in_blocks_and_one_by_one() {
        let block = "a".repeat(BLOCK);
        for text in [
            format!("{block}{block}é{block}b"),
            format!("é{block}😀{block}b"),
            block.clone(),
        ] {
            for units in 0..=utf16_length(&text) {
                let mut expected = 0;
                let at = text.char_indices().map(|(at, character)| (at, character.len_utf16()));
                let at = at.chain([(text.len(), 0)]).find_map(|(at, length)| {
                    let is_there = expected == units;
                    expected += length;
                    is_there.then_some(at)
                });
                let (mut position, mut bytes) = (0, 0);
                let found = advance(&text, &mut position, &mut bytes, units).map(|(_, to)| to);
                if units % 997 == 0 || units.abs_diff(BLOCK) < 4 || at.is_none() {
                    assert_eq!(found, at, "{units}");
                }
            }
            let beyond = utf16_length(&text) + 1;
            assert_eq!(advance(&text, &mut 0, &mut 0, beyond), None);
        }
    }

    #[test]
    fn several_changes_are_carried_out_in_one_go() {
        let changed = TextChange::apply_all("a😀b\r\nc", &[change(1, 3, "-"), change(4, 6, "\n"), change(7, 7, "!")]);
        assert_eq!(changed.as_deref(), Ok("a-b\nc!"));
    }

    #[test]
    fn a_change_that_does_not_fit_is_refused() {
        assert!(
            TextChange::apply_all("abc", &[change(2, 9, "")]).is_err(),
            "beyond the end"
        );
        assert!(
            TextChange::apply_all("abc", &[change(2, 2, ""), change(1, 1, "")]).is_err(),
            "not rising"
        );
        assert!(
            TextChange::apply_all("😀", &[change(1, 1, "")]).is_err(),
            "inside a character"
        );
    }
}
