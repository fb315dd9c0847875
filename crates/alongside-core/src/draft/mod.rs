//! What would be accepted now, hunk by hunk.
//!
//! A review has three texts: the *base* (the file on disk), the *proposal* (the agent's text) and the *draft* (what would
//! be accepted now). [`Draft`] owns all three. It compares base and proposal once and then keeps a list of segments:
//! common text, the agent's hunks, and regions with the user's own text. The draft is the concatenation of its segments,
//! never reconstructed from two texts: accepting everything returns the proposal byte for byte, rejecting everything
//! returns the base byte for byte, and after an edit the draft is exactly what the user typed.
//!
//! Ranges are line ranges. A line includes its `\n`; `\r` and a byte order mark are part of their line, and only the last
//! line may be unterminated. Joining lines therefore restores the text, and a change of only a line ending is a change
//! like any other (see [`HunkKind`]).
//!
//! ```
//! use alongside_core::draft::{HunkDecision, Draft, HunkState};
//!
//! let mut draft = Draft::new("one\ntwo\nthree\nfour\n", "ONE\ntwo\nTHREE\nfour\n", None);
//! let first = draft.hunks().next().expect("two hunks").id;
//! draft.set_hunk(first, HunkDecision::Rejected)?;
//! assert_eq!(draft.text(), "one\ntwo\nTHREE\nfour\n");
//!
//! draft.edit("one\ntwo\nThree\nfour\n", None);
//! assert_eq!(draft.hunks().last().map(|hunk| hunk.state), Some(HunkState::Edited));
//!
//! // The file changed on disk, and nothing overlaps.
//! assert!(draft.rebase("one\ntwo\nthree\nfour\nfive\n", None).clean);
//! assert_eq!(draft.text(), "one\ntwo\nThree\nfour\nfive\n");
//! # Ok::<(), alongside_core::draft::HunkError>(())
//! ```

mod change;
mod compare;
mod edit;
mod hunk;
mod lines;
#[cfg(test)]
mod properties;
mod rebase;
mod regions;
mod segment;
mod stored;
#[cfg(test)]
mod tests;

use std::ops::Range;
use std::sync::Arc;
use std::time::{Duration, Instant};

pub use self::change::{DraftChange, HunkChange};
use self::compare::{Shared, changes_between};
pub use self::hunk::{Hunk, HunkDecision, HunkError, HunkId, HunkKind, HunkState, LineRange};
use self::lines::Text;
pub use self::rebase::Rebased;
use self::segment::{Builder, Originals, Proposed, Segment, Sides};
pub use self::stored::{DraftOutline, InvalidStoredDraft, OutlineChange};
use crate::text_change::{TextChange, utf16_length};

/// When an exact diff is given up for a coarser one; `None` for never. Comparing two files of 200,000 lines made of few
/// different lines would take minutes. The core has no clock, so callers pass this in.
pub type Deadline = Option<Instant>;

/// How long a diff may take before it gets coarser, to stay responsive.
pub const DIFF_TIMEOUT: Duration = Duration::from_millis(300);

/// Base, proposal and draft.
///
/// Stored as its texts and its [outline](Self::outline), and [restored](Self::restore) exactly; an inconsistent outline
/// is refused with [`InvalidStoredDraft`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    originals: Originals,
    /// Shared, so that a snapshot of a review costs nothing.
    segments: Arc<Vec<Segment>>,
    next_id: u32,
}

impl Draft {
    /// Compares `proposal` with `base`; every hunk starts accepted.
    pub fn new(base: impl Into<Arc<str>>, proposal: impl Into<Arc<str>>, deadline: Deadline) -> Self {
        let (base, proposal) = (Text::new(base.into()), proposal.into());
        let shared = Shared::by(base.as_str(), &proposal);
        let proposal = base.beside(proposal, shared);
        let skipped = base.lines_before(shared.prefix);
        let hunks: Vec<Proposed> = changes_between(base.as_str(), proposal.as_str(), shared, skipped, deadline)
            .into_iter()
            .zip(0..)
            .map(|(change, number)| Proposed {
                id: HunkId(number),
                sides: Sides {
                    base: change.old,
                    proposal: change.new,
                },
            })
            .collect();
        let originals = Originals { base, proposal };
        let next_id = hunks.last().map_or(0, |hunk| hunk.id.0.saturating_add(1));
        let whole = Sides {
            base: 0..originals.base.line_count(),
            proposal: 0..originals.proposal.line_count(),
        };
        let mut builder = Builder::default();
        builder.push_settled(&whole, hunks, std::iter::repeat(true));
        Self {
            originals,
            segments: builder.finish().into(),
            next_id,
        }
    }

    /// The file's text.
    pub fn base(&self) -> &Arc<str> {
        self.originals.base.shared()
    }

    /// The agent's text. After a [rebase](Self::rebase) it is the agent's change carried over to the new base.
    pub fn proposal(&self) -> &Arc<str> {
        self.originals.proposal.shared()
    }

    /// Where the proposal differs from the base, from top to bottom: bytes of the base, and what the proposal has instead.
    pub fn proposed_changes(&self) -> impl Iterator<Item = (Range<usize>, &str)> {
        let Originals { base, proposal } = &self.originals;
        let hunks = self.segments.iter().flat_map(Segment::proposed);
        hunks.map(|hunk| (base.bytes(&hunk.sides.base), proposal.slice(&hunk.sides.proposal)))
    }

    /// Base and proposal together.
    pub(crate) fn text_bytes(&self) -> usize {
        self.base().len() + self.proposal().len()
    }

    /// The draft: what would be accepted now.
    pub fn text(&self) -> String {
        let parts = || self.segments.iter().map(|segment| segment.text(&self.originals));
        let mut text = String::with_capacity(parts().map(str::len).sum());
        text.extend(parts());
        text
    }

    /// The same; the very [proposal](Self::proposal) if they are equal.
    pub(crate) fn shared_text(&self) -> Arc<str> {
        let is_proposed =
            |segment: &Segment| matches!(segment, Segment::Common(_) | Segment::Proposed { accepted: true, .. });
        if self.segments.iter().all(is_proposed) {
            return self.proposal().clone();
        }
        let text = self.text();
        if text == **self.proposal() {
            return self.proposal().clone();
        }
        text.into()
    }

    /// The hunks from top to bottom: the agent's and the user's.
    pub fn hunks(&self) -> impl Iterator<Item = Hunk> {
        let mut line = 0;
        self.segments.iter().filter_map(move |segment| {
            let start = line;
            line += segment.text_lines();
            Hunk::of(segment, start..line, &self.originals)
        })
    }

    /// The hunks where file and draft changed at the same place, and that are not resolved yet.
    pub fn conflicts(&self) -> impl Iterator<Item = Hunk> {
        self.hunks().filter(|hunk| hunk.state == HunkState::Conflict)
    }

    /// Decides one hunk. The user's edits inside it are dropped, unless they are [kept](HunkDecision::Kept).
    ///
    /// In a hunk of the user's the agent proposes nothing: accepting keeps it, rejecting reverts it.
    pub fn set_hunk(&mut self, id: HunkId, decision: HunkDecision) -> Result<DraftChange, HunkError> {
        let position = self.position(id)?;
        if let Some(change) = self.switch(position, decision) {
            return Ok(change);
        }
        let (text, hunks) = (self.text(), self.hunks().collect::<Vec<_>>());
        self.decide(position, decision);
        Ok(DraftChange {
            text: TextChange::between(&text, &self.text()),
            hunks: HunkChange::between(&hunks, &self.hunks().collect::<Vec<_>>()),
        })
    }

    /// Fast path: switches one of the agent's hunks between its sides, which concerns no other hunk, without comparing
    /// the whole text. `None` if the hunk is edited.
    fn switch(&mut self, position: usize, decision: HunkDecision) -> Option<DraftChange> {
        let Segment::Proposed { hunk, accepted } = Arc::make_mut(&mut self.segments).get_mut(position)? else {
            return None;
        };
        let previous = Segment::Proposed {
            hunk: hunk.clone(),
            accepted: *accepted,
        };
        match decision {
            HunkDecision::Accepted => *accepted = true,
            HunkDecision::Rejected => *accepted = false,
            HunkDecision::Kept => {}
        }
        let (above, segment) = (self.segments.get(..position)?, self.segments.get(position)?);
        let originals = &self.originals;
        let change = TextChange::between(previous.text(originals), segment.text(originals));
        let start = above.iter().map(Segment::text_lines).sum();
        let lines = start..start + segment.text_lines();
        Some(DraftChange {
            text: change
                .map(|change| change.moved(above.iter().map(|above| utf16_length(above.text(originals))).sum())),
            hunks: HunkChange {
                at: above.iter().filter(|segment| segment.id().is_some()).count(),
                removed: 1,
                shift: segment.text_lines().cast_signed() - previous.text_lines().cast_signed(),
                now: Hunk::of(segment, lines, &self.originals).into_iter().collect(),
            },
        })
    }

    fn decide(&mut self, position: usize, decision: HunkDecision) {
        let mut builder = Builder::default();
        for (index, segment) in self.take_segments().into_iter().enumerate() {
            if index == position {
                builder.push_decided(segment, decision, &self.originals);
            } else {
                builder.push(segment);
            }
        }
        self.segments = builder.finish().into();
    }

    fn take_segments(&mut self) -> Vec<Segment> {
        Arc::unwrap_or_clone(std::mem::take(&mut self.segments))
    }

    fn position(&self, id: HunkId) -> Result<usize, HunkError> {
        let own = self.segments.iter().position(|segment| segment.id() == Some(id));
        own.ok_or_else(|| {
            let holder = self.segments.iter().find_map(|segment| match segment {
                Segment::Edited(edited) if edited.inside.iter().any(|hunk| hunk.id == id) => Some(edited.id),
                _ => None,
            });
            holder.map_or(HunkError::Unknown(id), |into| HunkError::Merged { id, into })
        })
    }

    fn new_id(&mut self) -> HunkId {
        let id = HunkId(self.next_id);
        self.next_id = self.next_id.saturating_add(1);
        id
    }
}
