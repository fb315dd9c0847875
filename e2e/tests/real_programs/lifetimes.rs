//! Command lines come and go; what they leave behind goes too.

use std::time::Duration;

use alongside_e2e::{Agent, Cli, Companion, FakeModel, PATIENCE, Prompt, Sandbox, for_both_agents};

for_both_agents!(a_command_line_that_ends_is_forgotten_with_its_open_change);
fn a_command_line_that_ends_is_forgotten_with_its_open_change(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    companion.wait_for_agents(1, PATIENCE);
    // Neither says good-bye: all that is seen is that its stream ends, and it might come back.
    agent.quit();
    companion.wait_for_agents(0, PATIENCE);

    agent.terminal.clear();
    agent.run(cli.command());
    agent.wait_until_connected();
    let path = sandbox.file("orphan.txt");
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), "unwanted").to_string());
    companion.wait_for_review(&path);
    agent.wait_for_question();
    agent.kill();
    companion.wait_for_no_review(Duration::from_secs(50));
    companion.wait_for_agents(0, PATIENCE);
    assert!(!path.exists());
}
