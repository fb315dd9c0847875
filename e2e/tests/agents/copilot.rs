//! Copilot CLI: context, and reviews that it waits for, without any setting. Edits need its hook.

use alongside_e2e::{AgentCapability, FakeModel, Native, Prompt, Sandbox, TIMEOUT};

use crate::editor::Editor;
use crate::scene::Scene;

#[test]
fn copilot_connects_by_itself_and_every_decision_reaches_the_file() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut scene = Scene::start(&sandbox, &model, Native::Copilot);
    scene.wait_until_connected();
    assert_eq!(scene.companion.agents().len(), 1, "its three connections are one agent");

    scene.agent.terminal.wait_for_text("a.txt:2", TIMEOUT);
    let request = scene.ask("Describe what I see.");
    assert!(request.contains("<ide_selection>"), "no selection in {request}");
    assert!(request.contains("File: a.txt (line 2)"), "not line 2 in {request}");

    scene
        .propose_new("accepted.txt", "one\ntwo\n")
        .accept()
        .writes("one\ntwo\n");
    let mut editor = Editor::connect(&scene.companion);
    let file = sandbox.file("accepted.txt");
    editor.show_error(&file, "cannot find the number one");
    let mark = model.mark();
    scene
        .agent
        .prompt(&Prompt::Diagnostics(&file.to_string_lossy()).to_string());
    model.wait_for_message(mark, "cannot find the number one", TIMEOUT);
    scene.agent.wait_until_idle();
    scene.decide_here_and_in_the_terminal();
    scene.restart_companion_under_a_question("killed.txt");
    scene.wait_until_connected();
    scene.select(3, "three");
    scene.agent.terminal.wait_for_text("a.txt:3", TIMEOUT);
    let request = scene.ask("Describe it again.");
    assert!(request.contains("File: a.txt (line 3)"), "not line 3 in {request}");
    scene.propose_new("after.txt", "one\n").accept().writes("one\n");
    for capability in [
        AgentCapability::Found,
        AgentCapability::Context,
        AgentCapability::Review,
        AgentCapability::Diagnostics,
    ] {
        Native::Copilot.proves(capability);
    }
}
