//! Agents of different vendors on one file, one connected and one with its hook: a decision goes only to the agent that proposed the change.

use std::fs;

use alongside_e2e::{Companion, FakeModel, Native, NativeAgent, Prompt, Review, Sandbox, TIMEOUT, eventually};

#[test]
fn decisions_for_claude_and_codex_on_one_file_do_not_cross() {
    let sandbox = Sandbox::new();
    let path = sandbox.file("shared.txt");
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let claude = NativeAgent::start(&sandbox, Native::Claude, &model);
    companion.wait_for_agents(1, TIMEOUT);
    Native::Codex.set_up(&sandbox, &model);
    sandbox.install("codex");
    let codex = NativeAgent::launch(&sandbox, Native::Codex, &model, &Native::Codex.start_line());

    let propose = |agent: &NativeAgent, text: &str| -> Review {
        agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), text).to_string());
        let name = agent.native.display_name();
        let review = eventually(TIMEOUT, || {
            companion
                .reviews()
                .into_iter()
                .find(|review| review.agent.contains(name))
        });
        review.unwrap_or_else(|| agent.terminal.fail("the change never arrived"))
    };
    let of_claude = propose(&claude, "from Claude\n");
    let of_codex = propose(&codex, "from Codex\n");

    companion.json(&["diff", "reject", &of_claude.id]);
    claude.wait_until_idle();
    assert!(!path.exists(), "a rejected change was written");
    assert_eq!(
        companion.reviews(),
        std::slice::from_ref(&of_codex),
        "the other one is pending"
    );
    companion.json(&["diff", "accept", &of_codex.id]);
    let written = eventually(TIMEOUT, || {
        (fs::read_to_string(&path).ok()? == "from Codex\n").then_some(())
    });
    if written.is_none() {
        codex.terminal.fail("the accepted change was not written");
    }
}
