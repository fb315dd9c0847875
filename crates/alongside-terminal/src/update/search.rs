//! Searching in the open review.

use crate::model::Model;
use crate::review::OpenReview;
use crate::rows::Row;

/// Whether a line contains a pattern; letters match in either case unless the pattern has an upper-case one.
pub(crate) fn contains(line: &str, pattern: &str) -> bool {
    if pattern.chars().any(char::is_uppercase) {
        line.contains(pattern)
    } else {
        line.contains(pattern) || line.to_lowercase().contains(pattern)
    }
}

impl Model {
    pub(super) fn search(&mut self, pattern: &str) {
        let Some(open) = self.open.as_mut() else { return };
        open.search = Some(pattern.to_owned()).filter(|pattern| !pattern.is_empty());
        if open.search.is_some() && !row_matches(open, open.cursor, pattern) {
            self.step_match(true);
        }
    }

    /// Goes to the next or previous match, around the end of the text.
    pub(super) fn step_match(&mut self, forward: bool) {
        let height = self.height();
        let Some(open) = self.open.as_mut() else { return };
        let Some(pattern) = open.search.clone() else {
            self.inform("Nothing to search for; press / first.");
            return;
        };
        let count = open.rows.len();
        let start = open.cursor;
        for step in 1..=count {
            let row = if forward {
                (start + step) % count
            } else {
                (start + count - step) % count
            };
            if !row_matches(open, row, &pattern) {
                continue;
            }
            if let Row::Fold { draft, count, .. } = open.rows[row] {
                // Show what is folded, and go to the line.
                open.cursor = row;
                let lines = draft..draft + count;
                let mut lines: Vec<usize> = lines
                    .filter(|line| contains(open.draft.line(*line), &pattern))
                    .collect();
                if !forward {
                    lines.reverse();
                }
                let line = lines.first().copied();
                open.unfold();
                let found = open
                    .rows
                    .iter()
                    .position(|row| row.draft() == line && !matches!(row, Row::Fold { .. }));
                open.move_to(found.unwrap_or(row), height);
            } else {
                open.move_to(row, height);
            }
            return;
        }
        self.inform(format!("No match for `{pattern}`."));
    }
}

fn row_matches(open: &OpenReview, row: usize, pattern: &str) -> bool {
    let base = |line: usize| contains(open.base.line(line), pattern);
    let draft = |line: usize| contains(open.draft.line(line), pattern);
    let proposal = |line: usize| contains(open.proposal.line(line), pattern);
    match open.rows.get(row) {
        None | Some(Row::Hunk(_)) => false,
        Some(Row::Context { draft: line, .. } | Row::Added { draft: line, .. } | Row::Kept { draft: line, .. }) => {
            draft(*line)
        }
        Some(Row::Removed { base: line, .. }) => base(*line),
        Some(Row::Declined { proposal: line, .. }) => proposal(*line),
        Some(Row::Pair {
            base: left,
            draft: right,
            ..
        }) => left.is_some_and(base) || right.is_some_and(draft),
        Some(Row::DeclinedPair {
            base: left,
            proposal: right,
            ..
        }) => left.is_some_and(base) || right.is_some_and(proposal),
        Some(Row::Fold {
            draft: start, count, ..
        }) => (*start..start + count).any(draft),
    }
}
