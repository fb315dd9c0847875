//! The file changes on disk while its review is open.
//!
//! A three-way merge with the old base as the common ancestor. Where only the file changed, the new base wins; where
//! only the agent or the user changed something, that stays. Where both did, or where no unchanged line separates the
//! two changes, the hunk becomes a conflict.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::compare::{Change, line_changes};
use super::edit::name_of;
use super::lines::{Text, count_lines};
use super::regions::{Cutter, Proximity, regions};
use super::segment::{Builder, Edited, Originals, Proposed, Segment, Sides};
use super::{Deadline, Draft};

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rebased {
    /// No conflicts.
    pub clean: bool,
    /// How many hunks of the draft are conflicts now.
    pub conflicts: usize,
}

impl Draft {
    /// Carries the draft over to `new_base`, the file's new text.
    ///
    /// A hunk or an edit that is already in the file disappears. A rejected hunk stays rejected and takes the file's new
    /// text. Anything else that overlaps a change of the file becomes a conflict, which keeps the draft's text.
    pub fn rebase(&mut self, new_base: impl Into<Arc<str>>, deadline: Deadline) -> Rebased {
        let new_base = new_base.into();
        let changes = self.changes_to(&new_base, deadline);
        let regions = regions(
            &self.segments,
            |segment| segment.sides().base.len(),
            changes,
            Proximity::Touching,
        );
        let mut cutter = Cutter::new(self.take_segments());
        let mut merge = Merge {
            old: &self.originals,
            new_base: Text::new(new_base),
            at: 0,
            proposal: String::new(),
            proposal_lines: 0,
            segments: Vec::new(),
        };
        for region in regions {
            for segment in cutter.before(&region) {
                merge.carry_over(segment);
            }
            merge.meet(&cutter.inside(&region), region.new.end);
        }
        for segment in cutter.rest() {
            merge.carry_over(segment);
        }
        let segments = merge.segments;
        self.originals = Originals {
            base: merge.new_base,
            proposal: Text::new(merge.proposal.into()),
        };
        let mut builder = Builder::default();
        for segment in segments {
            match segment {
                Segment::Edited(edited) => builder.push_edited(edited, &self.originals),
                segment => builder.push(segment),
            }
        }
        self.segments = builder.finish().into();
        let conflicts = self.conflicts().count();
        Rebased {
            clean: conflicts == 0,
            conflicts,
        }
    }

    /// The changes from the base to a new one. If the new base equals the proposal or the draft, the hunks already say
    /// what changed; a diff might place the same change at another of several equal lines and apply it twice.
    fn changes_to(&self, new_base: &Arc<str>, deadline: Deadline) -> Vec<Change> {
        if new_base == self.proposal() {
            let hunks = self.segments.iter().flat_map(Segment::proposed);
            return hunks
                .map(|hunk| Change {
                    old: hunk.sides.base.clone(),
                    new: hunk.sides.proposal.clone(),
                })
                .collect();
        }
        if **new_base == *self.text() {
            let mut line = 0;
            let changes = self.segments.iter().filter_map(|segment| {
                let start = line;
                line += segment.text_lines();
                (!matches!(segment, Segment::Common(_) | Segment::Proposed { accepted: false, .. })).then(|| Change {
                    old: segment.sides().base.clone(),
                    new: start..line,
                })
            });
            return changes.collect();
        }
        line_changes(self.base(), new_base, deadline)
    }
}

/// A merge in progress, from top to bottom.
struct Merge<'draft> {
    old: &'draft Originals,
    new_base: Text,
    /// The line of the new base that has been reached.
    at: usize,
    /// The agent's text as carried over so far.
    proposal: String,
    proposal_lines: usize,
    segments: Vec<Segment>,
}

impl Merge<'_> {
    fn carry_over(&mut self, mut segment: Segment) {
        let old = segment.sides().clone();
        let (base, proposal) = (self.at, self.proposal_lines);
        let text = self.old.proposal.slice(&old.proposal);
        self.proposal.push_str(text);
        self.proposal_lines += old.proposal.len();
        self.at += old.base.len();
        let moved = |sides: &mut Sides| {
            sides.base = sides.base.start - old.base.start + base..sides.base.end - old.base.start + base;
            sides.proposal = sides.proposal.start - old.proposal.start + proposal
                ..sides.proposal.end - old.proposal.start + proposal;
        };
        match &mut segment {
            Segment::Common(sides) => moved(sides),
            Segment::Proposed { hunk, .. } => moved(&mut hunk.sides),
            Segment::Edited(edited) => {
                moved(&mut edited.sides);
                edited.inside.iter_mut().for_each(|hunk| moved(&mut hunk.sides));
            }
        }
        self.segments.push(segment);
    }

    /// Merges a change of the file that ends before line `end` of the new base.
    fn meet(&mut self, concerned: &[Segment], end: usize) {
        let base = self.at..end;
        self.at = end;
        let theirs = self.new_base.slice(&base).to_owned();
        let Some(id) = name_of(concerned) else {
            let sides = self.sides(base, &theirs);
            self.segments.push(Segment::Common(sides));
            return;
        };
        let Overlap {
            ancestor,
            proposal,
            draft,
            proposed,
            rejected_only,
            rejected_partly,
        } = Overlap::of(concerned, self.old);
        let ancestor: Option<Arc<str>> = (theirs != ancestor).then(|| ancestor.into());
        if !proposed || proposal == theirs {
            // The agent proposes nothing here, or its change is already in the file.
            let sides = self.sides(base, &theirs);
            let settled = proposed && !rejected_partly;
            self.segments.push(if draft == theirs || rejected_only {
                Segment::Common(sides)
            } else {
                Segment::Edited(Edited {
                    id,
                    sides,
                    inside: Vec::new(),
                    text: draft.into(),
                    ancestor: ancestor.filter(|_| !settled),
                })
            });
            return;
        }
        let sides = self.sides(base, &proposal);
        self.segments.push(if draft == theirs || rejected_only {
            let hunk = Proposed { id, sides };
            Segment::Proposed { hunk, accepted: false }
        } else {
            Segment::Edited(Edited {
                id,
                sides: sides.clone(),
                inside: vec![Proposed { id, sides }],
                text: draft.into(),
                ancestor,
            })
        });
    }

    /// Appends `proposal` to the new proposal and returns both sides.
    fn sides(&mut self, base: std::ops::Range<usize>, proposal: &str) -> Sides {
        let start = self.proposal_lines;
        self.proposal.push_str(proposal);
        self.proposal_lines += count_lines(proposal);
        Sides {
            base,
            proposal: start..self.proposal_lines,
        }
    }
}

/// The segments that a change of the file overlaps.
#[derive(Default)]
struct Overlap {
    /// The file's text before it changed.
    ancestor: String,
    proposal: String,
    draft: String,
    /// Whether the agent proposes anything here.
    proposed: bool,
    rejected_only: bool,
    rejected_partly: bool,
}

impl Overlap {
    fn of(segments: &[Segment], originals: &Originals) -> Self {
        let is_rejected = |segment: &&Segment| matches!(segment, Segment::Proposed { accepted: false, .. });
        let hunks = segments.iter().filter(|segment| !segment.is_common()).count();
        let rejected = segments.iter().filter(is_rejected).count();
        let mut overlap = Self {
            proposed: segments.iter().any(|segment| !segment.proposed().is_empty()),
            rejected_only: rejected == hunks,
            rejected_partly: rejected > 0,
            ..Self::default()
        };
        for segment in segments {
            let sides = segment.sides();
            let ancestor = match segment {
                Segment::Edited(Edited {
                    ancestor: Some(ancestor),
                    ..
                }) => ancestor,
                _ => originals.base.slice(&sides.base),
            };
            overlap.ancestor.push_str(ancestor);
            overlap.proposal.push_str(originals.proposal.slice(&sides.proposal));
            overlap.draft.push_str(segment.text(originals));
        }
        overlap
    }
}
