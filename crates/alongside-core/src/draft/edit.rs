//! Folding what the user typed into the segments it changes.

use super::Deadline;
use super::compare::{Shared, changes_between};
use super::lines::{LineFinder, count_lines};
use super::regions::{Cutter, Proximity, regions};
use super::segment::{Builder, Edited, Segment, around};
use super::{Draft, HunkId};

impl Draft {
    /// Replaces the draft with `text`, byte for byte.
    ///
    /// Each change belongs to the hunk it is in, which becomes edited, or accepted or rejected if its text now equals
    /// that side. A change outside of hunks becomes a hunk of the user's. A change across several hunks merges them until
    /// it is undone or dropped. Editing a conflict resolves it.
    pub fn edit(&mut self, text: &str, deadline: Deadline) {
        let previous = self.text();
        self.edit_from(&previous, text, deadline);
    }

    /// The same, if the [text](Self::text) before is known.
    pub(crate) fn edit_from(&mut self, previous: &str, text: &str, deadline: Deadline) {
        if previous == text {
            return;
        }
        // Typing one whole side decides every hunk, even where a diff could not tell which line went where.
        if text == &**self.proposal() {
            return self.settle_all(true);
        }
        if text == &**self.base() {
            return self.settle_all(false);
        }
        let shared = Shared::by(previous, text);
        let skipped = count_lines(previous.get(..shared.prefix).unwrap_or_default());
        let changes = changes_between(previous, text, shared, skipped, deadline);
        let mut typed_lines = LineFinder::new(text, skipped, shared.prefix);
        let mut regions = regions(&self.segments, Segment::text_lines, changes, Proximity::Inside);
        if let Some(last) = regions.last_mut() {
            let typed = typed_lines.slice(&last.new);
            // Nothing may follow an unterminated line, so everything below it becomes part of the same hunk.
            if !typed.is_empty() && !typed.ends_with('\n') {
                last.extend_to_end(&self.segments);
            }
        }
        let mut cutter = Cutter::new(self.take_segments());
        let mut builder = Builder::default();
        for region in regions {
            for segment in cutter.before(&region) {
                builder.push(segment);
            }
            let place = cutter.place();
            let concerned = cutter.inside(&region);
            let sides = around(&concerned).unwrap_or(place);
            let edited = Edited {
                id: name_of(&concerned).unwrap_or_else(|| self.new_id()),
                sides,
                inside: concerned.into_iter().flat_map(Segment::into_proposed).collect(),
                text: typed_lines.slice(&region.new).into(),
                ancestor: None,
            };
            builder.push_edited(edited, &self.originals);
        }
        for segment in cutter.rest() {
            builder.push(segment);
        }
        self.segments = builder.finish().into();
    }

    fn settle_all(&mut self, accepted: bool) {
        let Some(whole) = around(&self.segments) else { return };
        let segments = self.take_segments();
        let hunks = segments.into_iter().flat_map(Segment::into_proposed).collect();
        let mut builder = Builder::default();
        builder.push_settled(&whole, hunks, std::iter::repeat(accepted));
        self.segments = builder.finish().into();
    }
}

/// The id of merged segments: the agent's first hunk, or else the user's first one.
pub(super) fn name_of(segments: &[Segment]) -> Option<HunkId> {
    let proposed = segments.iter().find_map(|segment| match segment {
        Segment::Proposed { hunk, .. } => Some(hunk.id),
        Segment::Edited(edited) => edited.inside.first().map(|hunk| hunk.id),
        Segment::Common(_) => None,
    });
    proposed.or_else(|| segments.iter().find_map(Segment::id))
}
