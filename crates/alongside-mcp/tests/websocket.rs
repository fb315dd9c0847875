//! Claude Code and opencode: what each really sends and expects, on a WebSocket.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should panic"
)]

mod common;

use alongside_core::SessionEnd;
use alongside_core::context::{Cursor, File, IdeContext, WorkspaceState};
use alongside_core::dialect::ClientInfo;
use alongside_mcp::{DiffOutcome, Mention, MentionError};
use common::{Call, Received, Setup, read_response, soon, token};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

const TOKEN_HEADER: &str = "x-claude-code-ide-authorization";

/// The handshake of Claude Code 2.1.325.
fn handshake(port: u16) -> Call {
    Call::new("GET", port)
        .without("authorization")
        .target("/")
        .header("connection", "Upgrade")
        .header("upgrade", "websocket")
        .header("sec-websocket-version", "13")
        .header("sec-websocket-extensions", "permessage-deflate; client_max_window_bits")
        .header("sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==")
        .header("sec-websocket-protocol", "mcp")
        .header("user-agent", "claude-code/2.1.325 (cli)")
        .header(TOKEN_HEADER, token().reveal())
}

/// An agent's side of a WebSocket.
struct Agent {
    socket: WebSocketStream<TcpStream>,
    /// Notifications that arrived while a response was awaited.
    notifications: Vec<Value>,
}

impl Agent {
    async fn open(handshake: Call, port: u16) -> Self {
        let mut stream = handshake.open(port).await;
        let response = soon(read_response(&mut stream)).await;
        assert_eq!(response.status, 101, "{response:?}");
        Self {
            socket: WebSocketStream::from_raw_socket(stream, Role::Client, None).await,
            notifications: Vec::new(),
        }
    }

    /// Connects as Claude Code does, up to the first answer to `tools/list`.
    async fn claude(setup: &Setup) -> Self {
        let mut agent = Self::open(handshake(setup.port()), setup.port()).await;
        agent.start_claude("2025-11-25").await;
        agent
    }

    async fn start_claude(&mut self, version: &str) -> Value {
        self.send(&json!({"method": "initialize", "params": {
            "protocolVersion": version,
            "capabilities": {"roots": {"listChanged": true}, "elicitation": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}},
            "clientInfo": {"name": "claude-code", "title": "Claude Code", "version": "2.1.325", "description": "…", "websiteUrl": "…"},
        }, "jsonrpc": "2.0", "id": 0}))
        .await;
        let initialized = self.response(0).await;
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        self.send(&json!({"jsonrpc": "2.0", "method": "ide_connected", "params": {"pid": 4711}}))
            .await;
        self.send(&json!({"method": "tools/list", "jsonrpc": "2.0", "id": 1}))
            .await;
        let tools = self.response(1).await;
        let names: Vec<&str> = tools["tools"]
            .as_array()
            .unwrap()
            .iter()
            .map(|tool| tool["name"].as_str().unwrap())
            .collect();
        assert_eq!(names, ["openDiff", "close_tab", "closeAllDiffTabs", "getDiagnostics"]);
        initialized
    }

    /// Connects as opencode 1.18.33 does: without a subprotocol, and without `tools/list`.
    async fn opencode(setup: &Setup) -> Self {
        let handshake = handshake(setup.port()).without("sec-websocket-protocol");
        let mut agent = Self::open(handshake, setup.port()).await;
        agent
            .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
                "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "opencode", "version": "0.0.0"},
            }}))
            .await;
        agent.response(1).await;
        agent
            .send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
            .await;
        agent
    }

    async fn send(&mut self, message: &Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn call(&mut self, id: u64, name: &str, arguments: Value) {
        let params = json!({"name": name, "arguments": arguments, "_meta": {"progressToken": id}});
        self.send(&json!({"method": "tools/call", "params": params, "jsonrpc": "2.0", "id": id}))
            .await;
    }

    async fn open_diff(&mut self, id: u64, path: &str, contents: &str) {
        let arguments = json!({
            "old_file_path": path, "new_file_path": path, "new_file_contents": contents, "tab_name": tab(path),
        });
        self.call(id, "openDiff", arguments).await;
    }

    async fn receive(&mut self) -> Value {
        loop {
            match soon(self.socket.next()).await {
                Some(Ok(Message::Text(text))) => return serde_json::from_str(&text).unwrap(),
                Some(Ok(_)) => {}
                ended => panic!("the connection ended: {ended:?}"),
            }
        }
    }

    /// The result of a request.
    async fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                assert!(message.get("error").is_none(), "{message}");
                return message["result"].clone();
            }
            assert!(message.get("id").is_none(), "an answer to another request: {message}");
            self.notifications.push(message);
        }
    }

    /// The texts of a tool's result.
    async fn texts(&mut self, id: u64) -> Vec<String> {
        let result = self.response(id).await;
        assert!(result.get("isError").is_none(), "{result}");
        let texts = result["content"].as_array().unwrap().iter();
        texts.map(|block| block["text"].as_str().unwrap().to_owned()).collect()
    }

    async fn notification(&mut self, method: &str) -> Value {
        let message = if self.notifications.is_empty() {
            self.receive().await
        } else {
            self.notifications.remove(0)
        };
        assert_eq!(message["method"], method);
        message["params"].clone()
    }
}

fn tab(path: &str) -> String {
    format!("✻ [Claude Code] {path} (f2bab3) ⧉")
}

fn context(path: &str, line: u32, selected_text: Option<&str>) -> IdeContext {
    let position = Cursor { line, character: 1 };
    let file = File {
        path: path.to_owned(),
        timestamp: u64::from(line),
        is_active: Some(true),
        cursor: Some(position),
        selected_text: selected_text.map(str::to_owned),
        selection_start: selected_text.map(|_| position),
    };
    IdeContext {
        workspace_state: WorkspaceState {
            open_files: vec![file],
            is_trusted: None,
        },
    }
}

fn accepted(content: &str, is_new_file: bool) -> DiffOutcome {
    DiffOutcome::Accepted {
        content: content.into(),
        is_new_file,
    }
}

async fn opened(setup: &mut Setup, path: &str) {
    setup
        .call_eventually(|call| matches!(call, Received::OpenDiff(_, opened, _) if opened == path))
        .await;
}

/// C5: Claude Code disconnects unless its subprotocol is confirmed; opencode offers none.
#[tokio::test]
async fn subprotocol_is_confirmed_only_if_offered() {
    let setup = Setup::start().await;
    let port = setup.port();
    let protocol = |response: common::Response| {
        assert_eq!(response.status, 101, "{response:?}");
        response.header("sec-websocket-protocol").map(str::to_owned)
    };
    assert_eq!(protocol(handshake(port).send(port).await).as_deref(), Some("mcp"));
    let none = handshake(port).without("sec-websocket-protocol");
    assert_eq!(protocol(none.send(port).await), None);
    let other = handshake(port).header("sec-websocket-protocol", "chat, other");
    assert_eq!(protocol(other.send(port).await), None);
    let several = handshake(port).header("sec-websocket-protocol", "chat, mcp");
    assert_eq!(protocol(several.send(port).await).as_deref(), Some("mcp"));
}

#[tokio::test]
async fn socket_without_the_token_is_refused() {
    let setup = Setup::start().await;
    let port = setup.port();
    let wrong = handshake(port).header(TOKEN_HEADER, &"0".repeat(64));
    let bearer = handshake(port)
        .without(TOKEN_HEADER)
        .header("authorization", &format!("Bearer {}", token().reveal()));
    for refused in [handshake(port).without(TOKEN_HEADER), wrong, bearer] {
        assert_eq!(refused.send(port).await.status, 401);
    }
    let page = handshake(port).header("origin", &format!("http://127.0.0.1:{port}"));
    assert_eq!(page.send(port).await.status, 403);
    let rebound = handshake(port).header("host", "evil.example");
    assert_eq!(rebound.send(port).await.status, 403);
    let plain = handshake(port).header("sec-websocket-version", "8");
    assert_eq!(plain.send(port).await.status, 404);
    // Nor does its header open the other transport.
    let request = Call::post(port, common::initialize("2025-06-18"))
        .without("authorization")
        .header(TOKEN_HEADER, token().reveal());
    assert_eq!(request.send(port).await.status, 401);
}

#[tokio::test]
async fn agent_is_reported_with_its_name_until_it_disconnects() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::open(handshake(setup.port()), setup.port()).await;
    let initialized = agent.start_claude("2025-11-25").await;
    assert_eq!(initialized["protocolVersion"], "2025-11-25");
    assert!(initialized["capabilities"]["tools"].is_object());
    let Received::Started(session, client) = setup.next_call().await else {
        panic!("not started")
    };
    assert!(session.starts_with("connection-"), "{session}");
    let client: ClientInfo = client.unwrap();
    assert_eq!(client.identity().to_string(), "Claude Code 2.1.325");
    assert_eq!(setup.next_call().await, Received::Opened(session.clone()));
    // No goodbye: the socket just closes.
    drop(agent);
    assert_eq!(setup.next_call().await, Received::Closed(session.clone()));
    assert_eq!(setup.next_call().await, Received::Ended(session, SessionEnd::Lost));
}

#[tokio::test]
async fn older_versions_are_echoed() {
    let setup = Setup::start().await;
    for (offered, answered) in [("2024-11-05", "2024-11-05"), ("2099-01-01", "2025-11-25")] {
        let mut agent = Agent::open(handshake(setup.port()), setup.port()).await;
        assert_eq!(agent.start_claude(offered).await["protocolVersion"], answered);
    }
}

/// C6: `FILE_SAVED` needs the contents, and the model learns only from them what the user changed.
#[tokio::test]
async fn accepted_diff_returns_the_contents() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(19, "/w/a.txt", "one\nTWO\nthree\n").await;
    opened(&mut setup, "/w/a.txt").await;
    // A pending call blocks no other.
    agent.call(20, "getDiagnostics", json!({})).await;
    assert_eq!(agent.texts(20).await, ["[]"]);
    setup.companion.decide("/w/a.txt", accepted("one\nTwo\nthree\n", false));
    assert_eq!(agent.texts(19).await, ["FILE_SAVED", "one\nTwo\nthree\n"]);
    // C8: twice after each decision.
    for id in [21, 22] {
        agent.call(id, "close_tab", json!({"tab_name": tab("/w/a.txt")})).await;
        assert_eq!(agent.texts(id).await, ["TAB_CLOSED"]);
    }
}

/// C7: Claude Code drops the final newline of a new file.
#[tokio::test]
async fn new_file_is_returned_with_one_more_newline() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(3, "/w/new.txt", "x\ny\n").await;
    opened(&mut setup, "/w/new.txt").await;
    setup.companion.decide("/w/new.txt", accepted("x\ny\n", true));
    assert_eq!(agent.texts(3).await, ["FILE_SAVED", "x\ny\n\n"]);
}

#[tokio::test]
async fn rejected_diff_names_its_tab() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(3, "/w/a.txt", "x").await;
    opened(&mut setup, "/w/a.txt").await;
    setup.companion.decide("/w/a.txt", DiffOutcome::Rejected);
    assert_eq!(agent.texts(3).await, ["DIFF_REJECTED".to_owned(), tab("/w/a.txt")]);
}

/// C6: `TAB_CLOSED` would accept the change; an error leaves the question in the terminal.
#[tokio::test]
async fn change_that_cannot_be_reviewed_is_an_error() {
    let setup = Setup::start().await;
    *setup.companion.refusal.lock() = Some("It is a binary file.".to_owned());
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(3, "/w/a.bin", "x").await;
    let result = agent.response(3).await;
    assert_eq!(result["isError"], true);
    assert_eq!(result["content"][0]["text"], "It is a binary file.");
}

/// C8: a decision in the terminal arrives only as `close_tab`.
#[tokio::test]
async fn closed_tab_ends_the_review_and_the_call() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(3, "/w/a.txt", "x").await;
    opened(&mut setup, "/w/a.txt").await;
    agent.call(4, "close_tab", json!({"tab_name": tab("/w/a.txt")})).await;
    let (mut closed, mut answered) = (false, false);
    while !closed || !answered {
        let message = agent.receive().await;
        let text = message["result"]["content"][0]["text"]
            .as_str()
            .unwrap_or_default()
            .to_owned();
        match message["id"].as_u64() {
            Some(3) => answered = text == "DIFF_REJECTED",
            Some(4) => closed = text == "TAB_CLOSED",
            _ => assert_eq!(message["method"], "selection_changed"),
        }
    }
    let withdrawn = setup.next_call().await;
    assert_eq!(withdrawn, Received::Withdrawn("/w/a.txt".to_owned()));
    assert!(setup.has_no_more_calls());
}

#[tokio::test]
async fn closing_all_tabs_closes_those_of_one_connection() {
    let mut setup = Setup::start().await;
    let (mut one, mut other) = (Agent::claude(&setup).await, Agent::claude(&setup).await);
    one.open_diff(3, "/w/a.txt", "x").await;
    opened(&mut setup, "/w/a.txt").await;
    other.open_diff(3, "/w/b.txt", "x").await;
    opened(&mut setup, "/w/b.txt").await;
    other.call(4, "closeAllDiffTabs", json!({})).await;
    let (first, second) = (other.receive().await, other.receive().await);
    let closed = if first["id"] == 4 { first } else { second };
    assert_eq!(closed["result"]["content"][0]["text"], "CLOSED_1_DIFF_TABS");
    assert_eq!(setup.next_call().await, Received::Withdrawn("/w/b.txt".to_owned()));
    setup.companion.decide("/w/a.txt", DiffOutcome::Rejected);
    assert_eq!(one.texts(3).await[0], "DIFF_REJECTED");
    one.call(5, "closeAllDiffTabs", json!({})).await;
    assert_eq!(one.texts(5).await, ["CLOSED_0_DIFF_TABS"]);
}

#[tokio::test]
async fn lost_connection_closes_its_review() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(3, "/w/a.txt", "x").await;
    opened(&mut setup, "/w/a.txt").await;
    drop(agent);
    setup
        .call_eventually(|call| *call == Received::Withdrawn("/w/a.txt".to_owned()))
        .await;
    setup
        .call_eventually(|call| matches!(call, Received::Ended(_, SessionEnd::Lost)))
        .await;
}

/// The question in the terminal stays, and the user's decision counts.
#[tokio::test]
async fn pending_diff_gets_an_error_when_the_companion_stops() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(3, "/w/a.txt", "x").await;
    opened(&mut setup, "/w/a.txt").await;
    let (result, ()) = tokio::join!(agent.response(3), setup.server.shutdown());
    assert_eq!(result["isError"], true);
    let closed = soon(agent.socket.next()).await;
    assert!(matches!(closed, Some(Ok(Message::Close(_)))), "{closed:?}");
}

/// C12: Claude Code comes back only to the same port, with the same token.
#[tokio::test]
async fn agent_returns_to_the_same_port_and_token() {
    let setup = Setup::start().await;
    let port = setup.port();
    drop(Agent::claude(&setup).await);
    setup.server.shutdown().await;
    let again = Setup::with(|config| config.port = Some(port)).await;
    Agent::claude(&again).await;
}

/// In the default permission mode, Claude Code 2.1.325 shows no change to anyone. It connects all the same, for the context.
#[tokio::test]
async fn agent_that_never_opens_a_diff_is_served() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    agent.call(2, "closeAllDiffTabs", json!({})).await;
    assert_eq!(agent.texts(2).await, ["CLOSED_0_DIFF_TABS"]);
    agent.call(3, "getDiagnostics", json!({"uri": "file:///w/a.txt"})).await;
    assert_eq!(agent.texts(3).await, ["[]"]);
    agent.call(4, "executeCode", json!({"code": "1"})).await;
    assert_eq!(agent.response(4).await["isError"], true);
    while !setup.has_no_more_calls() {}
}

/// A severity is a word, and positions count from 0.
/// C14: asked before a file is written, and at the next prompt.
#[tokio::test]
async fn diagnostics_are_returned_as_claude_reads_them() {
    let setup = Setup::start().await;
    let file = json!({"path": "/w/a b.txt", "diagnostics": [{
        "start": {"line": 2, "character": 3}, "end": {"line": 2, "character": 6}, "severity": "error",
        "message": "cannot find X", "source": "rustc", "code": "E0425",
    }]});
    setup
        .companion
        .diagnostics
        .lock()
        .push(serde_json::from_value(file).unwrap());
    let mut agent = Agent::claude(&setup).await;
    agent
        .call(2, "getDiagnostics", json!({"uri": "file:///w/a%20b.txt"}))
        .await;
    let texts = agent.texts(2).await;
    let found: Value = serde_json::from_str(&texts[0]).unwrap();
    assert_eq!(
        found,
        json!([{"uri": "file:///w/a%20b.txt", "diagnostics": [{
            "message": "cannot find X", "severity": "Error", "source": "rustc", "code": "E0425",
            "range": {"start": {"line": 1, "character": 2}, "end": {"line": 1, "character": 5}},
        }]}])
    );
    agent.call(3, "getDiagnostics", json!({"uri": "nonsense"})).await;
    assert_eq!(agent.response(3).await["isError"], true);
}

/// C9 and C10 on the wire: 0-based for Claude Code, 1-based for opencode.
#[tokio::test]
async fn selection_is_sent_on_connect_and_on_change() {
    let setup = Setup::start().await;
    let agents = setup.server.agents();
    agents.publish_context(&context("/w/a.txt", 2, Some("two")));
    let mut claude = Agent::claude(&setup).await;
    let selection = claude.notification("selection_changed").await;
    assert_eq!(selection["filePath"], "/w/a.txt");
    assert_eq!(selection["text"], "two");
    assert_eq!(selection["selection"]["start"], json!({"line": 1, "character": 0}));
    let mut opencode = Agent::opencode(&setup).await;
    let selection = opencode.notification("selection_changed").await;
    assert_eq!(selection["selection"]["start"], json!({"line": 2, "character": 0}));
    // Only the time is different.
    let mut same = context("/w/a.txt", 2, Some("two"));
    same.workspace_state.open_files[0].timestamp += 1;
    agents.publish_context(&same);
    agents.publish_context(&IdeContext::default());
    let cleared = claude.notification("selection_changed").await;
    assert_eq!(cleared, json!({"text": "", "filePath": "", "selection": null}));
    let cleared = opencode.notification("selection_changed").await;
    assert_eq!(
        (&cleared["filePath"], &cleared["text"]),
        (&json!("/w/a.txt"), &json!(""))
    );
    // What is no longer shown is never sent to a new connection.
    let mut late = Agent::opencode(&setup).await;
    agents.publish_context(&context("/w/b.txt", 1, None));
    assert_eq!(late.notification("selection_changed").await["filePath"], "/w/b.txt");
}

#[tokio::test]
async fn mention_goes_to_the_agent_used_last() {
    let setup = Setup::start().await;
    let agents = setup.server.agents();
    let mention = Mention {
        path: "/w/a.txt".to_owned(),
        lines: Some((2, 3)),
        line_count: 9,
    };
    assert_eq!(agents.send_mention(None, &mention), Err(MentionError::NoAgent));
    // It has no prompt to send to.
    let gemini = setup.client().await;
    assert_eq!(agents.send_mention(None, &mention), Err(MentionError::NoAgent));
    assert_eq!(
        agents.send_mention(Some(&Setup::session(&gemini)), &mention),
        Err(MentionError::NotThisAgent)
    );
    let mut first = Agent::claude(&setup).await;
    let mut second = Agent::claude(&setup).await;
    assert_eq!(first.notification("selection_changed").await["filePath"], "");
    assert_eq!(second.notification("selection_changed").await["filePath"], "");
    first.call(9, "closeAllDiffTabs", json!({})).await;
    first.texts(9).await;
    let session = agents.send_mention(None, &mention).unwrap();
    let mentioned = first.notification("at_mentioned").await;
    assert_eq!(mentioned, json!({"filePath": "/w/a.txt", "lineStart": 1, "lineEnd": 2}));
    drop(first);
    second.call(9, "closeAllDiffTabs", json!({})).await;
    second.texts(9).await;
    let other = agents.send_mention(None, &mention).unwrap();
    assert_ne!(session, other);
    second.notification("at_mentioned").await;
}

#[tokio::test]
async fn excess_call_is_refused_while_others_wait() {
    let mut setup = Setup::start().await;
    let mut agent = Agent::claude(&setup).await;
    for id in 0..64 {
        agent.open_diff(100 + id, &format!("/w/{id}.txt"), "x").await;
        opened(&mut setup, &format!("/w/{id}.txt")).await;
    }
    agent.call(3, "getDiagnostics", json!({})).await;
    let refused = loop {
        let message = agent.receive().await;
        if message["id"] == 3 {
            break message;
        }
    };
    assert_eq!(refused["error"]["code"], -32000);
    setup.companion.decide("/w/0.txt", DiffOutcome::Rejected);
    agent.texts(100).await;
    agent.call(4, "getDiagnostics", json!({})).await;
    assert_eq!(agent.texts(4).await, ["[]"]);
}

#[tokio::test]
async fn oversized_message_of_an_agent_closes_its_socket() {
    let setup = Setup::with(|config| config.limits.body_bytes = 4096).await;
    let mut agent = Agent::claude(&setup).await;
    agent.open_diff(3, "/w/a.txt", &"x".repeat(10_000)).await;
    while let Some(Ok(message)) = soon(agent.socket.next()).await {
        assert!(
            !message.is_text() || message.to_text().unwrap().contains("selection_changed"),
            "{message}"
        );
    }
}

#[tokio::test]
async fn malformed_messages_get_errors() {
    let setup = Setup::start().await;
    let mut agent = Agent::open(handshake(setup.port()), setup.port()).await;
    agent
        .send(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}))
        .await;
    assert_eq!(agent.receive().await["error"]["code"], -32600);
    agent.socket.send(Message::text("{")).await.unwrap();
    assert_eq!(agent.receive().await["error"]["code"], -32700);
    agent.send(&json!([])).await;
    assert!(agent.receive().await["error"]["code"].is_i64());
    agent.start_claude("2025-11-25").await;
}
