//! Editing the draft in place.
//!
//! The text goes to the companion when the user is done. Until then another front end may change the draft: both changes are kept if they
//! are in different places.

use std::sync::Arc;

use alongside_core::TextChange;
use crossterm::event::KeyEvent;
use ratatui_textarea::{CursorMove, TextArea};

use crate::message::ReviewKey;

pub(crate) struct Edit {
    pub(crate) key: ReviewKey,
    /// The draft when the editor was opened.
    original: Arc<str>,
    pub(crate) area: TextArea<'static>,
    /// What another editor wrote, byte for byte, as long as nothing is typed here.
    exact: Option<String>,
    pub(crate) top: usize,
    pub(crate) left: usize,
    /// Sent, without a response yet.
    pub(crate) is_saving: bool,
    /// The other front end's text is to be replaced: the user was told and saved again.
    pub(crate) overwrites: bool,
    /// The user was asked whether to discard the text.
    pub(crate) discards: bool,
}

/// How the user's text gets into a draft that has changed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Merged {
    Nothing,
    Change(TextChange),
    /// Both changed the same place.
    Conflict,
}

impl Edit {
    pub(crate) fn new(key: ReviewKey, draft: Arc<str>, line: usize) -> Self {
        let lines = draft.split('\n').map(|line| without_return(line).to_owned()).collect();
        let mut area = TextArea::new(lines);
        area.set_tab_length(4);
        area.set_hard_tab_indent(draft.contains("\n\t"));
        let row = u16::try_from(line).unwrap_or(u16::MAX);
        area.move_cursor(CursorMove::Jump(row, 0));
        Self {
            key,
            original: draft,
            area,
            exact: None,
            top: line.saturating_sub(5),
            left: 0,
            is_saving: false,
            overwrites: false,
            discards: false,
        }
    }

    /// What was written with another editor.
    pub(crate) fn written(key: ReviewKey, original: Arc<str>, text: &str) -> Self {
        let mut edit = Self::new(key, original, 0);
        edit.exact = Some(text.to_owned());
        edit.area = TextArea::new(text.split('\n').map(|line| without_return(line).to_owned()).collect());
        edit
    }

    pub(crate) fn key(&mut self, key: KeyEvent) {
        if self.area.input(key) {
            self.exact = None;
        }
        (self.overwrites, self.discards) = (false, false);
    }

    pub(crate) fn paste(&mut self, text: &str) {
        self.exact = None;
        self.area.insert_str(text.replace("\r\n", "\n").replace('\r', "\n"));
        (self.overwrites, self.discards) = (false, false);
    }

    pub(crate) fn is_changed(&self) -> bool {
        *self.text() != *self.original
    }

    pub(crate) fn text(&self) -> String {
        if let Some(exact) = &self.exact {
            return exact.clone();
        }
        rejoined(&self.original, self.area.lines())
    }

    /// Keeps the cursor visible.
    pub(crate) fn scroll(&mut self, height: usize, width: usize) {
        let cursor = self.area.cursor();
        let (row, column) = (cursor.0, cursor.1);
        self.top = self.top.clamp((row + 1).saturating_sub(height.max(1)), row);
        let line = self.area.lines().get(row).map_or("", String::as_str);
        let before = line.char_indices().nth(column).map_or(line, |(end, _)| &line[..end]);
        let place = crate::cells::width(before, 20_000);
        let width = width.max(8);
        self.left = self.left.clamp((place + 2).saturating_sub(width), place);
    }

    /// The change to make to the companion's draft.
    pub(crate) fn merged(&self, draft: &str) -> Merged {
        merge(&self.original, &self.text(), draft)
    }
}

/// Carries the change from `original` to `edited` over to `draft`.
pub(crate) fn merge(original: &str, edited: &str, draft: &str) -> Merged {
    let Some(ours) = TextChange::between(original, edited) else {
        return Merged::Nothing;
    };
    let Some(theirs) = TextChange::between(original, draft) else {
        return Merged::Change(ours);
    };
    if ours == theirs {
        return Merged::Nothing;
    }
    let grown = theirs.insert.encode_utf16().count();
    if ours.to < theirs.from {
        Merged::Change(ours)
    } else if theirs.to < ours.from {
        let moved = |at: usize| at - (theirs.to - theirs.from) + grown;
        Merged::Change(TextChange {
            from: moved(ours.from),
            to: moved(ours.to),
            insert: ours.insert,
        })
    } else {
        Merged::Conflict
    }
}

fn without_return(line: &str) -> &str {
    line.strip_suffix('\r').unwrap_or(line)
}

/// The edited lines as a text: lines above and below the edited region keep their endings, new ones get the usual ending.
fn rejoined(original: &str, lines: &[String]) -> String {
    let old: Vec<&str> = original.split('\n').collect();
    let same = |(old, new): &(&&str, &String)| without_return(old) == new.as_str();
    let above = old.iter().zip(lines).take_while(same).count();
    let (old_rest, new_rest) = (&old[above..], &lines[above..]);
    let below = old_rest
        .iter()
        .rev()
        .zip(new_rest.iter().rev())
        .take_while(same)
        .count();
    let returns = old.iter().filter(|line| line.ends_with('\r')).count();
    let ending = if returns * 2 > old.len().saturating_sub(1) {
        "\r"
    } else {
        ""
    };
    let middle = &new_rest[..new_rest.len() - below];
    let count = lines.len();
    let mut text = String::with_capacity(original.len() + 64);
    let kept_above = old[..above].iter().map(|line| (*line).to_owned());
    let written = middle.iter().enumerate().map(|(index, line)| {
        // The last piece has no newline after it, and so no ending.
        let is_last = above + index + 1 == count;
        format!("{line}{}", if is_last { "" } else { ending })
    });
    let kept_below = old[old.len() - below..].iter().map(|line| (*line).to_owned());
    for (index, line) in kept_above.chain(written).chain(kept_below).enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(&line);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn edit(original: &str, change: impl FnOnce(&mut Vec<String>)) -> String {
        let mut lines: Vec<String> = original
            .split('\n')
            .map(|line| without_return(line).to_owned())
            .collect();
        change(&mut lines);
        rejoined(original, &lines)
    }

    #[test]
    fn untouched_text_is_returned_byte_for_byte() {
        for text in [
            "",
            "a",
            "a\n",
            "a\r\nb\r\n",
            "a\r\nb\nc",
            "\u{feff}a\n\n",
            "a\r",
            "a\nb\r",
        ] {
            assert_eq!(edit(text, |_| {}), text, "{text:?}");
        }
    }

    #[test]
    fn new_lines_get_the_usual_ending() {
        assert_eq!(
            edit("a\r\nb\r\n", |lines| lines.insert(1, "new".into())),
            "a\r\nnew\r\nb\r\n"
        );
        assert_eq!(edit("a\nb\n", |lines| lines.insert(1, "new".into())), "a\nnew\nb\n");
        assert_eq!(edit("a\nb", |lines| lines.push("c".into())), "a\nb\nc");
    }

    #[test]
    fn other_lines_keep_their_ending() {
        assert_eq!(
            edit("a\nb\r\nc\r\nd\r\n", |lines| lines[2] = "C".into()),
            "a\nb\r\nC\r\nd\r\n"
        );
    }

    #[test]
    fn edits_in_different_places_are_both_kept() {
        let Merged::Change(change) = merge("one\ntwo\nthree\n", "one\ntwo\nTHREE\n", "1 and more\ntwo\nthree\n") else {
            panic!("they do not overlap")
        };
        let text = TextChange::apply_all("1 and more\ntwo\nthree\n", &[change]).unwrap();
        assert_eq!(text, "1 and more\ntwo\nTHREE\n");
    }

    #[test]
    fn edits_in_the_same_place_conflict() {
        assert_eq!(merge("one\n", "two\n", "six\n"), Merged::Conflict);
        assert_eq!(merge("one\n", "two\n", "two\n"), Merged::Nothing);
        assert_eq!(merge("one\n", "one\n", "six\n"), Merged::Nothing);
    }
}
