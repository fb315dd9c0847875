//! Codex: context after its `/ide`.

use alongside_e2e::{AgentCapability, FakeModel, Native, Sandbox, TIMEOUT};

use crate::scene::Scene;

#[test]
fn codex_sees_the_context_after_ide_also_from_a_restarted_companion() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut scene = Scene::start(&sandbox, &model, Native::Codex);
    scene.agent.prompt("/ide");
    scene.agent.terminal.wait_for_text("IDE context", TIMEOUT);
    let request = scene.ask("Describe what I see.");
    assert!(request.contains("## Active file: a.txt"), "no file in {request}");
    assert!(
        request.contains("## Active selection of the file:\ntwo"),
        "no selection in {request}"
    );

    scene.companion.kill();
    scene.companion.restart();
    scene.select(3, "three");
    let request = scene.ask("Describe it again.");
    assert!(
        request.contains("## Active selection of the file:\nthree"),
        "no new selection in {request}"
    );
    Native::Codex.proves(AgentCapability::FoundAfterIde);
    Native::Codex.proves(AgentCapability::Context);
}
