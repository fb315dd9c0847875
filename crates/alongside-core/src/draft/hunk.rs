//! What front ends see of a draft.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::segment::{Originals, Segment};

/// Identifies a hunk within one revision of its review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HunkId(pub u32);

impl fmt::Display for HunkId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Whose text a hunk has now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkState {
    /// The agent's.
    Accepted,
    /// The file's.
    Rejected,
    /// The user's.
    Edited,
    /// The draft's text when the file changed in the same region; needs a decision.
    Conflict,
}

/// A decision about a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkDecision {
    /// The agent's text; in a hunk of the user's, the user's text.
    Accepted,
    /// The file's text.
    Rejected,
    /// The draft's current text; resolves a conflict in favor of it.
    Kept,
}

/// The kind of change in a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkKind {
    /// A visible change.
    Text,
    /// Whitespace only, including blank lines.
    Whitespace,
    /// Line endings only.
    LineEnding,
    /// The newline at the end of the file only.
    FinalNewline,
    /// The byte order mark only.
    ByteOrderMark,
}

/// A range of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LineRange {
    /// The first line, 1-based; with a count of 0, the next line.
    pub start: usize,
    pub count: usize,
}

impl From<&Range<usize>> for LineRange {
    fn from(lines: &Range<usize>) -> Self {
        Self {
            start: lines.start + 1,
            count: lines.len(),
        }
    }
}

/// A region where base, proposal and draft are not all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    pub id: HunkId,
    pub state: HunkState,
    /// Whether the user introduced it: the agent proposes nothing here.
    pub yours: bool,
    pub kind: HunkKind,
    pub base: LineRange,
    pub proposal: LineRange,
    pub draft: LineRange,
}

impl Hunk {
    pub(super) fn of(segment: &Segment, draft: Range<usize>, originals: &Originals) -> Option<Self> {
        let id = segment.id()?;
        let sides = segment.sides();
        let base = originals.base.slice(&sides.base);
        let (state, yours, changed) = match segment {
            Segment::Common(_) => return None,
            Segment::Proposed { accepted, .. } => {
                let state = if *accepted {
                    HunkState::Accepted
                } else {
                    HunkState::Rejected
                };
                (state, false, originals.proposal.slice(&sides.proposal))
            }
            Segment::Edited(edited) => {
                let state = if edited.ancestor.is_some() {
                    HunkState::Conflict
                } else {
                    HunkState::Edited
                };
                (state, edited.inside.is_empty(), &*edited.text)
            }
        };
        Some(Self {
            id,
            state,
            yours,
            kind: HunkKind::of(base, changed),
            base: LineRange::from(&sides.base),
            proposal: LineRange::from(&sides.proposal),
            draft: LineRange::from(&draft),
        })
    }
}

impl Hunk {
    /// The same hunk, moved down by some lines of the draft.
    pub(super) fn moved(&self, lines: isize) -> Self {
        let mut moved = self.clone();
        moved.draft.start = moved.draft.start.saturating_add_signed(lines);
        moved
    }
}

impl HunkKind {
    fn of(old: &str, new: &str) -> Self {
        const MARK: char = '\u{feff}';
        let is_ink = |character: &char| !character.is_whitespace() && *character != MARK;
        if old.ends_with('\n') != new.ends_with('\n') && without_ending(old) == without_ending(new) {
            Self::FinalNewline
        } else if old.trim_start_matches(MARK) == new.trim_start_matches(MARK) {
            Self::ByteOrderMark
        } else if (old.split_inclusive('\n').map(without_ending)).eq(new.split_inclusive('\n').map(without_ending)) {
            Self::LineEnding
        } else if (old.chars().filter(is_ink)).eq(new.chars().filter(is_ink)) {
            Self::Whitespace
        } else {
            Self::Text
        }
    }
}

fn without_ending(text: &str) -> &str {
    let text = text.strip_suffix('\n').unwrap_or(text);
    text.strip_suffix('\r').unwrap_or(text)
}

/// Why a hunk cannot be decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum HunkError {
    #[error("this review has no hunk {0}; list its hunks and try again")]
    Unknown(HunkId),
    /// An edit joined several hunks, which can only be decided together.
    #[error(
        "hunk {id} was merged into hunk {into} by an edit; decide hunk {into} first, and hunk {id} becomes available again"
    )]
    Merged {
        id: HunkId,
        /// The hunk that contains it.
        into: HunkId,
    },
}
