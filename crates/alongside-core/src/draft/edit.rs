//! Folding what a person typed into the segments it concerns.

use std::sync::Arc;

use super::compare::line_changes;
use super::lines::Text;
use super::regions::{Cutter, Proximity, regions};
use super::segment::{Builder, Edited, Segment, around};
use super::{Draft, HunkId};

impl Draft {
    /// A person changed the draft into `text`; from then on that is the draft, byte for byte.
    ///
    /// Each change goes to the hunk it is in, which becomes edited, or accepted or rejected again if that is what its
    /// text says now. A change outside of hunks becomes a hunk of the person's own. A change that reaches over several
    /// hunks makes them one, until it is undone or dropped. A conflict that is edited is settled.
    pub fn edit(&mut self, text: &str) {
        let former = self.text();
        if former == text {
            return;
        }
        // Who typed one whole side has decided every hunk, even where a comparison could not tell which line went where.
        if text == &**self.proposal() {
            return self.settle_all(true);
        }
        if text == &**self.base() {
            return self.settle_all(false);
        }
        let changes = line_changes(&former, text);
        let text = Text::new(Arc::from(text));
        let mut regions = regions(&self.segments, Segment::text_lines, changes, Proximity::Inside);
        if let Some(last) = regions.last_mut() {
            let typed = text.slice(&last.new);
            // Nothing may ever come behind a line without its end, so whatever could come there later has to be part
            // of the same decision.
            if !typed.is_empty() && !typed.ends_with('\n') {
                last.extend_to_end(&self.segments);
            }
        }
        let mut cutter = Cutter::new(std::mem::take(&mut self.segments));
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
                text: text.slice(&region.new).to_owned(),
                ancestor: None,
            };
            builder.push_edited(edited, &self.originals);
        }
        for segment in cutter.rest() {
            builder.push(segment);
        }
        self.segments = builder.finish();
    }

    fn settle_all(&mut self, accepted: bool) {
        let Some(whole) = around(&self.segments) else { return };
        let segments = std::mem::take(&mut self.segments);
        let hunks = segments.into_iter().flat_map(Segment::into_proposed).collect();
        let mut builder = Builder::default();
        builder.push_settled(&whole, hunks, std::iter::repeat(accepted));
        self.segments = builder.finish();
    }
}

/// The name of what several segments become: that of the agent's first hunk, or else of the person's own first one.
pub(super) fn name_of(segments: &[Segment]) -> Option<HunkId> {
    let proposed = segments.iter().find_map(|segment| match segment {
        Segment::Proposed { hunk, .. } => Some(hunk.id),
        Segment::Edited(edited) => edited.inside.first().map(|hunk| hunk.id),
        Segment::Common(_) => None,
    });
    proposed.or_else(|| segments.iter().find_map(Segment::id))
}
