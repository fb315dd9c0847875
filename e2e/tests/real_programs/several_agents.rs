//! Several agents connected to one companion: a decision goes only to the agent that proposed the change.

use std::fs;
use std::time::Duration;

use alongside_e2e::{
    Agent, Cli, Companion, FakeModel, Launch, Prompt, Review, Sandbox, TIMEOUT, eventually, never_during,
};

#[test]
fn decisions_for_gemini_and_qwen_on_one_file_do_not_cross() {
    decisions_do_not_cross(Cli::Gemini, Cli::Qwen);
}

#[test]
fn decisions_for_two_geminis_on_one_file_do_not_cross() {
    decisions_do_not_cross(Cli::Gemini, Cli::Gemini);
}

fn decisions_do_not_cross(one: Cli, other: Cli) {
    let sandbox = Sandbox::new();
    let path = sandbox.file("shared.txt");
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let start = |cli: Cli, name: &str| Agent::launch(&sandbox, cli, &model, name, Launch::plain(&sandbox, cli));
    let first = start(one, "first");
    let second = start(other, "second");
    first.wait_until_connected();
    second.wait_until_connected();
    companion.wait_for_agents(2, TIMEOUT);

    let first_review = propose(&companion, &first, &path, "from the first");
    let second_review = propose(&companion, &second, &path, "from the second");
    assert!(first_review.agent.contains(one.display_name()), "{first_review:?}");
    assert!(second_review.agent.contains(other.display_name()), "{second_review:?}");

    // A path with two pending reviews is ambiguous.
    let ambiguous = companion.command(&["diff", "accept", &path.to_string_lossy()]);
    assert!(
        !ambiguous.success,
        "one of two changes was taken for the other: {ambiguous:?}"
    );

    companion.json(&["diff", "accept", &second_review.id]);
    let written = eventually(TIMEOUT, || {
        (fs::read_to_string(&path).ok()? == "from the second").then_some(())
    });
    if written.is_none() {
        second.terminal.fail("the accepted change was not written");
    }
    assert_eq!(
        companion.reviews(),
        std::slice::from_ref(&first_review),
        "the other change still waits"
    );
    first.wait_for_question();

    companion.json(&["diff", "reject", &first_review.id]);
    first.wait_until_idle();
    second.wait_until_idle();
    let changed = || fs::read_to_string(&path).ok().as_deref() != Some("from the second");
    assert!(
        never_during(Duration::from_secs(1), changed),
        "the rejected change was written"
    );
}

/// Makes an agent propose a change to the file, and returns the new review.
fn propose(companion: &Companion<'_>, agent: &Agent, path: &std::path::Path, text: &str) -> Review {
    let before = companion.reviews();
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), text).to_string());
    agent.wait_for_question();
    let new = eventually(TIMEOUT, || {
        companion.reviews().into_iter().find(|review| !before.contains(review))
    });
    new.unwrap_or_else(|| agent.terminal.fail("the change never arrived"))
}
