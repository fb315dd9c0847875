//! What keys and events do.

use alongside_core::ReviewOutcome;
use alongside_core::draft::HunkDecision;
use crossterm::event::{KeyEventKind, KeyEventState};

use super::*;
use crate::model::{Connection, Overlay, View};

const PATH: &str = "/home/me/project/src/main.rs";

fn opened() -> Bench {
    let mut bench = Bench::connected(100, 40);
    bench.open(PATH, BASE, &proposal());
    bench
}

#[test]
fn first_change_opens_by_itself_and_the_next_does_not() {
    let mut bench = opened();
    assert!(bench.model.open.is_some());
    bench.propose(2, "/home/me/project/other.rs", "a\n", "b\n");
    assert_eq!(bench.model.open.as_ref().unwrap().key.review, ReviewId(1));
    assert!(matches!(bench.actions.last(), Some(Action::Alert(text)) if text.contains("other.rs")));
}

#[test]
fn decision_right_after_review_opens_is_ignored() {
    let mut bench = Bench::connected(100, 40);
    bench.propose(1, PATH, BASE, &proposal());
    bench.wait(399);
    bench.keys("rAR");
    assert_eq!(bench.draft(1), proposal());
    assert!(bench.decided.is_empty());
    bench.wait(1);
    bench.keys("A");
    assert_eq!(bench.decided.len(), 1);
}

/// Holding a key in a huge file must not queue work for every screen on the way.
#[test]
fn one_job_at_a_time_colors_a_text() {
    let mut bench = Bench::connected(100, 40);
    bench.open(PATH, &"one\n".repeat(5000), &"two\n".repeat(5000));
    let count = bench.jobs.len();
    assert!((1..=3).contains(&count), "{count}");
    for _ in 0..50 {
        bench.press(KeyCode::PageDown);
    }
    assert_eq!(bench.jobs.len(), count);
    let job = bench.jobs.remove(0);
    let marks = job.run();
    bench.apply(Message::Highlighted(Box::new((job, marks))));
    assert_eq!(bench.jobs.len(), count, "what is shown now");
}

#[test]
fn held_key_decides_nothing() {
    let mut bench = opened();
    for letter in ['a', 'r', 'A', 'R'] {
        bench.apply(Message::Key(KeyEvent {
            code: KeyCode::Char(letter),
            modifiers: KeyModifiers::NONE,
            kind: KeyEventKind::Repeat,
            state: KeyEventState::NONE,
        }));
    }
    assert_eq!(bench.draft(1), proposal());
    assert!(bench.decided.is_empty());
}

#[test]
fn pasted_text_decides_nothing() {
    let mut bench = opened();
    bench.apply(Message::Paste("ARar+y".to_owned()));
    assert!(bench.decided.is_empty());
    assert_eq!(bench.draft(1), proposal());
}

#[test]
fn rejected_hunk_is_undone() {
    let mut bench = opened();
    bench.keys("r");
    assert_eq!(bench.draft(1).matches("\"Hello\"").count(), 1);
    bench.keys("u");
    assert_eq!(bench.draft(1), proposal());
    assert_eq!(bench.model.open.as_ref().unwrap().decided.len(), 0);
}

#[test]
fn rejecting_an_edited_hunk_is_undone_with_the_edit() {
    let mut bench = opened();
    let mine = proposal().replace("Hello, {}", "Good day, {}");
    bench.edit_elsewhere(1, &mine);
    bench.keys("r");
    assert!(!bench.draft(1).contains("Good day"));
    bench.keys("u");
    assert_eq!(bench.draft(1), mine);
}

#[test]
fn accept_sends_the_draft_as_it_is() {
    let mut bench = opened();
    bench.keys("raA");
    assert!(matches!(bench.decided.as_slice(), [Request::ReviewAccept(accept)] if accept.content.is_none()));
    assert_eq!(bench.model.view, View::List);
    assert!(bench.shown().contains("was accepted."));
}

#[test]
fn next_change_follows_a_decision() {
    let mut bench = opened();
    bench.propose(2, "/home/me/project/other.rs", "a\n", "b\n");
    bench.keys("A");
    assert_eq!(bench.model.open.as_ref().unwrap().key.review, ReviewId(2));
    // It has only just appeared.
    bench.keys("A");
    assert_eq!(bench.decided.len(), 1);
}

#[test]
fn rejection_has_the_reason_and_the_comments() {
    let mut bench = opened();
    bench.keys("mtoo clever");
    bench.press(KeyCode::Enter);
    bench.keys("WKeep it simple.");
    bench.press(KeyCode::Enter);
    let [Request::ReviewReject(reject)] = bench.decided.as_slice() else {
        panic!("{:?}", bench.decided)
    };
    let reason = reject.reason.as_deref().unwrap();
    assert!(reason.starts_with("Keep it simple.\nLine 5 (`println!"), "{reason}");
    assert!(reason.ends_with("too clever"), "{reason}");
}

#[test]
fn agent_that_receives_no_reason_is_not_promised_one() {
    let mut bench = opened();
    bench.model.open.as_mut().unwrap().summary.takes_reason = false;
    bench.keys("m");
    assert!(bench.model.overlay.is_none());
    assert!(bench.shown().contains("cannot receive a reason"));
}

#[test]
fn accepting_with_comments_asks_first() {
    let mut bench = opened();
    bench.keys("mtoo clever");
    bench.press(KeyCode::Enter);
    bench.keys("A");
    assert!(bench.decided.is_empty());
    bench.keys("y");
    assert_eq!(bench.decided.len(), 1);
}

#[test]
fn edit_in_place_changes_the_draft() {
    let mut bench = opened();
    bench.keys("i// mine ");
    bench.press(KeyCode::Esc);
    assert!(bench.draft(1).contains("// mine     println!"), "{}", bench.draft(1));
    assert!(bench.model.overlay.is_none());
}

#[test]
fn edit_in_another_place_survives_one_from_elsewhere() {
    let mut bench = opened();
    bench.keys("i// mine ");
    bench.edit_elsewhere(1, &proposal().replace("use std::env;", "use std::env; // theirs"));
    bench.press(KeyCode::Esc);
    let draft = bench.draft(1);
    assert!(draft.contains("// mine") && draft.contains("// theirs"), "{draft}");
}

#[test]
fn edit_of_the_same_line_asks_before_it_replaces() {
    let mut bench = opened();
    bench.keys("i// mine ");
    let theirs = proposal()
        .replace("println!(\"Hello, {}\"", "THEIRS println!(\"Hello, {}\"")
        .replace("    THEIRS", "THEIRS    ");
    bench.edit_elsewhere(1, &theirs);
    bench.press(KeyCode::Esc);
    assert_eq!(bench.draft(1), theirs);
    assert!(matches!(bench.model.overlay, Some(Overlay::Edit(_))));
    bench.press(KeyCode::Esc);
    assert!(matches!(bench.decided.as_slice(), [Request::ReviewEdit(edit)] if edit.content.contains("// mine")));
}

#[test]
fn typed_text_is_discarded_only_on_request() {
    let mut bench = opened();
    bench.keys("imine");
    bench.control('c');
    assert!(matches!(bench.model.overlay, Some(Overlay::Edit(_))));
    bench.control('c');
    assert!(bench.model.overlay.is_none());
    assert_eq!(bench.draft(1), proposal());
}

#[test]
fn text_of_another_editor_becomes_the_draft() {
    let mut bench = opened();
    bench.keys("e");
    let Some(Action::OpenEditor { key, text, line, .. }) = bench.actions.pop() else {
        panic!("no editor")
    };
    assert_eq!((line, &*text), (5, proposal().as_str()));
    bench.apply(Message::EditorClosed {
        key,
        original: text,
        text: Ok("all new\n".to_owned()),
    });
    assert_eq!(bench.draft(1), "all new\n");
    assert!(bench.model.overlay.is_none());
}

#[test]
fn closed_review_keeps_what_is_being_typed() {
    let mut bench = opened();
    bench.keys("imine");
    bench.close_elsewhere(1, ReviewOutcome::Rejected);
    let shown = bench.shown();
    assert!(
        shown.contains("mine") && shown.contains("rejected elsewhere"),
        "{shown}"
    );
    bench.press(KeyCode::Esc);
    assert_eq!(bench.model.view, View::List);
}

#[test]
fn decision_elsewhere_is_a_notice() {
    let mut bench = opened();
    bench.close_elsewhere(1, ReviewOutcome::Accepted);
    assert_eq!(bench.model.view, View::List);
    assert!(bench.shown().contains("Review 1 (src/main.rs) was accepted elsewhere."));
}

#[test]
fn missed_edit_is_fetched() {
    let mut bench = opened();
    {
        let (summary, draft) = bench.drafts.get_mut(&1).unwrap();
        let hunk = draft.hunks().next().unwrap().id;
        draft.set_hunk(hunk, HunkDecision::Rejected).unwrap();
        // Its notification was lost.
        summary.version += 1;
    }
    let text = bench.draft(1).replace("fn main", "fn start");
    bench.edit_elsewhere(1, &text);
    assert_eq!(&**bench.model.open.as_ref().unwrap().draft.shared(), text);
}

#[test]
fn restarted_companion_is_followed() {
    let mut bench = opened();
    bench.disconnect();
    bench.keys("A");
    assert!(bench.decided.is_empty());
    let (summary, draft) = bench.drafts.get_mut(&1).unwrap();
    let text = draft.text().replace("fn main", "fn start");
    edit(ReviewId(1), summary, draft, &text);
    bench.connect();
    assert_eq!(bench.model.companions[0].connection, Connection::Connected);
    assert_eq!(&**bench.model.open.as_ref().unwrap().draft.shared(), text);
    bench.keys("A");
    assert_eq!(bench.decided.len(), 1);
}

#[test]
fn review_decided_during_a_disconnection_disappears() {
    let mut bench = opened();
    bench.disconnect();
    bench.drafts.clear();
    bench.connect();
    assert_eq!(bench.model.view, View::List);
}

#[test]
fn new_revision_is_armed_again() {
    let mut bench = opened();
    let draft = Draft::new(BASE, "all new\n", None);
    let mut summary = summary(1, PATH, false, &draft);
    (summary.revision, summary.version) = (2, 7);
    bench.drafts.insert(1, (summary.clone(), draft));
    bench.notify(Notification::ReviewChanged(summary));
    bench.keys("A");
    assert!(bench.decided.is_empty());
    bench.wait(400);
    bench.keys("A");
    assert_eq!(bench.decided.len(), 1);
}

#[test]
fn search_finds_what_is_folded() {
    let mut bench = opened();
    assert!(!bench.shown().contains("// five"));
    bench.keys("/FIVE");
    bench.press(KeyCode::Enter);
    assert!(!bench.shown().contains("// five"), "upper case matches only itself");
    bench.press(KeyCode::Esc);
    bench.keys("/");
    for _ in 0..4 {
        bench.press(KeyCode::Backspace);
    }
    bench.keys("five");
    bench.press(KeyCode::Enter);
    assert!(bench.shown().contains("// five"));
}

#[test]
fn all_changes_of_an_agent_need_a_yes() {
    let mut bench = opened();
    bench.propose(2, "/home/me/project/other.rs", "a\n", "b\n");
    bench.keys("+n+y");
    assert!(matches!(bench.decided.as_slice(), [Request::ReviewAcceptAll(_)]));
}

#[test]
fn suspending_is_refused_where_it_would_stop_the_companion() {
    let mut bench = opened();
    bench.actions.clear();
    bench.control('z');
    assert!(matches!(bench.actions.as_slice(), [Action::Suspend]));
    bench.actions.clear();
    bench.model.options.owns_companion = true;
    bench.control('z');
    assert!(bench.actions.is_empty());
}

#[test]
fn second_companion_has_its_own_reviews() {
    let mut bench = opened();
    let other = crate::RunningCompanion {
        pid: 7,
        name: "Neovim".to_owned(),
        workspace: vec![PathBuf::from("/home/me/other")],
    };
    bench.apply(Message::Companions(vec![other]));
    bench.press(KeyCode::Enter);
    assert!(matches!(bench.actions.last(), Some(Action::Attach(_))));
    let draft = Draft::new("a\n", "b\n", None);
    let same_number = summary(1, "/home/me/other/b.rs", false, &draft);
    let opened = Notification::ReviewOpened(same_number);
    bench.apply(Message::Link(1, LinkEvent::Notification(Box::new(opened))));
    assert_eq!(bench.model.listed().len(), 2);
    bench.close_elsewhere(1, ReviewOutcome::Rejected);
    assert_eq!(bench.model.listed().len(), 1);
}
