//! Agents find the companion automatically.

use std::fs;

use alongside_e2e::{
    Agent, AgentCapability, Cli, Companion, FakeModel, Launch, Sandbox, TIMEOUT, eventually, for_both_agents,
};

for_both_agents!(companion_is_found_from_plain_terminal);
fn companion_is_found_from_plain_terminal(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start_with(&sandbox, &sandbox.workspace(), &["--display-name", "Neovim"]);
    let agent = Agent::start(&sandbox, cli, &model);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Neovim"), "{status}");
    companion.wait_for_agents(1, TIMEOUT);
    cli.proves(AgentCapability::Found);
}

for_both_agents!(companion_is_found_from_nested_directory_of_second_folder);
fn companion_is_found_from_nested_directory_of_second_folder(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let second = sandbox.path("second folder");
    let deep = second.join("deep/inside");
    fs::create_dir_all(&deep).expect("create directories");
    let second = second.to_string_lossy().into_owned();
    let companion = Companion::start_with(&sandbox, &sandbox.workspace(), &["--workspace", &second]);
    let launch = Launch::plain(&sandbox, cli).in_directory(&deep);
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    agent.wait_until_connected();
    companion.wait_for_agents(1, TIMEOUT);
}

#[test]
fn deleted_discovery_file_is_rewritten() {
    let sandbox = Sandbox::new();
    let companion = Companion::start(&sandbox);
    for file in &companion.files {
        fs::remove_file(file).expect("delete a discovery file");
    }
    let back = eventually(TIMEOUT, || {
        companion.files.iter().all(|file| file.exists()).then_some(())
    });
    assert!(back.is_some(), "not all of {:?} are back", companion.files);
}
