//! The words that differ between two lines.

use std::ops::Range;
use std::time::{Duration, Instant};

use similar::{Algorithm, DiffTag};

/// Above this, marking words costs more than it shows.
const MAX_LINE_BYTES: usize = 2_000;
/// Of one pair of lines.
const TIMEOUT: Duration = Duration::from_millis(2);

/// The changed byte ranges of an old and a new line; none where they would only be noise.
pub(crate) fn changed_words(old: &str, new: &str) -> (Vec<Range<usize>>, Vec<Range<usize>>) {
    if old == new || old.is_empty() || new.is_empty() || old.len().max(new.len()) > MAX_LINE_BYTES {
        return Default::default();
    }
    let (old_words, new_words) = (words(old), words(new));
    let texts = |words: &[Range<usize>], line: &str| -> Vec<String> {
        words.iter().map(|word| line[word.clone()].to_owned()).collect()
    };
    let (old_texts, new_texts) = (texts(&old_words, old), texts(&new_words, new));
    let deadline = Instant::now() + TIMEOUT;
    let operations = similar::capture_diff_slices_deadline(Algorithm::Myers, &old_texts, &new_texts, Some(deadline));
    let (mut removed, mut added) = (Vec::new(), Vec::new());
    for operation in operations.iter().filter(|operation| operation.tag() != DiffTag::Equal) {
        add(&mut removed, &old_words[operation.old_range()]);
        add(&mut added, &new_words[operation.new_range()]);
    }
    let length = |ranges: &[Range<usize>]| ranges.iter().map(ExactSizeIterator::len).sum::<usize>();
    // As on the page.
    if (length(&removed) + length(&added)) * 4 > (old.len() + new.len()) * 3 {
        return Default::default();
    }
    (removed, added)
}

fn add(ranges: &mut Vec<Range<usize>>, words: &[Range<usize>]) {
    if let (Some(first), Some(last)) = (words.first(), words.last()) {
        ranges.push(first.start..last.end);
    }
}

/// Words, runs of whitespace, and every other character by itself.
fn words(line: &str) -> Vec<Range<usize>> {
    let kind = |character: char| match character {
        _ if character.is_alphanumeric() || character == '_' => 1,
        _ if character.is_whitespace() => 2,
        _ => 0,
    };
    let mut words: Vec<Range<usize>> = Vec::new();
    let mut last = 0;
    for (at, character) in line.char_indices() {
        let (now, end) = (kind(character), at + character.len_utf8());
        match words.last_mut() {
            Some(word) if now != 0 && now == last => word.end = end,
            _ => words.push(at..end),
        }
        last = now;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_changed_words_are_marked() {
        let (old, new) = ("let count = total(1);", "let count = sum(1, 2);");
        let (removed, added) = changed_words(old, new);
        let texts = |line: &str, ranges: &[Range<usize>]| -> Vec<String> {
            ranges.iter().map(|range| line[range.clone()].to_owned()).collect()
        };
        assert_eq!(texts(old, &removed), ["total"]);
        assert_eq!(texts(new, &added), ["sum", ", 2"]);
    }

    #[test]
    fn lines_with_little_in_common_have_no_marks() {
        assert_eq!(changed_words("alpha beta", "one two three"), (vec![], vec![]));
        assert_eq!(changed_words(&"x".repeat(5000), &"y".repeat(5000)), (vec![], vec![]));
    }
}
