//! The rules of drafts, one example each.

use super::*;

/// All sides of one hunk.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct HunkTexts<'draft> {
    pub(super) base: &'draft str,
    pub(super) proposal: &'draft str,
    pub(super) draft: &'draft str,
    pub(super) ancestor: Option<&'draft str>,
}

impl Draft {
    pub(super) fn hunk_texts(&self, id: HunkId) -> Result<HunkTexts<'_>, HunkError> {
        let segment = &self.segments[self.position(id)?];
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

    pub(super) fn set_all(&mut self, decision: HunkDecision) {
        for hunk in self.hunks().collect::<Vec<_>>() {
            self.set_hunk(hunk.id, decision).unwrap();
        }
    }
}

fn draft(base: &str, proposal: &str) -> Draft {
    Draft::new(base, proposal, None)
}

fn states(draft: &Draft) -> Vec<(u32, HunkState)> {
    draft.hunks().map(|hunk| (hunk.id.0, hunk.state)).collect()
}

fn kinds(base: &str, proposal: &str) -> Vec<HunkKind> {
    draft(base, proposal).hunks().map(|hunk| hunk.kind).collect()
}

const BASE: &str = "a\nb\nc\nd\ne\nf\n";
const PROPOSAL: &str = "a\nB\nc\nd\nE\nf\n";

#[test]
fn every_hunk_starts_out_accepted() {
    let draft = draft(BASE, PROPOSAL);
    assert_eq!(states(&draft), [(0, HunkState::Accepted), (1, HunkState::Accepted)]);
    assert_eq!(draft.text(), PROPOSAL);
}

#[test]
fn hunk_has_its_range_in_all_three_texts() {
    let mut draft = draft("a\nb\nc\n", "x\ny\na\nc\n");
    draft.edit("x\na\nc\n", None);
    let hunks: Vec<Hunk> = draft.hunks().collect();
    let range = |start, count| LineRange { start, count };
    assert_eq!(
        hunks
            .iter()
            .map(|hunk| (hunk.base, hunk.proposal, hunk.draft))
            .collect::<Vec<_>>(),
        [
            (range(1, 0), range(1, 2), range(1, 1)),
            (range(2, 1), range(4, 0), range(3, 0))
        ]
    );
    let json = serde_json::to_value(&hunks[0]).unwrap();
    assert_eq!(
        json,
        serde_json::json!({
            "id": 0, "state": "edited", "yours": false, "kind": "text",
            "base": {"start": 1, "count": 0}, "proposal": {"start": 1, "count": 2}, "draft": {"start": 1, "count": 1},
        })
    );
}

#[test]
fn edit_in_a_hunk_marks_it_and_typing_a_side_resolves_it() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.edit("a\nmine\nc\nd\nE\nf\n", None);
    assert_eq!(states(&draft), [(0, HunkState::Edited), (1, HunkState::Accepted)]);
    draft.edit(BASE, None);
    assert_eq!(states(&draft), [(0, HunkState::Rejected), (1, HunkState::Rejected)]);
    draft.edit(PROPOSAL, None);
    assert_eq!(states(&draft), [(0, HunkState::Accepted), (1, HunkState::Accepted)]);
}

#[test]
fn deciding_an_edited_hunk_drops_the_edit() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.edit("a\nmine\nc\nd\nE\nf\n", None);
    draft.set_hunk(HunkId(0), HunkDecision::Kept).unwrap();
    assert_eq!(draft.text(), "a\nmine\nc\nd\nE\nf\n");
    draft.set_hunk(HunkId(0), HunkDecision::Accepted).unwrap();
    assert_eq!(draft.text(), PROPOSAL);
}

#[test]
fn edit_outside_hunks_is_your_hunk_until_rejected() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.edit("a\nB\nc\nd and more\nE\nf\nlast\n", None);
    let own: Vec<HunkId> = draft.hunks().filter(|hunk| hunk.yours).map(|hunk| hunk.id).collect();
    assert_eq!(own, [HunkId(2), HunkId(3)]);
    draft.set_all(HunkDecision::Accepted);
    assert_eq!(draft.text(), "a\nB\nc\nd and more\nE\nf\nlast\n");
    for id in own {
        draft.set_hunk(id, HunkDecision::Rejected).unwrap();
    }
    assert_eq!(
        draft,
        Draft {
            next_id: 4,
            ..Draft::new(BASE, PROPOSAL, None)
        }
    );
}

#[test]
fn edit_over_hunks_joins_them_until_undone() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.set_hunk(HunkId(1), HunkDecision::Rejected).unwrap();
    let previous = draft.clone();
    draft.edit("all\nnew\n", None);
    assert_eq!(states(&draft), [(0, HunkState::Edited)]);
    assert_eq!(
        draft.set_hunk(HunkId(1), HunkDecision::Accepted),
        Err(HunkError::Merged {
            id: HunkId(1),
            into: HunkId(0)
        })
    );
    draft.edit(&previous.text(), None);
    assert_eq!(draft, previous);
    draft.edit("all\nnew\n", None);
    draft.set_hunk(HunkId(0), HunkDecision::Accepted).unwrap();
    assert_eq!(draft, Draft::new(BASE, PROPOSAL, None));
}

#[test]
fn nothing_ever_comes_behind_a_line_without_its_end() {
    let mut draft = draft("a\nb\n", "a\n");
    draft.edit("a", None);
    draft.set_all(HunkDecision::Rejected);
    assert_eq!(draft.text(), "a\nb\n");
}

#[test]
fn invisible_change_is_a_hunk_with_a_note() {
    assert_eq!(kinds("a\r\nb\r\n", "a\nb\n"), [HunkKind::LineEnding]);
    assert_eq!(kinds("a\nb\n", "a\nb"), [HunkKind::FinalNewline]);
    assert_eq!(kinds("\u{feff}a\n", "a\n"), [HunkKind::ByteOrderMark]);
    assert_eq!(kinds("a\n  b\n", "a\n\tb\n\n"), [HunkKind::Whitespace]);
    assert_eq!(kinds("a\rb\n", "a\nb\n"), [HunkKind::Whitespace]);
    assert_eq!(kinds("a\n", "b\n"), [HunkKind::Text]);
}

#[test]
fn an_unknown_hunk_is_an_error() {
    let unknown = HunkError::Unknown(HunkId(7));
    assert_eq!(
        draft(BASE, PROPOSAL).set_hunk(HunkId(7), HunkDecision::Accepted),
        Err(unknown)
    );
    assert_eq!(draft(BASE, PROPOSAL).hunk_texts(HunkId(7)), Err(unknown));
}

#[test]
fn line_removed_by_both_sides_is_removed_once() {
    let mut draft = draft("a\n\n\n", "c\na\n\n");
    assert!(draft.rebase("a\n\n", None).clean);
    assert_eq!(draft.text(), "c\na\n\n");
}

#[test]
fn file_change_elsewhere_goes_into_the_draft() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.edit("a\nmine\nc\nd\nE\nf\n", None);
    draft.set_hunk(HunkId(1), HunkDecision::Rejected).unwrap();
    let rebased = draft.rebase("new\na\nb\nc\nd\ne\nf\n", None);
    assert_eq!(
        rebased,
        Rebased {
            clean: true,
            conflicts: 0
        }
    );
    assert_eq!(draft.text(), "new\na\nmine\nc\nd\ne\nf\n");
    assert_eq!(states(&draft), [(0, HunkState::Edited), (1, HunkState::Rejected)]);
    draft.set_all(HunkDecision::Accepted);
    assert_eq!(draft.text(), "new\na\nB\nc\nd\nE\nf\n");
}

#[test]
fn overlapping_file_change_is_a_conflict_until_decided() {
    let conflict = || {
        let mut draft = draft(BASE, PROPOSAL);
        let rebased = draft.rebase("a\ntheirs\nc\nd\ne\nf\n", None);
        assert!(!rebased.clean && rebased.conflicts == 1);
        draft
    };
    let mut draft = conflict();
    assert_eq!(draft.text(), PROPOSAL);
    assert_eq!(
        draft.hunk_texts(HunkId(0)).unwrap(),
        HunkTexts {
            base: "theirs\n",
            proposal: "B\n",
            draft: "B\n",
            ancestor: Some("b\n")
        }
    );
    for (choice, state, text) in [
        (HunkDecision::Accepted, HunkState::Accepted, PROPOSAL),
        (HunkDecision::Kept, HunkState::Accepted, PROPOSAL),
        (HunkDecision::Rejected, HunkState::Rejected, "a\ntheirs\nc\nd\nE\nf\n"),
    ] {
        let mut draft = conflict();
        draft.set_hunk(HunkId(0), choice).unwrap();
        assert_eq!((states(&draft)[0].1, draft.text().as_str()), (state, text));
        assert_eq!(draft.conflicts().count(), 0);
    }
    draft.edit("a\nB and theirs\nc\nd\nE\nf\n", None);
    assert_eq!(states(&draft)[0], (0, HunkState::Edited));
}

#[test]
fn a_conflict_ends_when_the_file_goes_back() {
    let mut draft = draft(BASE, PROPOSAL);
    let previous = draft.clone();
    assert!(!draft.rebase("a\ntheirs\nc\nd\ne\nf\n", None).clean);
    assert!(!draft.rebase("a\ntheirs again\nc\nd\ne\nf\n", None).clean);
    assert!(draft.rebase(BASE, None).clean);
    assert_eq!(draft, previous);
}

#[test]
fn your_edit_conflicts_with_the_file_and_can_be_kept() {
    let mut draft = draft("a\nb\nc\n", "a\nb\nc\n");
    draft.edit("a\nmine\nc\n", None);
    assert_eq!(draft.rebase("a\ntheirs\nc\n", None).conflicts, 1);
    let own = draft.conflicts().next().unwrap().id;
    let mut other = draft.clone();
    draft.set_hunk(own, HunkDecision::Accepted).unwrap();
    assert_eq!((draft.text().as_str(), draft.conflicts().count()), ("a\nmine\nc\n", 0));
    other.set_hunk(own, HunkDecision::Rejected).unwrap();
    assert_eq!((other.text().as_str(), other.hunks().count()), ("a\ntheirs\nc\n", 0));
}

#[test]
fn a_hunk_that_is_in_the_file_already_disappears() {
    let mut draft = draft(BASE, PROPOSAL);
    assert!(draft.rebase("a\nB\nc\nd\ne\nf\n", None).clean);
    assert_eq!(states(&draft), [(1, HunkState::Accepted)]);
    assert!(draft.rebase(PROPOSAL, None).clean);
    assert_eq!(draft.hunks().count(), 0);
}

#[test]
fn edit_of_a_hunk_survives_the_file_having_it() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.edit("a\nB and mine\nc\nd\nE\nf\n", None);
    assert!(draft.rebase(PROPOSAL, None).clean);
    assert_eq!(draft.text(), "a\nB and mine\nc\nd\nE\nf\n");
    assert!(draft.hunks().all(|hunk| hunk.yours));
}

#[test]
fn a_rejected_hunk_stays_rejected_whatever_the_file_becomes() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.set_all(HunkDecision::Rejected);
    assert!(draft.rebase("a\ntheirs\nc\nd\ne\nf\n", None).clean);
    assert_eq!(draft.text(), "a\ntheirs\nc\nd\ne\nf\n");
    draft.set_hunk(HunkId(0), HunkDecision::Accepted).unwrap();
    assert_eq!(draft.text(), "a\nB\nc\nd\ne\nf\n");
}

/// A draft in one string.
pub(super) fn store(draft: &Draft) -> String {
    serde_json::to_string(&(draft.base(), draft.proposal(), draft.outline())).unwrap()
}

pub(super) fn restore(stored: &str) -> Result<Draft, String> {
    let (base, proposal, outline) = serde_json::from_str(stored).map_err(|error| error.to_string())?;
    Draft::restore(base, proposal, outline).map_err(|error| error.to_string())
}

#[test]
fn inconsistent_stored_draft_is_refused() {
    let mut draft = draft(BASE, PROPOSAL);
    draft.edit("a\nmine\nc\nd\nE\nf\nlast\n", None);
    let stored = store(&draft);
    assert_eq!(restore(&stored).unwrap(), draft);
    for (what, instead, why) in [
        (r#""end":1"#, r#""end":2"#, "common"),
        (r#""end":1"#, r#""end":99999"#, "cover"),
        (r#"["a\nb"#, r#"["x\nb"#, "common"),
        (r#""text":"mine\n""#, r#""text":"mine""#, "unterminated"),
        (r#""nextId":3"#, r#""nextId":1"#, "number"),
        (r#""nextId":3"#, r#""nextId":4294967295"#, "number"),
        (r#""segments""#, r#""parts""#, "parts"),
    ] {
        let tampered = stored.replacen(what, instead, 1);
        assert_ne!(tampered, stored, "{what}");
        let error = restore(&tampered).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
}
