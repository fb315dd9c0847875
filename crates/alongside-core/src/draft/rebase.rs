//! The file changes on disk while its review is open.
//!
//! This is a merge of three texts, with the old base as their common ancestor. Where only the file changed, the new base
//! is taken; where only agent or person changed something, that stays. Where both did, or where no unchanged line keeps
//! the two changes apart, nobody can know what is meant, and the hunk becomes a conflict.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::Draft;
use super::compare::{Change, line_changes};
use super::edit::name_of;
use super::lines::{Text, count_lines};
use super::regions::{Cutter, Proximity, regions};
use super::segment::{Builder, Edited, Originals, Proposed, Segment, Sides};

/// How a change of the file went into a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Rebased {
    /// Whether nobody has to be asked.
    pub clean: bool,
    /// How many hunks of the draft are conflicts now.
    pub conflicts: usize,
}

impl Draft {
    /// The file holds `new_base` now. Its changes go into the draft; what agent and person changed stays.
    ///
    /// A hunk whose change is in the file already disappears, and so does an edit that is. A rejected hunk stays
    /// rejected and takes the file's new text: that is what rejecting it means. All else that meets a change of the
    /// file becomes a conflict, which holds what the draft held before.
    pub fn rebase(&mut self, new_base: impl Into<Arc<str>>) -> Rebased {
        let new_base = new_base.into();
        let changes = self.changes_to(&new_base);
        let regions = regions(
            &self.segments,
            |segment| segment.sides().base.len(),
            changes,
            Proximity::Touching,
        );
        let mut cutter = Cutter::new(std::mem::take(&mut self.segments));
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
        self.segments = builder.finish();
        let conflicts = self.conflicts().count();
        Rebased {
            clean: conflicts == 0,
            conflicts,
        }
    }

    /// The way from the base to a new one. Where the draft knows the way, it is not searched again: among repeated lines
    /// a search may find the same change at another place, and it would be made twice.
    fn changes_to(&self, new_base: &Arc<str>) -> Vec<Change> {
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
        line_changes(self.base(), new_base)
    }
}

/// A merge on its way from top to bottom.
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
    /// The file did not change here.
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

    /// The file changed here, up to the line `end` of the new base.
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
        let ancestor = (theirs != ancestor).then_some(ancestor);
        if !proposed || proposal == theirs {
            // The agent has nothing to say here, or nothing any more.
            let sides = self.sides(base, &theirs);
            let settled = proposed && !rejected_partly;
            self.segments.push(if draft == theirs || rejected_only {
                Segment::Common(sides)
            } else {
                Segment::Edited(Edited {
                    id,
                    sides,
                    inside: Vec::new(),
                    text: draft,
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
                text: draft,
                ancestor,
            })
        });
    }

    /// The sides of a part where the agent's text is `proposal` from now on.
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

/// What the draft has where the file changed.
#[derive(Default)]
struct Overlap {
    /// What the file held when agent and person started from it.
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
        let mut meeting = Self {
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
            meeting.ancestor.push_str(ancestor);
            meeting.proposal.push_str(originals.proposal.slice(&sides.proposal));
            meeting.draft.push_str(segment.text(originals));
        }
        meeting
    }
}
