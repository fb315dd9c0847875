//! The ledger: what a restarted companion continues with.

use super::*;

/// The core of a companion that starts with what the previous one had written.
fn restart(before: &mut Core) -> Core {
    let mut written = Ledger::default();
    for change in before.take_changes() {
        written.apply(change);
    }
    assert_eq!(&written, before.ledger(), "the changes are complete");
    let mut snapshot = Ledger::default();
    for change in written.snapshot() {
        snapshot.apply(change);
    }
    assert_eq!(snapshot, written, "a snapshot is complete");
    let mut after = core();
    after.restore(at(0), written);
    after.take_effects();
    after
}

fn reconnect(core: &mut Core, session: &SessionKey) {
    core.session_started(at(0), session, core.known_client(session).cloned());
    core.stream_opened(at(0), session);
}

#[test]
fn restored_review_belongs_to_the_reconnected_session() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");
    edit(&mut before, id, "edited").unwrap();

    let mut after = restart(&mut before);
    reconnect(&mut after, &session);
    after.end_absent_sessions(at(0));
    after.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(decisions(&mut after), [("one".into(), accepted("/a", "edited"))]);
}

#[test]
fn numbers_are_never_reused() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let first = propose(&mut before, &session, "/a", "text");
    before.accept(first, None, EmptyDraft::Refuse).unwrap();
    before.settle(&session, &[DeliveryId(1)]);

    let mut after = restart(&mut before);
    reconnect(&mut after, &session);
    let outcome = ReviewOutcome::Accepted;
    assert_eq!(
        after.reject(first, None),
        Err(DecideError::Closed { id: first, outcome }),
        "a repeated decision is answered with the first"
    );
    let second = propose(&mut after, &session, "/b", "text");
    assert_eq!(second, ReviewId(2));
    after.reject(second, None).unwrap();
    let deliveries: Vec<u64> = after.ledger().deliveries().map(|delivery| delivery.id.0).collect();
    assert_eq!(deliveries, [2]);
}

#[test]
fn decided_review_is_not_pending_again_and_its_decision_is_repeated() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");
    before.accept(id, None, EmptyDraft::Refuse).unwrap();

    let mut after = restart(&mut before);
    assert_eq!(after.reviews().count(), 0);
    after.session_started(at(0), &session, Some(gemini()));
    let repeated: Vec<bool> = after
        .take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::SendDecision { repeated, .. } => Some(repeated),
            _ => None,
        })
        .collect();
    assert_eq!(repeated, [true], "the agent may have received it");
    after.settle(&session, &[DeliveryId(1)]);
    let mut later = restart_after(&mut after, &mut before);
    reconnect(&mut later, &session);
    assert!(decisions(&mut later).is_empty());
}

/// Restarts a companion that was itself restarted.
fn restart_after(after: &mut Core, before: &mut Core) -> Core {
    let mut written = before.ledger().clone();
    for change in after.take_changes() {
        written.apply(change);
    }
    let mut later = core();
    later.restore(at(0), written);
    later.take_effects();
    later
}

#[test]
fn another_session_cannot_settle_a_decision() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let other = connect(&mut core, "other", gemini());
    let id = propose(&mut core, &session, "/a", "text");
    core.accept(id, None, EmptyDraft::Refuse).unwrap();
    core.settle(&other, &[DeliveryId(1)]);
    assert_eq!(core.ledger().deliveries().count(), 1);
}

#[test]
fn restored_review_without_agent_is_closed() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    propose(&mut before, &session, "/a", "text");

    let mut after = restart(&mut before);
    after.end_absent_sessions(at(0));
    assert_eq!(after.reviews().count(), 0);
    assert_eq!(after.known_client(&session), None);
    let other = SessionKey::from("other");
    after.session_started(at(0), &other, Some(gemini()));
    after.stream_opened(at(0), &other);
    assert_eq!(decisions(&mut after), [("other".into(), rejected("/a"))]);
}

#[test]
fn decision_about_restored_review_waits_for_its_agent() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");

    let mut after = restart(&mut before);
    after.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert!(decisions(&mut after).is_empty(), "its agent is not connected");
    after.session_started(at(0), &session, Some(gemini()));
    assert_eq!(decisions(&mut after), [("one".into(), accepted("/a", "text"))]);
}

#[test]
fn review_of_the_chat_does_not_outlive_its_agent() {
    let mut before = core();
    let session = SessionKey::Chat(crate::SessionId::new("one"));
    before.session_started(at(0), &session, Some(gemini()));
    propose(&mut before, &session, "/a", "text");
    let second = propose(&mut before, &session, "/b", "text");
    before.accept(second, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(before.ledger().deliveries().count(), 0, "the agent has it at once");
    let after = restart(&mut before);
    assert_eq!(after.reviews().count(), 0);
}

#[test]
fn reset_core_is_back_at_what_was_written() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let first = propose(&mut core, &session, "/a", "text");
    let written = core.ledger().clone();
    core.accept(first, None, EmptyDraft::Refuse).unwrap();
    propose(&mut core, &session, "/b", "text");
    core.reset(at(0), written.clone());
    assert_eq!(core.ledger(), &written);
    assert!(decisions(&mut core).is_empty(), "nothing is sent");
    core.reject(first, None).unwrap();
    assert_eq!(decisions(&mut core), [("one".into(), rejected("/a"))]);
}

#[test]
fn texts_of_pending_reviews_are_limited() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let large: Arc<str> = "x".repeat(100 * 1024 * 1024).into();
    let open = |core: &mut Core, path: &str| {
        core.open_review(at(0), &session, Proposal::new(path, Base::Missing, large.clone(), None))
    };
    let first = open(&mut core, "/a").unwrap();
    open(&mut core, "/b").unwrap();
    assert_eq!(open(&mut core, "/c"), Err(ProposalError::TooLarge(256)));
    core.reject(first, None).unwrap();
    open(&mut core, "/c").unwrap();
}
