//! The delta between two versions of a draft: its text and its hunks.
//!
//! A review may have thousands of hunks, and a decision concerns one, so front ends receive only the changed hunks.

use serde::{Deserialize, Serialize};

use super::hunk::Hunk;
use crate::text_change::TextChange;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftChange {
    pub text: Option<TextChange>,
    pub hunks: HunkChange,
}

/// Consecutive hunks that were replaced.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HunkChange {
    /// Hunks above that stay as they are.
    pub at: usize,
    /// Hunks after those that are removed.
    pub removed: usize,
    /// Their replacement.
    pub now: Vec<Hunk>,
    /// Lines of the draft by which the hunks below move.
    pub shift: isize,
}

impl HunkChange {
    /// The delta from some hunks to others.
    pub fn between(before: &[Hunk], after: &[Hunk]) -> Self {
        let at = before.iter().zip(after).take_while(|(one, other)| one == other).count();
        let (before, after) = (&before[at..], &after[at..]);
        let shift = match (before.last(), after.last()) {
            (Some(before), Some(after)) => after.draft.start.cast_signed() - before.draft.start.cast_signed(),
            _ => 0,
        };
        let below = before.iter().rev().zip(after.iter().rev());
        let same = below
            .take_while(|(before, after)| before.moved(shift) == **after)
            .count();
        Self {
            at,
            removed: before.len() - same,
            now: after[..after.len() - same].to_vec(),
            shift: if same == 0 { 0 } else { shift },
        }
    }

    /// Applies the delta.
    pub fn apply(&self, hunks: &mut Vec<Hunk>) {
        let end = (self.at + self.removed).min(hunks.len());
        for below in &mut hunks[end..] {
            *below = below.moved(self.shift);
        }
        hunks.splice(self.at.min(end)..end, self.now.iter().cloned());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::draft::{Draft, HunkDecision};

    fn lines() -> impl Strategy<Value = String> {
        proptest::collection::vec("[abc]\n", 0..12).prop_map(|lines| lines.concat())
    }

    fn choice() -> impl Strategy<Value = HunkDecision> {
        prop_oneof![
            Just(HunkDecision::Accepted),
            Just(HunkDecision::Rejected),
            Just(HunkDecision::Kept)
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn decision_delta_leads_to_the_new_draft(
            base in lines(),
            proposal in lines(),
            typed in proptest::option::of(lines()),
            decisions in proptest::collection::vec((0_usize..8, choice()), 1..6),
        ) {
            let mut draft = Draft::new(base, proposal, None);
            if let Some(typed) = typed {
                draft.edit(&typed, None);
            }
            for (index, choice) in decisions {
                let mut hunks: Vec<Hunk> = draft.hunks().collect();
                let Some(hunk) = hunks.get(index).map(|hunk| hunk.id) else { continue };
                let before = draft.text();
                let change = draft.set_hunk(hunk, choice).unwrap();
                let text: Vec<TextChange> = change.text.into_iter().collect();
                prop_assert_eq!(TextChange::apply_all(&before, &text), Ok(draft.text()));
                change.hunks.apply(&mut hunks);
                prop_assert_eq!(hunks, draft.hunks().collect::<Vec<_>>());
            }
        }

        #[test]
        fn edit_delta_leads_to_the_new_hunks(
            base in lines(), proposal in lines(), typed in proptest::collection::vec(lines(), 1..4),
        ) {
            let mut draft = Draft::new(base, proposal, None);
            for text in typed {
                let mut hunks: Vec<Hunk> = draft.hunks().collect();
                draft.edit(&text, None);
                let now: Vec<Hunk> = draft.hunks().collect();
                HunkChange::between(&hunks, &now).apply(&mut hunks);
                prop_assert_eq!(hunks, now);
            }
        }
    }

    #[test]
    fn decision_reports_only_its_hunk() {
        let line = |number: usize, word: &str| match number % 3 {
            0 => format!("{word}\n"),
            _ => format!("{number}\n"),
        };
        let text = |word: &str| (0..300).map(|number| line(number, word)).collect::<String>();
        let mut draft = Draft::new(text("old"), text("new\nnew"), None);
        let hunk = draft.hunks().nth(40).unwrap().id;
        let change = draft.set_hunk(hunk, HunkDecision::Rejected).unwrap().hunks;
        assert_eq!(
            (change.at, change.removed, change.now.len(), change.shift),
            (40, 1, 1, -1)
        );
    }
}
