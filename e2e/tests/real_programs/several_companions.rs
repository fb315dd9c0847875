//! Several editors on one workspace: the real agents find the most recently used one.

use std::process::{Child, Command};

use alongside_e2e::{Agent, Cli, Companion, FakeModel, Launch, Sandbox, TIMEOUT, eventually, for_both_agents};
use serde_json::Value;

/// A process that stands in for an editor.
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

for_both_agents!(most_recently_used_editor_is_found_and_the_other_after_a_kill);
fn most_recently_used_editor_is_found_and_the_other_after_a_kill(cli: Cli) {
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
    wait_until_predicted(&sandbox, cli, "Vic");
    finds("Vic", "first");

    first.focus(&path);
    wait_until_predicted(&sandbox, cli, "Ed");
    finds("Ed", "second");

    first.kill();
    one.kill();
    finds("Vic", "third");

    let _alone = Companion::start(&sandbox);
    finds("Vic", "fourth");
}

/// Waits until `doctor` predicts that this companion is found.
fn wait_until_predicted(sandbox: &Sandbox, cli: Cli, name: &str) {
    let mut last = None;
    let foretold = eventually(TIMEOUT, || {
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
