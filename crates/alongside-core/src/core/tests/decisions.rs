//! Proposals and decisions.

use super::*;
use crate::session::SessionId;

#[test]
fn decision_goes_only_to_the_asking_session() {
    let mut core = core();
    let one = connect(&mut core, "one", gemini());
    let two = connect(&mut core, "two", gemini());
    let of_one = propose(&mut core, &one, "/a", "one");
    let of_two = propose(&mut core, &two, "/a", "two");
    core.accept(of_two, None, EmptyDraft::Refuse).unwrap();
    core.reject(of_one, None).unwrap();
    assert_eq!(
        decisions(&mut core),
        [("two".into(), accepted("/a", "two")), ("one".into(), rejected("/a"))]
    );
}

#[test]
fn second_decision_is_refused() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(
        core.reject(review, None),
        Err(DecideError::Closed {
            id: review,
            outcome: ReviewOutcome::Accepted
        })
    );
    assert_eq!(decisions(&mut core).len(), 1);
    assert_eq!(core.reject(ReviewId(99), None), Err(DecideError::Unknown(ReviewId(99))));
}

/// P6: Copilot CLI writes its own text or nothing.
#[test]
fn edited_draft_is_refused_for_an_agent_that_writes_only_its_own_text() {
    let mut core = core();
    let connection = SessionKey::Connection(SessionId::new("one"));
    core.session_started(at(0), &connection, Some(ClientInfo::copilot()));
    let review = propose(&mut core, &connection, "/a", "text");
    edit(&mut core, review, "other").unwrap();
    let refused = core.accept(review, None, EmptyDraft::Refuse).unwrap_err();
    assert!(
        refused.to_string().contains("cannot write an edited version"),
        "{refused}"
    );
    edit(&mut core, review, "text").unwrap();
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    // Its hook can.
    let hook = SessionKey::Hook(SessionId::new("two"));
    core.session_started(at(0), &hook, Some(ClientInfo::copilot()));
    let review = propose(&mut core, &hook, "/a", "text");
    edit(&mut core, review, "other").unwrap();
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
}

#[test]
fn path_is_returned_byte_for_byte() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let strange = "/a//b/../c d/\u{e9}\u{301}";
    let review = propose(&mut core, &session, strange, "text");
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(decisions(&mut core), [("one".into(), accepted(strange, "text"))]);
}

#[test]
fn accepted_text_is_sent_byte_for_byte() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let text = "\u{feff}one\r\ntwo\nthree\r\nfour";
    let review = propose(&mut core, &session, "/a", text);
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(decisions(&mut core), [("one".into(), accepted("/a", text))]);
}

#[test]
fn second_proposal_for_a_file_is_a_new_revision() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let first = propose(&mut core, &session, "/a", "first");
    edit(&mut core, first, "edited").unwrap();
    let second = propose(&mut core, &session, "/a", "second");
    assert_eq!(first, second);
    assert_eq!(core.review(second).unwrap().revision, 2);
    assert_eq!(&**core.review(second).unwrap().text(), "second");
    assert!(
        decisions(&mut core).is_empty(),
        "a decision about the previous revision would be applied to the new one"
    );
}

#[test]
fn closing_by_agent_returns_draft_without_decision() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    edit(&mut core, review, "edited").unwrap();
    assert_eq!(
        core.close_review(&session, "/a")
            .map(|review| review.text().to_string())
            .as_deref(),
        Some("edited")
    );
    assert_eq!(core.close_review(&session, "/a"), None);
    assert!(decisions(&mut core).is_empty());
}

/// Difference 20: both agents ignore an empty text and write their own proposal.
#[test]
fn accepting_an_empty_draft_is_refused_for_gemini() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    let refused = core.accept(review, Some("".into()), EmptyDraft::Refuse);
    assert!(
        matches!(refused, Err(DecideError::EmptyMeansUnedited { .. })),
        "{refused:?}"
    );
    assert!(core.review(review).is_ok(), "the review is still pending");
    core.accept(review, Some("".into()), EmptyDraft::Allow).unwrap();
    assert_eq!(decisions(&mut core), [("one".into(), accepted("/a", ""))]);
}

#[test]
fn accepting_an_empty_draft_works_for_other_clients() {
    let mut core = core();
    let session = connect(
        &mut core,
        "one",
        ClientInfo {
            name: "other".into(),
            version: "1".into(),
        },
    );
    let review = propose(&mut core, &session, "/a", "text");
    core.accept(review, Some("".into()), EmptyDraft::Refuse).unwrap();
    let proposal_is_empty = propose(&mut core, &session, "/b", "");
    core.accept(proposal_is_empty, None, EmptyDraft::Refuse).unwrap();
}

#[test]
fn shutdown_rejects_pending_reviews() {
    let mut core = core();
    let one = connect(&mut core, "one", gemini());
    let two = connect(&mut core, "two", gemini());
    propose(&mut core, &one, "/a", "text");
    propose(&mut core, &two, "/b", "text");
    core.shut_down();
    assert_eq!(
        decisions(&mut core),
        [("one".into(), rejected("/a")), ("two".into(), rejected("/b"))]
    );
    assert_eq!(core.reviews().count(), 0);
}

#[test]
fn pending_reviews_per_agent_are_limited() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    for number in 0..100 {
        propose(&mut core, &session, &format!("/{number}"), "text");
    }
    let refused = core.open_review(at(0), &session, Proposal::new("/more", Base::Missing, "text", None));
    assert_eq!(refused, Err(ProposalError::TooMany(100)));
    propose(&mut core, &session, "/1", "a new revision is always taken");
}

#[test]
fn outcomes_of_the_latest_closed_reviews_are_remembered() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let reviews: Vec<ReviewId> = (0..257)
        .map(|number| {
            let review = propose(&mut core, &session, &format!("/{number}"), "text");
            core.reject(review, None).unwrap();
            review
        })
        .collect();
    assert_eq!(core.reject(reviews[0], None), Err(DecideError::Unknown(reviews[0])));
    let closed = DecideError::Closed {
        id: reviews[1],
        outcome: ReviewOutcome::Rejected,
    };
    assert_eq!(core.reject(reviews[1], None), Err(closed));
}

#[test]
fn decision_right_after_review_opens_is_refused() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Missing, "text", None);
    let review = core.open_review(at(1000), &session, proposal).unwrap();
    assert_eq!(core.check_armed(at(1399), review), Err(DecideError::TooSoon(review)));
    assert_eq!(core.check_armed(at(1400), review), Ok(()));
    core.open_review(at(2000), &session, Proposal::new("/a", Base::Missing, "another", None))
        .unwrap();
    assert!(
        core.check_armed(at(2100), review).is_err(),
        "a new revision appears again"
    );
}
