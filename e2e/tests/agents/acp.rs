//! Agents in the chat that write files themselves: what they want to write becomes a review first.

use std::fs;
use std::path::Path;

use alongside_e2e::{Companion, FakeModel, Native, Outcome, Prompt, Review, Sandbox, TIMEOUT, eventually};

#[test]
fn changes_of_claude_in_the_chat_are_reviewed_once() {
    changes_in_the_chat_are_reviewed_once(Native::Claude);
}

#[test]
fn changes_of_opencode_in_the_chat_are_reviewed_once() {
    changes_in_the_chat_are_reviewed_once(Native::Opencode);
}

#[test]
fn changes_of_copilot_in_the_chat_are_reviewed_once() {
    changes_in_the_chat_are_reviewed_once(Native::Copilot);
}

#[test]
fn changes_of_codex_in_the_chat_are_reviewed_once() {
    changes_in_the_chat_are_reviewed_once(Native::Codex);
}

fn changes_in_the_chat_are_reviewed_once(native: Native) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    native.set_up(&sandbox, &model);
    let mut companion = Companion::start_with_variables(&sandbox, native.variables(&model));
    let content = sandbox.path("edited");
    fs::write(&content, "one\nTWO\n").expect("write the edited text");
    let content = content.to_string_lossy().into_owned();

    let accepted = sandbox.file("accepted.txt");
    let outcome = turn(&companion, native, &accepted, |review| {
        companion.json(&["diff", "accept", &review.id]);
    });
    assert!(outcome.success, "{outcome:?}");
    assert_eq!(fs::read_to_string(&accepted).expect("it was accepted"), "one\ntwo\n");

    let edited = sandbox.file("edited.txt");
    turn(&companion, native, &edited, |review| {
        companion.json(&["diff", "accept", &review.id, "--content-file", &content]);
    });
    assert_eq!(fs::read_to_string(&edited).expect("it was accepted"), "one\nTWO\n");

    let rejected = sandbox.file("rejected.txt");
    turn(&companion, native, &rejected, |review| {
        companion.json(&["diff", "reject", &review.id]);
    });
    assert!(!rejected.exists(), "a rejected file was written");
    companion.terminate();
}

/// Makes the agent write a file, and decides about the only review of it.
fn turn(companion: &Companion<'_>, native: Native, path: &Path, decide: impl Fn(&Review)) -> Outcome {
    let prompt = Prompt::WriteFile(&path.to_string_lossy(), "one\ntwo\n").to_string();
    std::thread::scope(|scope| {
        let turn = scope.spawn(|| companion.command(&["chat", "-p", &prompt, "--agent", native.command()]));
        let review = eventually(TIMEOUT * 2, || {
            let review = companion.reviews().into_iter().next();
            review.map(Some).or_else(|| turn.is_finished().then_some(None))
        });
        let Some(Some(review)) = review else {
            panic!("there is no review: {:?}", turn.join())
        };
        decide(&review);
        let ended = eventually(TIMEOUT, || turn.is_finished().then_some(()));
        assert!(
            ended.is_some(),
            "the turn did not end; there are {:?}",
            companion.reviews()
        );
        turn.join().expect("the command ends")
    })
}
