//! A daemon that does what a test says: it keeps a ring of events as the real one does, and breaks wherever it is told to.

#![allow(dead_code, unreachable_pub, reason = "each test program uses another part of this")]

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use alongside_agent::daemon::{DaemonAddress, DaemonClient, DaemonSessionClient, EventStream, NewSession, StreamItem};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

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
}

impl Reply {
    pub fn json(status: u16, body: &Value) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "application/json".to_owned())],
            body: body.to_string(),
            held: false,
        }
    }

    pub fn html(status: u16) -> Self {
        Self {
            status,
            headers: vec![("Content-Type", "text/html; charset=utf-8".to_owned())],
            body: "<!DOCTYPE html>\n<html><head><title>Error</title></head><body><pre>Cannot GET /nope</pre></body></html>"
                .to_owned(),
            held: false,
        }
    }

    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    pub fn held(self) -> Self {
        Self { held: true, ..self }
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
    /// The directory that the daemon works in.
    pub workspace: String,
    next_client: u32,
}

pub struct FakeDaemon {
    pub port: u16,
    state: Arc<Mutex<State>>,
    grown: Arc<Notify>,
    requested: Arc<Notify>,
    released: Arc<Notify>,
    /// Nobody listens any more once this is told.
    stopped: tokio::sync::watch::Sender<bool>,
}

impl FakeDaemon {
    pub async fn start() -> Self {
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
            workspace: WORKSPACE.to_owned(),
            next_client: 1,
        };
        let daemon = Self {
            port,
            state: Arc::new(Mutex::new(state)),
            grown: Arc::default(),
            requested: Arc::default(),
            released: Arc::default(),
            stopped: tokio::sync::watch::channel(false).0,
        };
        let server = Server {
            state: Arc::clone(&daemon.state),
            grown: Arc::clone(&daemon.grown),
            requested: Arc::clone(&daemon.requested),
            released: Arc::clone(&daemon.released),
        };
        daemon.listen(listener, server);
        daemon
    }

    fn listen(&self, listener: TcpListener, server: Server) {
        let mut stopped = self.stopped.subscribe();
        tokio::spawn(async move {
            let mut serving = tokio::task::JoinSet::new();
            loop {
                tokio::select! {
                    Ok((stream, _)) = listener.accept() => {
                        let server = server.clone();
                        serving.spawn(async move { server.serve(stream).await });
                    }
                    _ = stopped.wait_for(|stopped| *stopped) => return,
                }
            }
        });
    }

    /// Hangs up, and listens no more.
    pub fn stop(&self) {
        self.stopped.send_replace(true);
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

    /// Starts anew, without the session, as a restarted daemon does.
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

#[derive(Clone)]
struct Server {
    state: Arc<Mutex<State>>,
    grown: Arc<Notify>,
    requested: Arc<Notify>,
    released: Arc<Notify>,
}

impl Server {
    async fn serve(self, mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let mut buffer = Vec::new();
        while let Some(request) = read_request(&mut stream, &mut buffer).await {
            let line = format!("{} {}", request.method, request.path);
            let special = {
                let mut state = self.state.lock();
                state.requests.push(request.clone());
                let found = state.replies.iter().position(|(to, _)| line.contains(to));
                found.map(|index| state.replies.remove(index).1)
            };
            self.requested.notify_waiters();
            let reply = match special {
                Some(reply) => {
                    if reply.held {
                        self.released.notified().await;
                    }
                    reply
                }
                None if request.path.contains("/events") && self.state.lock().live => {
                    self.stream(&mut stream, &request).await;
                    return;
                }
                None => self.usual(&request),
            };
            let mut head = format!(
                "HTTP/1.1 {} X\r\nContent-Length: {}\r\n",
                reply.status,
                reply.body.len()
            );
            for (name, value) in &reply.headers {
                head.push_str(&format!("{name}: {value}\r\n"));
            }
            let answer = format!("{head}\r\n{}", reply.body);
            if stream.write_all(answer.as_bytes()).await.is_err() {
                return;
            }
        }
    }

    fn usual(&self, request: &Request) -> Reply {
        let mut state = self.state.lock();
        let path = request.path.split('?').next().unwrap_or_default();
        let known = |state: &State| json!({"status": "ok", "daemon": {"runId": state.run}});
        let in_session = path.strip_prefix("/session/").and_then(|rest| rest.split_once('/'));
        match (request.method.as_str(), path) {
            ("GET", "/health" | "/daemon/status") => return Reply::json(200, &known(&state)),
            ("GET", "/capabilities") => {
                let body = json!({"v": 1, "features": state.features, "workspaceCwd": state.workspace, "mode": "http-bridge",
                    "workspaces": [{"cwd": state.workspace, "primary": true}, {"cwd": "/second"}], "modelServices": []});
                return Reply::json(200, &body);
            }
            ("GET", "/workspace/preflight") => {
                let cells = json!([{"kind": "auth", "status": "ok", "locality": "acp", "detail": {"hasToken": true}}]);
                return Reply::json(200, &json!({"v": 1, "cells": cells}));
            }
            ("GET", path) if path.starts_with("/workspace/") => {
                return Reply::json(
                    200,
                    &json!({"sessions": [{"sessionId": SESSION, "workspaceCwd": WORKSPACE}]}),
                );
            }
            ("POST", "/session") => {
                state.live = true;
                let client = state.issue_client();
                let body = json!({"sessionId": SESSION, "workspaceCwd": state.workspace, "attached": state.attached,
                    "clientId": client});
                return Reply::json(200, &body);
            }
            _ => {}
        }
        let Some((_, rest)) = in_session else {
            return if request.method == "DELETE" {
                Reply::json(204, &Value::Null)
            } else {
                Reply::html(404)
            };
        };
        if matches!(rest, "load" | "resume") {
            return state.restore(rest == "load");
        }
        if !state.live {
            let body = json!({"error": "No session", "code": "session_not_found", "sessionId": SESSION});
            return Reply::json(404, &body);
        }
        let last = state.first + state.ring.len() as u64 - 1;
        match rest {
            "prompt" => {
                let prompt = format!("prompt-{}", state.requests.len());
                Reply::json(
                    202,
                    &json!({"promptId": prompt, "lastEventId": last, "eventEpoch": state.epoch}),
                )
            }
            "status" => Reply::json(
                200,
                &json!({"sessionId": SESSION, "pendingInteractions": state.pending}),
            ),
            "context" => Reply::json(
                200,
                &json!({"v": 1, "state": {
                    "models": {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A"}, {"modelId": "b", "name": "B"}]},
                    "modes": {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}, {"id": "default", "name": "Default"}]},
                }}),
            ),
            "pending-prompts" => Reply::json(200, &json!({"pendingPrompts": []})),
            "cancel" | "detach" => Reply {
                status: 204,
                headers: Vec::new(),
                body: String::new(),
                held: false,
            },
            _ => Reply::json(200, &json!({})),
        }
    }

    async fn stream(&self, stream: &mut TcpStream, request: &Request) {
        let (cut, raw, head, first) = {
            let mut state = self.state.lock();
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Qwen-Event-Epoch: {}\r\nTransfer-Encoding: \
                 chunked\r\n\r\n",
                state.epoch
            );
            let first = state.first_frames(request);
            (
                state.cuts.pop_front().flatten(),
                state.raw_streams.pop_front(),
                head,
                first,
            )
        };
        let mut wire = Wire { stream, left: cut };
        if wire.stream.write_all(head.as_bytes()).await.is_err() {
            return;
        }
        let is_raw = raw.is_some();
        let (text, mut next) = raw.map_or(first, |raw| (raw, 0));
        if !wire.write(&text).await || is_raw {
            return;
        }
        let epoch = self.state.lock().epoch.clone();
        loop {
            let grown = self.grown.notified();
            let fresh = {
                let state = self.state.lock();
                if state.epoch != epoch || !state.live {
                    return;
                }
                let skip = usize::try_from(next.saturating_sub(state.first)).unwrap();
                state.ring.iter().skip(skip).map(frame).collect::<Vec<_>>()
            };
            for text in fresh {
                next += 1;
                if !wire.write(&text).await {
                    return;
                }
            }
            let mut byte = [0];
            tokio::select! {
                () = grown => {}
                // The client has gone.
                read = wire.stream.read(&mut byte) => if matches!(read, Ok(0) | Err(_)) { return },
            }
        }
    }
}

impl State {
    fn issue_client(&mut self) -> String {
        let client = format!("client_{}", self.next_client);
        self.next_client += 1;
        client
    }

    fn restore(&mut self, with_history: bool) -> Reply {
        self.live = true;
        let last = self.first + self.ring.len() as u64 - 1;
        let client = self.issue_client();
        let mut body = json!({"sessionId": SESSION, "workspaceCwd": self.workspace, "attached": true, "clientId": client, "state": {},
            "lastEventId": last, "eventEpoch": self.epoch});
        if with_history {
            body["compactedReplay"] = json!(self.history);
            body["liveJournal"] = json!([]);
        }
        Reply::json(200, &body)
    }

    /// What a connection begins with, and the id of the event that comes next.
    fn first_frames(&self, request: &Request) -> (String, u64) {
        let mut text = "retry: 3000\n\n".to_owned();
        let next = self.first + self.ring.len() as u64;
        let Some(cursor) = request.header("last-event-id").and_then(|id| id.parse::<u64>().ok()) else {
            return (text, next);
        };
        let epoch = request.header("x-qwen-event-epoch");
        let reason = if epoch.is_some_and(|epoch| epoch != self.epoch) || cursor >= next {
            Some("epoch_reset")
        } else if cursor + 1 < self.first {
            Some("ring_evicted")
        } else {
            None
        };
        if let Some(reason) = reason {
            let data = json!({"reason": reason, "lastDeliveredId": cursor, "earliestAvailableId": self.first});
            text.push_str(&frame(&json!({"v": 1, "type": "state_resync_required", "data": data})));
        }
        let from = if reason.is_some() { self.first } else { cursor + 1 };
        let skip = usize::try_from(from - self.first).unwrap();
        let missed: Vec<String> = self.ring.iter().skip(skip).map(frame).collect();
        text.push_str(&missed.concat());
        let data = json!({"replayedCount": missed.len(), "lastEventId": next - 1});
        text.push_str(&frame(&json!({"v": 1, "type": "replay_complete", "data": data})));
        (text, next)
    }
}

/// An event as it goes over the wire.
pub fn frame(envelope: &Value) -> String {
    let id = envelope.get("id").map(|id| format!("id: {id}\n")).unwrap_or_default();
    let name = envelope["type"].as_str().unwrap_or_default();
    format!("{id}event: {name}\ndata: {envelope}\n\n")
}

/// A connection that is cut after so many bytes.
struct Wire<'a> {
    stream: &'a mut TcpStream,
    left: Option<usize>,
}

impl Wire<'_> {
    /// `false` if the connection is at its end.
    async fn write(&mut self, text: &str) -> bool {
        let mut bytes = text.as_bytes();
        let cut = self.left.is_some_and(|left| left <= bytes.len());
        if let Some(left) = &mut self.left {
            bytes = &bytes[..bytes.len().min(*left)];
            *left -= bytes.len();
        }
        if !bytes.is_empty() {
            let head = format!("{:x}\r\n", bytes.len());
            let chunk = [head.as_bytes(), bytes, b"\r\n"].concat();
            if self.stream.write_all(&chunk).await.is_err() {
                return false;
            }
        }
        !cut
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<Request> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let mut lines = head.lines();
            let mut words = lines.next()?.split(' ');
            let (method, path) = (words.next()?.to_owned(), words.next()?.to_owned());
            let headers: Vec<(String, String)> = lines
                .filter_map(|line| line.split_once(": "))
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect();
            let length = headers
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case("content-length"));
            let length: usize = length.and_then(|(_, value)| value.parse().ok()).unwrap_or_default();
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or_default();
                buffer.drain(..end + 4 + length);
                return Some(Request {
                    method,
                    path,
                    headers,
                    body,
                });
            }
        }
        let read = stream.read_buf(buffer).await.ok()?;
        if read == 0 {
            return None;
        }
    }
}
