//! Other ways to the companion than a discovery file: `alongside run`, and standard input and output.

use std::fs;

use alongside_e2e::{
    Agent, Cli, Companion, FakeModel, Launch, PATIENCE, Prompt, Sandbox, alongside, eventually, for_both_agents,
};
use serde_json::json;

for_both_agents!(run_connects_to_our_companion_and_not_to_another_one_that_comes_first);
fn run_connects_to_our_companion_and_not_to_another_one_that_comes_first(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let ours = Companion::start_with(&sandbox, &sandbox.workspace(), &["--display-name", "Ours"]);
    // Its own directories for everything that the command lines do not look at: the companions know nothing of each other.
    // It is younger, so both command lines would take it.
    let other = Companion::start_apart(&sandbox, &sandbox.workspace(), &["--display-name", "Theirs"]);
    let launch = Launch::plain(&sandbox, cli).through_alongside();
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Ours"), "{status}");
    ours.wait_for_agents(1, PATIENCE);
    drop(other);
}

for_both_agents!(run_brings_a_companion_where_there_is_none_and_takes_it_away_again);
fn run_brings_a_companion_where_there_is_none_and_takes_it_away_again(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let launch = Launch::plain(&sandbox, cli).through_alongside();
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    agent.wait_until_connected();
    let files = || fs::read_dir(cli.discovery_directory(&sandbox)).map_or(0, Iterator::count);
    assert!(files() > 0, "a companion has discovery files");
    agent.quit();
    assert_eq!(files(), 0, "the companion has left files behind");
}

for_both_agents!(the_companion_is_reached_through_standard_input_and_output);
fn the_companion_is_reached_through_standard_input_and_output(cli: Cli) {
    let sandbox = Sandbox::new();
    let file = sandbox.write("open.txt", "text\n");
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    companion.json(&["context", "focus", &file.to_string_lossy(), "--line", "1"]);
    // Places without a discovery file in them.
    let temporary = sandbox.path("other-tmp");
    let qwen_home = sandbox.path("other-qwen");
    fs::create_dir(&temporary).expect("create a directory");
    sandbox.write_settings(Cli::Qwen, &qwen_home);
    let workspace = sandbox.workspace().to_string_lossy().into_owned();
    let launch = Launch::plain(&sandbox, cli)
        .with("TMPDIR", &temporary.to_string_lossy())
        .with("QWEN_HOME", &qwen_home.to_string_lossy())
        // Without a discovery file, only this makes a command line believe that there is an editor.
        .with("TERM_PROGRAM", "vscode")
        .with(&cli.variable("WORKSPACE_PATH"), &workspace)
        .with(&cli.variable("SERVER_STDIO_COMMAND"), &alongside().to_string_lossy())
        .with(
            &cli.variable("SERVER_STDIO_ARGS"),
            &json!(["mcp-stdio", "--workspace", workspace]).to_string(),
        );
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    agent.wait_until_connected();
    let listed = eventually(PATIENCE, || agent.ide_status().contains("open.txt").then_some(()));
    assert!(listed.is_some(), "the context never arrived");
    companion.wait_for_agents(1, PATIENCE);

    let path = sandbox.file("new.txt");
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), "proposed").to_string());
    companion.wait_for_review(&path);
    agent.wait_for_question();
    companion.json(&["diff", "accept", &path.to_string_lossy()]);
    let written = eventually(PATIENCE, || {
        (fs::read_to_string(&path).ok()? == "proposed").then_some(())
    });
    if written.is_none() {
        agent.terminal.fail("the accepted change was not written");
    }
    agent.quit();
    companion.wait_for_agents(0, PATIENCE);
}
