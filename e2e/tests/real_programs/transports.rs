//! Connections without a discovery file: `alongside run` and stdio.

use std::fs;

use alongside_e2e::{
    Agent, Cli, Companion, FakeModel, Launch, Prompt, Sandbox, TIMEOUT, alongside, eventually, for_both_agents,
};
use serde_json::json;

for_both_agents!(run_connects_to_own_companion_despite_newer_one);
fn run_connects_to_own_companion_despite_newer_one(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let ours = Companion::start_with(&sandbox, &sandbox.workspace(), &["--display-name", "Ours"]);
    // A separate state directory: the companions do not know about each other. It is newer, so both agents would prefer
    // it.
    let other = Companion::start_apart(&sandbox, &sandbox.workspace(), &["--display-name", "Theirs"]);
    let launch = Launch::plain(&sandbox, cli).through_alongside(&sandbox, cli);
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Ours"), "{status}");
    ours.wait_for_agents(1, TIMEOUT);
    drop(other);
}

for_both_agents!(run_without_companion_starts_a_temporary_one);
fn run_without_companion_starts_a_temporary_one(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let launch = Launch::plain(&sandbox, cli).through_alongside(&sandbox, cli);
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    agent.wait_until_connected();
    let files = || fs::read_dir(cli.discovery_directory(&sandbox)).map_or(0, Iterator::count);
    assert!(files() > 0, "a companion has discovery files");
    agent.quit();
    assert_eq!(files(), 0, "the companion has left files behind");
}

for_both_agents!(agent_connects_over_stdio);
fn agent_connects_over_stdio(cli: Cli) {
    let sandbox = Sandbox::new();
    let file = sandbox.write("open.txt", "text\n");
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    companion.json(&["context", "focus", &file.to_string_lossy(), "--line", "1"]);
    // Directories without a discovery file.
    let temporary = sandbox.path("other-tmp");
    let qwen_home = sandbox.path("other-qwen");
    fs::create_dir(&temporary).expect("create a directory");
    sandbox.write_settings(Cli::Qwen, &qwen_home);
    let workspace = sandbox.workspace().to_string_lossy().into_owned();
    let launch = Launch::plain(&sandbox, cli)
        .with("TMPDIR", &temporary.to_string_lossy())
        .with("QWEN_HOME", &qwen_home.to_string_lossy())
        // Without a discovery file, only this makes an agent detect an editor.
        .with("TERM_PROGRAM", "vscode")
        .with(&cli.variable("WORKSPACE_PATH"), &workspace)
        .with(&cli.variable("SERVER_STDIO_COMMAND"), &alongside().to_string_lossy())
        .with(
            &cli.variable("SERVER_STDIO_ARGS"),
            &json!(["mcp-stdio", "--workspace", workspace]).to_string(),
        );
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    agent.wait_until_connected();
    let listed = eventually(TIMEOUT, || agent.ide_status().contains("open.txt").then_some(()));
    assert!(listed.is_some(), "the context never arrived");
    companion.wait_for_agents(1, TIMEOUT);

    let path = sandbox.file("new.txt");
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), "proposed").to_string());
    companion.wait_for_review(&path);
    agent.wait_for_question();
    companion.json(&["diff", "accept", &path.to_string_lossy()]);
    let written = eventually(TIMEOUT, || {
        (fs::read_to_string(&path).ok()? == "proposed").then_some(())
    });
    if written.is_none() {
        agent.terminal.fail("the accepted change was not written");
    }
    agent.quit();
    companion.wait_for_agents(0, TIMEOUT);
}
