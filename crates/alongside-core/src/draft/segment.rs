//! The parts a draft is made of.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::hunk::{HunkDecision, HunkId};
use super::lines::{Text, count_lines};

/// The two texts that segments point into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Originals {
    pub(super) base: Text,
    pub(super) proposal: Text,
}

/// Lines of the base and the lines of the proposal that replace them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Sides {
    pub(super) base: Range<usize>,
    pub(super) proposal: Range<usize>,
}

impl Sides {
    /// An empty range at the end of these.
    pub(super) fn end(&self) -> Self {
        Self {
            base: self.base.end..self.base.end,
            proposal: self.proposal.end..self.proposal.end,
        }
    }

    /// From these to the end of `other`.
    pub(super) fn extend_to(&mut self, other: &Self) {
        self.base.end = other.base.end;
        self.proposal.end = other.proposal.end;
    }

    /// Everything between these and `other`.
    pub(super) fn up_to(&self, other: &Self) -> Self {
        Self {
            base: self.base.end..other.base.start,
            proposal: self.proposal.end..other.proposal.start,
        }
    }

    /// Splits a common segment before its line `line`.
    pub(super) fn split(&self, line: usize) -> (Self, Self) {
        let (base, proposal) = (self.base.start + line, self.proposal.start + line);
        let first = Self {
            base: self.base.start..base,
            proposal: self.proposal.start..proposal,
        };
        let second = Self {
            base: base..self.base.end,
            proposal: proposal..self.proposal.end,
        };
        (first, second)
    }
}

/// A hunk of the agent's.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Proposed {
    pub(super) id: HunkId,
    pub(super) sides: Sides,
}

/// A region with its own text: the user's, or what the draft held when the file changed under it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Edited {
    pub(super) id: HunkId,
    pub(super) sides: Sides,
    /// The agent's hunks in this region, restored when the text is dropped; base and proposal agree between them. Empty
    /// if the agent proposed nothing here.
    pub(super) inside: Vec<Proposed>,
    pub(super) text: Arc<str>,
    /// The base before the file changed at the same place; set while the conflict is unresolved.
    pub(super) ancestor: Option<Arc<str>>,
}

/// One part of a draft. The segments cover base and proposal without gaps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Segment {
    /// Base and proposal agree, and the draft with them.
    Common(Sides),
    /// The agent's text or the file's.
    Proposed {
        hunk: Proposed,
        accepted: bool,
    },
    Edited(Edited),
}

impl Segment {
    pub(super) fn sides(&self) -> &Sides {
        match self {
            Self::Common(sides) => sides,
            Self::Proposed { hunk, .. } => &hunk.sides,
            Self::Edited(edited) => &edited.sides,
        }
    }

    pub(super) fn is_common(&self) -> bool {
        matches!(self, Self::Common(_))
    }

    pub(super) fn id(&self) -> Option<HunkId> {
        match self {
            Self::Common(_) => None,
            Self::Proposed { hunk, .. } => Some(hunk.id),
            Self::Edited(edited) => Some(edited.id),
        }
    }

    /// Its text in the draft.
    pub(super) fn text<'draft>(&'draft self, originals: &'draft Originals) -> &'draft str {
        match self {
            Self::Common(sides) => originals.base.slice(&sides.base),
            Self::Proposed { hunk, accepted: true } => originals.proposal.slice(&hunk.sides.proposal),
            Self::Proposed { hunk, accepted: false } => originals.base.slice(&hunk.sides.base),
            Self::Edited(edited) => &edited.text,
        }
    }

    /// The agent's hunks in it.
    pub(super) fn proposed(&self) -> &[Proposed] {
        match self {
            Self::Common(_) => &[],
            Self::Proposed { hunk, .. } => std::slice::from_ref(hunk),
            Self::Edited(edited) => &edited.inside,
        }
    }

    /// The agent's hunks in it.
    pub(super) fn into_proposed(self) -> Vec<Proposed> {
        match self {
            Self::Common(_) => Vec::new(),
            Self::Proposed { hunk, .. } => vec![hunk],
            Self::Edited(edited) => edited.inside,
        }
    }

    /// Its number of lines in the draft.
    pub(super) fn text_lines(&self) -> usize {
        match self {
            Self::Common(sides) => sides.base.len(),
            Self::Proposed { hunk, accepted: true } => hunk.sides.proposal.len(),
            Self::Proposed { hunk, accepted: false } => hunk.sides.base.len(),
            Self::Edited(edited) => count_lines(&edited.text),
        }
    }
}

/// The sides of segments that follow one another.
pub(super) fn around(segments: &[Segment]) -> Option<Sides> {
    let mut sides = segments.first()?.sides().clone();
    sides.extend_to(segments.last()?.sides());
    Some(sides)
}

/// Joins segments in their simplest form: none empty, no two common ones next to each other, no own text that equals a side.
#[derive(Default)]
pub(super) struct Builder {
    segments: Vec<Segment>,
}

impl Builder {
    pub(super) fn finish(self) -> Vec<Segment> {
        self.segments
    }

    pub(super) fn push(&mut self, segment: Segment) {
        match (self.segments.last_mut(), segment) {
            (_, Segment::Common(sides)) if sides.base.is_empty() => {}
            (Some(Segment::Common(last)), Segment::Common(sides)) => last.extend_to(&sides),
            (_, segment) => self.segments.push(segment),
        }
    }

    /// The agent's `hunks` within `sides`, each accepted or not, with the common text around them.
    pub(super) fn push_settled(
        &mut self,
        sides: &Sides,
        hunks: Vec<Proposed>,
        accepted: impl IntoIterator<Item = bool>,
    ) {
        let mut done = Sides {
            base: sides.base.start..sides.base.start,
            proposal: sides.proposal.start..sides.proposal.start,
        };
        for (hunk, accepted) in hunks.into_iter().zip(accepted) {
            self.push(Segment::Common(done.up_to(&hunk.sides)));
            done = hunk.sides.end();
            self.push(Segment::Proposed { hunk, accepted });
        }
        self.push(Segment::Common(done.up_to(&sides.end())));
    }

    pub(super) fn push_decided(&mut self, segment: Segment, decision: HunkDecision, originals: &Originals) {
        match (segment, decision) {
            (Segment::Proposed { hunk, .. }, HunkDecision::Accepted | HunkDecision::Rejected) => {
                self.push(Segment::Proposed {
                    hunk,
                    accepted: decision == HunkDecision::Accepted,
                });
            }
            (Segment::Edited(edited), HunkDecision::Accepted) if !edited.inside.is_empty() => {
                self.push_settled(&edited.sides, edited.inside, std::iter::repeat(true));
            }
            (Segment::Edited(edited), HunkDecision::Rejected) => {
                self.push_settled(&edited.sides, edited.inside, std::iter::repeat(false));
            }
            (Segment::Edited(mut edited), HunkDecision::Accepted | HunkDecision::Kept) => {
                edited.ancestor = None;
                self.push_edited(edited, originals);
            }
            (segment, _) => self.push(segment),
        }
    }

    /// Own text, reduced: to a side if it equals one, or to fewer lines.
    pub(super) fn push_edited(&mut self, mut edited: Edited, originals: &Originals) {
        if edited.ancestor.is_some() {
            self.push(Segment::Edited(edited));
        } else if let Some(accepted) = settle(&edited, originals) {
            self.push_settled(&edited.sides, edited.inside, accepted);
        } else {
            let (before, after) = trim(&mut edited, originals);
            self.push(Segment::Common(before));
            self.push(Segment::Edited(edited));
            self.push(Segment::Common(after));
        }
    }
}

/// Which hunks are accepted and which rejected, if that alone yields the edited text. So an undo in the editor restores the
/// hunks that were there.
fn settle(edited: &Edited, originals: &Originals) -> Option<Vec<bool>> {
    /// Repeated lines can match in several ways; more than this many are not tried.
    const MAX_WAYS: usize = 16;

    let (text, inside) = (&*edited.text, &edited.inside);
    if text == originals.proposal.slice(&edited.sides.proposal) {
        return Some(vec![true; inside.len()]);
    }
    if text == originals.base.slice(&edited.sides.base) {
        return Some(vec![false; inside.len()]);
    }
    if inside.len() < 2 {
        return None;
    }
    // For each hunk: how far into the text the parts up to its end can reach, from where, and by which choice.
    let mut ways: Vec<BTreeMap<usize, (usize, bool)>> = Vec::new();
    let mut reached = vec![0];
    let mut line = edited.sides.base.start;
    for hunk in inside {
        let common = originals.base.slice(&(line..hunk.sides.base.start));
        let choices = [
            (originals.proposal.slice(&hunk.sides.proposal), true),
            (originals.base.slice(&hunk.sides.base), false),
        ];
        let mut next = BTreeMap::new();
        for &from in &reached {
            let rest = text.get(from..).and_then(|rest| rest.strip_prefix(common));
            for (side, accepted) in choices {
                if rest.is_some_and(|rest| rest.starts_with(side)) && next.len() < MAX_WAYS {
                    next.entry(from + common.len() + side.len()).or_insert((from, accepted));
                }
            }
        }
        reached = next.keys().copied().collect();
        if reached.is_empty() {
            return None;
        }
        ways.push(next);
        line = hunk.sides.base.end;
    }
    let common = originals.base.slice(&(line..edited.sides.base.end));
    let mut at = reached.into_iter().find(|&from| text.get(from..) == Some(common))?;
    let mut accepted = Vec::with_capacity(ways.len());
    for way in ways.iter().rev() {
        let &(from, choice) = way.get(&at)?;
        accepted.push(choice);
        at = from;
    }
    accepted.reverse();
    Some(accepted)
}

/// Trims unchanged lines from both ends of an edited region, if the agent proposes nothing there.
fn trim(edited: &mut Edited, originals: &Originals) -> (Sides, Sides) {
    let first_hunk = edited.inside.first().map(|hunk| hunk.sides.base.start);
    let head = edited.sides.base.start..first_hunk.unwrap_or(edited.sides.base.end);
    let head_lines = originals.base.slice(&head).split_inclusive('\n');
    let shared = std::iter::zip(head_lines, edited.text.split_inclusive('\n')).take_while(|(old, new)| old == new);
    let (lines, bytes) = shared.fold((0, 0), |(lines, bytes), (old, _)| (lines + 1, bytes + old.len()));
    let (before, rest) = edited.sides.split(lines);
    edited.sides = rest;
    edited.text = edited.text.get(bytes..).unwrap_or_default().into();

    let last_hunk = edited.inside.last().map(|hunk| hunk.sides.base.end);
    let tail = last_hunk.unwrap_or(edited.sides.base.start)..edited.sides.base.end;
    let tail_lines = originals.base.slice(&tail).split_inclusive('\n').rev();
    let shared =
        std::iter::zip(tail_lines, edited.text.split_inclusive('\n').rev()).take_while(|(old, new)| old == new);
    let (lines, bytes) = shared.fold((0, 0), |(lines, bytes), (old, _)| (lines + 1, bytes + old.len()));
    let after = Sides {
        base: edited.sides.base.end - lines..edited.sides.base.end,
        proposal: edited.sides.proposal.end - lines..edited.sides.proposal.end,
    };
    edited.sides.base.end = after.base.start;
    edited.sides.proposal.end = after.proposal.start;
    let kept = edited.text.len() - bytes;
    edited.text = edited.text.get(..kept).unwrap_or_default().into();
    (before, after)
}
