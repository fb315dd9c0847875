//! Agents that disconnect, and companions that restart.

use super::*;

#[test]
fn reopened_stream_keeps_review() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.stream_closed(&session);
    core.stream_opened(&session);
    assert!(core.review(review).is_ok());
    assert!(decisions(&mut core).is_empty());
}

#[test]
fn new_session_of_same_client_receives_orphan_rejections() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    let review = propose(&mut core, &old, "/a", "text");
    core.session_ended(&old, Vec::new());
    assert_eq!(
        core.reject(review),
        Err(DecideError::Closed {
            id: review,
            outcome: ReviewOutcome::Orphaned
        })
    );
    core.take_effects();
    let new = SessionKey::from("new");
    core.session_started(at(0), &new, Some(gemini()));
    core.stream_opened(&new);
    assert_eq!(decisions(&mut core), [("new".into(), rejected("/a"))]);
    propose(&mut core, &new, "/a", "again");
    core.stream_closed(&new);
    core.stream_opened(&new);
    assert!(
        decisions(&mut core).is_empty(),
        "the orphan is forgotten once its file is proposed again"
    );
}

#[test]
fn orphan_is_rejected_through_a_connected_session() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    propose(&mut core, &old, "/a", "text");
    connect(&mut core, "new", gemini());
    core.session_ended(&old, Vec::new());
    assert_eq!(decisions(&mut core), [("new".into(), rejected("/a"))]);
}

#[test]
fn orphan_leaves_reviews_of_other_sessions_alone() {
    let mut core = core();
    let gone = connect(&mut core, "gone", gemini());
    let alive = connect(&mut core, "alive", gemini());
    let other = connect(
        &mut core,
        "other",
        ClientInfo {
            name: "other".into(),
            version: "1".into(),
        },
    );
    propose(&mut core, &gone, "/a", "text");
    propose(&mut core, &gone, "/b", "text");
    propose(&mut core, &alive, "/a", "text");
    core.session_ended(&gone, Vec::new());
    core.stream_closed(&other);
    core.stream_opened(&other);
    assert_eq!(decisions(&mut core), [("alive".into(), rejected("/b"))]);
}

#[test]
fn undelivered_decision_becomes_a_rejection() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    let review = propose(&mut core, &old, "/a", "text");
    core.stream_closed(&old);
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    core.session_ended(&old, vec!["/a".into()]);
    core.take_effects();
    core.session_started(at(0), &old, Some(gemini()));
    core.stream_opened(&old);
    assert_eq!(decisions(&mut core), [("old".into(), rejected("/a"))]);
}

#[test]
fn restored_review_belongs_to_the_reconnected_session() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");
    let saved = before.review(id).unwrap().clone();

    let mut after = core();
    after.restore_review(at(0), saved);
    let session = connect(&mut after, "one", gemini());
    after.orphan_absent();
    after.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(decisions(&mut after), [("one".into(), accepted("/a", "text"))]);
    assert_eq!(
        propose(&mut after, &session, "/b", "text"),
        ReviewId(2),
        "ids are not reused"
    );
}

#[test]
fn restored_review_without_agent_is_closed() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");
    let saved = before.review(id).unwrap().clone();

    let mut after = core();
    after.restore_review(at(0), saved);
    after.orphan_absent();
    assert_eq!(after.reviews().count(), 0);
    connect(&mut after, "other", gemini());
}

#[test]
fn decision_about_restored_review_waits_for_its_agent() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");
    let saved = before.review(id).unwrap().clone();

    let mut after = core();
    after.restore_review(at(0), saved.clone());
    after.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert!(decisions(&mut after).is_empty(), "its agent is not connected");
    after.session_started(at(0), &session, Some(gemini()));
    assert_eq!(decisions(&mut after), [("one".into(), accepted("/a", "text"))]);

    let mut never = core();
    never.restore_review(at(0), saved);
    never.accept(id, None, EmptyDraft::Refuse).unwrap();
    never.orphan_absent();
    let other = SessionKey::from("other");
    never.session_started(at(0), &other, Some(gemini()));
    never.stream_opened(&other);
    assert_eq!(decisions(&mut never), [("other".into(), rejected("/a"))]);
}

#[test]
fn orphans_are_limited() {
    let mut core = core();
    for number in 0..200 {
        let session = connect(&mut core, &format!("s{number}"), gemini());
        propose(&mut core, &session, &format!("/{number}"), "text");
        core.session_ended(&session, Vec::new());
    }
    assert_eq!(core.orphans.len(), 64);
}
