//! Codex CLI's socket: both roles, with recorded requests.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::fs::{self, Permissions};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::UnixListener as StdListener;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_core::context::{File, IdeContext, WorkspaceState};
use alongside_mcp::codex::{Provider, Role, State};
use alongside_wire::length_prefixed::{read_frame, write_frame};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::AsyncWriteExt;
use tokio::net::{UnixListener, UnixStream};
use tokio::task::JoinHandle;

/// Longer than all that these tests wait for; in tests with a paused clock, all of it passes at once.
const PATIENCE: Duration = Duration::from_mins(1);

/// A home directory of Codex, and a temporary directory.
struct Place(TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        fs::create_dir(place.0.path().join("home")).unwrap();
        place
    }

    fn socket(&self) -> PathBuf {
        self.0.path().join("home/ipc/ipc.sock")
    }

    fn temporary_socket(&self) -> PathBuf {
        self.0.path().join("codex-ipc/ipc-1000.sock")
    }

    fn sockets(&self) -> Vec<PathBuf> {
        vec![self.socket(), self.temporary_socket()]
    }

    /// Creates the socket's directory.
    fn directory(&self, mode: u32) -> PathBuf {
        let directory = self.0.path().join("home/ipc");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(mode)).unwrap();
        directory
    }

    /// Another program that is the router.
    fn router(&self) -> UnixListener {
        self.directory(0o700);
        UnixListener::bind(self.socket()).unwrap()
    }

    fn start(&self, workspace: &str) -> Running {
        let provider = Provider::new(vec![workspace.into()]);
        provider.publish_context(&context(&format!("{workspace}/a.txt")));
        let (running, sockets) = (provider.clone(), self.sockets());
        let task = tokio::spawn(async move { running.run(&sockets).await });
        Running { provider, task }
    }
}

struct Running {
    provider: Provider,
    task: JoinHandle<()>,
}

impl Running {
    async fn until(&self, wanted: impl FnMut(&State) -> bool) -> State {
        let mut state = self.provider.state();
        let waiting = state.wait_for(wanted);
        tokio::time::timeout(PATIENCE, waiting).await.unwrap().unwrap().clone()
    }

    async fn until_router(&self) -> PathBuf {
        match self.until(|state| matches!(state.role, Role::Router(_))).await.role {
            Role::Router(path) => path,
            role => unreachable!("{role:?}"),
        }
    }

    async fn until_client(&self) {
        self.until(|state| matches!(state.role, Role::Client(_))).await;
    }

    /// Like a companion that stops.
    async fn stop(self) {
        self.task.abort();
        let _ = self.task.await;
    }
}

fn context(path: &str) -> IdeContext {
    let file = File {
        path: path.to_owned(),
        timestamp: 1,
        is_active: Some(true),
        cursor: None,
        selected_text: None,
        selection_start: None,
    };
    let workspace_state = WorkspaceState {
        open_files: vec![file],
        is_trusted: None,
    };
    IdeContext { workspace_state }
}

fn request(id: &str, root: &str) -> Value {
    json!({
        "type": "request", "requestId": id, "sourceClientId": "codex-tui", "version": 0,
        "method": "ide-context", "params": { "workspaceRoot": root },
    })
}

async fn send(stream: &mut UnixStream, message: &Value) {
    write_frame(stream, &message.to_string()).await.unwrap();
}

/// `None` if the connection was closed.
async fn receive(stream: &mut UnixStream) -> Option<Value> {
    let frame = tokio::time::timeout(PATIENCE, read_frame(stream, 1 << 24))
        .await
        .unwrap();
    let frame = frame.ok().flatten()?;
    Some(serde_json::from_slice(&frame).unwrap())
}

/// What Codex does: one connection for one request.
async fn ask(socket: &Path, root: &str) -> Value {
    let mut codex = UnixStream::connect(socket).await.unwrap();
    send(&mut codex, &request("a3aae61d", root)).await;
    let response = receive(&mut codex).await.unwrap();
    assert_eq!(response["requestId"], "a3aae61d");
    response
}

fn active_file(response: &Value) -> &Value {
    &response["result"]["ideContext"]["activeFile"]["fsPath"]
}

/// Another editor, registered with a router.
async fn register(socket: &Path) -> UnixStream {
    let mut editor = UnixStream::connect(socket).await.unwrap();
    let initialize = json!({
        "type": "request", "requestId": "1", "sourceClientId": "initializing-client", "version": 0,
        "method": "initialize", "params": { "clientType": "vscode" },
    });
    send(&mut editor, &initialize).await;
    let response = receive(&mut editor).await.unwrap();
    assert_eq!(response["resultType"], "success");
    assert!(response["result"]["clientId"].is_string());
    editor
}

async fn answer_discovery(editor: &mut UnixStream) {
    let asked = receive(editor).await.unwrap();
    assert_eq!(asked["type"], "client-discovery-request");
    let answer = json!({
        "type": "client-discovery-response", "requestId": asked["requestId"], "response": { "canHandle": true },
    });
    send(editor, &answer).await;
}

fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path).unwrap().permissions().mode() & 0o777
}

#[tokio::test]
async fn provider_without_a_router_listens_and_answers() {
    let place = Place::new();
    let running = place.start("/project");
    assert_eq!(running.until_router().await, place.socket());
    assert_eq!(mode(&place.socket()), 0o600);
    assert_eq!(mode(place.socket().parent().unwrap()), 0o700);
    assert_eq!(active_file(&ask(&place.socket(), "/project").await), "/project/a.txt");

    running.provider.publish_context(&context("/project/b.txt"));
    assert_eq!(
        active_file(&ask(&place.socket(), "/project/src").await),
        "/project/b.txt"
    );
    running.provider.set_workspace(vec!["/elsewhere".into()]);
    assert_eq!(ask(&place.socket(), "/project").await["error"], "no-client-found");
    running.stop().await;
    assert!(!place.socket().exists());
}

#[tokio::test]
async fn codex_that_registers_first_is_answered_on_the_same_connection() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut codex = register(&place.socket()).await;
    for id in ["2", "3"] {
        send(&mut codex, &request(id, "/project")).await;
        let response = receive(&mut codex).await.unwrap();
        assert_eq!(response["requestId"], id);
        assert_eq!(active_file(&response), "/project/a.txt");
    }
}

#[tokio::test]
async fn foreign_workspace_has_no_client() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let expected = json!({
        "type": "response", "requestId": "a3aae61d", "resultType": "error", "error": "no-client-found",
    });
    assert_eq!(ask(&place.socket(), "/elsewhere").await, expected);
}

/// X3: nothing announces the end of a router.
#[tokio::test]
async fn two_providers_share_a_socket_and_the_second_takes_over() {
    let place = Place::new();
    let first = place.start("/one");
    first.until_router().await;
    let second = place.start("/two");
    second.until_client().await;
    assert_eq!(active_file(&ask(&place.socket(), "/one").await), "/one/a.txt");
    assert_eq!(active_file(&ask(&place.socket(), "/two").await), "/two/a.txt");

    first.stop().await;
    assert_eq!(second.until_router().await, place.socket());
    assert_eq!(active_file(&ask(&place.socket(), "/two").await), "/two/a.txt");
    assert_eq!(ask(&place.socket(), "/one").await["error"], "no-client-found");
}

/// X2: whoever comes first is the router.
#[tokio::test]
async fn many_providers_agree_on_one_router() {
    let place = Place::new();
    let all: Vec<Running> = (0..8).map(|number| place.start(&format!("/{number}"))).collect();
    let mut routers = 0;
    for running in &all {
        let state = running.until(|state| state.role != Role::Searching).await;
        routers += usize::from(matches!(state.role, Role::Router(_)));
    }
    assert_eq!(routers, 1);
    for number in 0..8 {
        let root = format!("/{number}");
        assert_eq!(
            active_file(&ask(&place.socket(), &root).await),
            &json!(format!("{root}/a.txt"))
        );
    }
}

#[tokio::test]
async fn dead_socket_is_replaced() {
    let place = Place::new();
    place.directory(0o700);
    drop(StdListener::bind(place.socket()).unwrap());
    let running = place.start("/project");
    assert_eq!(running.until_router().await, place.socket());
    assert_eq!(active_file(&ask(&place.socket(), "/project").await), "/project/a.txt");
}

/// X4: another program may remove the socket.
#[tokio::test(start_paused = true)]
async fn router_whose_socket_was_removed_listens_again() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    fs::remove_file(place.socket()).unwrap();
    running.until(|state| state.role == Role::Searching).await;
    running.until_router().await;
    assert_eq!(active_file(&ask(&place.socket(), "/project").await), "/project/a.txt");
}

#[tokio::test]
async fn socket_of_a_successor_is_not_removed() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    fs::remove_file(place.socket()).unwrap();
    let _successor = StdListener::bind(place.socket()).unwrap();
    running.stop().await;
    assert!(place.socket().exists());
}

/// X5: Codex trusts only a directory of the user.
#[tokio::test]
async fn directory_that_others_can_write_to_is_not_used() {
    let place = Place::new();
    let directory = place.directory(0o777);
    let running = place.start("/project");
    assert_eq!(running.until_router().await, place.temporary_socket());
    let problem = running.until(|state| state.problem.is_some()).await.problem.unwrap();
    assert!(problem.contains("chmod go-w"), "{problem}");
    assert_eq!(fs::read_dir(directory).unwrap().count(), 0);
}

#[tokio::test]
async fn router_in_a_directory_that_others_can_write_to_is_not_trusted() {
    let place = Place::new();
    place.directory(0o770);
    let planted = UnixListener::bind(place.socket()).unwrap();
    let running = place.start("/project");
    assert_eq!(running.until_router().await, place.temporary_socket());
    assert!(connection_already_there(&planted).await.is_none());
}

/// A connection that is already there.
async fn connection_already_there(listener: &UnixListener) -> Option<UnixStream> {
    let accepted = tokio::time::timeout(Duration::ZERO, listener.accept()).await.ok()?;
    Some(accepted.unwrap().0)
}

#[tokio::test]
async fn other_files_and_links_are_left_alone() {
    for plant in [
        |path: &Path| fs::write(path, "precious").unwrap(),
        |path: &Path| std::os::unix::fs::symlink("/nowhere", path).unwrap(),
    ] {
        let place = Place::new();
        place.directory(0o700);
        plant(&place.socket());
        let running = place.start("/project");
        assert_eq!(running.until_router().await, place.temporary_socket());
        assert!(!fs::symlink_metadata(place.socket()).unwrap().file_type().is_socket());
    }
}

/// X1: a companion creates no directory of Codex itself.
#[tokio::test]
async fn directory_of_codex_is_not_created() {
    let place = Place::new();
    fs::remove_dir(place.0.path().join("home")).unwrap();
    let running = place.start("/project");
    assert_eq!(running.until_router().await, place.temporary_socket());
    assert!(!place.0.path().join("home").exists());
    assert_eq!(running.provider.state().borrow().problem, None);
}

/// As an extension that was there first would do it.
#[tokio::test]
async fn client_registers_and_answers_what_is_forwarded() {
    let place = Place::new();
    let router = place.router();
    let running = place.start("/project");
    let (mut companion, _) = router.accept().await.unwrap();
    let initialize = receive(&mut companion).await.unwrap();
    assert_eq!(initialize["type"], "request");
    assert_eq!(initialize["method"], "initialize");
    assert_eq!(initialize["sourceClientId"], "initializing-client");
    assert_eq!(initialize["params"], json!({ "clientType": "vscode" }));
    let registered = json!({
        "type": "response", "requestId": initialize["requestId"], "resultType": "success", "method": "initialize",
        "handledByClientId": "router", "result": { "clientId": "client-7" },
    });
    send(&mut companion, &json!({ "type": "broadcast", "method": "hello" })).await;
    send(&mut companion, &registered).await;
    running.until_client().await;

    for (root, can_handle) in [("/project", true), ("/elsewhere", false)] {
        let discovery = json!({ "type": "client-discovery-request", "requestId": "d", "request": request("r", root) });
        send(&mut companion, &discovery).await;
        let expected = json!({
            "type": "client-discovery-response", "requestId": "d", "response": { "canHandle": can_handle },
        });
        assert_eq!(receive(&mut companion).await.unwrap(), expected);
    }
    send(&mut companion, &request("r", "/project")).await;
    let response = receive(&mut companion).await.unwrap();
    assert_eq!(response["handledByClientId"], "client-7");
    assert_eq!(active_file(&response), "/project/a.txt");

    drop((companion, router));
    assert_eq!(running.until_router().await, place.socket());
}

#[tokio::test(start_paused = true)]
async fn router_that_does_not_answer_is_tried_again() {
    let place = Place::new();
    let router = place.router();
    let running = place.start("/project");
    let (silent, _) = router.accept().await.unwrap();
    let (mut companion, _) = router.accept().await.unwrap();
    assert_eq!(receive(&mut companion).await.unwrap()["method"], "initialize");
    assert_eq!(running.provider.state().borrow().role, Role::Searching);
    drop(silent);
}

/// X6: the workspace decides who answers.
#[tokio::test]
async fn request_goes_to_the_client_that_can_handle_it() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut editor = register(&place.socket()).await;
    // It never answers.
    let _silent = register(&place.socket()).await;
    let socket = place.socket();
    let editing = async {
        answer_discovery(&mut editor).await;
        let forwarded = receive(&mut editor).await.unwrap();
        assert_eq!(forwarded["params"]["workspaceRoot"], "/elsewhere");
        let response = json!({
            "type": "response", "requestId": forwarded["requestId"], "resultType": "success",
            "result": { "ideContext": { "activeFile": null, "openTabs": [] } },
        });
        send(&mut editor, &response).await;
    };
    let (response, ()) = tokio::join!(ask(&socket, "/elsewhere"), editing);
    assert_eq!(response["result"]["ideContext"]["openTabs"], json!([]));
}

#[tokio::test(start_paused = true)]
async fn client_that_answers_no_discovery_is_passed_over() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let _silent = register(&place.socket()).await;
    assert_eq!(ask(&place.socket(), "/elsewhere").await["error"], "no-client-found");
    assert_eq!(active_file(&ask(&place.socket(), "/project").await), "/project/a.txt");
}

/// X7: Codex waits 5 s, and each error has its own hint.
#[tokio::test(start_paused = true)]
async fn client_that_does_not_respond_is_a_timeout() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut editor = register(&place.socket()).await;
    let socket = place.socket();
    let (response, ()) = tokio::join!(ask(&socket, "/elsewhere"), answer_discovery(&mut editor));
    assert_eq!(response["error"], "request-timeout");
}

#[tokio::test]
async fn client_that_disconnects_is_reported_and_forgotten() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut editor = register(&place.socket()).await;
    let socket = place.socket();
    let leaving = async {
        answer_discovery(&mut editor).await;
        receive(&mut editor).await.unwrap();
        drop(editor);
    };
    let (response, ()) = tokio::join!(ask(&socket, "/elsewhere"), leaving);
    assert_eq!(response["error"], "client-disconnected");
    assert_eq!(ask(&place.socket(), "/elsewhere").await["error"], "no-client-found");
}

#[tokio::test]
async fn newer_version_is_a_mismatch() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut codex = UnixStream::connect(place.socket()).await.unwrap();
    for (method, root) in [("ide-context", "/project"), ("initialize", "")] {
        let mut newer = request("1", root);
        newer["version"] = 1.into();
        newer["method"] = method.into();
        send(&mut codex, &newer).await;
        assert_eq!(receive(&mut codex).await.unwrap()["error"], "request-version-mismatch");
    }
}

/// X8: the socket is not only for the context.
#[tokio::test]
async fn broadcast_reaches_the_other_clients() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut one = register(&place.socket()).await;
    let mut two = register(&place.socket()).await;
    let broadcast = json!({ "type": "broadcast", "method": "thread-archived", "version": 1, "params": {} });
    send(&mut one, &broadcast).await;
    assert_eq!(receive(&mut two).await.unwrap(), broadcast);
    send(&mut one, &request("2", "/project")).await;
    assert_eq!(
        receive(&mut one).await.unwrap()["requestId"],
        "2",
        "not its own broadcast"
    );
}

#[tokio::test]
async fn garbage_closes_its_connection_only() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    for garbage in [
        &b"\xff\xff\xff\xff"[..],
        b"\x01\0\x01\0{}",
        b"\x02\0\0\0[]",
        b"\x02\0\0\0\xff\xfe",
        b"GET / HTTP/1.1\r\n\r\n",
    ] {
        let mut stream = UnixStream::connect(place.socket()).await.unwrap();
        stream.write_all(garbage).await.unwrap();
        assert_eq!(receive(&mut stream).await, None, "{garbage:?}");
    }
    let mut stream = UnixStream::connect(place.socket()).await.unwrap();
    send(&mut stream, &json!({ "type": "unknown", "requestId": "1" })).await;
    assert_eq!(receive(&mut stream).await.unwrap()["error"], "no-handler-for-request");
    assert_eq!(active_file(&ask(&place.socket(), "/project").await), "/project/a.txt");
}

#[tokio::test]
async fn garbage_from_a_router_ends_the_connection() {
    let place = Place::new();
    let router = place.router();
    let _running = place.start("/project");
    let (mut companion, _) = router.accept().await.unwrap();
    receive(&mut companion).await.unwrap();
    companion.write_all(b"\xff\xff\xff\xff").await.unwrap();
    assert_eq!(receive(&mut companion).await, None);
}

#[tokio::test(start_paused = true)]
async fn connection_that_sends_nothing_is_closed() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut idle = UnixStream::connect(place.socket()).await.unwrap();
    assert_eq!(receive(&mut idle).await, None);
}

#[tokio::test(start_paused = true)]
async fn connections_and_clients_are_limited() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut clients = Vec::new();
    for _ in 0..32 {
        clients.push(register(&place.socket()).await);
    }
    let mut one_more = UnixStream::connect(place.socket()).await.unwrap();
    let initialize = json!({ "type": "request", "requestId": "1", "version": 0, "method": "initialize" });
    send(&mut one_more, &initialize).await;
    assert_eq!(receive(&mut one_more).await.unwrap()["error"], "no-handler-for-request");
    // There is still room for Codex.
    assert_eq!(active_file(&ask(&place.socket(), "/project").await), "/project/a.txt");

    let mut idle = Vec::new();
    for _ in 33..64 {
        idle.push(UnixStream::connect(place.socket()).await.unwrap());
    }
    // Accepted in order, so all others are counted.
    let mut refused = UnixStream::connect(place.socket()).await.unwrap();
    assert_eq!(receive(&mut refused).await, None);
}

#[tokio::test(start_paused = true)]
async fn requests_of_a_connection_are_limited() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let _silent = register(&place.socket()).await;
    let mut codex = UnixStream::connect(place.socket()).await.unwrap();
    for number in 0..9 {
        send(&mut codex, &request(&number.to_string(), "/elsewhere")).await;
    }
    let response = receive(&mut codex).await.unwrap();
    assert_eq!(
        (&response["requestId"], &response["error"]),
        (&json!("8"), &json!("request-timeout"))
    );
}

#[tokio::test]
async fn client_that_does_not_read_is_disconnected() {
    let place = Place::new();
    let running = place.start("/project");
    running.until_router().await;
    let mut stuck = register(&place.socket()).await;
    let mut sender = register(&place.socket()).await;
    let broadcast = json!({ "type": "broadcast", "params": "x".repeat(1 << 20) });
    for _ in 0..12 {
        send(&mut sender, &broadcast).await;
    }
    // Everything before it has been handled.
    send(&mut sender, &request("1", "/project")).await;
    assert_eq!(active_file(&receive(&mut sender).await.unwrap()), "/project/a.txt");
    while receive(&mut stuck).await.is_some() {}
}
