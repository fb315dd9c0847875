//! A change as rows: unified or side by side, with unchanged regions folded.

use std::collections::BTreeSet;
use std::ops::Range;

use alongside_core::draft::{Hunk, HunkState, LineRange};

/// Unchanged lines shown around a hunk.
const SURROUNDINGS: usize = 3;
/// Shorter regions are not folded.
const MIN_FOLD: usize = 4;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Layout {
    Unified,
    Split,
}

/// What is in a row. Line numbers are from 0; side by side, a row has a line on each side, or one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Row {
    /// The head of a hunk, by its index.
    Hunk(usize),
    /// Unchanged.
    Context {
        base: usize,
        draft: usize,
    },
    Removed {
        base: usize,
        hunk: usize,
    },
    Added {
        draft: usize,
        hunk: usize,
    },
    /// The agent's text in a rejected hunk, or in one that conflicts.
    Declined {
        proposal: usize,
        hunk: usize,
    },
    /// A line of the file that stays because the hunk is rejected.
    Kept {
        base: usize,
        draft: usize,
        hunk: usize,
    },
    /// Side by side: the file's line, and the draft's.
    Pair {
        base: Option<usize>,
        draft: Option<usize>,
        hunk: usize,
    },
    /// Side by side, in a rejected hunk: the file's line, and the agent's.
    DeclinedPair {
        base: Option<usize>,
        proposal: Option<usize>,
        hunk: usize,
    },
    /// Unchanged lines that are not shown.
    Fold {
        base: usize,
        draft: usize,
        count: usize,
    },
}

impl Row {
    /// The index of the hunk that the row belongs to.
    pub(crate) fn hunk(self) -> Option<usize> {
        match self {
            Self::Hunk(hunk)
            | Self::Removed { hunk, .. }
            | Self::Added { hunk, .. }
            | Self::Declined { hunk, .. }
            | Self::Kept { hunk, .. }
            | Self::Pair { hunk, .. }
            | Self::DeclinedPair { hunk, .. } => Some(hunk),
            Self::Context { .. } | Self::Fold { .. } => None,
        }
    }

    /// The draft's line here, if any.
    pub(crate) fn draft(self) -> Option<usize> {
        match self {
            Self::Context { draft, .. }
            | Self::Added { draft, .. }
            | Self::Kept { draft, .. }
            | Self::Fold { draft, .. } => Some(draft),
            Self::Pair { draft, .. } => draft,
            _ => None,
        }
    }

    /// The file's line here, if any.
    pub(crate) fn base(self) -> Option<usize> {
        match self {
            Self::Context { base, .. }
            | Self::Removed { base, .. }
            | Self::Kept { base, .. }
            | Self::Fold { base, .. } => Some(base),
            Self::Pair { base, .. } | Self::DeclinedPair { base, .. } => base,
            _ => None,
        }
    }
}

/// Which unchanged regions are shown.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Unfolded {
    pub(crate) all: bool,
    /// By the first line of the file that is folded.
    pub(crate) some: BTreeSet<usize>,
}

/// The rows of a change with `lines` lines in the draft.
pub(crate) fn rows(hunks: &[Hunk], base_lines: usize, layout: Layout, unfolded: &Unfolded) -> Vec<Row> {
    let mut rows = Rows {
        rows: Vec::new(),
        unfolded,
    };
    let (mut base, mut draft) = (0, 0);
    for (index, hunk) in hunks.iter().enumerate() {
        let start = hunk.base.start.saturating_sub(1);
        rows.unchanged(base, draft, start.saturating_sub(base), index > 0, true);
        rows.rows.push(Row::Hunk(index));
        rows.hunk(index, hunk, layout);
        base = range(hunk.base).end;
        draft = range(hunk.draft).end;
    }
    rows.unchanged(base, draft, base_lines.saturating_sub(base), !hunks.is_empty(), false);
    rows.rows
}

fn range(lines: LineRange) -> Range<usize> {
    let start = lines.start.saturating_sub(1);
    start..start + lines.count
}

struct Rows<'a> {
    rows: Vec<Row>,
    unfolded: &'a Unfolded,
}

impl Rows<'_> {
    fn unchanged(&mut self, base: usize, draft: usize, count: usize, follows: bool, precedes: bool) {
        let head = if follows { SURROUNDINGS } else { 0 };
        let tail = if precedes { SURROUNDINGS } else { 0 };
        let folded = count.saturating_sub(head + tail);
        let is_shown = folded < MIN_FOLD || self.unfolded.all || self.unfolded.some.contains(&(base + head));
        let context = |line: usize| Row::Context {
            base: base + line,
            draft: draft + line,
        };
        if is_shown {
            self.rows.extend((0..count).map(context));
            return;
        }
        self.rows.extend((0..head).map(context));
        self.rows.push(Row::Fold {
            base: base + head,
            draft: draft + head,
            count: folded,
        });
        self.rows.extend((head + folded..count).map(context));
    }

    fn hunk(&mut self, hunk: usize, of: &Hunk, layout: Layout) {
        let (base, draft, proposal) = (range(of.base), range(of.draft), range(of.proposal));
        match (layout, of.state) {
            (Layout::Unified, HunkState::Rejected) => {
                let kept = base.zip(draft).map(|(base, draft)| Row::Kept { base, draft, hunk });
                self.rows.extend(kept);
                self.rows
                    .extend(proposal.map(|proposal| Row::Declined { proposal, hunk }));
            }
            (Layout::Unified, state) => {
                self.rows.extend(base.map(|base| Row::Removed { base, hunk }));
                self.rows.extend(draft.map(|draft| Row::Added { draft, hunk }));
                if state == HunkState::Conflict {
                    self.rows
                        .extend(proposal.map(|proposal| Row::Declined { proposal, hunk }));
                }
            }
            (Layout::Split, HunkState::Rejected) => {
                self.rows
                    .extend(zipped(base, proposal).map(|(base, proposal)| Row::DeclinedPair { base, proposal, hunk }));
            }
            (Layout::Split, state) => {
                self.rows
                    .extend(zipped(base, draft).map(|(base, draft)| Row::Pair { base, draft, hunk }));
                if state == HunkState::Conflict {
                    self.rows
                        .extend(zipped(0..0, proposal).map(|(base, proposal)| Row::DeclinedPair {
                            base,
                            proposal,
                            hunk,
                        }));
                }
            }
        }
    }
}

fn zipped(left: Range<usize>, right: Range<usize>) -> impl Iterator<Item = (Option<usize>, Option<usize>)> {
    let count = left.len().max(right.len());
    let at = |range: &Range<usize>, index: usize| range.clone().nth(index);
    (0..count).map(move |index| (at(&left, index), at(&right, index)))
}

#[cfg(test)]
mod tests {
    use alongside_core::draft::{Draft, HunkDecision};

    use super::*;

    fn sample() -> (Draft, usize) {
        let base = (1..=40).fold(String::new(), |text, line| text + &line.to_string() + "\n");
        let proposal = base.replace("20\n", "twenty\nand more\n");
        (Draft::new(base, proposal, None), 40)
    }

    #[test]
    fn unchanged_regions_are_folded_around_hunks() {
        let (draft, lines) = sample();
        let hunks: Vec<_> = draft.hunks().collect();
        let found = rows(&hunks, lines, Layout::Unified, &Unfolded::default());
        assert_eq!(
            found[0],
            Row::Fold {
                base: 0,
                draft: 0,
                count: 16
            }
        );
        assert_eq!(found[4], Row::Hunk(0));
        assert_eq!(found[5], Row::Removed { base: 19, hunk: 0 });
        assert_eq!(found[6], Row::Added { draft: 19, hunk: 0 });
        assert_eq!(
            found.last(),
            Some(&Row::Fold {
                base: 23,
                draft: 24,
                count: 17
            })
        );
        let all = Unfolded {
            all: true,
            ..Unfolded::default()
        };
        // Every line, one removed, two added, one head.
        assert_eq!(rows(&hunks, lines, Layout::Unified, &all).len(), 39 + 1 + 2 + 1);
    }

    #[test]
    fn rejected_hunk_shows_what_stays_and_what_was_proposed() {
        let (mut draft, lines) = sample();
        let id = draft.hunks().next().unwrap().id;
        draft.set_hunk(id, HunkDecision::Rejected).unwrap();
        let hunks: Vec<_> = draft.hunks().collect();
        let unified = rows(&hunks, lines, Layout::Unified, &Unfolded::default());
        assert_eq!(
            unified[5],
            Row::Kept {
                base: 19,
                draft: 19,
                hunk: 0
            }
        );
        assert_eq!(unified[6], Row::Declined { proposal: 19, hunk: 0 });
        let split = rows(&hunks, lines, Layout::Split, &Unfolded::default());
        let second = Row::DeclinedPair {
            base: None,
            proposal: Some(20),
            hunk: 0,
        };
        assert_eq!(split[6], second);
    }

    #[test]
    fn every_line_of_both_texts_appears_once() {
        let (draft, lines) = sample();
        let hunks: Vec<_> = draft.hunks().collect();
        let all = Unfolded {
            all: true,
            ..Unfolded::default()
        };
        for layout in [Layout::Unified, Layout::Split] {
            let found = rows(&hunks, lines, layout, &all);
            let bases: Vec<usize> = found.iter().filter_map(|row| row.base()).collect();
            let drafts: Vec<usize> = found.iter().filter_map(|row| row.draft()).collect();
            assert_eq!(bases, (0..40).collect::<Vec<_>>());
            assert_eq!(drafts, (0..41).collect::<Vec<_>>());
        }
    }
}
