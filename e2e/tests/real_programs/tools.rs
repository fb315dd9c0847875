//! The editor's tools for the model, registered as an ordinary MCP server.

use alongside_core::Secret;
use alongside_e2e::{
    Agent, AgentCapability, Cli, Companion, FakeModel, Launch, Prompt, Sandbox, TIMEOUT, for_both_agents,
};
use alongside_front::client::Client;
use alongside_protocol::{Hello, requests};
use serde_json::json;

for_both_agents!(model_reads_the_editors_diagnostics);
fn model_reads_the_editors_diagnostics(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    sandbox.install_with(&[cli.command(), "--tools"]);
    let path = sandbox.write("a.txt", "one\ntwo\n");
    let companion = Companion::start(&sandbox);
    let runtime = tokio::runtime::Runtime::new().expect("start a runtime");
    let editor = runtime.block_on(report(&companion, &path.to_string_lossy()));
    // In this mode it does not ask before it calls a tool.
    let launch = Launch::plain(&sandbox, cli).without_questions(cli);
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    agent.wait_until_connected();

    let mark = model.mark();
    agent.prompt(&Prompt::Diagnostics("a.txt").to_string());
    let request = model.wait_for_message(mark, "DO diagnostics", TIMEOUT);
    let tools = request["tools"].to_string();
    assert!(tools.contains("getDiagnostics"), "the model has no such tool: {tools}");
    let result = model.wait_for_message(mark, "two is one too many", TIMEOUT);
    assert!(result.to_string().contains("a.txt"), "{result}");
    drop(editor);
    cli.proves(AgentCapability::Diagnostics);
}

/// An editor that shows an error in the second line.
async fn report(companion: &Companion<'_>, path: &str) -> Client {
    let (port, token) = companion.front_end();
    let token = Secret::parse(&token).expect("a token");
    let connected = Client::connect_as(port, &token, Hello::new("editor")).await;
    let (mut editor, _) = connected.expect("connect to the companion");
    let error = json!({
        "start": { "line": 2, "character": 1 }, "end": { "line": 2, "character": 4 },
        "severity": "error", "message": "two is one too many",
    });
    let report = serde_json::from_value(json!({ "path": path, "diagnostics": [error] })).expect("a valid report");
    let reported = editor.call::<requests::ContextDiagnostics>(report).await;
    reported.expect("the companion accepts diagnostics");
    editor
}
