//! opencode: context, without any setting.

use alongside_e2e::{AgentCapability, FakeModel, Native, Sandbox, TIMEOUT};

use crate::scene::Scene;

#[test]
fn opencode_connects_by_itself_and_sees_the_context() {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut scene = Scene::start(&sandbox, &model, Native::Opencode);
    scene.wait_until_connected();

    scene.agent.terminal.wait_for_text("a.txt#2", TIMEOUT);
    let request = scene.ask("Describe what I see.");
    let expected = format!("The user selected #2 from \"{}\"", sandbox.file("a.txt").display());
    assert!(request.contains(&expected), "no {expected:?} in {request}");

    scene.companion.kill();
    scene.companion.restart();
    scene.wait_until_connected();
    scene.select(3, "three");
    scene.agent.terminal.wait_for_text("a.txt#3", TIMEOUT);
    Native::Opencode.proves(AgentCapability::Found);
    Native::Opencode.proves(AgentCapability::Context);
}
