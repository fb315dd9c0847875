//! The command lines find the companion by themselves.

use alongside_e2e::{Agent, Cli, Companion, FakeModel, Sandbox, for_both_command_lines};

for_both_command_lines!(the_companion_is_found_from_a_plain_terminal);
fn the_companion_is_found_from_a_plain_terminal(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start_with(&sandbox, &sandbox.workspace(), &["--display-name", "Neovim"]);
    let agent = Agent::start(&sandbox, cli, &model);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Neovim"), "{status}");
    companion.wait_for_agents(1, alongside_e2e::PATIENCE);
}
