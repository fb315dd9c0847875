//! What would be accepted now, hunk by hunk.
//!
//! A review knows three texts: the *base* (the file on disk), the *proposal* (the agent's text) and the *draft* (what
//! the person would accept). [`Draft`] is the one owner of all three. It compares base and proposal once and from then
//! on keeps an explicit list of segments: parts in common, hunks that the agent proposes, and stretches that hold the
//! person's own text. The draft is always the segments one after another, so that nothing is ever guessed back from
//! texts: accepting everything gives the proposal byte for byte, rejecting everything gives the base byte for byte, and
//! after an edit the draft is exactly what the person typed.
//!
//! Ranges are ranges of lines. A line ends with `\n` and keeps it; `\r` and a byte order mark are part of their line and
//! only the last line may lack its end. Joining lines therefore gives back the text, and a change of nothing but a line
//! ending is a change like any other (see [`HunkKind`]).
//!
//! ```
//! use alongside_core::draft::{HunkDecision, Draft, HunkState};
//!
//! let mut draft = Draft::new("one\ntwo\nthree\nfour\n", "ONE\ntwo\nTHREE\nfour\n");
//! let first = draft.hunks().next().expect("two hunks").id;
//! draft.set_hunk(first, HunkDecision::Rejected)?;
//! assert_eq!(draft.text(), "one\ntwo\nTHREE\nfour\n");
//!
//! draft.edit("one\ntwo\nThree\nfour\n");
//! assert_eq!(draft.hunks().last().map(|hunk| hunk.state), Some(HunkState::Edited));
//!
//! // The file changed on disk meanwhile; nothing overlaps, so nobody has to be asked.
//! assert!(draft.rebase("one\ntwo\nthree\nfour\nfive\n").clean);
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
mod words;

use std::sync::Arc;

pub use self::change::{DraftChange, HunkChange};
use self::compare::line_changes;
pub use self::hunk::{Hunk, HunkDecision, HunkError, HunkId, HunkKind, HunkState, HunkTexts, LineRange};
use self::lines::Text;
pub use self::rebase::Rebased;
use self::segment::{Builder, Originals, Proposed, Segment, Sides};
pub use self::stored::{DraftOutline, InvalidStoredDraft};
pub use self::words::{WordChange, WordChangeKind};
use crate::text_change::{TextChange, utf16_length};

/// The base, the proposal and what a person makes of them.
///
/// It is stored as its texts and its [outline](Self::outline), and [restored](Self::restore) exactly; what does not hang
/// together is refused with [`InvalidStoredDraft`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Draft {
    originals: Originals,
    segments: Vec<Segment>,
    next_id: u32,
}

impl Draft {
    /// Compares `proposal` with `base`; every hunk starts out accepted.
    pub fn new(base: impl Into<Arc<str>>, proposal: impl Into<Arc<str>>) -> Self {
        let originals = Originals {
            base: Text::new(base.into()),
            proposal: Text::new(proposal.into()),
        };
        let hunks: Vec<Proposed> = line_changes(originals.base.as_str(), originals.proposal.as_str())
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
        let next_id = hunks.last().map_or(0, |hunk| hunk.id.0.saturating_add(1));
        let whole = Sides {
            base: 0..originals.base.line_count(),
            proposal: 0..originals.proposal.line_count(),
        };
        let mut builder = Builder::default();
        builder.push_settled(&whole, hunks, std::iter::repeat(true));
        Self {
            originals,
            segments: builder.finish(),
            next_id,
        }
    }

    /// The file on disk, as last told.
    pub fn base(&self) -> &Arc<str> {
        self.originals.base.shared()
    }

    /// The agent's text. After a [rebase](Self::rebase) it is the agent's change carried over to the new base.
    pub fn proposal(&self) -> &Arc<str> {
        self.originals.proposal.shared()
    }

    /// What would be accepted now.
    pub fn text(&self) -> String {
        let parts = || self.segments.iter().map(|segment| segment.text(&self.originals));
        let mut text = String::with_capacity(parts().map(str::len).sum());
        text.extend(parts());
        text
    }

    /// Whether any of the person's own text is in the draft.
    pub fn is_edited(&self) -> bool {
        self.segments
            .iter()
            .any(|segment| matches!(segment, Segment::Edited(_)))
    }

    /// The hunks from top to bottom: the agent's and the person's own.
    pub fn hunks(&self) -> impl Iterator<Item = Hunk> {
        let mut line = 0;
        self.segments.iter().filter_map(move |segment| {
            let start = line;
            line += segment.text_lines();
            Hunk::of(segment, start..line, &self.originals)
        })
    }

    /// The hunks where the file and the draft changed at the same place, and nobody has decided yet.
    pub fn conflicts(&self) -> impl Iterator<Item = Hunk> {
        self.hunks().filter(|hunk| hunk.state == HunkState::Conflict)
    }

    /// All sides of one hunk.
    pub fn hunk_texts(&self, id: HunkId) -> Result<HunkTexts<'_>, HunkError> {
        let segment = self.segments.get(self.position(id)?);
        let segment = segment.ok_or(HunkError::Unknown(id))?;
        Ok(HunkTexts {
            base: self.originals.base.slice(&segment.sides().base),
            proposal: self.originals.proposal.slice(&segment.sides().proposal),
            draft: segment.text(&self.originals),
            ancestor: match segment {
                Segment::Edited(edited) => edited.ancestor.as_deref(),
                Segment::Common(_) | Segment::Proposed { .. } => None,
            },
        })
    }

    /// What changes word by word inside one hunk: from the base to the person's text where there is one, otherwise to
    /// the proposal, so that a rejected hunk still shows what it would change.
    ///
    /// The answer is whole texts where a finer comparison would take too long.
    pub fn word_changes(&self, id: HunkId) -> Result<Vec<WordChange<'_>>, HunkError> {
        let texts = self.hunk_texts(id)?;
        let segment = self.segments.get(self.position(id)?);
        let new = match segment {
            Some(Segment::Edited(_)) => texts.draft,
            _ => texts.proposal,
        };
        Ok(words::word_changes(texts.base, new))
    }

    /// Decides one hunk. What a person wrote inside it is dropped, unless it is [kept](HunkDecision::Kept).
    ///
    /// A hunk of the person's own has no side of the agent's to go back to: accepting it keeps it, rejecting reverts it.
    pub fn set_hunk(&mut self, id: HunkId, choice: HunkDecision) -> Result<DraftChange, HunkError> {
        let position = self.position(id)?;
        if let Some(change) = self.switch(position, choice) {
            return Ok(change);
        }
        let (text, hunks) = (self.text(), self.hunks().collect::<Vec<_>>());
        self.decide(choice, |index| index == position);
        Ok(DraftChange {
            text: TextChange::between(&text, &self.text()),
            hunks: HunkChange::between(&hunks, &self.hunks().collect::<Vec<_>>()),
        })
    }

    /// Switches a hunk of the agent's between its two sides, which no other hunk takes notice of: however large the text
    /// is, only this place is looked at. `None` if it is none of the agent's.
    fn switch(&mut self, position: usize, choice: HunkDecision) -> Option<DraftChange> {
        let Segment::Proposed { hunk, accepted } = self.segments.get_mut(position)? else {
            return None;
        };
        let former = Segment::Proposed {
            hunk: hunk.clone(),
            accepted: *accepted,
        };
        match choice {
            HunkDecision::Accepted => *accepted = true,
            HunkDecision::Rejected => *accepted = false,
            HunkDecision::Kept => {}
        }
        let (above, segment) = (self.segments.get(..position)?, self.segments.get(position)?);
        let originals = &self.originals;
        let change = TextChange::between(former.text(originals), segment.text(originals));
        let start = above.iter().map(Segment::text_lines).sum();
        let lines = start..start + segment.text_lines();
        Some(DraftChange {
            text: change
                .map(|change| change.moved(above.iter().map(|above| utf16_length(above.text(originals))).sum())),
            hunks: HunkChange {
                at: above.iter().filter(|segment| segment.id().is_some()).count(),
                removed: 1,
                shift: segment.text_lines().cast_signed() - former.text_lines().cast_signed(),
                now: Hunk::of(segment, lines, &self.originals).into_iter().collect(),
            },
        })
    }

    /// Decides every hunk at once, each as [`Self::set_hunk`] would.
    pub fn set_all(&mut self, choice: HunkDecision) {
        self.decide(choice, |_| true);
    }

    fn decide(&mut self, choice: HunkDecision, concerns: impl Fn(usize) -> bool) {
        let mut builder = Builder::default();
        for (index, segment) in std::mem::take(&mut self.segments).into_iter().enumerate() {
            if concerns(index) {
                builder.push_decided(segment, choice, &self.originals);
            } else {
                builder.push(segment);
            }
        }
        self.segments = builder.finish();
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
