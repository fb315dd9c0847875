//! Claude Code with a whole companion: the lock file, the reviews and the prompt.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_companion::places::Places;
use alongside_companion::{Options, RunningCompanion};
use alongside_core::SessionKey;
use alongside_discovery::Environment;
use alongside_front::client::ClientError;
use alongside_protocol::{Accept, Edit, Empty, ErrorKind, Focus, MentionTarget, Reject, ReviewSummary, requests};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::protocol::Role;

const TIMEOUT: Duration = Duration::from_secs(30);

struct Scene {
    scratch: tempfile::TempDir,
}

impl Scene {
    fn new() -> Self {
        let scratch = tempfile::tempdir().unwrap();
        for directory in ["tmp", "workspace"] {
            std::fs::create_dir_all(scratch.path().join(directory)).unwrap();
        }
        Self { scratch }
    }

    fn workspace(&self) -> PathBuf {
        alongside_platform::path::real(&self.scratch.path().join("workspace")).unwrap()
    }

    fn options(&self) -> Options {
        let directory = self.scratch.path();
        let environment = Environment::new(directory.join("home"), self.workspace())
            .with("TMPDIR", directory.join("tmp").to_str().unwrap());
        Options {
            workspace: vec![self.workspace()],
            places: Some(Places {
                configuration: directory.join("config"),
                state: directory.join("state"),
            }),
            environment: Some(environment),
            reconnect_grace: Some(Duration::from_millis(10)),
            ..Options::default()
        }
    }

    async fn start(&self) -> RunningCompanion {
        RunningCompanion::start(self.options()).await.unwrap()
    }

    fn lock(&self, running: &RunningCompanion) -> PathBuf {
        let name = format!("home/.claude/ide/{}.lock", running.announcement().port);
        self.scratch.path().join(name)
    }

    fn path(&self, name: &str) -> String {
        self.workspace().join(name).to_str().unwrap().to_owned()
    }
}

/// Claude Code, as far as a companion sees it.
struct Claude {
    socket: WebSocketStream<TcpStream>,
}

impl Claude {
    /// Connects with nothing but the lock file.
    async fn connect(lock: &Path) -> Self {
        let port: u16 = lock.file_stem().unwrap().to_str().unwrap().parse().unwrap();
        let contents: Value = serde_json::from_slice(&std::fs::read(lock).unwrap()).unwrap();
        let token = contents["authToken"].as_str().unwrap();
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        let head = format!(
            "GET / HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: mcp\r\n\
             X-Claude-Code-Ide-Authorization: {token}\r\n\r\n"
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut response = Vec::new();
        while !response.ends_with(b"\r\n\r\n") {
            response.push(stream.read_u8().await.unwrap());
        }
        assert!(response.starts_with(b"HTTP/1.1 101 "));
        let socket = WebSocketStream::from_raw_socket(stream, Role::Client, None).await;
        let mut claude = Self { socket };
        let client = json!({"name": "claude-code", "version": "2.1.325"});
        let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
        claude
            .send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": params}))
            .await;
        claude.response(0).await;
        claude
            .send(json!({"jsonrpc": "2.0", "method": "ide_connected", "params": {"pid": 1}}))
            .await;
        claude
    }

    async fn send(&mut self, message: Value) {
        self.socket.send(Message::text(message.to_string())).await.unwrap();
    }

    async fn call(&mut self, id: u64, name: &str, arguments: Value) {
        let params = json!({"name": name, "arguments": arguments});
        self.send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
            .await;
    }

    async fn open_diff(&mut self, id: u64, path: &str, contents: &str) {
        let arguments = json!({
            "old_file_path": path, "new_file_path": path, "new_file_contents": contents, "tab_name": path,
        });
        self.call(id, "openDiff", arguments).await;
    }

    async fn receive(&mut self) -> Value {
        let message = tokio::time::timeout(TIMEOUT, self.socket.next()).await.unwrap();
        serde_json::from_str(message.unwrap().unwrap().to_text().unwrap()).unwrap()
    }

    async fn response(&mut self, id: u64) -> Value {
        loop {
            let message = self.receive().await;
            if message["id"] == id {
                return message["result"].clone();
            }
        }
    }

    async fn notification(&mut self, method: &str) -> Value {
        loop {
            let message = self.receive().await;
            if message["method"] == method {
                return message["params"].clone();
            }
        }
    }
}

type FrontEnd = alongside_front::client::Client;

/// Waits until there are as many pending reviews.
async fn reviews(front_end: &mut FrontEnd, count: usize) -> Vec<ReviewSummary> {
    let pending = async {
        loop {
            let reviews = front_end.call::<requests::ReviewList>(Empty {}).await.unwrap();
            if reviews.len() == count {
                return reviews;
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(TIMEOUT, pending).await.unwrap()
}

fn texts(result: &Value) -> Vec<&str> {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.map(|block| block["text"].as_str().unwrap()).collect()
}

/// Hunks and edits are in the accepted text, and the companion writes no file.
#[tokio::test]
async fn edited_draft_is_returned_to_claude() {
    let scene = Scene::new();
    let (old, new) = (scene.path("a.txt"), scene.path("new.txt"));
    std::fs::write(&old, "one\ntwo\n").unwrap();
    let running = scene.start().await;
    let mut front_end = running.record().connect(false).await.unwrap();
    let mut claude = Claude::connect(&scene.lock(&running)).await;
    let status = front_end.call::<requests::Status>(Empty {}).await.unwrap();
    assert_eq!(status.agents[0].identity.to_string(), "Claude Code 2.1.325");
    assert!(matches!(status.agents[0].session, SessionKey::Connection(_)));

    claude.open_diff(1, &old, "one\nTWO\n").await;
    let review = reviews(&mut front_end, 1).await[0].id;
    let content = "one\nTwo\n".into();
    front_end
        .call::<requests::ReviewEdit>(Edit { review, content })
        .await
        .unwrap();
    let accept = Accept {
        review,
        content: None,
        even_if_empty: false,
    };
    front_end.call::<requests::ReviewAccept>(accept).await.unwrap();
    assert_eq!(texts(&claude.response(1).await), ["FILE_SAVED", "one\nTwo\n"]);
    assert_eq!(std::fs::read_to_string(&old).unwrap(), "one\ntwo\n");

    // A new file, which Claude Code would write without its last newline.
    claude.open_diff(2, &new, "x\n").await;
    let review = reviews(&mut front_end, 1).await[0].id;
    let accept = Accept {
        review,
        content: None,
        even_if_empty: false,
    };
    front_end.call::<requests::ReviewAccept>(accept).await.unwrap();
    assert_eq!(texts(&claude.response(2).await), ["FILE_SAVED", "x\n\n"]);
    assert!(!Path::new(&new).exists());

    // Nothing to decide.
    claude.open_diff(3, &old, "one\ntwo\n").await;
    assert_eq!(texts(&claude.response(3).await), ["FILE_SAVED", "one\ntwo\n"]);

    claude.open_diff(4, &old, "2").await;
    let review = reviews(&mut front_end, 1).await[0].id;
    let reject = Reject { review, reason: None };
    front_end.call::<requests::ReviewReject>(reject).await.unwrap();
    assert_eq!(texts(&claude.response(4).await), ["DIFF_REJECTED", old.as_str()]);
    running.stop().await;
}

#[tokio::test]
async fn review_closes_with_its_tab_or_connection() {
    let scene = Scene::new();
    let running = scene.start().await;
    let mut front_end = running.record().connect(false).await.unwrap();
    let mut claude = Claude::connect(&scene.lock(&running)).await;
    let path = scene.path("a.txt");
    claude.open_diff(1, &path, "x").await;
    reviews(&mut front_end, 1).await;
    claude.call(2, "close_tab", json!({"tab_name": path})).await;
    reviews(&mut front_end, 0).await;
    claude.open_diff(3, &path, "y").await;
    reviews(&mut front_end, 1).await;
    drop(claude);
    reviews(&mut front_end, 0).await;
    let status = front_end.call::<requests::Status>(Empty {}).await.unwrap();
    assert!(status.agents.is_empty() && status.reviews.is_empty());
    running.stop().await;
}

/// A rejection would end the turn, although the user has not decided: the question in the terminal is still there.
#[tokio::test]
async fn stop_does_not_reject_for_the_user() {
    let scene = Scene::new();
    let running = scene.start().await;
    let mut front_end = running.record().connect(false).await.unwrap();
    let lock = scene.lock(&running);
    let mut claude = Claude::connect(&lock).await;
    claude.open_diff(1, &scene.path("a.txt"), "x").await;
    reviews(&mut front_end, 1).await;
    let (result, ()) = tokio::join!(claude.response(1), running.stop());
    assert_eq!(result["isError"], true, "{result}");
    assert!(!lock.exists());
}

/// C12: it comes back only to the same port, with the same token.
#[tokio::test]
async fn restarted_companion_has_the_same_lock() {
    let scene = Scene::new();
    let running = scene.start().await;
    let lock = scene.lock(&running);
    let token = |lock: &Path| {
        let contents: Value = serde_json::from_slice(&std::fs::read(lock).unwrap()).unwrap();
        contents["authToken"].clone()
    };
    let before = token(&lock);
    running.stop().await;
    let running = scene.start().await;
    assert_eq!((scene.lock(&running), token(&lock)), (lock.clone(), before));
    Claude::connect(&lock).await;
    running.stop().await;
}

#[tokio::test]
async fn selection_reaches_the_context_and_the_prompt() {
    let scene = Scene::new();
    let path = scene.path("a.txt");
    std::fs::write(&path, "one\ntwo\nthree\n").unwrap();
    let running = scene.start().await;
    let mut front_end = running.record().connect(false).await.unwrap();
    let mut claude = Claude::connect(&scene.lock(&running)).await;
    let nothing = front_end
        .call::<requests::AgentMention>(MentionTarget::default())
        .await
        .unwrap_err();
    assert!(
        matches!(&nothing, ClientError::Rejected(error) if error.kind == ErrorKind::NotOpen),
        "{nothing}"
    );
    // Selected upwards: the cursor is where the selection begins.
    let focus: Focus = serde_json::from_value(json!({
        "path": path, "cursor": {"line": 2, "character": 1},
        "selectedText": "two\nthree", "selectionStart": {"line": 2, "character": 1},
    }))
    .unwrap();
    front_end.call::<requests::ContextFocus>(focus).await.unwrap();
    let selected = loop {
        let selected = claude.notification("selection_changed").await;
        if selected["text"] != "" {
            break selected;
        }
    };
    assert_eq!(selected["selection"]["start"]["line"], 1);
    assert_eq!(selected["selection"]["end"], json!({"line": 2, "character": 5}));
    let mentioned = front_end
        .call::<requests::AgentMention>(MentionTarget::default())
        .await
        .unwrap();
    assert_eq!(mentioned.agent.name, "Claude Code");
    assert_eq!((mentioned.first_line, mentioned.last_line), (Some(2), Some(3)));
    let received = claude.notification("at_mentioned").await;
    assert_eq!(received, json!({"filePath": path, "lineStart": 1, "lineEnd": 2}));
    running.stop().await;
}

#[cfg(unix)]
#[tokio::test]
async fn lock_has_the_path_that_the_user_named() {
    let scene = Scene::new();
    let link = scene.scratch.path().join("link");
    std::os::unix::fs::symlink(scene.workspace(), &link).unwrap();
    let options = Options {
        workspace: vec![link.clone()],
        ..scene.options()
    };
    let running = RunningCompanion::start(options).await.unwrap();
    let contents: Value = serde_json::from_slice(&std::fs::read(scene.lock(&running)).unwrap()).unwrap();
    assert_eq!(contents["workspaceFolders"], json!([scene.workspace(), link]));
    running.stop().await;
}
