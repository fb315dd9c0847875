//! Claude Code: context, and reviews that it waits for.

use std::fs;

use alongside_e2e::{AgentCapability, FakeModel, Native, Sandbox, TIMEOUT, eventually};

use crate::editor::Editor;
use crate::scene::{NINE, Scene};

#[test]
fn claude_connects_by_itself_and_every_decision_reaches_the_file() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut scene = Scene::start(&sandbox, &model, Native::Claude);
    scene.wait_until_connected();

    scene.agent.terminal.wait_for_text("1 line selected", TIMEOUT);
    let request = scene.ask("Describe what I see.");
    let expected = format!(
        "The user selected the lines 2 to 2 from {}",
        sandbox.file("a.txt").display()
    );
    assert!(request.contains(&expected), "no {expected:?} in {request}");

    scene
        .propose_new("accepted.txt", "one\ntwo\n")
        .accept()
        .writes("one\ntwo\n");
    let mut editor = Editor::connect(&scene.companion);
    editor.show_error(&sandbox.file("accepted.txt"), "cannot find the number one");
    let request = scene.ask("Go on.");
    let expected = "accepted.txt:\n  ✘ [Line 1:1] cannot find the number one [E0425] (rustc)";
    assert!(request.contains("<new-diagnostics>"), "no diagnostics in {request}");
    assert!(request.contains(expected), "no {expected:?} in {request}");
    scene
        .propose_new("edited.txt", "one\ntwo\n")
        .accept_edited("one\nTWO\n")
        .writes("one\nTWO\n");
    // It drops the final newline of a file that it replaces.
    scene.propose_new("edited.txt", "three\n").accept().writes("three");
    let is_reported = eventually(TIMEOUT, || {
        let problems = scene.companion.json(&["status"])["companions"][0]["problems"].to_string();
        problems.contains("edited.txt without the final newline").then_some(())
    });
    assert!(is_reported.is_some(), "the lost newline is not reported");
    scene
        .propose_two_hunks("hunks.txt")
        .reject_hunk("0")
        .accept()
        .writes(&NINE.replace("nine", "NINE"));
    scene.decide_here_and_in_the_terminal();
    scene.restart_companion_under_a_question("killed.txt");
    scene.wait_until_connected();
    scene.propose_new("after.txt", "one\n").accept().writes("one\n");
    for capability in [
        AgentCapability::Context,
        AgentCapability::Review,
        AgentCapability::Hunk,
        AgentCapability::Edit,
        AgentCapability::Diagnostics,
    ] {
        Native::Claude.proves(capability);
    }
}

#[test]
fn alongside_run_connects_claude_without_its_own_setting() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    Native::Claude.set_up(&sandbox, &model);
    let settings = sandbox.path("home/.claude.json");
    let text = fs::read_to_string(&settings).expect("read the settings");
    let text = text.replace("\"autoConnectIde\":true", "\"autoConnectIde\":false");
    fs::write(&settings, text).expect("write the settings");
    let line = format!("TMUX= alongside run {}", Native::Claude.start_line());
    let scene = Scene::start_with(&sandbox, &model, Native::Claude, &line);
    scene.wait_until_connected();
    scene.agent.terminal.wait_for_text("1 line selected", TIMEOUT);
}
