//! Claude Code: context, and reviews that it waits for.

use std::fs;
use std::time::Duration;

use alongside_e2e::{AgentCapability, FakeModel, Native, NativeAgent, Sandbox, TIMEOUT, Terminal, eventually};
use serde_json::Value;

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

/// Has Claude Code as it is after its installation: it connects to no editor.
fn without_auto_connect(sandbox: &Sandbox) {
    let settings = sandbox.path("home/.claude.json");
    let text = fs::read_to_string(&settings).expect("read the settings");
    let mut values: Value = serde_json::from_str(&text).expect("the settings are JSON");
    for name in ["autoConnectIde", "hasIdeAutoConnectDialogBeenShown"] {
        values.as_object_mut().and_then(|values| values.remove(name));
    }
    fs::write(&settings, values.to_string()).expect("write the settings");
}

/// The answer is stored a moment after Claude Code is connected.
fn wait_until_it_connects_by_itself(sandbox: &Sandbox) {
    let stored = eventually(TIMEOUT, || {
        let text = fs::read_to_string(sandbox.path("home/.claude.json")).ok()?;
        let values: Value = serde_json::from_str(&text).ok()?;
        (values["autoConnectIde"] == true).then_some(())
    });
    stored.expect("the answer is not in the settings");
}

/// Chooses an entry of one of Claude Code's lists, above the marked one. It ignores keys for a moment after a list appears, so a key
/// without an effect is repeated, as a user would do.
fn choose_above(terminal: &Terminal, title: &str, entry: &str) {
    terminal.wait_for_text(title, TIMEOUT);
    let is_marked = |line: &str| line.contains('❯') && line.contains(entry);
    let chosen = eventually(TIMEOUT, || {
        let screen = terminal.screen();
        if !screen.contains(title) {
            return Some(());
        }
        let key = if screen.lines().any(is_marked) { "Enter" } else { "Up" };
        terminal.press(key);
        // Long enough for a busy machine: a second Enter would answer the next question.
        eventually(Duration::from_secs(10), || (terminal.screen() != screen).then_some(()));
        None
    });
    if chosen.is_none() {
        terminal.fail(&format!("{entry:?} cannot be chosen"));
    }
}

#[test]
fn claude_connects_by_itself_once_ide_was_answered() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    Native::Claude.set_up(&sandbox, &model);
    without_auto_connect(&sandbox);
    let line = Native::Claude.start_line();
    let mut scene = Scene::start_with(&sandbox, &model, Native::Claude, &line);
    scene.agent.prompt("/ide");
    choose_above(&scene.agent.terminal, "Select IDE", "Alongside");
    choose_above(&scene.agent.terminal, "enable auto-connect", "Yes");
    scene.agent.terminal.wait_for_text("Connected to Alongside", TIMEOUT);
    scene.wait_until_connected();
    wait_until_it_connects_by_itself(&sandbox);

    scene.agent.kill();
    scene.companion.wait_for_agents(0, TIMEOUT);
    scene.agent = NativeAgent::launch(&sandbox, Native::Claude, &model, &line);
    scene.wait_until_connected();
    scene.agent.terminal.wait_for_text("1 line selected", TIMEOUT);
    Native::Claude.proves(AgentCapability::FoundAfterIde);
}

#[test]
fn alongside_run_connects_claude_and_reviews_what_it_would_write_without_asking() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    Native::Claude.set_up(&sandbox, &model);
    without_auto_connect(&sandbox);
    let line = "TMUX= alongside run claude --permission-mode acceptEdits";
    let scene = Scene::start_with(&sandbox, &model, Native::Claude, line);
    scene.wait_until_connected();
    scene.agent.terminal.wait_for_text("1 line selected", TIMEOUT);
    let mark = model.mark();
    scene
        .propose_new("rejected.txt", "unwanted\n")
        .reject(Some("Keep it out."))
        .writes_nothing();
    model.wait_for_message(mark, "Keep it out.", TIMEOUT);
}
