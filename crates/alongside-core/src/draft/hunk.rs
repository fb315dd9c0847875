//! What front ends see of a draft.

use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::segment::{Originals, Segment};

/// The number by which a hunk is named as long as its review has the same revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HunkId(pub u32);

impl fmt::Display for HunkId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Whose text a hunk holds now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkState {
    /// The agent's.
    Accepted,
    /// The file's.
    Rejected,
    /// The person's own.
    Edited,
    /// The draft's text when the file changed in the same region; needs a decision.
    Conflict,
}

/// What a person decides about a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkDecision {
    /// The agent's text. The person's own text, where the agent proposes nothing.
    Accepted,
    /// The file's text.
    Rejected,
    /// What is in the draft, whatever it is; this settles a conflict in favour of it.
    Kept,
}

/// What a hunk changes at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkKind {
    /// Something that can be seen.
    Text,
    /// White space only, blank lines included.
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
    /// The number of the first line, counted from 1; of the line that comes next, if there are no lines.
    pub start: usize,
    /// How many lines.
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

/// A place where base, proposal and draft are not all the same.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hunk {
    /// Its number.
    pub id: HunkId,
    /// Whose text it holds now.
    pub state: HunkState,
    /// Whether it is the person's alone: the agent proposes nothing here.
    pub yours: bool,
    /// What it changes at most.
    pub kind: HunkKind,
    /// Where it is in the file.
    pub base: LineRange,
    /// Where it is in the agent's text.
    pub proposal: LineRange,
    /// Where it is in the draft now.
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
    /// The same hunk, so many lines further down in the draft.
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
    /// There is none of this number.
    #[error("this review has no hunk {0}; list its hunks and try again")]
    Unknown(HunkId),
    /// An edit reached over several hunks, which can only be decided together now.
    #[error(
        "hunk {id} was merged into hunk {into} by an edit; decide hunk {into} first, and hunk {id} becomes available again"
    )]
    Merged {
        /// The hunk that was asked for.
        id: HunkId,
        /// The hunk that holds it.
        into: HunkId,
    },
}
