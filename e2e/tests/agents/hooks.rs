//! Hooks: a change waits for its review before the agent's own rules apply, and the model reads why it was rejected.

use alongside_e2e::{AgentCapability, FakeModel, Native, Sandbox, TIMEOUT};

use crate::scene::{NINE, Scene};

#[test]
fn hook_of_claude_reviews_every_change() {
    // In this mode it asks for nothing, and its own connection shows no change.
    hook_reviews_every_change(Native::Claude, "claude --permission-mode acceptEdits");
}

#[test]
fn hook_of_opencode_reviews_every_change() {
    hook_reviews_every_change(Native::Opencode, &Native::Opencode.start_line());
}

#[test]
fn hook_of_copilot_reviews_every_change() {
    hook_reviews_every_change(Native::Copilot, &Native::Copilot.start_line());
}

#[test]
fn hook_of_codex_reviews_every_change() {
    hook_reviews_every_change(Native::Codex, &Native::Codex.start_line());
}

fn hook_reviews_every_change(native: Native, line: &str) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    native.set_up(&sandbox, &model);
    sandbox.install(native.command());
    let mut scene = Scene::start_with(&sandbox, &model, native, line);

    scene
        .propose_new("accepted.txt", "one\ntwo\n")
        .accept()
        .writes("one\ntwo\n");
    scene
        .propose_new("edited.txt", "one\ntwo\n")
        .accept_edited("one\nTWO\n")
        .writes("one\nTWO\n");
    scene
        .propose_two_hunks("hunks.txt")
        .reject_hunk("0")
        .accept()
        .writes(&NINE.replace("nine", "NINE"));
    let mark = model.mark();
    scene
        .propose_new("rejected.txt", "unwanted\n")
        .reject(Some("Keep it out."))
        .writes_nothing();
    model.wait_for_message(mark, "Keep it out.", TIMEOUT);
    // Copilot CLI does not react to Escape while its hook runs.
    if native != Native::Copilot {
        scene
            .propose_new("interrupted.txt", "unwanted\n")
            .interrupt()
            .writes_nothing();
    }

    scene.kill_companion_under_a_hook("killed.txt");
    scene.propose_new("after.txt", "one\n").accept().writes("one\n");

    for capability in [
        AgentCapability::Review,
        AgentCapability::Hunk,
        AgentCapability::Edit,
        AgentCapability::Reason,
    ] {
        native.proves(capability);
    }
}
