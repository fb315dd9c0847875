//! Several editors on one workspace: the real command lines find the one that was used last.

use std::process::{Child, Command};

use alongside_e2e::{Agent, Cli, Companion, FakeModel, Launch, PATIENCE, Sandbox, eventually, for_both_agents};
use serde_json::Value;

/// A process that stands for an editor.
struct Editor(Child);

impl Editor {
    fn start() -> Self {
        Self(Command::new("sleep").arg("3600").spawn().expect("start a process"))
    }

    fn companion<'a>(&self, sandbox: &'a Sandbox, name: &str) -> Companion<'a> {
        let pid = self.0.id().to_string();
        let arguments = ["--name", name, "--display-name", name, "--pid", &pid];
        Companion::start_with(sandbox, &sandbox.workspace(), &arguments)
    }

    fn kill(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        self.kill();
    }
}

for_both_agents!(a_command_line_finds_the_editor_that_was_used_last_and_the_other_when_that_is_killed);
fn a_command_line_finds_the_editor_that_was_used_last_and_the_other_when_that_is_killed(cli: Cli) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "text\n");
    let model = FakeModel::start();
    let finds = |name: &str, number: &str| {
        let agent = Agent::launch(&sandbox, cli, &model, number, Launch::plain(&sandbox, cli));
        let status = agent.wait_until_connected();
        assert!(status.contains(&format!("Connected to {name}")), "{status}");
        agent.kill();
    };
    let (mut one, other) = (Editor::start(), Editor::start());
    let mut first = one.companion(&sandbox, "Ed");
    let _second = other.companion(&sandbox, "Vic");
    wait_until_foretold(&sandbox, cli, "Vic");
    finds("Vic", "first");

    first.focus(&path);
    wait_until_foretold(&sandbox, cli, "Ed");
    finds("Ed", "second");

    first.kill();
    one.kill();
    finds("Vic", "third");

    let _alone = Companion::start(&sandbox);
    finds("Vic", "fourth");
}

/// Waits until the doctor says that this one would be found.
fn wait_until_foretold(sandbox: &Sandbox, cli: Cli, name: &str) {
    let mut last = None;
    let foretold = eventually(PATIENCE, || {
        let outcome = Launch::plain(sandbox, cli).doctor(sandbox);
        let diagnosis: Value = serde_json::from_str(&outcome.stdout).ok()?;
        let agents = diagnosis["agents"].as_array()?;
        let finding = agents.iter().find(|agent| agent["displayName"] == cli.display_name())?;
        let found = finding["found"].clone();
        let reached = found["companion"]["displayName"] == name && found["reason"] == "usedLast";
        last = Some(found);
        reached.then_some(())
    });
    assert!(foretold.is_some(), "{name} would not be found: {last:?}");
}
