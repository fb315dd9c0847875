//! Edits, hunks and files that change under review.

use super::*;
use crate::draft::HunkChange;

#[test]
fn edited_draft_is_accepted() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    edit(&mut core, review, "edited").unwrap();
    assert!(core.review(review).unwrap().is_edited());
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(decisions(&mut core), [("one".into(), accepted("/a", "edited"))]);
}

#[test]
fn repeated_proposal_keeps_the_draft() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    edit(&mut core, review, "edited").unwrap();
    core.take_effects();
    assert_eq!(propose(&mut core, &session, "/a", "text"), review);
    assert!(core.take_effects().is_empty());
    assert_eq!(&**core.review(review).unwrap().text(), "edited");
}

#[test]
fn hunk_decision_reports_the_text_change() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("1\n2\n3\n4\n5\n".into()), "one\n2\n3\n4\nfive\n", None);
    let id = core.open_review(at(0), &session, proposal).unwrap();
    let hunks: Vec<_> = core.review(id).unwrap().draft().hunks().collect();
    core.take_effects();
    let version = decide_hunk(&mut core, id, hunks[0].id, HunkDecision::Rejected).unwrap();
    assert_eq!(version, 2);
    let now: Vec<_> = core.review(id).unwrap().draft().hunks().take(1).collect();
    let change = DraftChange {
        text: Some(TextChange {
            from: 0,
            to: 3,
            insert: "1".into(),
        }),
        hunks: HunkChange {
            at: 0,
            removed: 1,
            now,
            shift: 0,
        },
    };
    assert_eq!(core.take_effects(), [Effect::ReviewEdited { id, change }]);
    core.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(
        decisions(&mut core),
        [("one".into(), accepted("/a", "1\n2\n3\n4\nfive\n"))]
    );
}

#[test]
fn change_to_old_version_is_stale() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    let insert = |insert: &str| {
        [TextChange {
            from: 0,
            to: 0,
            insert: insert.into(),
        }]
    };
    assert_eq!(change(&mut core, review, 1, &insert("first ")), Ok(2));
    assert_eq!(
        change(&mut core, review, 1, &insert("late ")),
        Err(DecideError::Stale { id: review, version: 2 })
    );
    assert_eq!(&**core.review(review).unwrap().text(), "first text");
    let beyond = [TextChange {
        from: 99,
        to: 99,
        insert: String::new(),
    }];
    assert!(matches!(
        change(&mut core, review, 2, &beyond),
        Err(DecideError::InvalidEdit(_))
    ));
}

#[test]
fn file_change_is_merged_and_conflict_must_be_resolved() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("1\n2\n3\n".into()), "1\ntwo\n3\n", None);
    let id = core.open_review(at(0), &session, proposal).unwrap();
    core.take_effects();
    base_changed(&mut core, id, "1\n2\n3\n");
    assert!(core.take_effects().is_empty(), "the same text changes nothing");
    base_changed(&mut core, id, "0\n1\n2\n3\n");
    assert_eq!(
        core.take_effects(),
        [Effect::ReviewChanged(id), Effect::ReviewRebased { id, conflicts: 0 }]
    );
    assert_eq!(&**core.review(id).unwrap().text(), "0\n1\ntwo\n3\n");

    base_changed(&mut core, id, "0\n1\nzwei\n3\n");
    assert_eq!(
        core.accept(id, None, EmptyDraft::Refuse),
        Err(DecideError::Conflicts { id, count: 1 })
    );
    let conflict = core.review(id).unwrap().draft().conflicts().next().unwrap().id;
    decide_hunk(&mut core, id, conflict, HunkDecision::Accepted).unwrap();
    core.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(decisions(&mut core), [("one".into(), accepted("/a", "0\n1\ntwo\n3\n"))]);
}

#[test]
fn stored_review_is_restored_exactly() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("\u{feff}1\r\n2".into()), "\u{feff}1\r\ntwo", None);
    let id = before.open_review(at(0), &session, proposal).unwrap();
    edit(&mut before, id, "\u{feff}1\r\nzwei").unwrap();
    let review = before.review(id).unwrap().clone();
    let stored = serde_json::to_string(&review.outline()).unwrap();
    let texts = (review.draft().base().clone(), review.draft().proposal().clone());

    let restored = Review::restore(serde_json::from_str(&stored).unwrap(), texts.0, texts.1).unwrap();
    assert_eq!(restored, review);
}

#[test]
fn update_of_an_old_version_is_stale() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("1\n2\n".into()), "1\ntwo\n", None);
    let id = core.open_review(at(0), &session, proposal).unwrap();
    let snapshot = core.review(id).unwrap().clone();
    let hunk = snapshot.draft().hunks().next().unwrap().id;
    let updates = [
        snapshot.edit("late", None),
        snapshot.decide_hunk(hunk, HunkDecision::Rejected).unwrap(),
        snapshot.rebase(Base::Missing, None).unwrap(),
    ];
    edit(&mut core, id, "first").unwrap();
    core.take_effects();
    for update in updates {
        assert_eq!(core.update_draft(update), Err(DecideError::Stale { id, version: 2 }));
    }
    assert_eq!(&**core.review(id).unwrap().text(), "first");
    assert!(core.take_effects().is_empty());
}

#[test]
fn text_computed_on_a_snapshot_serves_the_review() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("1\n".into()), "one\n", None);
    let id = core.open_review(at(0), &session, proposal).unwrap();
    let hunk = core.review(id).unwrap().draft().hunks().next().unwrap().id;
    decide_hunk(&mut core, id, hunk, HunkDecision::Rejected).unwrap();
    let snapshot = core.review(id).unwrap().clone();
    assert!(Arc::ptr_eq(snapshot.text(), core.review(id).unwrap().text()));
}
