//! What agents learn about the window.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::Stdio;

use alongside_e2e::mcp_agent::{Agent, announced_for};
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

#[tokio::test]
async fn renamed_and_deleted_files_and_an_added_folder_are_reported() {
    let case = Case::new();
    let [one, other] = ["one", "other"].map(|name| case.path(name));
    let kept = case.write("one/kept.txt", "kept\n");
    let renamed = case.write("one/renamed.txt", "renamed\n");
    case.write("other/a.txt", "a\n");
    let window = case.open_workspace(&[&one]);
    let before = announced_for(case.sandbox(), &one, 1).remove(0);
    let mut agent = Agent::connect(&before.port_and_token).await;
    window.open_file(&kept, 1, 1);
    window.open_file(&renamed, 1, 1);
    agent.sees(|file| file["path"] == json!(renamed)).await;
    window.call("rename", &json!({"from": "renamed.txt", "to": "new name.txt"}));
    let new = one.join("new name.txt");
    let files = agent
        .open_files(|files| files.iter().any(|file| file["path"] == json!(new)))
        .await;
    assert!(files.iter().all(|file| file["path"] != json!(renamed)), "{files:?}");
    window.call("remove", &json!({"name": "new name.txt"}));
    agent
        .open_files(|files| files.iter().all(|file| file["path"] == json!(kept)))
        .await;

    case.write_workspace(&[&one, &other]);
    let both = format!("{}:{}", one.display(), other.display());
    let after = announced_for(case.sandbox(), Path::new(&both), 1).remove(0);
    assert_eq!((after.pid, after.port_and_token), (before.pid, before.port_and_token));
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
