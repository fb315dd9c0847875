//! What agents learn about the window.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::Stdio;

use alongside_e2e::{Capability, Cli, TIMEOUT, alongside, eventually};
use serde_json::{Value, json};

use crate::case::{Case, vscode_proves};

#[tokio::test]
async fn agent_sees_open_files_cursor_selection_and_unsaved_text() {
    let case = Case::new();
    let first = case.write("first file.txt", "one\ntwo words\nthree\n");
    let second = case.write("second.txt", "2\n");
    let window = case.open();
    let mut agent = case.agent().await;
    window.open_file(&second, 1, 1);
    agent.sees(|file| file["path"] == json!(second)).await;
    window.open_file(&first, 2, 5);
    let file = agent
        .sees(|file| file["path"] == json!(first) && file["cursor"]["line"] == 2)
        .await;
    assert_eq!(file["cursor"]["character"], 5, "{file}");
    for _ in 0.."words".len() {
        window.press("Shift+ArrowRight");
    }
    let file = agent.sees(|file| file["selectedText"] == "words").await;
    assert_eq!(file["isActive"], true, "{file}");

    window.type_text("unsaved words");
    agent.sees(|file| file["cursor"]["character"] == 18).await;
    agent.propose(&first, "one\ntwo unsaved words\n3\n").await;
    window.show_review();
    assert_eq!(
        window.hunk_states(),
        ["Accepted"],
        "only the third line differs from the unsaved text"
    );
    let accepted = window.accept(&mut agent).await;
    assert_eq!(accepted, "one\ntwo unsaved words\n3\n");
    vscode_proves(Capability::Context);
}

#[test]
fn terminals_have_the_variables_and_agents_the_diagnostics() {
    let case = Case::new();
    let broken = case.write("broken.json", "{\n  \"a\": oops\n}\n");
    let window = case.open();
    let (port, _) = case.companion().port_and_token;
    window.open_file(&broken, 1, 1);
    let mut found = Value::Null;
    let arrived = eventually(TIMEOUT, || {
        found = diagnostics(&case);
        (found["files"][0]["path"] == json!(broken)).then_some(())
    });
    assert!(
        arrived.is_some(),
        "the diagnostics never arrived; the last response is {found:#}"
    );
    assert_eq!(found["files"][0]["diagnostics"][0]["start"]["line"], 2, "{found}");

    window.ask("openTerminal");
    window.type_text("env > variables.txt; mv variables.txt all.txt\n");
    let variables = eventually(TIMEOUT, || fs::read_to_string(case.path("all.txt")).ok());
    let variables = variables.expect("the shell wrote its variables");
    for cli in [Cli::Gemini, Cli::Qwen] {
        let line = format!("{}={port}", cli.variable("SERVER_PORT"));
        assert!(
            variables.lines().any(|other| other == line),
            "{line} is not in\n{variables}"
        );
    }
}

/// What the tool of an agent's model returns.
fn diagnostics(case: &Case) -> Value {
    let mut command = case.sandbox().command(alongside());
    command.args(["mcp-stdio", "--tools"]).current_dir(&case.folder);
    let mut server = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("start alongside");
    let call = json!({"name": "getDiagnostics", "arguments": {}});
    let request = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": call});
    let mut input = server.stdin.take().expect("its input is piped");
    writeln!(input, "{request}").expect("write a request");
    let output = BufReader::new(server.stdout.take().expect("its output is piped"));
    let answer = output.lines().next().expect("an answer").expect("read it");
    drop(input);
    server.wait().expect("wait for its end");
    let answer: Value = serde_json::from_str(&answer).expect("an answer is JSON");
    let text = answer["result"]["content"][0]["text"]
        .as_str()
        .expect("a tool's answer has a text");
    serde_json::from_str(text).unwrap_or_else(|_| json!(text))
}
