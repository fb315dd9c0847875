//! Diffs and their size, for users.

use serde::{Deserialize, Serialize};
use similar::TextDiff;

use crate::draft::{Deadline, Draft, HunkState};

/// How many lines a change adds and removes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangeSize {
    /// Lines only in the new text.
    pub added: usize,
    /// Lines only in the old text.
    pub removed: usize,
}

impl ChangeSize {
    /// The size of a draft's change to its base.
    pub fn of(draft: &Draft) -> Self {
        let changing = draft.hunks().filter(|hunk| hunk.state != HunkState::Rejected);
        changing.fold(Self::default(), |size, hunk| Self {
            added: size.added + hunk.draft.count,
            removed: size.removed + hunk.base.count,
        })
    }
}

/// A unified diff; `old_name` is `/dev/null` for a new file.
pub fn unified(old: &str, new: &str, old_name: &str, new_name: &str, deadline: Deadline) -> String {
    let mut configuration = TextDiff::configure();
    if let Some(deadline) = deadline {
        configuration.deadline(deadline);
    }
    configuration
        .diff_lines(old, new)
        .unified_diff()
        .context_radius(3)
        .header(old_name, new_name)
        .to_string()
}

/// Changes that are invisible in a diff.
pub fn invisible_changes(old: &str, new: &str) -> Vec<&'static str> {
    let mut notes = Vec::new();
    if old.is_empty() || new.is_empty() {
        return notes;
    }
    let has_mark = |text: &str| text.starts_with('\u{feff}');
    match (has_mark(old), has_mark(new)) {
        (true, false) => notes.push("the byte order mark is removed"),
        (false, true) => notes.push("a byte order mark is added"),
        _ => {}
    }
    let ends_lines_with_crlf = |text: &str| {
        let mut returns = memchr::memchr_iter(b'\r', text.as_bytes());
        returns.any(|index| text.as_bytes().get(index + 1) == Some(&b'\n'))
    };
    match (ends_lines_with_crlf(old), ends_lines_with_crlf(new)) {
        (true, false) if new.contains('\n') => notes.push("the line endings change from CRLF to LF"),
        (false, true) if old.contains('\n') => notes.push("the line endings change from LF to CRLF"),
        _ => {}
    }
    match (old.ends_with('\n'), new.ends_with('\n')) {
        (true, false) => notes.push("the newline at the end of the file is removed"),
        (false, true) => notes.push("a newline is added at the end of the file"),
        _ => {}
    }
    notes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_measured_in_lines() {
        let size = |old, new| ChangeSize::of(&Draft::new(old, new, None));
        assert_eq!(size("a\nb\nc\n", "a\nx\ny\nc\n"), ChangeSize { added: 2, removed: 1 });
        assert_eq!(size("", ""), ChangeSize::default());
    }

    #[test]
    fn a_missing_final_newline_shows_in_the_difference() {
        let text = unified("a\n", "a", "old", "new", None);
        assert!(text.contains("\\ No newline at end of file"), "{text}");
    }

    #[test]
    fn what_cannot_be_seen_is_said() {
        assert_eq!(invisible_changes("\u{feff}a\r\n", "a\n").len(), 2);
        assert_eq!(
            invisible_changes("a\n", "a"),
            ["the newline at the end of the file is removed"]
        );
        assert!(invisible_changes("a\n", "b\n").is_empty());
        assert!(invisible_changes("", "b").is_empty());
    }
}
