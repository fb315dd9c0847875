//! A companion inside another program: started, used and stopped without the binary.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use alongside_companion::places::Places;
use alongside_companion::{Options, RunningCompanion};
use alongside_core::dialect::ClientInfo;
use alongside_discovery::Environment;
use alongside_mcp::client::Client;
use alongside_protocol::{Empty, requests};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Everything below one directory: nothing is read from or written to the user's own.
fn options(directory: &Path) -> Options {
    let temporary = directory.join("tmp");
    let workspace = directory.join("workspace");
    for directory in [&temporary, &workspace] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let environment = Environment::new(directory.join("home"), &workspace).with("TMPDIR", temporary.to_str().unwrap());
    Options {
        workspace: vec![workspace],
        places: Some(Places {
            configuration: directory.join("config"),
            state: directory.join("state"),
        }),
        environment: Some(environment),
        reconnect_grace: Some(Duration::from_millis(10)),
        ..Options::default()
    }
}

async fn connect_agent(running: &RunningCompanion) -> Client {
    let announcement = running.announcement();
    let client = Client::connect("127.0.0.1", announcement.port, announcement.token.reveal())
        .await
        .unwrap();
    let info = ClientInfo {
        name: "test".to_owned(),
        version: "1".to_owned(),
    };
    client.initialize(&info).await.unwrap();
    client
}

#[tokio::test]
async fn companion_starts_serves_a_front_end_and_stops() {
    let scratch = tempfile::tempdir().unwrap();
    let running = RunningCompanion::start(options(scratch.path())).await.unwrap();
    let files = running.companion().announce_report().files;
    assert!(
        !files.is_empty()
            && files
                .iter()
                .all(|file| file.starts_with(scratch.path()) && file.exists())
    );

    let _agent = connect_agent(&running).await;
    let mut front_end = running.record().connect(false).await.unwrap();
    let status = front_end.call::<requests::Status>(Empty {}).await.unwrap();
    assert_eq!(status.port, running.announcement().port);
    assert_eq!(status.agents.len(), 1);

    front_end.call::<requests::Stop>(Empty {}).await.unwrap();
    tokio::time::timeout(TIMEOUT, running.stop_requested()).await.unwrap();
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();
    assert!(!files.iter().any(|file| file.exists()));
}

#[tokio::test]
async fn decision_without_a_stream_reaches_the_agent_through_the_next_companion() {
    let scratch = tempfile::tempdir().unwrap();
    let running = RunningCompanion::start(options(scratch.path())).await.unwrap();
    let agent = connect_agent(&running).await;
    let proposal = json!({ "name": "openDiff", "arguments": { "filePath": "/a", "newContent": "text" } });
    agent.request("tools/call", proposal).await.unwrap();
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();

    let running = RunningCompanion::start(options(scratch.path())).await.unwrap();
    let mut events = agent.events(None).await.unwrap();
    let decision = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if event["method"] == "ide/diffRejected" {
                return event["params"].clone();
            }
        }
    };
    let decision = tokio::time::timeout(TIMEOUT, decision).await.unwrap();
    assert_eq!(decision, json!({ "filePath": "/a" }));
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();
}

/// Asks like Codex CLI after `/ide`: a connection for every prompt.
#[cfg(unix)]
async fn ask_like_codex(socket: &Path, workspace: &Path) -> serde_json::Value {
    use alongside_wire::length_prefixed::{read_frame, write_frame};

    let mut codex = tokio::net::UnixStream::connect(socket).await.unwrap();
    let request = json!({
        "type": "request", "requestId": "1", "sourceClientId": "codex-tui", "version": 0,
        "method": "ide-context", "params": { "workspaceRoot": workspace },
    });
    write_frame(&mut codex, &request.to_string()).await.unwrap();
    let frame = tokio::time::timeout(TIMEOUT, read_frame(&mut codex, 1 << 20))
        .await
        .unwrap();
    serde_json::from_slice(&frame.unwrap().unwrap()).unwrap()
}

#[cfg(unix)]
#[tokio::test]
async fn codex_sees_the_context_without_hidden_files() {
    use alongside_mcp::codex::Role;
    use alongside_protocol::Focus;

    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path());
    let socket = scratch.path().join("home/.codex/ipc/ipc.sock");
    std::fs::create_dir_all(scratch.path().join("home/.codex")).unwrap();
    let workspace = alongside_platform::path::real(&options.workspace[0]).unwrap();
    for name in ["a.txt", ".env"] {
        std::fs::write(workspace.join(name), "text").unwrap();
    }
    let running = RunningCompanion::start(options).await.unwrap();
    let mut front_end = running.record().connect(false).await.unwrap();
    for name in ["a.txt", ".env"] {
        let focus = Focus {
            path: workspace.join(name).to_str().unwrap().to_owned(),
            cursor: None,
            selected_text: Some(format!("selected in {name}")),
            selection_start: None,
        };
        front_end.call::<requests::ContextFocus>(focus).await.unwrap();
    }
    // Publishes what is pending.
    front_end.call::<requests::ContextShow>(Empty {}).await.unwrap();
    let mut state = running.companion().codex_state();
    let served = state.wait_for(|state| state.role != Role::Searching);
    drop(tokio::time::timeout(TIMEOUT, served).await.unwrap());
    let response = ask_like_codex(&socket, &workspace).await;
    let context = &response["result"]["ideContext"];
    assert_eq!(context["activeFile"]["path"], "a.txt", "{response}");
    assert_eq!(context["openTabs"].as_array().unwrap().len(), 1);
    assert!(!response.to_string().contains(".env"), "{response}");

    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();
    assert!(!socket.exists());
}

#[tokio::test]
async fn diagnostics_are_listed_until_their_front_end_leaves() {
    use alongside_core::context::Cursor;
    use alongside_core::diagnostics::{Diagnostic, FileDiagnostics, Severity};
    use alongside_protocol::DiagnosticsQuery;

    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path());
    let workspace = alongside_platform::path::real(&options.workspace[0]).unwrap();
    let running = RunningCompanion::start(options).await.unwrap();
    let mut editor = running.record().connect(false).await.unwrap();
    let mut agent = running.record().connect(false).await.unwrap();
    let found = Diagnostic {
        start: Cursor { line: 1, character: 1 },
        end: Cursor { line: 1, character: 5 },
        severity: Severity::Error,
        message: "cannot find value `text`".to_owned(),
        source: Some("rustc".to_owned()),
        code: None,
    };
    let report = |name: &str, diagnostics: &[Diagnostic]| FileDiagnostics {
        path: workspace.join(name).to_str().unwrap().to_owned(),
        diagnostics: diagnostics.to_vec(),
    };
    for name in ["a.rs", "b.rs", ".env"] {
        std::fs::write(workspace.join(name), "text").unwrap();
        let file = report(name, std::slice::from_ref(&found));
        editor.call::<requests::ContextDiagnostics>(file).await.unwrap();
    }
    let missing = report("missing.rs", std::slice::from_ref(&found));
    editor.call::<requests::ContextDiagnostics>(missing).await.unwrap();
    let cleared = report("b.rs", &[]);
    editor.call::<requests::ContextDiagnostics>(cleared).await.unwrap();
    let all = DiagnosticsQuery::default;
    let listed = agent.call::<requests::DiagnosticsList>(all()).await.unwrap();
    assert_eq!(listed, [report("a.rs", &[found])]);
    let hidden = DiagnosticsQuery {
        path: Some(workspace.join(".env")),
    };
    assert_eq!(agent.call::<requests::DiagnosticsList>(hidden).await.unwrap(), []);

    drop(editor);
    let left = async { while !agent.call::<requests::DiagnosticsList>(all()).await.unwrap().is_empty() {} };
    tokio::time::timeout(TIMEOUT, left).await.unwrap();
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();
}

#[cfg(unix)]
#[tokio::test]
async fn copilot_is_sent_diagnostics_as_they_change() {
    use alongside_core::diagnostics::FileDiagnostics;
    use serde_json::Value;
    use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};

    let scratch = tempfile::tempdir().unwrap();
    let options = options(scratch.path());
    let workspace = alongside_platform::path::real(&options.workspace[0]).unwrap();
    let running = RunningCompanion::start(options).await.unwrap();
    let announcement = running.announcement();
    let (socket, token) = (announcement.socket.as_ref().unwrap(), &announcement.token);
    let client = alongside_mcp::client::UnixClient::new(socket, token, "session");
    client.initialize(&ClientInfo::copilot()).await.unwrap();
    let mut stream = BufReader::new(tokio::net::UnixStream::connect(socket).await.unwrap());
    let head = format!(
        "GET /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Nonce {}\r\nX-Copilot-Session-Id: session\r\n\
         Accept: text/event-stream\r\n\r\n",
        token.reveal()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut events = stream.lines();
    let mut next = async |method: &str| loop {
        let line = tokio::time::timeout(TIMEOUT, events.next_line()).await.unwrap();
        let line = line.unwrap().unwrap();
        let event: Option<Value> = line
            .strip_prefix("data: ")
            .map(|data| serde_json::from_str(data).unwrap());
        if let Some(event) = event.filter(|event| event["method"] == method) {
            break event["params"].clone();
        }
    };
    next("selection_changed").await;

    let mut editor = running.record().connect(false).await.unwrap();
    let report = |name: &str, messages: &[&str]| -> FileDiagnostics {
        let path = workspace.join(name);
        std::fs::write(&path, "text").unwrap();
        let place = json!({"line": 1, "character": 1});
        let found = |message| json!({"start": place, "end": place, "severity": "warning", "message": message});
        let diagnostics: Value = messages.iter().map(found).collect();
        serde_json::from_value(json!({"path": path, "diagnostics": diagnostics})).unwrap()
    };
    for file in [report(".env", &["secret"]), report("a.rs", &["unused"])] {
        editor.call::<requests::ContextDiagnostics>(file).await.unwrap();
    }
    let sent = next("diagnostics_changed").await;
    let uri = format!("file://{}", workspace.join("a.rs").display());
    let place = json!({"line": 0, "character": 0});
    let found = json!({"message": "unused", "severity": "warning", "range": {"start": place, "end": place.clone()}});
    assert_eq!(sent, json!({"uris": [{"uri": uri, "diagnostics": [found]}]}));

    drop(editor);
    let cleared = next("diagnostics_changed").await;
    assert_eq!(cleared, json!({"uris": [{"uri": uri, "diagnostics": []}]}));
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();
}
