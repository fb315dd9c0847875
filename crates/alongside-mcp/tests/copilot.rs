//! Copilot CLI: what it really sends and expects, on a socket.

#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use alongside_core::SessionEnd;
use alongside_core::context::{Cursor, File, IdeContext, WorkspaceState};
use alongside_core::diagnostics::{Diagnostic, FileDiagnostics, Severity};
use alongside_core::dialect::ClientInfo;
use alongside_mcp::client::{ClientError, UnixClient};
use alongside_mcp::{DiffOutcome, Mention};
use common::{Received, Setup, soon, token};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::UnixStream;

const SESSION: &str = "3f0c6a1e-6f0c-4f6e-9d6b-0d8f8f4a1b2c";

/// A companion with a socket, and Copilot CLI.
struct Scene {
    setup: Setup,
    path: PathBuf,
    // Removed when dropped.
    _scratch: TempDir,
}

impl Scene {
    async fn start() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("c.sock");
        let socket = path.clone();
        let setup = Setup::with(|config| config.socket = Some(socket)).await;
        Self {
            setup,
            path,
            _scratch: scratch,
        }
    }

    fn client(&self) -> UnixClient {
        UnixClient::new(&self.path, &token(), SESSION)
    }

    /// A client that is initialized as Copilot CLI 1.0.102.
    async fn copilot(&self) -> UnixClient {
        let client = self.client();
        soon(client.initialize(&copilot())).await.unwrap();
        client
    }

    /// Sends a request as it is and returns the connection.
    async fn send(&self, head: &str, body: &str) -> BufReader<UnixStream> {
        let mut stream = UnixStream::connect(&self.path).await.unwrap();
        let token = token();
        let head = format!(
            "{head} HTTP/1.1\r\nAuthorization: Nonce {}\r\nX-Copilot-Session-Id: {SESSION}\r\nX-Copilot-PID: 7\r\n\
             Host: localhost\r\nconnection: keep-alive\r\naccept: application/json, text/event-stream\r\n\
             content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
            token.reveal(),
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        BufReader::new(stream)
    }

    async fn status(&self, head: &str, body: &str) -> u16 {
        let mut stream = self.send(head, body).await;
        let mut line = String::new();
        soon(stream.read_line(&mut line)).await.unwrap();
        line.split(' ').nth(1).unwrap().parse().unwrap()
    }

    /// Opens the event stream.
    async fn events(&self) -> Events {
        let mut stream = self.send("GET /mcp", "").await;
        let mut line = String::new();
        while line != "\r\n" {
            line.clear();
            soon(stream.read_line(&mut line)).await.unwrap();
        }
        Events(stream)
    }
}

struct Events(BufReader<UnixStream>);

impl Events {
    /// The next notification.
    async fn next(&mut self) -> Value {
        loop {
            let mut line = String::new();
            soon(self.0.read_line(&mut line)).await.unwrap();
            if let Some(data) = line.strip_prefix("data: ") {
                return serde_json::from_str(data).unwrap();
            }
        }
    }
}

fn copilot() -> ClientInfo {
    ClientInfo {
        name: "copilot-cli".to_owned(),
        version: "1.0.102".to_owned(),
    }
}

fn call(tool: &str, arguments: &Value) -> Value {
    json!({"_meta": {"progressToken": 2}, "name": tool, "arguments": arguments})
}

fn open_diff() -> Value {
    let arguments = json!({"original_file_path": "/w/a.txt", "new_file_contents": "two\n", "tab_name": "[Copilot CLI] - a.txt (047a3e)"});
    call("open_diff", &arguments)
}

/// The JSON in the text of a tool's result.
fn parsed(result: &Value) -> Value {
    serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
}

fn selecting(text: &str, start: Cursor, end: Cursor) -> IdeContext {
    let file = File {
        path: "/w/a.txt".to_owned(),
        timestamp: 1,
        is_active: Some(true),
        cursor: Some(end),
        selected_text: Some(text.to_owned()),
        selection_start: Some(start),
    };
    let workspace_state = WorkspaceState {
        open_files: vec![file],
        is_trusted: None,
    };
    IdeContext { workspace_state }
}

fn at(line: u32, character: u32) -> Cursor {
    Cursor { line, character }
}

#[tokio::test]
async fn socket_is_private_and_removed_with_the_server() {
    let scene = Scene::start().await;
    let mode = std::fs::metadata(&scene.path).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    assert_eq!(scene.setup.server.socket(), Some(scene.path.as_path()));
    scene.setup.server.shutdown().await;
    assert!(!scene.path.exists());
}

#[tokio::test]
async fn only_the_nonce_of_the_lock_file_is_let_in() {
    let scene = Scene::start().await;
    let stranger = UnixClient::new(&scene.path, &alongside_core::Secret::from_bytes([1; 32]), SESSION);
    let refused = soon(stranger.initialize(&copilot())).await.unwrap_err();
    assert!(matches!(refused, ClientError::Unauthorized { .. }), "{refused}");
    let nameless = UnixClient::new(&scene.path, &token(), "");
    let refused = soon(nameless.initialize(&copilot())).await.unwrap_err();
    assert!(matches!(refused, ClientError::Status { status: 400, .. }), "{refused}");
}

/// P2: it asks for a newer protocol first, and ends its extra connections, of which a 204 would break it.
#[tokio::test]
async fn start_up_is_one_session() {
    let mut scene = Scene::start().await;
    let discover = json!({"jsonrpc": "2.0", "id": 0, "method": "server/discover", "params": {}});
    let refused = soon(scene.client().request("server/discover", discover))
        .await
        .unwrap_err();
    assert!(matches!(refused, ClientError::Rpc { code: -32601, .. }), "{refused}");
    for _ in 0..3 {
        scene.copilot().await;
        assert_eq!(scene.status("DELETE /mcp", "").await, 200);
    }
    let session = format!("connection-{SESSION}");
    assert_eq!(
        scene.setup.next_call().await,
        Received::Started(session.clone(), Some(copilot()))
    );
    let first = scene.events().await;
    assert_eq!(scene.setup.next_call().await, Received::Opened(session.clone()));
    let _second = scene.events().await;
    assert_eq!(scene.setup.next_call().await, Received::Closed(session.clone()));
    assert_eq!(scene.setup.next_call().await, Received::Opened(session));
    drop(first);
    assert!(scene.setup.has_no_more_calls());
}

#[tokio::test(start_paused = true)]
async fn session_ends_soon_after_its_stream() {
    let mut scene = Scene::start().await;
    scene.copilot().await;
    drop(scene.events().await);
    let ended = |received: &Received| matches!(received, Received::Ended(_, SessionEnd::Lost));
    scene.setup.call_eventually(ended).await;
}

/// P5: an answer that lacks one of these fields is ignored.
#[tokio::test]
async fn decision_is_the_response_with_every_required_field() {
    let mut scene = Scene::start().await;
    let client = scene.copilot().await;
    for (outcome, expected) in [
        (
            DiffOutcome::Accepted {
                content: "two\n".into(),
                is_new_file: false,
            },
            "SAVED",
        ),
        (DiffOutcome::Rejected, "REJECTED"),
    ] {
        let asking = client.request("tools/call", open_diff());
        let deciding = async {
            let opened = |received: &Received| matches!(received, Received::OpenDiff(..));
            scene.setup.call_eventually(opened).await;
            // Right after the call was recorded.
            tokio::task::yield_now().await;
            scene.setup.companion.decide("/w/a.txt", outcome);
        };
        let (response, ()) = soon(async { tokio::join!(asking, deciding) }).await;
        let decision = parsed(&response.unwrap());
        assert_eq!(decision["result"], expected);
        for field in ["success", "trigger", "message"] {
            assert!(decision.get(field).is_some(), "{field} is missing in {decision}");
        }
    }
}

#[tokio::test]
async fn review_closed_in_the_terminal_ends_the_call() {
    let mut scene = Scene::start().await;
    let client = scene.copilot().await;
    let asking = client.request("tools/call", open_diff());
    let closing = async {
        let opened = |received: &Received| matches!(received, Received::OpenDiff(..));
        scene.setup.call_eventually(opened).await;
        let close = call("close_diff", &json!({"tab_name": "[Copilot CLI] - a.txt (047a3e)"}));
        let closed = parsed(&scene.client().request("tools/call", close.clone()).await.unwrap());
        let again = parsed(&scene.client().request("tools/call", close).await.unwrap());
        (closed["already_closed"].clone(), again["already_closed"].clone())
    };
    let (response, closed) = soon(async { tokio::join!(asking, closing) }).await;
    assert_eq!(closed, (json!(false), json!(true)));
    assert_eq!(parsed(&response.unwrap())["trigger"], "closed_via_tool");
    let withdrawn = |received: &Received| matches!(received, Received::Withdrawn(_));
    scene.setup.call_eventually(withdrawn).await;
}

#[tokio::test]
async fn lost_connection_withdraws_the_review() {
    let mut scene = Scene::start().await;
    scene.copilot().await;
    let request = json!({"jsonrpc": "2.0", "id": 4, "method": "tools/call", "params": open_diff()});
    let stream = scene.send("POST /mcp", &request.to_string()).await;
    let opened = |received: &Received| matches!(received, Received::OpenDiff(..));
    scene.setup.call_eventually(opened).await;
    drop(stream);
    let withdrawn = |received: &Received| matches!(received, Received::Withdrawn(_));
    scene.setup.call_eventually(withdrawn).await;
}

/// P7: the line of the selection's end counts, and only an empty path clears it.
#[tokio::test]
async fn selection_is_sent_and_cleared_as_it_reads_them() {
    let scene = Scene::start().await;
    let client = scene.copilot().await;
    let mut events = scene.events().await;
    assert_eq!(events.next().await["params"]["filePath"], "", "nothing is open");
    let agents = scene.setup.server.agents();
    agents.publish_context(&selecting("one\ntwo\n", at(1, 1), at(3, 1)));
    let sent = events.next().await;
    assert_eq!(sent["method"], "selection_changed");
    let expected = json!({"start": {"line": 0, "character": 0}, "end": {"line": 1, "character": 3}, "isEmpty": false});
    assert_eq!(sent["params"]["selection"], expected);
    let selection = call("get_selection", &json!({}));
    let asked = parsed(&client.request("tools/call", selection.clone()).await.unwrap());
    assert_eq!(
        (&asked["text"], &asked["current"]),
        (&json!("one\ntwo\n"), &json!(true))
    );
    agents.publish_context(&IdeContext::default());
    let cleared = events.next().await["params"].clone();
    assert_eq!(cleared["filePath"], "");
    assert_eq!(cleared["fileUrl"], "");
    assert_eq!(cleared["selection"]["isEmpty"], true);
    let asked = parsed(&client.request("tools/call", selection).await.unwrap());
    assert_eq!(asked, Value::Null);
}

/// P8: the same diagnostics, as they change and when the model asks.
#[tokio::test]
async fn changed_diagnostics_are_sent_as_it_reads_them() {
    let scene = Scene::start().await;
    let client = scene.copilot().await;
    let mut events = scene.events().await;
    assert_eq!(events.next().await["method"], "selection_changed");
    let found = Diagnostic {
        start: at(2, 3),
        end: at(2, 6),
        severity: Severity::Error,
        message: "cannot find X".to_owned(),
        source: Some("rustc".to_owned()),
        code: Some("E0425".to_owned()),
    };
    let file = |name: &str, diagnostics: &[Diagnostic]| FileDiagnostics {
        path: format!("/w/{name}"),
        diagnostics: diagnostics.to_vec(),
    };
    let agents = scene.setup.server.agents();
    agents.publish_diagnostics(&[file("a b.txt", std::slice::from_ref(&found)), file("c.txt", &[])]);
    let sent = events.next().await;
    assert_eq!(sent["method"], "diagnostics_changed");
    let diagnostics = json!([{
        "range": {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 5}},
        "message": "cannot find X",
        "severity": "error",
        "source": "rustc",
        "code": "E0425",
    }]);
    assert_eq!(
        sent["params"],
        json!({"uris": [
            {"uri": "file:///w/a%20b.txt", "diagnostics": diagnostics},
            {"uri": "file:///w/c.txt", "diagnostics": []},
        ]})
    );
    *scene.setup.companion.diagnostics.lock() = vec![file("a b.txt", &[found])];
    let asked = client.request("tools/call", call("get_diagnostics", &json!({}))).await;
    assert_eq!(
        parsed(&asked.unwrap()),
        json!([{"uri": "file:///w/a%20b.txt", "filePath": "/w/a b.txt", "diagnostics": diagnostics}])
    );
}

#[tokio::test]
async fn mention_is_a_file_reference() {
    let scene = Scene::start().await;
    scene.copilot().await;
    let mut events = scene.events().await;
    events.next().await;
    let mention = Mention {
        path: "/w/a.txt".to_owned(),
        lines: Some((1, 2)),
        line_count: 9,
    };
    scene.setup.server.agents().send_mention(None, &mention).unwrap();
    let sent = events.next().await;
    assert_eq!(sent["method"], "add_file_reference");
    assert_eq!(sent["params"]["filePath"], "/w/a.txt");
    assert_eq!(sent["params"]["selection"]["start"]["line"], 0);
    assert_eq!(sent["params"]["selection"]["end"]["line"], 1);
}

/// P3: bodies are chunked, without a protocol version, and the host has no port.
#[tokio::test]
async fn chunked_body_is_read() {
    let scene = Scene::start().await;
    scene.copilot().await;
    let mut stream = UnixStream::connect(&scene.path).await.unwrap();
    let body = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list","params":{"_meta":{"progressToken":0}}}"#;
    let token = token();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nAuthorization: Nonce {}\r\nX-Copilot-Session-Id: {SESSION}\r\nHost: localhost\r\n\
         connection: close\r\naccept: application/json, text/event-stream\r\ncontent-type: application/json\r\n\
         transfer-encoding: chunked\r\n\r\n{:x}\r\n{body}\r\n0\r\n\r\n",
        token.reveal(),
        body.len()
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    soon(stream.read_to_string(&mut response)).await.unwrap();
    for tool in [
        "open_diff",
        "close_diff",
        "get_selection",
        "get_diagnostics",
        "update_session_name",
    ] {
        assert!(
            response.contains(&format!("\"{tool}\"")),
            "{tool} is missing in {response}"
        );
    }
}
