//! Texts as lists of lines that join to the same bytes.

use std::ops::Range;
use std::sync::Arc;

use memchr::memchr_iter;

/// The number of lines; an unterminated last line counts.
pub(super) fn count_lines(text: &str) -> usize {
    let ended = memchr_iter(b'\n', text.as_bytes()).count();
    ended + usize::from(!text.is_empty() && !text.ends_with('\n'))
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
