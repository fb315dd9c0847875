//! What changes word by word inside a hunk.

use std::time::Duration;

use serde::Serialize;

use super::compare::{Change, token_changes};

/// Longer texts are shown as changed altogether: nobody reads single words in them, and their comparison takes time.
const MAX_BYTES: usize = 256 * 1024;
/// Beyond this the rest is compared coarsely; a front end may ask for many hunks.
const DIFF_TIMEOUT: Duration = Duration::from_millis(50);

/// Whether a piece of text stays, goes or comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WordChangeKind {
    /// It is in both texts.
    Same,
    /// It is in the old text only.
    Removed,
    /// It is in the new text only.
    Added,
}

/// A piece of a comparison word by word. All that stays and goes is the old text, all that stays and comes is the new.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WordChange<'draft> {
    /// Whether it stays, goes or comes.
    pub kind: WordChangeKind,
    /// The piece.
    pub text: &'draft str,
}

/// Compares two texts word by word, or altogether if they are too long for it.
pub(super) fn word_changes<'text>(old: &'text str, new: &'text str) -> Vec<WordChange<'text>> {
    let mut pieces = Vec::new();
    let mut push = |kind, text: &'text str| {
        if !text.is_empty() {
            pieces.push(WordChange { kind, text });
        }
    };
    if old.len().saturating_add(new.len()) > MAX_BYTES {
        push(WordChangeKind::Removed, old);
        push(WordChangeKind::Added, new);
        return pieces;
    }
    let (old_ends, new_ends) = (word_ends(old), word_ends(new));
    let start = |ends: &[usize], word: usize| {
        word.checked_sub(1)
            .and_then(|last| ends.get(last))
            .map_or(0, |end| *end)
    };
    let between = |text: &'text str, ends: &[usize], from: usize, to: usize| {
        text.get(start(ends, from)..start(ends, to)).unwrap_or_default()
    };
    let mut done = 0;
    for Change { old: gone, new: come } in token_changes(words(old, &old_ends), words(new, &new_ends), DIFF_TIMEOUT) {
        push(WordChangeKind::Same, between(old, &old_ends, done, gone.start));
        push(WordChangeKind::Removed, between(old, &old_ends, gone.start, gone.end));
        push(WordChangeKind::Added, between(new, &new_ends, come.start, come.end));
        done = gone.end;
    }
    push(WordChangeKind::Same, between(old, &old_ends, done, old_ends.len()));
    pieces
}

fn words<'text>(text: &'text str, ends: &[usize]) -> impl Iterator<Item = &'text str> {
    let starts = std::iter::once(0).chain(ends.iter().copied());
    std::iter::zip(starts, ends).filter_map(|(start, &end)| text.get(start..end))
}

/// Where the words of a text end. Blanks in a row are one word; so are letters and digits; all else stands alone.
fn word_ends(text: &str) -> Vec<usize> {
    #[derive(PartialEq)]
    enum Kind {
        Letters,
        Blanks,
        Other,
    }
    let kind = |character: char| match character {
        '_' => Kind::Letters,
        ' ' | '\t' => Kind::Blanks,
        _ if character.is_alphanumeric() => Kind::Letters,
        _ => Kind::Other,
    };
    let mut ends = Vec::new();
    let mut last: Option<Kind> = None;
    for (index, character) in text.char_indices() {
        let kind = kind(character);
        if last.is_some_and(|last| last == Kind::Other || last != kind) {
            ends.push(index);
        }
        last = Some(kind);
    }
    if !text.is_empty() {
        ends.push(text.len());
    }
    ends
}

#[cfg(test)]
mod tests {
    use super::*;

    fn render(old: &str, new: &str) -> String {
        let pieces = word_changes(old, new);
        let piece = |change: &WordChange<'_>| match change.kind {
            WordChangeKind::Same => change.text.to_owned(),
            WordChangeKind::Removed => format!("[-{}]", change.text),
            WordChangeKind::Added => format!("[+{}]", change.text),
        };
        pieces.iter().map(piece).collect()
    }

    #[test]
    fn single_words_are_told_apart() {
        assert_eq!(render("let a_b = 1;\n", "let a_c = 1;\n"), "let [-a_b][+a_c] = 1;\n");
        assert_eq!(render("größe  x", "größe x"), "größe[-  ][+ ]x");
        assert_eq!(render("a\r\n", "a\n"), "a[-\r]\n");
        assert_eq!(render("", ""), "");
    }

    #[test]
    fn very_long_texts_change_altogether() {
        let (old, new) = ("a b ".repeat(1_000_000), "a c ".repeat(1_000_000));
        assert_eq!(word_changes(&old, &new).len(), 2);
    }
}
