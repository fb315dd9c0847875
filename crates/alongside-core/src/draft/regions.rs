//! Which segments a set of changes concerns, and cutting a draft there.
//!
//! Hunks are never split: a change that reaches into one concerns all of it. Common segments are split at lines.

use std::ops::Range;

use super::compare::Change;
use super::segment::{Segment, Sides};

/// A boundary between two lines: before line `line` of segment `segment`. Only common segments have boundaries inside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct LineBoundary {
    segment: usize,
    line: usize,
}

impl LineBoundary {
    fn before(segment: usize) -> Self {
        Self { segment, line: 0 }
    }
}

/// How close a change must come to a hunk to concern it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Proximity {
    /// It changes lines of the hunk, or inserts lines at its edge.
    Inside,
    /// No unchanged line is between them.
    Touching,
}

/// A part of the draft that changes as a whole.
#[derive(Clone, Debug)]
pub(super) struct Region {
    start: LineBoundary,
    end: LineBoundary,
    first: Change,
    last: Change,
    /// The lines that replace it.
    pub(super) new: Range<usize>,
}

/// The first line of each segment, then the number of lines.
struct Layout<'draft> {
    segments: &'draft [Segment],
    starts: Vec<usize>,
}

/// The regions that `changes` concern, in order and disjoint. Lines are counted by `lines`.
pub(super) fn regions(
    segments: &[Segment],
    lines: fn(&Segment) -> usize,
    changes: Vec<Change>,
    proximity: Proximity,
) -> Vec<Region> {
    let mut starts = vec![0];
    let mut total = 0;
    starts.extend(segments.iter().map(|segment| {
        total += lines(segment);
        total
    }));
    let layout = Layout { segments, starts };
    let mut regions: Vec<Region> = Vec::new();
    for change in changes {
        let (start, end) = layout.cuts(&change.old, proximity);
        match regions.last_mut() {
            Some(last) if start < last.end => {
                last.start = last.start.min(start);
                last.end = last.end.max(end);
                last.last = change;
            }
            _ => regions.push(Region {
                start,
                end,
                first: change.clone(),
                last: change,
                new: 0..0,
            }),
        }
    }
    for region in &mut regions {
        let before = region.first.old.start - layout.line(region.start);
        let after = layout.line(region.end) - region.last.old.end;
        region.new = region.first.new.start - before..region.last.new.end + after;
    }
    regions
}

impl Region {
    /// Extends it to the end of the draft.
    pub(super) fn extend_to_end(&mut self, segments: &[Segment]) {
        self.end = LineBoundary::before(segments.len());
    }
}

impl Layout<'_> {
    fn start(&self, segment: usize) -> usize {
        self.starts.get(segment).copied().unwrap_or_default()
    }

    fn line(&self, cut: LineBoundary) -> usize {
        self.start(cut.segment) + cut.line
    }

    fn is_hunk(&self, segment: usize) -> bool {
        self.segments.get(segment).is_some_and(|segment| !segment.is_common())
    }

    fn is_empty(&self, segment: usize) -> bool {
        self.start(segment) == self.start(segment + 1)
    }

    /// The segments that contain or touch the range.
    fn touching(&self, lines: &Range<usize>) -> Range<usize> {
        let first = self.starts.partition_point(|&start| start < lines.start);
        let after = self.starts.partition_point(|&start| start <= lines.end);
        first.saturating_sub(1)..after.min(self.segments.len())
    }

    /// The segment that contains a line.
    fn holding(&self, line: usize) -> usize {
        self.starts.partition_point(|&start| start <= line).saturating_sub(1)
    }

    /// The boundary before a line, outside hunks.
    fn cut(&self, segment: usize, line: usize) -> LineBoundary {
        let inside = line - self.start(segment);
        if line == self.start(segment + 1) {
            LineBoundary::before(segment + 1)
        } else {
            LineBoundary { segment, line: inside }
        }
    }

    fn cuts(&self, lines: &Range<usize>, proximity: Proximity) -> (LineBoundary, LineBoundary) {
        let touching = self.touching(lines);
        if lines.is_empty() {
            let mut hunks = touching.clone().filter(|&segment| self.is_hunk(segment));
            let first = hunks.next();
            let last = hunks.next_back().or(first);
            return match (first.zip(last), proximity) {
                (Some((first, last)), Proximity::Touching) => {
                    (LineBoundary::before(first), LineBoundary::before(last + 1))
                }
                (Some((first, _)), Proximity::Inside) => {
                    // Text typed where a hunk removed lines most likely belongs to that hunk.
                    let mut empty = touching.filter(|&segment| self.is_hunk(segment) && self.is_empty(segment));
                    let hunk = empty.next().unwrap_or(first);
                    (LineBoundary::before(hunk), LineBoundary::before(hunk + 1))
                }
                (None, _) => {
                    let cut = if self.segments.is_empty() {
                        LineBoundary::before(0)
                    } else {
                        self.cut(touching.start, lines.start)
                    };
                    (cut, cut)
                }
            };
        }
        let (first, last) = (self.holding(lines.start), self.holding(lines.end - 1));
        let mut start = if self.is_hunk(first) {
            LineBoundary::before(first)
        } else {
            self.cut(first, lines.start)
        };
        let mut end = if self.is_hunk(last) {
            LineBoundary::before(last + 1)
        } else {
            self.cut(last, lines.end)
        };
        if proximity == Proximity::Touching {
            for hunk in touching.filter(|&segment| self.is_hunk(segment)) {
                start = start.min(LineBoundary::before(hunk));
                end = end.max(LineBoundary::before(hunk + 1));
            }
        }
        (start, end)
    }
}

/// Splits a draft from top to bottom.
pub(super) struct Cutter {
    rest: std::vec::IntoIter<Segment>,
    current: Option<Segment>,
    at: LineBoundary,
    done: Sides,
}

impl Cutter {
    pub(super) fn new(segments: Vec<Segment>) -> Self {
        let mut rest = segments.into_iter();
        Self {
            current: rest.next(),
            rest,
            at: LineBoundary::before(0),
            done: Sides {
                base: 0..0,
                proposal: 0..0,
            },
        }
    }

    /// An empty region at the current position.
    pub(super) fn place(&self) -> Sides {
        self.done.end()
    }

    pub(super) fn before(&mut self, region: &Region) -> Vec<Segment> {
        self.up_to(region.start)
    }

    pub(super) fn inside(&mut self, region: &Region) -> Vec<Segment> {
        self.up_to(region.end)
    }

    /// The rest.
    pub(super) fn rest(self) -> impl Iterator<Item = Segment> {
        self.current.into_iter().chain(self.rest)
    }

    fn up_to(&mut self, cut: LineBoundary) -> Vec<Segment> {
        let mut taken = Vec::new();
        while self.at < cut {
            let Some(segment) = self.current.take() else { break };
            let segment = match segment {
                Segment::Common(sides) if self.at.segment == cut.segment => {
                    let (first, second) = sides.split(cut.line - self.at.line);
                    self.current = Some(Segment::Common(second));
                    self.at = cut;
                    Segment::Common(first)
                }
                whole => {
                    self.current = self.rest.next();
                    self.at = LineBoundary::before(self.at.segment + 1);
                    whole
                }
            };
            self.done = segment.sides().clone();
            taken.push(segment);
        }
        taken
    }
}
