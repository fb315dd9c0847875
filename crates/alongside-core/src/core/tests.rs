//! The core is tested by calling it and looking at the effects.

use super::*;
use crate::context::Cursor;
use crate::draft::{HunkChange, HunkDecision};
use crate::review::{Base, Proposal};
use crate::text_change::TextChange;

fn at(milliseconds: u64) -> Now {
    Now {
        unix_milliseconds: 1_700_000_000_000 + milliseconds,
        monotonic: Duration::from_millis(milliseconds),
    }
}

fn gemini() -> ClientInfo {
    ClientInfo {
        name: "streamable-http-client".into(),
        version: "0.61.0".into(),
    }
}

fn core() -> Core {
    Core::new(Vec::new(), Box::new(|path| Some(path.to_owned())))
}

fn connect(core: &mut Core, session: &str, client: ClientInfo) -> SessionId {
    let session = SessionId::new(session);
    core.session_started(at(0), &session, Some(client));
    core.stream_opened(&session);
    core.take_effects();
    session
}

fn propose(core: &mut Core, session: &SessionId, path: &str, text: &str) -> ReviewId {
    core.open_review(at(0), session, Proposal::new(path, Base::Missing, text))
        .unwrap()
}

fn told(core: &mut Core) -> Vec<(String, Decision)> {
    core.take_effects()
        .into_iter()
        .filter_map(|effect| match effect {
            Effect::SendDecision { session, decision } => Some((session.to_string(), decision)),
            _ => None,
        })
        .collect()
}

fn accepted(path: &str, content: &str) -> Decision {
    Decision::Accepted {
        path: path.into(),
        content: content.into(),
    }
}

fn rejected(path: &str) -> Decision {
    Decision::Rejected { path: path.into() }
}

fn contexts(core: &mut Core) -> usize {
    core.take_effects()
        .iter()
        .filter(|effect| matches!(effect, Effect::PublishContext(_)))
        .count()
}

#[test]
fn a_burst_of_changes_is_sent_once_with_its_last_state() {
    let mut core = core();
    for line in 1..=100 {
        core.focus_file(at(u64::from(line)), "/a", Some(Cursor { line, character: 1 }), None)
            .unwrap();
    }
    assert_eq!(core.next_deadline(), Some(Duration::from_millis(51)));
    core.tick(at(50));
    assert_eq!(contexts(&mut core), 0);
    core.tick(at(51));
    let Some(Effect::PublishContext(context)) = core.take_effects().pop() else {
        panic!("nothing was sent")
    };
    assert_eq!(
        context.workspace_state.open_files[0].cursor,
        Some(Cursor {
            line: 100,
            character: 1
        })
    );
    assert_eq!(core.next_deadline(), None);
}

#[test]
fn the_same_context_is_not_sent_twice() {
    let mut core = core();
    core.focus_file(at(0), "/a", None, None).unwrap();
    core.tick(at(50));
    assert_eq!(contexts(&mut core), 1);
    core.focus_file(at(100), "/a", None, None).unwrap();
    core.tick(at(150));
    assert_eq!(contexts(&mut core), 0);
}

#[test]
fn what_is_shown_is_what_was_sent() {
    let mut core = core();
    core.focus_file(at(0), "/a", None, Some("text".into())).unwrap();
    let shown = core.show_context();
    assert_eq!(core.take_effects(), [Effect::PublishContext(shown.context)]);
    assert_eq!(core.next_deadline(), None);
}

#[test]
fn a_new_privacy_rule_counts_at_once() {
    let mut core = core();
    core.focus_file(at(0), "/notes/a", None, None).unwrap();
    core.tick(at(50));
    core.take_effects();
    let mut privacy = Privacy::default();
    privacy.hide("config.toml", None, ["notes/"]);
    core.set_privacy(privacy);
    assert_eq!(core.take_effects(), [Effect::PublishContext(IdeContext::default())]);
}

#[test]
fn a_decision_goes_to_the_session_that_asked_and_to_no_other() {
    let mut core = core();
    let one = connect(&mut core, "one", gemini());
    let two = connect(&mut core, "two", gemini());
    let of_one = propose(&mut core, &one, "/a", "one");
    let of_two = propose(&mut core, &two, "/a", "two");
    core.accept(of_two, None, EmptyDraft::Refuse).unwrap();
    core.reject(of_one).unwrap();
    assert_eq!(
        told(&mut core),
        [("two".into(), accepted("/a", "two")), ("one".into(), rejected("/a"))]
    );
}

#[test]
fn a_review_is_decided_exactly_once() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(
        core.reject(review),
        Err(DecideError::Closed {
            id: review,
            outcome: ReviewOutcome::Accepted
        })
    );
    assert_eq!(told(&mut core).len(), 1);
    assert_eq!(core.reject(ReviewId(99)), Err(DecideError::Unknown(ReviewId(99))));
}

#[test]
fn the_path_goes_back_byte_for_byte() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let strange = "/a//b/../c d/\u{e9}\u{301}";
    let review = propose(&mut core, &session, strange, "text");
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(told(&mut core), [("one".into(), accepted(strange, "text"))]);
}

#[test]
fn marks_line_endings_and_a_missing_final_newline_survive() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let text = "\u{feff}one\r\ntwo\nthree\r\nfour";
    let review = propose(&mut core, &session, "/a", text);
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(told(&mut core), [("one".into(), accepted("/a", text))]);
}

#[test]
fn an_edited_draft_is_what_gets_accepted() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.edit(review, "edited").unwrap();
    assert!(core.review(review).unwrap().is_edited());
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(told(&mut core), [("one".into(), accepted("/a", "edited"))]);
}

#[test]
fn a_further_proposal_for_the_same_file_is_a_new_revision_of_the_same_review() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let first = propose(&mut core, &session, "/a", "first");
    core.edit(first, "edited").unwrap();
    let second = propose(&mut core, &session, "/a", "second");
    assert_eq!(first, second);
    assert_eq!(core.review(second).unwrap().revision, 2);
    assert_eq!(&**core.review(second).unwrap().text(), "second");
    assert!(
        told(&mut core).is_empty(),
        "an answer to the former revision would be taken for one to the new one"
    );
}

#[test]
fn closing_by_the_agent_gives_it_the_draft_and_never_notifies() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.edit(review, "edited").unwrap();
    assert_eq!(core.close_review(&session, "/a").as_deref(), Some("edited"));
    assert_eq!(core.close_review(&session, "/a"), None);
    assert!(told(&mut core).is_empty());
}

/// Difference 20: the command lines ignore an empty text and write their own proposal.
#[test]
fn a_person_who_empties_a_file_is_told_that_it_would_not_be_emptied() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    let refused = core.accept(review, Some("".into()), EmptyDraft::Refuse);
    assert!(
        matches!(refused, Err(DecideError::EmptyMeansUnedited { .. })),
        "{refused:?}"
    );
    assert!(core.review(review).is_ok(), "the review still waits");
    core.accept(review, Some("".into()), EmptyDraft::Allow).unwrap();
    assert_eq!(told(&mut core), [("one".into(), accepted("/a", ""))]);
}

#[test]
fn a_client_of_the_specification_may_be_given_an_empty_text() {
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
fn shutting_down_rejects_what_still_waits() {
    let mut core = core();
    let one = connect(&mut core, "one", gemini());
    let two = connect(&mut core, "two", gemini());
    propose(&mut core, &one, "/a", "text");
    propose(&mut core, &two, "/b", "text");
    core.shut_down();
    assert_eq!(
        told(&mut core),
        [("one".into(), rejected("/a")), ("two".into(), rejected("/b"))]
    );
    assert_eq!(core.reviews().count(), 0);
}

#[test]
fn a_stream_that_is_briefly_away_keeps_its_review() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.stream_closed(&session);
    core.stream_opened(&session);
    assert!(core.review(review).is_ok());
    assert!(told(&mut core).is_empty());
}

#[test]
fn a_command_line_that_comes_back_as_a_new_session_is_told_of_its_orphans() {
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
    let new = SessionId::new("new");
    core.session_started(at(0), &new, Some(gemini()));
    core.stream_opened(&new);
    assert_eq!(told(&mut core), [("new".into(), rejected("/a"))]);
    propose(&mut core, &new, "/a", "again");
    core.stream_closed(&new);
    core.stream_opened(&new);
    assert!(
        told(&mut core).is_empty(),
        "the orphan is forgotten once its file is proposed again"
    );
}

#[test]
fn an_orphan_is_told_to_a_session_that_already_came_back() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    propose(&mut core, &old, "/a", "text");
    connect(&mut core, "new", gemini());
    core.session_ended(&old, Vec::new());
    assert_eq!(told(&mut core), [("new".into(), rejected("/a"))]);
}

#[test]
fn an_orphan_does_not_decide_somebody_elses_review() {
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
    assert_eq!(told(&mut core), [("alive".into(), rejected("/b"))]);
}

#[test]
fn a_decision_that_never_arrived_frees_the_agent_when_it_comes_back() {
    let mut core = core();
    let old = connect(&mut core, "old", gemini());
    let review = propose(&mut core, &old, "/a", "text");
    core.stream_closed(&old);
    core.accept(review, None, EmptyDraft::Refuse).unwrap();
    core.session_ended(&old, vec!["/a".into()]);
    core.take_effects();
    core.session_started(at(0), &old, Some(gemini()));
    core.stream_opened(&old);
    assert_eq!(told(&mut core), [("old".into(), rejected("/a"))]);
}

#[test]
fn a_restored_review_is_decided_by_the_session_that_comes_back() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");
    let saved = before.review(id).unwrap().clone();

    let mut after = core();
    after.restore_review(at(0), saved);
    let session = connect(&mut after, "one", gemini());
    after.orphan_absent();
    after.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(told(&mut after), [("one".into(), accepted("/a", "text"))]);
    assert_eq!(
        propose(&mut after, &session, "/b", "text"),
        ReviewId(2),
        "numbers are not given twice"
    );
}

#[test]
fn a_restored_review_whose_agent_is_gone_is_closed() {
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
fn a_decision_about_a_restored_review_waits_for_its_agent() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let id = propose(&mut before, &session, "/a", "text");
    let saved = before.review(id).unwrap().clone();

    let mut after = core();
    after.restore_review(at(0), saved.clone());
    after.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert!(told(&mut after).is_empty(), "nobody is there to be told");
    after.session_started(at(0), &session, Some(gemini()));
    assert_eq!(told(&mut after), [("one".into(), accepted("/a", "text"))]);

    let mut never = core();
    never.restore_review(at(0), saved);
    never.accept(id, None, EmptyDraft::Refuse).unwrap();
    never.orphan_absent();
    let other = SessionId::new("other");
    never.session_started(at(0), &other, Some(gemini()));
    never.stream_opened(&other);
    assert_eq!(told(&mut never), [("other".into(), rejected("/a"))]);
}

#[test]
fn orphans_are_remembered_within_a_bound() {
    let mut core = core();
    for number in 0..200 {
        let session = connect(&mut core, &format!("s{number}"), gemini());
        propose(&mut core, &session, &format!("/{number}"), "text");
        core.session_ended(&session, Vec::new());
    }
    assert_eq!(core.orphans.len(), 64);
}

#[test]
fn the_workspace_is_announced_again_only_when_it_changes() {
    let mut core = core();
    core.set_workspace(vec!["/a".into()]);
    core.set_workspace(vec!["/a".into()]);
    assert_eq!(core.take_effects(), [Effect::WorkspaceChanged]);
}

#[test]
fn an_agent_cannot_pile_up_reviews_without_a_bound() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    for number in 0..100 {
        propose(&mut core, &session, &format!("/{number}"), "text");
    }
    let refused = core.open_review(at(0), &session, Proposal::new("/more", Base::Missing, "text"));
    assert_eq!(refused, Err(TooManyReviews(100)));
    propose(&mut core, &session, "/1", "a new revision is always taken");
}

#[test]
fn the_same_proposal_again_is_not_shown_twice_and_keeps_what_the_person_made_of_it() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    core.edit(review, "edited").unwrap();
    core.take_effects();
    assert_eq!(propose(&mut core, &session, "/a", "text"), review);
    assert!(core.take_effects().is_empty());
    assert_eq!(&**core.review(review).unwrap().text(), "edited");
}

#[test]
fn a_hunk_is_decided_and_everybody_hears_the_change_of_the_text() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("1\n2\n3\n4\n5\n".into()), "one\n2\n3\n4\nfive\n");
    let id = core.open_review(at(0), &session, proposal).unwrap();
    let hunks: Vec<_> = core.review(id).unwrap().draft().hunks().collect();
    core.take_effects();
    let version = core.decide_hunk(id, hunks[0].id, HunkDecision::Rejected).unwrap();
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
    assert_eq!(told(&mut core), [("one".into(), accepted("/a", "1\n2\n3\n4\nfive\n"))]);
}

#[test]
fn a_change_to_an_old_version_is_refused_and_the_draft_stays() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let review = propose(&mut core, &session, "/a", "text");
    let change = |insert: &str| {
        [TextChange {
            from: 0,
            to: 0,
            insert: insert.into(),
        }]
    };
    assert_eq!(core.change(review, 1, &change("first ")), Ok(2));
    assert_eq!(
        core.change(review, 1, &change("late ")),
        Err(DecideError::Stale { id: review, version: 2 })
    );
    assert_eq!(&**core.review(review).unwrap().text(), "first text");
    let beyond = [TextChange {
        from: 99,
        to: 99,
        insert: String::new(),
    }];
    assert!(matches!(
        core.change(review, 2, &beyond),
        Err(DecideError::InvalidEdit(_))
    ));
}

#[test]
fn a_key_pressed_as_a_review_appears_decides_nothing() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Missing, "text");
    let review = core.open_review(at(1000), &session, proposal).unwrap();
    assert_eq!(core.check_armed(at(1399), review), Err(DecideError::TooSoon(review)));
    assert_eq!(core.check_armed(at(1400), review), Ok(()));
    core.open_review(at(2000), &session, Proposal::new("/a", Base::Missing, "another"))
        .unwrap();
    assert!(
        core.check_armed(at(2100), review).is_err(),
        "a new revision appears anew"
    );
}

#[test]
fn a_file_that_changes_on_disk_is_merged_and_a_conflict_must_be_decided() {
    let mut core = core();
    let session = connect(&mut core, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("1\n2\n3\n".into()), "1\ntwo\n3\n");
    let id = core.open_review(at(0), &session, proposal).unwrap();
    core.take_effects();
    core.base_changed(id, Base::Text("1\n2\n3\n".into()));
    assert!(core.take_effects().is_empty(), "the same text is no change");
    core.base_changed(id, Base::Text("0\n1\n2\n3\n".into()));
    assert_eq!(
        core.take_effects(),
        [Effect::ReviewChanged(id), Effect::ReviewRebased { id, conflicts: 0 }]
    );
    assert_eq!(&**core.review(id).unwrap().text(), "0\n1\ntwo\n3\n");

    core.base_changed(id, Base::Text("0\n1\nzwei\n3\n".into()));
    assert_eq!(
        core.accept(id, None, EmptyDraft::Refuse),
        Err(DecideError::Conflicts { id, count: 1 })
    );
    let conflict = core.review(id).unwrap().draft().conflicts().next().unwrap().id;
    core.decide_hunk(id, conflict, HunkDecision::Accepted).unwrap();
    core.accept(id, None, EmptyDraft::Refuse).unwrap();
    assert_eq!(told(&mut core), [("one".into(), accepted("/a", "0\n1\ntwo\n3\n"))]);
}

#[test]
fn a_stored_review_comes_back_exactly() {
    let mut before = core();
    let session = connect(&mut before, "one", gemini());
    let proposal = Proposal::new("/a", Base::Text("\u{feff}1\r\n2".into()), "\u{feff}1\r\ntwo");
    let id = before.open_review(at(0), &session, proposal).unwrap();
    before.edit(id, "\u{feff}1\r\nzwei").unwrap();
    let review = before.review(id).unwrap().clone();
    let stored = serde_json::to_string(&review.outline()).unwrap();
    let texts = (review.draft().base().clone(), review.draft().proposal().clone());

    let mut after = core();
    let restored = Review::restore(serde_json::from_str(&stored).unwrap(), texts.0, texts.1).unwrap();
    after.restore_review(at(0), restored);
    assert_eq!(after.review(id).unwrap(), &review);
}
