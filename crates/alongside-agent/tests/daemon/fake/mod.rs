//! A daemon that does what a test says: it keeps a ring of events as the real one does, and breaks wherever it is told to.

#![allow(unreachable_pub, reason = "it is a module of a test program")]

mod server;
mod wire;

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use alongside_agent::daemon::{DaemonAddress, DaemonClient, DaemonSessionClient, EventStream, NewSession, StreamItem};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::Notify;
use tokio_rustls::TlsAcceptor;

use server::Server;
pub use wire::frame;

pub const SESSION: &str = "a0073508-30e8-415a-8434-5c157b34cb71";
pub const CLIENT: &str = "client_1";
pub const WORKSPACE: &str = "/project";

/// A request that the daemon got.
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

/// What the daemon answers.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: String,
    /// The answer waits for [`FakeDaemon::release`].
    pub held: bool,
    /// The connection is closed in place of an answer.
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

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn held(self) -> Self {
        Self { held: true, ..self }
    }

    /// No answer: the connection is closed.
    pub fn lost() -> Self {
        let reply = Self::json(202, &Value::Null);
        Self { lost: true, ..reply }
    }
}

/// How the daemon is.
pub struct State {
    pub epoch: String,
    pub run: String,
    /// What the events are; the id of the first one is `first`.
    pub ring: Vec<Value>,
    pub first: u64,
    /// After how many bytes of its events each connection is cut, in the order of the connections.
    pub cuts: VecDeque<Option<usize>>,
    /// What the next connection sends in place of the ring, before it is cut.
    pub raw_streams: VecDeque<String>,
    /// Answers to the next requests whose `METHOD path` contains the text, before the usual ones.
    pub replies: Vec<(String, Reply)>,
    pub requests: Vec<Request>,
    /// Whether the session is live.
    pub live: bool,
    pub attached: bool,
    pub history: Vec<Value>,
    pub pending: Vec<Value>,
    pub features: Vec<String>,
    /// Whether the daemon has not been restarted since it gave out the ids that it is shown.
    pub keeps_clients: bool,
    next_client: u32,
}

pub struct FakeDaemon {
    pub port: u16,
    state: Arc<Mutex<State>>,
    grown: Arc<Notify>,
    requested: Arc<Notify>,
    released: Arc<Notify>,
}

impl FakeDaemon {
    pub async fn start() -> Self {
        Self::start_with(None).await
    }

    /// A daemon that speaks TLS, if it can.
    pub async fn start_with(tls: Option<TlsAcceptor>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let features = [
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
        let state = State {
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
            features: features.map(str::to_owned).to_vec(),
            keeps_clients: false,
            next_client: 1,
        };
        let daemon = Self {
            port,
            state: Arc::new(Mutex::new(state)),
            grown: Arc::default(),
            requested: Arc::default(),
            released: Arc::default(),
        };
        let server = Server {
            state: Arc::clone(&daemon.state),
            grown: Arc::clone(&daemon.grown),
            requested: Arc::clone(&daemon.requested),
            released: Arc::clone(&daemon.released),
        };
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                let server = server.clone();
                let tls = tls.clone();
                tokio::spawn(async move {
                    match tls {
                        // A client that does not trust us goes away.
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                server.serve(stream).await;
                            }
                        }
                        None => server.serve(stream).await,
                    }
                });
            }
        });
        daemon
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    pub fn client(&self) -> DaemonClient {
        DaemonClient::new(DaemonAddress::parse(&self.url()).unwrap(), None).unwrap()
    }

    pub async fn session(&self) -> DaemonSessionClient {
        DaemonSessionClient::create_or_attach(&self.client(), &NewSession::default())
            .await
            .unwrap()
    }

    /// Looks at or changes how the daemon is.
    pub fn with<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let result = change(&mut self.state.lock());
        self.grown.notify_waiters();
        result
    }

    /// Answers the next request whose `METHOD path` contains the text.
    pub fn reply(&self, to: &str, reply: Reply) {
        self.with(|state| state.replies.push((to.to_owned(), reply)));
    }

    /// Lets an answer go that was held.
    pub fn release(&self) {
        self.released.notify_one();
    }

    /// Adds an event, and gives its id.
    pub fn publish(&self, name: &str, data: &Value) -> u64 {
        self.publish_envelope(json!({"v": 1, "type": name, "data": data}))
    }

    /// Adds an event with everything around it but its id.
    pub fn publish_envelope(&self, mut envelope: Value) -> u64 {
        self.with(|state| {
            let id = state.first + state.ring.len() as u64;
            envelope["id"] = json!(id);
            state.ring.push(envelope);
            id
        })
    }

    /// Adds a piece of an answer.
    pub fn say(&self, text: &str) -> u64 {
        self.publish("session_update", &chunk("agent_message_chunk", text))
    }

    /// Restarts. Without `live`, the session is only stored then.
    pub fn restart(&self, live: bool) {
        self.with(|state| {
            state.epoch = format!("{}'", state.epoch);
            state.run = format!("{}'", state.run);
            state.ring.clear();
            state.first = 1;
            state.live = live;
        });
    }

    pub fn requests(&self, to: &str) -> Vec<Request> {
        let matches = |request: &&Request| format!("{} {}", request.method, request.path).contains(to);
        self.state.lock().requests.iter().filter(matches).cloned().collect()
    }

    /// Waits for a request.
    pub async fn wait_for_request(&self, to: &str) -> Request {
        self.wait_for_requests(to, 1).await.remove(0)
    }

    pub async fn wait_for_requests(&self, to: &str, count: usize) -> Vec<Request> {
        let wait = async {
            loop {
                let requested = self.requested.notified();
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

/// The data of a piece of a message.
pub fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionId": SESSION, "update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}})
}

/// Reads from a stream until an event satisfies the test; fails after ten seconds.
pub async fn read_until(stream: &mut EventStream, mut enough: impl FnMut(&StreamItem) -> bool) -> Vec<StreamItem> {
    let mut items = Vec::new();
    let read = async {
        while let Some(item) = stream.next().await {
            let item = item.unwrap();
            let done = enough(&item);
            items.push(item);
            if done {
                return;
            }
        }
    };
    let finished = tokio::time::timeout(Duration::from_secs(10), read).await;
    assert!(finished.is_ok(), "only {items:#?}");
    items
}

/// The ids of the events among the items.
pub fn ids(items: &[StreamItem]) -> Vec<u64> {
    let id = |item: &StreamItem| match item {
        StreamItem::Event(event) => event.id,
        _ => None,
    };
    items.iter().filter_map(id).collect()
}
