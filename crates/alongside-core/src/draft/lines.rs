//! Texts as lists of lines that join to the same bytes.

use std::ops::Range;
use std::sync::Arc;

use memchr::{memchr_iter, memrchr_iter};

use super::compare::Shared;

/// The number of lines; an unterminated last line counts.
pub(super) fn count_lines(text: &str) -> usize {
    let ended = memchr_iter(b'\n', text.as_bytes()).count();
    ended + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The lines, as `split_inclusive` returns them, but found many bytes at a time.
pub(super) fn lines_of(text: &str) -> impl Iterator<Item = &str> {
    let ended = memchr_iter(b'\n', text.as_bytes()).map(|index| index + 1);
    let unterminated = (!text.is_empty() && !text.ends_with('\n')).then_some(text.len());
    let mut start = 0;
    ended.chain(unterminated).map(move |end| {
        let line = text.get(start..end).unwrap_or_default();
        start = end;
        line
    })
}

/// A text with an index of its lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Text {
    text: Arc<str>,
    /// The start of each line, then the end of the text. Shared, because drafts are cloned.
    starts: Arc<[usize]>,
}

impl Text {
    pub(super) fn new(text: Arc<str>) -> Self {
        let mut starts = Vec::with_capacity(count_lines(&text) + 1);
        starts.push(0);
        starts.extend(memchr_iter(b'\n', text.as_bytes()).map(|index| index + 1));
        if starts.last() != Some(&text.len()) {
            starts.push(text.len());
        }
        Self {
            text,
            starts: starts.into(),
        }
    }

    /// The same as [`new`](Self::new), for a text that shares lines with this one: those are not searched again.
    pub(super) fn beside(&self, text: Arc<str>, shared: Shared) -> Self {
        let Shared { prefix, suffix } = shared;
        let before = self.starts.partition_point(|&start| start <= prefix);
        let after = self.starts.partition_point(|&start| start <= self.text.len() - suffix);
        let before = self.starts.get(..before).unwrap_or_default();
        let after = self.starts.get(after..).unwrap_or_default();
        let between = prefix..text.len() - suffix;
        let between = memchr_iter(b'\n', text.as_bytes().get(between).unwrap_or_default());
        let mut between: Vec<usize> = between.map(|index| prefix + index + 1).collect();
        let end = between.last().copied().unwrap_or(prefix);
        if after.is_empty() && end != text.len() {
            between.push(text.len());
        }
        let after = after.iter().map(|start| start + text.len() - self.text.len());
        let starts = before.iter().copied().chain(between).chain(after).collect();
        Self { text, starts }
    }

    /// How many lines there are before this byte, where a line starts.
    pub(super) fn lines_before(&self, start: usize) -> usize {
        self.starts.partition_point(|&other| other < start)
    }

    pub(super) fn as_str(&self) -> &str {
        &self.text
    }

    pub(super) fn shared(&self) -> &Arc<str> {
        &self.text
    }

    pub(super) fn line_count(&self) -> usize {
        self.starts.len() - 1
    }

    /// The bytes of some lines.
    pub(super) fn bytes(&self, lines: &Range<usize>) -> Range<usize> {
        let bounds = self.starts.get(lines.start).zip(self.starts.get(lines.end));
        bounds.map_or_else(Range::default, |(&start, &end)| start..end)
    }

    /// The text of some lines.
    pub(super) fn slice(&self, lines: &Range<usize>) -> &str {
        self.text.get(self.bytes(lines)).unwrap_or_default()
    }
}

/// Finds lines from one that is known, without an index of all of them: an edit concerns a few lines of a large text.
pub(super) struct LineFinder<'text> {
    text: &'text str,
    /// A line, and where it starts.
    line: usize,
    start: usize,
}

impl<'text> LineFinder<'text> {
    pub(super) fn new(text: &'text str, line: usize, start: usize) -> Self {
        Self { text, line, start }
    }

    /// The text of some lines.
    pub(super) fn slice(&mut self, lines: &Range<usize>) -> &'text str {
        let start = self.start_of(lines.start);
        let end = self.start_of(lines.end);
        self.text.get(start..end).unwrap_or_default()
    }

    /// Where a line starts; the end of the text for the one after the last.
    fn start_of(&mut self, line: usize) -> usize {
        let bytes = self.text.as_bytes();
        if let Some(after) = line.checked_sub(self.line + 1) {
            let below = bytes.get(self.start..).unwrap_or_default();
            let Some(index) = memchr_iter(b'\n', below).nth(after) else {
                // The last line is unterminated: lines cannot be counted back from there.
                return self.text.len();
            };
            self.start += index + 1;
        } else if line < self.line {
            let above = bytes.get(..self.start).unwrap_or_default();
            // The first one ends the line above.
            let found = memrchr_iter(b'\n', above).nth(self.line - line);
            self.start = found.map_or(0, |index| index + 1);
        }
        self.line = line;
        self.start
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_join_to_the_same_text() {
        for text in ["", "a", "a\n", "a\nbc", "\n\nbc\n\n", "é\r\n😀"] {
            let lines: Vec<&str> = lines_of(text).collect();
            assert_eq!(lines, text.split_inclusive('\n').collect::<Vec<_>>());
            assert_eq!(lines.len(), count_lines(text));
        }
    }

    #[test]
    fn lines_are_found_from_every_other_line() {
        for text in ["", "a", "a\n", "a\nbc", "a\n\nbc\n\n", "\n\n\nd", "é\r\n😀\r\n"] {
            let index = Text::new(text.into());
            let count = index.line_count();
            for known in 0..=count {
                for lines in (0..=count).flat_map(|start| (start..=count).map(move |end| start..end)) {
                    let start = index.bytes(&(known..known)).start;
                    if known == count && !text.is_empty() && !text.ends_with('\n') {
                        continue;
                    }
                    let mut finder = LineFinder::new(text, known, start);
                    assert_eq!(
                        finder.slice(&lines),
                        index.slice(&lines),
                        "{text:?} {lines:?} from {known}"
                    );
                    assert_eq!(finder.slice(&(0..count)), text, "{text:?} after {lines:?}");
                }
            }
        }
    }
}
