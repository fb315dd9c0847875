//! Where the lines of a text are.

use std::ops::Range;
use std::sync::Arc;

/// A text with its lines. A line includes its `\n`, as in the companion's ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Text {
    text: Arc<str>,
    starts: Vec<u32>,
}

impl Text {
    pub(crate) fn new(text: Arc<str>) -> Self {
        let newlines = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let starts = std::iter::once(0).chain(newlines.map(|(at, _)| at + 1));
        // Texts are limited to far less than 4 GiB by the protocol.
        let mut starts: Vec<u32> = starts.map(|at| u32::try_from(at).unwrap_or(u32::MAX)).collect();
        if starts.last().is_some_and(|last| *last as usize == text.len()) {
            starts.pop();
        }
        Self { text, starts }
    }

    pub(crate) fn shared(&self) -> &Arc<str> {
        &self.text
    }

    pub(crate) fn count(&self) -> usize {
        self.starts.len()
    }

    fn range(&self, line: usize) -> Option<Range<usize>> {
        let start = *self.starts.get(line)? as usize;
        let end = self.starts.get(line + 1).map_or(self.text.len(), |end| *end as usize);
        Some(start..end)
    }

    /// A line with its ending.
    pub(crate) fn whole(&self, line: usize) -> &str {
        self.range(line)
            .and_then(|range| self.text.get(range))
            .unwrap_or_default()
    }

    /// A line without its `\n`, and without the `\r` before it.
    pub(crate) fn line(&self, line: usize) -> &str {
        without_ending(self.whole(line))
    }
}

pub(crate) fn without_ending(line: &str) -> &str {
    line.strip_suffix('\n')
        .map_or(line, |line| line.strip_suffix('\r').unwrap_or(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_those_of_the_companion() {
        for (text, lines) in [
            ("", &[][..]),
            ("a", &["a"]),
            ("a\n", &["a"]),
            ("a\r\n\nb", &["a", "", "b"]),
            ("\n\n", &["", ""]),
            ("a\rb\n", &["a\rb"]),
        ] {
            let text = Text::new(text.into());
            let found: Vec<&str> = (0..text.count()).map(|line| text.line(line)).collect();
            assert_eq!(found, lines);
        }
    }
}
