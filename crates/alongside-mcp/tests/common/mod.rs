//! Shared by the tests: a companion that records its calls, and handwritten HTTP.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::collections::HashMap;
use std::future::Future;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alongside_core::Secret;
use alongside_core::context::IdeContext;
use alongside_core::diagnostics::FileDiagnostics;
use alongside_core::dialect::ClientInfo;
use alongside_core::{Decision, DeliveryId, SessionEnd, SessionKey};
use alongside_mcp::client::Client;
use alongside_mcp::{AgentHub, Companion, Config, DiffOutcome, Outgoing, Server};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, mpsc, oneshot};

/// Waits for something that should happen immediately.
pub(crate) async fn soon<T>(work: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(20), work)
        .await
        .expect("timed out")
}

/// A call that the companion received.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    Started(String, Option<ClientInfo>),
    Opened(String),
    Closed(String),
    Settled(String, Vec<u64>),
    Ended(String, SessionEnd),
    OpenDiff(String, String, String),
    CloseDiff(String, String),
    /// The agent no longer waits for the decision about this file.
    Withdrawn(String),
}

/// A companion that records its calls and responds as the test requires.
pub(crate) struct TestCompanion {
    calls: mpsc::UnboundedSender<Received>,
    pub(crate) known: Mutex<HashMap<String, ClientInfo>>,
    pub(crate) final_texts: Mutex<HashMap<String, String>>,
    pub(crate) refusal: Mutex<Option<String>>,
    pub(crate) hangs: Mutex<bool>,
    pub(crate) diagnostics: Mutex<Vec<FileDiagnostics>>,
    /// By file.
    undecided: Mutex<HashMap<String, oneshot::Sender<DiffOutcome>>>,
    /// Sessions start while this has a permit.
    pub(crate) gate: Arc<Semaphore>,
    agents: OnceLock<AgentHub>,
}

impl TestCompanion {
    fn record(&self, call: Received) {
        let _ = self.calls.send(call);
    }
}

impl TestCompanion {
    pub(crate) fn decide(&self, file_path: &str, outcome: DiffOutcome) {
        let undecided = self.undecided.lock().remove(file_path);
        let _ = undecided.expect("no call waits").send(outcome);
    }

    /// Waits until the test decides.
    async fn decision(&self, file_path: &str) -> DiffOutcome {
        struct Withdrawal<'a>(&'a TestCompanion, Option<String>);

        impl Drop for Withdrawal<'_> {
            fn drop(&mut self) {
                if let Some(path) = self.1.take() {
                    self.0.record(Received::Withdrawn(path));
                }
            }
        }

        let (sender, receiver) = oneshot::channel();
        self.undecided.lock().insert(file_path.to_owned(), sender);
        let mut withdrawal = Withdrawal(self, Some(file_path.to_owned()));
        let outcome = receiver.await.unwrap();
        withdrawal.1 = None;
        outcome
    }
}

impl Companion for TestCompanion {
    async fn session_started(&self, session: &SessionKey, client: Option<&ClientInfo>) {
        self.record(Received::Started(session.to_string(), client.cloned()));
        let _open = self.gate.acquire().await;
    }

    fn known_client(&self, session: &SessionKey) -> Option<ClientInfo> {
        self.known.lock().get(session.id().as_str()).cloned()
    }

    fn stream_opened(&self, session: &SessionKey) {
        self.record(Received::Opened(session.to_string()));
    }

    fn stream_closed(&self, session: &SessionKey) {
        self.record(Received::Closed(session.to_string()));
    }

    fn settled(&self, session: &SessionKey, deliveries: &[DeliveryId]) {
        let numbers = deliveries.iter().map(|delivery| delivery.0).collect();
        self.record(Received::Settled(session.to_string(), numbers));
    }

    fn session_ended(&self, session: &SessionKey, end: &SessionEnd) {
        self.record(Received::Ended(session.to_string(), end.clone()));
    }

    async fn open_diff(
        &self,
        session: &SessionKey,
        file_path: Arc<str>,
        new_content: Arc<str>,
    ) -> Result<DiffOutcome, String> {
        self.record(Received::OpenDiff(
            session.to_string(),
            file_path.to_string(),
            new_content.to_string(),
        ));
        if *self.hangs.lock() {
            std::future::pending::<()>().await;
        }
        if let Some(refusal) = self.refusal.lock().clone() {
            return Err(refusal);
        }
        if session.is_waiting() {
            return Ok(self.decision(&file_path).await);
        }
        if let Some(agents) = self.agents.get() {
            agents.supersede(session, &file_path);
        }
        Ok(DiffOutcome::Opened)
    }

    fn diagnostics(&self, _: Option<&Path>) -> Vec<FileDiagnostics> {
        self.diagnostics.lock().clone()
    }

    async fn close_diff(&self, session: &SessionKey, file_path: &str) -> Result<Option<Arc<str>>, String> {
        self.record(Received::CloseDiff(session.to_string(), file_path.to_owned()));
        Ok(self.final_texts.lock().remove(file_path).map(Arc::from))
    }
}

/// A port with its companion.
pub(crate) struct Setup {
    pub(crate) server: Server,
    pub(crate) companion: Arc<TestCompanion>,
    calls: mpsc::UnboundedReceiver<Received>,
}

pub(crate) fn token() -> Secret {
    Secret::from_bytes([0xa5; 32])
}

pub(crate) fn trusted(is_trusted: bool) -> IdeContext {
    let mut context = IdeContext::default();
    context.workspace_state.is_trusted = Some(is_trusted);
    context
}

pub(crate) fn gemini() -> ClientInfo {
    ClientInfo {
        name: "streamable-http-client".to_owned(),
        version: "0.56.0".to_owned(),
    }
}

pub(crate) fn inspector() -> ClientInfo {
    ClientInfo {
        name: "inspector".to_owned(),
        version: "2".to_owned(),
    }
}

pub(crate) fn rejected(file_path: &str) -> Decision {
    Decision::rejected(file_path)
}

pub(crate) fn accepted(file_path: &str, content: &str) -> Decision {
    Decision::Accepted {
        path: file_path.into(),
        content: content.into(),
    }
}

/// A decision that its session confirms.
pub(crate) fn numbered(number: u64, decision: Decision) -> Outgoing {
    Outgoing {
        delivery: Some(DeliveryId(number)),
        ..decision.into()
    }
}

impl Setup {
    pub(crate) async fn start() -> Self {
        Self::with(|_| {}).await
    }

    /// Starts with a modified configuration.
    pub(crate) async fn with(change: impl FnOnce(&mut Config)) -> Self {
        let (sender, calls) = mpsc::unbounded_channel();
        let companion = Arc::new(TestCompanion {
            calls: sender,
            known: Mutex::default(),
            final_texts: Mutex::default(),
            refusal: Mutex::default(),
            hangs: Mutex::default(),
            diagnostics: Mutex::default(),
            undecided: Mutex::default(),
            gate: Arc::new(Semaphore::new(1)),
            agents: OnceLock::new(),
        });
        let mut config = Config::new(token());
        // Not repeated, unless a test sets it.
        config.timing.context_repeat = Duration::from_mins(10);
        change(&mut config);
        let server = Server::bind(config, companion.clone()).await.unwrap();
        let _ = companion.agents.set(server.agents());
        Self {
            server,
            companion,
            calls,
        }
    }

    pub(crate) fn port(&self) -> u16 {
        self.server.port()
    }

    /// The next call.
    pub(crate) async fn next_call(&mut self) -> Received {
        soon(self.calls.recv()).await.unwrap()
    }

    pub(crate) fn has_no_more_calls(&mut self) -> bool {
        self.calls.try_recv().is_err()
    }

    /// Waits for a matching call and skips others.
    pub(crate) async fn call_eventually(&mut self, wanted: impl Fn(&Received) -> bool) -> Received {
        loop {
            let received = self.next_call().await;
            if wanted(&received) {
                return received;
            }
        }
    }

    pub(crate) fn stranger(&self) -> Client {
        Client::new("127.0.0.1", self.port(), token().reveal()).unwrap()
    }

    /// A client that is initialized as Gemini CLI.
    pub(crate) async fn client(&self) -> Client {
        self.client_named(&gemini()).await
    }

    pub(crate) async fn client_named(&self, who: &ClientInfo) -> Client {
        let client = self.stranger();
        soon(client.initialize(who)).await.unwrap();
        client
    }

    pub(crate) fn session(client: &Client) -> SessionKey {
        SessionKey::from(client.session_id().unwrap().as_str())
    }
}

/// A handwritten request.
#[derive(Clone)]
pub(crate) struct Call {
    method: String,
    target: String,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
}

#[derive(Debug)]
pub(crate) struct Response {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Call {
    pub(crate) fn new(method: &str, port: u16) -> Self {
        Self {
            method: method.to_owned(),
            target: "/mcp".to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
        .header("host", &format!("127.0.0.1:{port}"))
        .header("authorization", &format!("Bearer {}", token().reveal()))
    }

    pub(crate) fn post(port: u16, body: impl Into<Vec<u8>>) -> Self {
        let body = body.into();
        let length = body.len();
        Self {
            body,
            ..Self::new("POST", port)
        }
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .header("content-length", &length.to_string())
    }

    pub(crate) fn get(port: u16, session: &str) -> Self {
        Self::new("GET", port)
            .header("accept", "text/event-stream")
            .header("mcp-session-id", session)
    }

    pub(crate) fn header(self, name: &str, value: &str) -> Self {
        let mut call = self.without(name);
        call.headers.push((name.to_owned(), value.to_owned()));
        call
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(existing, _)| existing != name);
        self
    }

    pub(crate) fn target(mut self, target: &str) -> Self {
        target.clone_into(&mut self.target);
        self
    }

    pub(crate) fn bytes(&self) -> Vec<u8> {
        use std::fmt::Write;

        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.target);
        for (name, value) in &self.headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        [head.as_bytes(), &self.body].concat()
    }

    pub(crate) async fn open(&self, port: u16) -> TcpStream {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        stream.write_all(&self.bytes()).await.unwrap();
        stream
    }

    pub(crate) async fn send(&self, port: u16) -> Response {
        soon(async { read_response(&mut self.open(port).await).await }).await
    }
}

impl Response {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let found = self
            .headers
            .iter()
            .find(|(existing, _)| existing.eq_ignore_ascii_case(name));
        found.map(|(_, value)| value.as_str())
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap()
    }

    /// The code of the JSON-RPC error.
    pub(crate) fn code(&self) -> i64 {
        self.json()["error"]["code"].as_i64().unwrap()
    }
}

/// Reads a head and the body that it announces; for a stream, only the head.
pub(crate) async fn read_response(stream: &mut TcpStream) -> Response {
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        bytes.push(stream.read_u8().await.expect("the response was truncated"));
    }
    let head = String::from_utf8(bytes).unwrap();
    let mut lines = head.lines();
    let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
    let headers = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let mut response = Response {
        status,
        headers,
        body: String::new(),
    };
    if let Some(length) = response.header("content-length") {
        let mut body = vec![0; length.parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        response.body = String::from_utf8(body).unwrap();
    }
    response
}

pub(crate) async fn read_until(stream: &mut TcpStream, text: &str) -> String {
    let mut seen = String::new();
    while !seen.contains(text) {
        let mut piece = [0; 4096];
        let length = stream.read(&mut piece).await.unwrap();
        assert_ne!(length, 0, "{text:?} never came, only {seen:?}");
        seen.push_str(&String::from_utf8_lossy(&piece[..length]));
    }
    seen
}

/// An `initialize` request.
pub(crate) fn initialize(version: &str) -> String {
    let client = json!({"name": "streamable-http-client", "version": "0.56.0"});
    json!({
        "jsonrpc": "2.0", "id": 0, "method": "initialize",
        "params": {"protocolVersion": version, "capabilities": {}, "clientInfo": client},
    })
    .to_string()
}

pub(crate) fn request(method: &str, params: &Value) -> String {
    json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}).to_string()
}

/// Starts a session with handwritten HTTP.
pub(crate) async fn start_session(port: u16) -> String {
    let response = Call::post(port, initialize("2025-06-18")).send(port).await;
    response.header("mcp-session-id").unwrap().to_owned()
}

pub(crate) fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}
