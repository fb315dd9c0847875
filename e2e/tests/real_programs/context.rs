//! The editor context reaches the model, and nothing else does.

use std::path::Path;

use alongside_e2e::{Agent, AgentCapability, Cli, Companion, FakeModel, Sandbox, TIMEOUT, eventually, for_both_agents};

for_both_agents!(context_reaches_the_model);
fn context_reaches_the_model(cli: Cli) {
    let sandbox = Sandbox::new();
    let first = sandbox.write("first.txt", "one\ntwo\nthree\n");
    let second = sandbox.write("second.txt", "quite another text\n");
    let secret = sandbox.write(".env", "PASSWORD=opensesame\n");
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    companion.json(&["context", "open", text(&first), text(&second), text(&secret)]);
    companion.json(&[
        "context",
        "focus",
        text(&first),
        "--line",
        "2",
        "--character",
        "3",
        "--select",
        "selected words",
    ]);

    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    wait_for_open_files(&agent, &["first.txt (active)", "second.txt"]);
    agent.prompt("Describe what I see.");
    let request = model.wait_for_message(0, "Describe what I see.", TIMEOUT).to_string();
    assert!(request.contains("first.txt"), "the active file is missing: {request}");
    assert!(
        request.contains("second.txt"),
        "the other open file is missing: {request}"
    );
    assert!(
        request.contains("selected words"),
        "the selected text is missing: {request}"
    );
    assert!(cursor_is(&request, 2, 3), "the cursor is missing: {request}");
    agent.wait_until_idle();

    // A change reaches the next request, even when the focused file is the secret one.
    let mark = model.mark();
    companion.json(&[
        "context",
        "focus",
        text(&secret),
        "--line",
        "1",
        "--select",
        "PASSWORD=opensesame",
    ]);
    companion.json(&[
        "context",
        "focus",
        text(&second),
        "--line",
        "1",
        "--character",
        "7",
        "--select",
        "another",
    ]);
    companion.json(&["context", "close", text(&first)]);
    wait_for_open_files(&agent, &["second.txt (active)"]);
    agent.prompt("Describe it again.");
    let request = model.wait_for_message(mark, "Describe it again.", TIMEOUT).to_string();
    let news = request
        .rsplit_once("Describe what I see.")
        .map_or(request.as_str(), |(_, news)| news);
    assert!(
        news.contains("second.txt"),
        "the change of the active file is missing: {news}"
    );
    assert!(news.contains("another"), "the new selection is missing: {news}");

    let requests = model.received_since(0);
    assert!(!requests.contains("opensesame"), "a secret has leaked");
    assert!(!requests.contains(".env\""), "the name of a secret file has leaked");
    let shown = companion.json(&["context", "show"]).to_string();
    assert!(!shown.contains(".env"), "a secret file is in the context: {shown}");
    cli.proves(AgentCapability::Context);
}

/// `/ide status` also lists open files; polling it avoids guessing how long a notification takes.
fn wait_for_open_files(agent: &Agent, names: &[&str]) {
    let listed = eventually(TIMEOUT, || {
        let status = agent.ide_status();
        names.iter().all(|name| status.contains(name)).then_some(())
    });
    if listed.is_none() {
        agent.terminal.fail(&format!("/ide status never listed {names:?}"));
    }
}

/// Gemini CLI sends JSON (in a string, so quoted twice here), Qwen Code a sentence.
fn cursor_is(request: &str, line: u32, character: u32) -> bool {
    let bare: String = request
        .replace("\\n", "")
        .chars()
        .filter(|&c| !matches!(c, ' ' | '\\' | '"'))
        .collect();
    bare.contains(&format!("line:{line},character:{character}"))
        || bare.contains(&format!("line{line},character{character}"))
}

fn text(path: &Path) -> &str {
    path.to_str().expect("paths of the sandbox are text")
}
