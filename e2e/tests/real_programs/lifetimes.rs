//! State of disconnected agents is cleaned up.

use std::time::Duration;

use alongside_e2e::{Agent, Cli, Companion, FakeModel, Prompt, Sandbox, TIMEOUT, for_both_agents};

for_both_agents!(exited_agent_is_removed_with_its_review);
fn exited_agent_is_removed_with_its_review(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    companion.wait_for_agents(1, TIMEOUT);
    // Neither agent announces its exit: its stream just ends, and it might reconnect.
    agent.quit();
    companion.wait_for_agents(0, TIMEOUT);

    agent.terminal.clear();
    agent.run(cli.command());
    agent.wait_until_connected();
    let path = sandbox.file("orphan.txt");
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), "unwanted").to_string());
    companion.wait_for_review(&path);
    agent.wait_for_question();
    agent.kill();
    companion.wait_for_no_review(Duration::from_secs(50));
    companion.wait_for_agents(0, TIMEOUT);
    assert!(!path.exists());
}
