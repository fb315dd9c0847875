//! A fake `qwen serve`: it keeps a ring of events like the real one, and fails wherever a test wants it to.
//!
//! By default it leaves prompts to the test, which [publishes](FakeDaemon::publish) the events. With a [`Talk`] it answers them.

mod server;
mod talk;
mod wire;

use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;

pub use talk::Talk;
pub use wire::frame;

/// The only session.
pub const SESSION: &str = "a0073508-30e8-415a-8434-5c157b34cb71";
/// The first client ID.
pub const CLIENT: &str = "client_1";
/// The workspace of [`FakeDaemon::start`].
pub const WORKSPACE: &str = "/project";

const FEATURES: [&str; 18] = [
    "session_create",
    "session_prompt",
    "non_blocking_prompt",
    "session_events",
    "typed_event_schema",
    "client_identity",
    "session_cancel",
    "session_set_model",
    "session_permission_vote",
    "session_load",
    "session_resume",
    "session_list",
    "session_status",
    "session_context",
    "session_close",
    "session_approval_mode_control",
    "client_heartbeat",
    "session_metadata",
];

/// A request that the daemon received.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    pub headers: Vec<(String, String)>,
    pub body: Value,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut headers = self.headers.iter();
        headers
            .find(|(own, _)| own.eq_ignore_ascii_case(name))
            .map(|(_, value)| value.as_str())
    }
}

#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// The response waits for [`FakeDaemon::release`].
    pub held: bool,
    /// The request is carried out, and the connection closed in place of a response.
    pub lost: bool,
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "application/json".to_owned())],
            body: body.to_string(),
            held: false,
            lost: false,
        }
    }

    pub fn html(status: u16) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "text/html; charset=utf-8".to_owned())],
            body: "<!DOCTYPE html>\n<html><head><title>Error</title></head><body><pre>Cannot GET /nope</pre></body></html>"
                .to_owned(),
            held: false,
            lost: false,
        }
    }

    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    #[must_use]
    pub fn held(self) -> Self {
        Self { held: true, ..self }
    }

    /// The request is carried out, and the connection closed in place of a response.
    pub fn lost() -> Self {
        let reply = Self::json(202, &Value::Null);
        Self { lost: true, ..reply }
    }
}

/// Everything a test can look at or change.
pub struct State {
    pub workspace: String,
    pub epoch: String,
    pub run: String,
    /// The ID of the first event in the ring is `first`.
    pub ring: Vec<Value>,
    pub first: u64,
    /// The number of event bytes after which each connection is cut, in the order of the connections.
    pub cuts: VecDeque<Option<usize>>,
    /// What the next connection sends instead of the ring, before it is cut.
    pub raw_streams: VecDeque<String>,
    /// Responses to the next requests whose `METHOD path` contains the text, before the usual ones.
    pub replies: Vec<(String, Reply)>,
    pub requests: Vec<Request>,
    /// Whether the session is live, not only stored.
    pub live: bool,
    /// Whether creating a session attaches to an existing one.
    pub attached: bool,
    /// The stored turns, as events without IDs.
    pub history: Vec<Value>,
    pub pending: Vec<Value>,
    pub features: Vec<String>,
    /// Whether a client keeps its ID when it loads the session again.
    pub keeps_clients: bool,
    next_client: u32,
    /// The client IDs since the last [`FakeDaemon::kill`].
    clients: Vec<String>,
    talk: Option<Talk>,
    /// The IDs and texts of the prompts that wait.
    queue: VecDeque<(String, String)>,
    /// The prompt that is being answered.
    running: Option<String>,
}

impl State {
    fn new(workspace: &str) -> Self {
        Self {
            workspace: workspace.to_owned(),
            epoch: "epoch-1".to_owned(),
            run: "run-1".to_owned(),
            ring: Vec::new(),
            first: 1,
            cuts: VecDeque::new(),
            raw_streams: VecDeque::new(),
            replies: Vec::new(),
            requests: Vec::new(),
            live: true,
            attached: false,
            history: Vec::new(),
            pending: Vec::new(),
            features: FEATURES.map(str::to_owned).to_vec(),
            keeps_clients: false,
            next_client: 1,
            clients: Vec::new(),
            talk: None,
            queue: VecDeque::new(),
            running: None,
        }
    }

    fn next_event(&self) -> u64 {
        self.first + self.ring.len() as u64
    }

    /// Adds an event to the ring, and returns its ID.
    fn push(&mut self, mut envelope: Value) -> u64 {
        let id = self.next_event();
        envelope["id"] = json!(id);
        self.ring.push(envelope);
        id
    }

    fn restart(&mut self, live: bool) {
        self.epoch.push('\'');
        self.run.push('\'');
        self.ring.clear();
        self.first = 1;
        self.live = live;
    }
}

struct Shared {
    state: Mutex<State>,
    grown: Notify,
    requested: Notify,
    released: Notify,
    prompted: Notify,
}

/// The daemon. Dropping it kills it.
pub struct FakeDaemon {
    pub port: u16,
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
    tasks: JoinSet<()>,
}

impl FakeDaemon {
    /// A daemon that leaves prompts to the test.
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// [`Self::start`], with TLS if there is an acceptor.
    pub async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        Self::start_as(State::new(WORKSPACE), tls).await
    }

    /// A daemon for a workspace that answers prompts. No session is live.
    pub async fn start_talking(workspace: &Path, talk: Talk) -> Self {
        let mut state = State::new(workspace.to_str().unwrap());
        state.live = false;
        state.keeps_clients = true;
        state.talk = Some(talk);
        Self::start_as(state, None).await
    }

    async fn start_as(state: State, tls: Option<TlsAcceptor>) -> Self {
        let shared = Shared {
            state: Mutex::new(state),
            grown: Notify::new(),
            requested: Notify::new(),
            released: Notify::new(),
            prompted: Notify::new(),
        };
        let mut daemon = Self {
            port: 0,
            shared: Arc::new(shared),
            tls,
            tasks: JoinSet::new(),
        };
        daemon.listen().await;
        daemon
    }

    /// While it was down, a connection of another program may have used the port; that is over soon, and nothing reports it.
    async fn bind(&self) -> TcpListener {
        for _ in 0..100 {
            match TcpListener::bind(("127.0.0.1", self.port)).await {
                Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                }
                bound => return bound.unwrap(),
            }
        }
        panic!("port {} stays in use", self.port)
    }

    /// On the port of the last time, if there was one.
    async fn listen(&mut self) {
        let listener = self.bind().await;
        self.port = listener.local_addr().unwrap().port();
        let (shared, tls) = (Arc::clone(&self.shared), self.tls.clone());
        self.tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let shared = Arc::clone(&shared);
                let tls = tls.clone();
                connections.spawn(async move {
                    match tls {
                        // A client that does not trust the certificate closes the connection.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                shared.serve(stream).await;
                            }
                        }
                        None => shared.serve(stream).await,
                    }
                });
            }
        });
        let talk = self.shared.state.lock().talk;
        if let Some(talk) = talk {
            self.tasks.spawn(talk.run(Arc::clone(&self.shared)));
        }
    }

    /// Ends it like SIGKILL: only the history survives.
    pub async fn kill(&mut self) {
        self.tasks.shutdown().await;
        let mut state = self.shared.state.lock();
        state.restart(false);
        state.attached = false;
        state.clients.clear();
        state.queue.clear();
        state.running = None;
    }

    /// Starts a killed daemon again, on the same port.
    pub async fn revive(&mut self) {
        self.listen().await;
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.shared.state.lock());
        self.shared.grown.notify_waiters();
        result
    }

    /// Sets the response to the next request whose `METHOD path` contains the text.
    pub fn reply(&self, to: &str, reply: Reply) {
        self.with(|state| state.replies.push((to.to_owned(), reply)));
    }

    /// Sends a held response.
    pub fn release(&self) {
        self.shared.released.notify_one();
    }

    /// Adds an event, and returns its ID.
    pub fn publish(&self, name: &str, data: &Value) -> u64 {
        self.publish_envelope(json!({"v": 1, "type": name, "data": data}))
    }

    /// Adds a complete event except for its ID.
    pub fn publish_envelope(&self, envelope: Value) -> u64 {
        self.with(|state| state.push(envelope))
    }

    /// Adds a chunk of an answer.
    pub fn say(&self, text: &str) -> u64 {
        self.publish("session_update", &chunk("agent_message_chunk", text))
    }

    /// Restarts without closing its port. Unless `live`, the session is only stored afterwards.
    pub fn restart(&self, live: bool) {
        self.with(|state| state.restart(live));
    }

    pub fn requests(&self, to: &str) -> Vec<Request> {
        let matches = |request: &&Request| format!("{} {}", request.method, request.path).contains(to);
        self.shared
            .state
            .lock()
            .requests
            .iter()
            .filter(matches)
            .cloned()
            .collect()
    }

    pub async fn wait_for_request(&self, to: &str) -> Request {
        self.wait_for_requests(to, 1).await.remove(0)
    }

    pub async fn wait_for_requests(&self, to: &str, count: usize) -> Vec<Request> {
        let wait = async {
            loop {
                let requested = self.shared.requested.notified();
                let requests = self.requests(to);
                if requests.len() >= count {
                    return requests;
                }
                requested.await;
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait)
            .await
            .unwrap_or_else(|_| panic!("no request {to}"))
    }
}

/// The data of a message chunk.
pub fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionId": SESSION, "update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}})
}
