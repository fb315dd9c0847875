//! Agents that disconnect, and companions that restart.

use super::*;

#[test]
fn reopened_stream_keeps_review() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.stream_closed(&session);
    core.stream_opened(at(0), &session);
    assert!(core.review(review).is_ok());
    assert!(decisions(&mut core).is_empty());
}

#[test]
fn new_session_of_same_client_receives_orphan_rejections() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    let review = propose(&mut core, &old, "/a", "text");
    core.session_ended(at(0), &old, &SessionEnd::Lost);
    assert_eq!(
        core.reject(review, None),
        Err(DecideError::Closed {
            id: review,
            outcome: ReviewOutcome::Orphaned
        })
    );
    core.take_effects();
    let new = SessionKey::from("new");
    core.session_started(at(0), &new, Some(gemini()));
    core.stream_opened(at(0), &new);
    assert_eq!(decisions(&mut core), [("new".into(), rejected("/a"))]);
    propose(&mut core, &new, "/a", "again");
    core.stream_closed(&new);
    core.stream_opened(at(0), &new);
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
    core.session_ended(at(0), &old, &SessionEnd::Lost);
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
    core.session_ended(at(0), &gone, &SessionEnd::Lost);
    core.stream_closed(&other);
    core.stream_opened(at(0), &other);
    assert_eq!(decisions(&mut core), [("alive".into(), rejected("/b"))]);
}

#[test]
fn decision_of_an_ended_session_stays_the_same_decision() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    let review = propose(&mut core, &old, "/a", "text");
    core.stream_closed(&old);
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    core.session_ended(at(0), &old, &SessionEnd::Lost);
    core.take_effects();
    core.session_started(at(0), &old, Some(gemini()));
    core.stream_opened(at(0), &old);
    assert_eq!(decisions(&mut core), [("old".into(), accepted("/a", "text"))]);
}

#[test]
fn deleted_session_has_the_decisions_that_were_written() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    for path in ["/written", "/unwritten"] {
        let review = propose(&mut core, &old, path, "text");
        core.accept(review, None, EmptyDraft::Refuse).unwrap();
    }
    let unwritten = vec![DeliveryId(2)];
    core.session_ended(at(0), &old, &SessionEnd::Deleted { unwritten });
    core.take_effects();
    let new = SessionKey::from("new");
    core.session_started(at(0), &new, Some(gemini()));
    core.stream_opened(at(0), &new);
    assert_eq!(decisions(&mut core), [("new".into(), accepted("/unwritten", "text"))]);
}

#[test]
fn orphan_is_reported_once_to_each_session_for_an_hour() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    propose(&mut core, &old, "/a", "text");
    core.session_ended(at(0), &old, &SessionEnd::Lost);
    let hour = 60 * 60 * 1000;
    core.take_effects();
    for (name, time) in [("one", 0), ("two", hour)] {
        let session = SessionKey::from(name);
        core.session_started(at(time), &session, Some(gemini()));
        core.stream_opened(at(time), &session);
        core.stream_closed(&session);
        core.stream_opened(at(time), &session);
        assert_eq!(decisions(&mut core), [(name.into(), rejected("/a"))]);
    }
    let late = SessionKey::from("late");
    core.session_started(at(hour + 1), &late, Some(gemini()));
    core.stream_opened(at(hour + 1), &late);
    assert!(decisions(&mut core).is_empty());
    assert_eq!(core.ledger().deliveries().count(), 0);
}

#[test]
fn orphan_that_nobody_was_told_of_does_not_age() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    propose(&mut core, &old, "/a", "text");
    core.session_ended(at(0), &old, &SessionEnd::Lost);
    core.take_effects();
    let late = SessionKey::from("late");
    let days = 50 * 60 * 60 * 1000;
    core.session_started(at(days), &late, Some(gemini()));
    core.stream_opened(at(days), &late);
    assert_eq!(decisions(&mut core), [("late".into(), rejected("/a"))]);
}

#[test]
fn orphans_are_limited() {
    let mut core = core();
    for number in 0..1030 {
        let session = connect(&mut core, &format!("s{number}"), gemini());
        propose(&mut core, &session, &format!("/{number}"), "text");
        core.session_ended(at(0), &session, &SessionEnd::Lost);
    }
    let orphans: Vec<u64> = core.ledger().deliveries().map(|delivery| delivery.id.0).collect();
    assert_eq!(orphans.len(), 1024);
    assert_eq!(orphans.first(), Some(&7), "the oldest are dropped");
}

#[test]
fn orphan_does_not_overtake_the_decision_about_a_later_proposal() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    propose(&mut core, &old, "/a", "first");
    let new = connect(&mut core, "new", gemini());
    let second = propose(&mut core, &new, "/a", "second");
    core.accept(second, None, EmptyDraft::Refuse).unwrap();
    core.take_effects();
    core.session_ended(at(0), &old, &SessionEnd::Lost);
    assert!(decisions(&mut core).is_empty(), "it would decide the second proposal");
    core.session_ended(at(0), &new, &SessionEnd::Lost);
    core.take_effects();
    let third = SessionKey::from("third");
    core.session_started(at(0), &third, Some(gemini()));
    core.stream_opened(at(0), &third);
    assert_eq!(decisions(&mut core), [("third".into(), accepted("/a", "second"))]);
}

#[test]
fn only_the_decision_about_the_latest_proposal_of_a_file_is_reported() {
    let mut core = core();
    for (name, text) in [("one", "first"), ("two", "second")] {
        let session = connect(&mut core, name, gemini());
        let review = propose(&mut core, &session, "/a", text);
        core.accept(review, None, EmptyDraft::Refuse).unwrap();
    }
    let (one, two) = (SessionKey::from("one"), SessionKey::from("two"));
    connect(&mut core, "three", gemini());
    core.session_ended(at(0), &one, &SessionEnd::Lost);
    assert!(
        decisions(&mut core).is_empty(),
        "the second proposal may be the same agent's"
    );
    core.session_ended(at(0), &two, &SessionEnd::Lost);
    assert_eq!(decisions(&mut core), [("three".into(), accepted("/a", "second"))]);
}

#[test]
fn absent_sessions_are_all_ended_before_their_decisions_are_reported() {
    let mut before = core();
    for (name, text) in [("one", "first"), ("two", "second")] {
        let session = connect(&mut before, name, gemini());
        let review = propose(&mut before, &session, "/a", text);
        before.accept(review, None, EmptyDraft::Refuse).unwrap();
    }
    let mut after = core();
    after.restore(at(0), before.ledger().clone());
    connect(&mut after, "three", gemini());
    after.end_absent_sessions(at(0));
    assert_eq!(decisions(&mut after), [("three".into(), accepted("/a", "second"))]);
}
