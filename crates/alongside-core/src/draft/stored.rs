//! Stored drafts, and the check that a restored one is consistent.

use std::collections::HashSet;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use super::Draft;
use super::hunk::HunkId;
use super::lines::Text;
use super::segment::{Edited, Originals, Proposed, Segment, Sides};

/// A draft without base and proposal: what changes with each decision, and small even if the texts are large.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct DraftOutline {
    segments: Arc<Vec<Segment>>,
    next_id: u32,
}

/// What a decision or an edit changed in an outline: usually one segment of thousands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct OutlineChange {
    /// Segments before the changed ones.
    kept: usize,
    removed: usize,
    segments: Vec<Segment>,
    next_id: u32,
}

impl DraftOutline {
    /// What leads from another outline to this one.
    pub fn change_since(&self, before: &Self) -> OutlineChange {
        let (old, new) = (&*before.segments, &*self.segments);
        let kept = old.iter().zip(new).take_while(|(old, new)| old == new).count();
        let (old, new) = (&old[kept..], &new[kept..]);
        let same = old.iter().rev().zip(new.iter().rev());
        let same = same.take_while(|(old, new)| old == new).count();
        OutlineChange {
            kept,
            removed: old.len() - same,
            segments: new[..new.len() - same].to_vec(),
            next_id: self.next_id,
        }
    }

    /// `false`, and nothing happens, if the change is one of another outline.
    #[must_use]
    pub fn apply(&mut self, change: OutlineChange) -> bool {
        let end = change.kept.checked_add(change.removed);
        let Some(end) = end.filter(|end| *end <= self.segments.len()) else {
            return false;
        };
        Arc::make_mut(&mut self.segments).splice(change.kept..end, change.segments);
        self.next_id = change.next_id;
        true
    }
}

/// Why a stored draft cannot be restored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum InvalidStoredDraft {
    #[error("the stored draft's segments do not cover its texts")]
    Gap,
    #[error("the stored draft marks differing lines as common")]
    NotCommon,
    #[error("the stored draft continues after an unterminated line")]
    UnfinishedLine,
    #[error("the stored draft has a misplaced hunk number {0}")]
    Number(HunkId),
}

impl Draft {
    /// Everything except the [base](Draft::base) and the [proposal](Draft::proposal).
    pub fn outline(&self) -> DraftOutline {
        DraftOutline {
            segments: self.segments.clone(),
            next_id: self.next_id,
        }
    }

    pub fn restore(base: Arc<str>, proposal: Arc<str>, outline: DraftOutline) -> Result<Self, InvalidStoredDraft> {
        let originals = Originals {
            base: Text::new(base),
            proposal: Text::new(proposal),
        };
        let mut check = Check {
            originals: &originals,
            next_id: outline.next_id,
            ids: HashSet::new(),
        };
        // Ids must not overflow: each edit uses one, so only a tampered draft gets this far.
        if outline.next_id > u32::MAX / 2 {
            return Err(InvalidStoredDraft::Number(HunkId(outline.next_id)));
        }
        check.segments(&outline.segments)?;
        Ok(Self {
            originals,
            segments: outline.segments,
            next_id: outline.next_id,
        })
    }
}

struct Check<'draft> {
    originals: &'draft Originals,
    next_id: u32,
    ids: HashSet<HunkId>,
}

impl Check<'_> {
    fn segments(&mut self, segments: &[Segment]) -> Result<(), InvalidStoredDraft> {
        let mut done = Sides {
            base: 0..0,
            proposal: 0..0,
        };
        for (index, segment) in segments.iter().enumerate() {
            let sides = segment.sides();
            let is_last = index + 1 == segments.len();
            self.between(&done, sides)
                .filter(|gap| gap.base.is_empty() && gap.proposal.is_empty())
                .ok_or(InvalidStoredDraft::Gap)?;
            match segment {
                Segment::Common(sides) => self.common(sides)?,
                Segment::Proposed { hunk, .. } => self.proposed(hunk, is_last)?,
                Segment::Edited(edited) => self.edited(edited, is_last)?,
            }
            done = sides.end();
        }
        let whole = Sides {
            base: 0..self.originals.base.line_count(),
            proposal: 0..self.originals.proposal.line_count(),
        };
        (done == whole.end()).then_some(()).ok_or(InvalidStoredDraft::Gap)
    }

    /// The gap between two segments, if the second is valid and after the first.
    fn between(&self, first: &Sides, second: &Sides) -> Option<Sides> {
        let ordered = first.base.end <= second.base.start
            && second.base.start <= second.base.end
            && second.base.end <= self.originals.base.line_count()
            && first.proposal.end <= second.proposal.start
            && second.proposal.start <= second.proposal.end
            && second.proposal.end <= self.originals.proposal.line_count();
        ordered.then(|| first.up_to(second))
    }

    fn common(&self, sides: &Sides) -> Result<(), InvalidStoredDraft> {
        let same = self.originals.base.slice(&sides.base) == self.originals.proposal.slice(&sides.proposal);
        same.then_some(()).ok_or(InvalidStoredDraft::NotCommon)
    }

    fn proposed(&mut self, hunk: &Proposed, is_last: bool) -> Result<(), InvalidStoredDraft> {
        self.id(hunk.id)?;
        self.ended(&hunk.sides, is_last)
    }

    fn edited(&mut self, edited: &Edited, is_last: bool) -> Result<(), InvalidStoredDraft> {
        let mut done = Sides {
            base: edited.sides.base.start..edited.sides.base.start,
            proposal: edited.sides.proposal.start..edited.sides.proposal.start,
        };
        for hunk in &edited.inside {
            let gap = self.between(&done, &hunk.sides).ok_or(InvalidStoredDraft::Gap)?;
            self.common(&gap)?;
            done = hunk.sides.end();
            self.proposed(hunk, is_last && done == edited.sides.end())?;
        }
        let end = edited.sides.end();
        let gap = self.between(&done, &end).ok_or(InvalidStoredDraft::Gap)?;
        self.common(&gap)?;
        match edited.inside.first() {
            None => self.id(edited.id)?,
            Some(first) if first.id == edited.id => {}
            Some(_) => return Err(InvalidStoredDraft::Number(edited.id)),
        }
        self.ended(&edited.sides, is_last)?;
        ended(&edited.text, is_last)
    }

    fn ended(&self, sides: &Sides, is_last: bool) -> Result<(), InvalidStoredDraft> {
        ended(self.originals.base.slice(&sides.base), is_last)?;
        ended(self.originals.proposal.slice(&sides.proposal), is_last)
    }

    fn id(&mut self, id: HunkId) -> Result<(), InvalidStoredDraft> {
        let sound = id.0 < self.next_id && self.ids.insert(id);
        sound.then_some(()).ok_or(InvalidStoredDraft::Number(id))
    }
}

fn ended(text: &str, is_last: bool) -> Result<(), InvalidStoredDraft> {
    let sound = is_last || text.is_empty() || text.ends_with('\n');
    sound.then_some(()).ok_or(InvalidStoredDraft::UnfinishedLine)
}
