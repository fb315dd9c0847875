//! A daemon that talks: it answers every prompt with counted words, keeps a ring of events and a record of its turns, and can be killed
//! at any moment and started again.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use tokio::task::JoinSet;

const SESSION: &str = "a0073508-30e8-415a-8434-5c157b34cb71";

/// What of a daemon is gone when it is killed, and what is on its disk.
#[derive(Default)]
struct State {
    workspace: String,
    life: u64,
    live: bool,
    ring: Vec<Value>,
    /// The turns that were recorded, as events without ids.
    record: Vec<Value>,
    queue: Vec<(String, String)>,
    running: Option<String>,
    clients: u64,
}

struct Inner {
    state: Mutex<State>,
    grown: Notify,
    prompted: Notify,
    pause: Duration,
    prompts: AtomicU64,
    /// The next prompt is accepted, and its connection closed without a response.
    drops_response: AtomicBool,
}

/// The daemon.
pub(crate) struct TalkingDaemon {
    pub(crate) port: u16,
    inner: Arc<Inner>,
    tasks: Option<JoinSet<()>>,
}

impl TalkingDaemon {
    /// A daemon that works in a directory and pauses so long between words.
    pub(crate) async fn start(workspace: &std::path::Path, pause: Duration) -> Self {
        let state = State {
            workspace: workspace.to_str().unwrap().to_owned(),
            ..State::default()
        };
        let inner = Arc::new(Inner {
            state: Mutex::new(state),
            grown: Notify::new(),
            prompted: Notify::new(),
            pause,
            prompts: AtomicU64::new(0),
            drops_response: AtomicBool::new(false),
        });
        let mut daemon = Self {
            port: 0,
            inner,
            tasks: None,
        };
        daemon.revive().await;
        daemon
    }

    pub(crate) fn url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port)
    }

    /// Accepts the next prompt, and closes its connection without a response.
    pub(crate) fn drop_next_response(&self) {
        self.inner.drops_response.store(true, Ordering::Relaxed);
    }

    /// How many prompts were received.
    pub(crate) fn prompts(&self) -> u64 {
        self.inner.prompts.load(Ordering::Relaxed)
    }

    /// Ends it as SIGKILL does: in the middle of whatever it does.
    pub(crate) async fn kill(&mut self) {
        if let Some(mut tasks) = self.tasks.take() {
            tasks.shutdown().await;
        }
        let mut state = self.inner.state.lock();
        state.live = false;
        state.ring.clear();
        state.queue.clear();
        state.running = None;
    }

    /// Starts it again, where it was.
    pub(crate) async fn revive(&mut self) {
        let listener = TcpListener::bind(("127.0.0.1", self.port)).await.unwrap();
        self.port = listener.local_addr().unwrap().port();
        self.inner.state.lock().life += 1;
        let mut tasks = JoinSet::new();
        let inner = Arc::clone(&self.inner);
        tasks.spawn(async move {
            let mut serving = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                stream.set_nodelay(true).unwrap();
                serving.spawn(serve(Arc::clone(&inner), stream));
            }
        });
        tasks.spawn(talk(Arc::clone(&self.inner)));
        self.tasks = Some(tasks);
    }
}

/// The words of an answer to a prompt that asks for so many: `answer 7 30` is word 0 to 29 of turn 7.
pub(crate) fn words(prompt: &str) -> Vec<String> {
    let mut parts = prompt.split(' ').skip(1);
    let turn = parts.next().unwrap_or("0").to_owned();
    let count: usize = parts.next().and_then(|count| count.parse().ok()).unwrap_or(3);
    (0..count).map(|number| format!("t{turn}w{number} ")).collect()
}

/// Answers prompts, one after the other.
async fn talk(inner: Arc<Inner>) {
    loop {
        let prompted = inner.prompted.notified();
        let next = {
            let mut state = inner.state.lock();
            let next = (!state.queue.is_empty()).then(|| state.queue.remove(0));
            state.running = next.as_ref().map(|(id, _)| id.clone());
            next
        };
        let Some((id, text)) = next else {
            prompted.await;
            continue;
        };
        for word in words(&text) {
            inner.publish(&id, "session_update", &chunk("agent_message_chunk", &word));
            tokio::time::sleep(inner.pause).await;
        }
        inner.publish(
            &id,
            "turn_complete",
            &json!({"sessionId": SESSION, "stopReason": "end_turn"}),
        );
        let answer: String = words(&text).concat();
        let mut state = inner.state.lock();
        state.record.push(recorded(&chunk("agent_message_chunk", &answer)));
    }
}

fn chunk(kind: &str, text: &str) -> Value {
    json!({"sessionId": SESSION, "update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}})
}

fn recorded(data: &Value) -> Value {
    json!({"v": 1, "type": "session_update", "data": data})
}

impl Inner {
    fn publish(&self, prompt: &str, name: &str, data: &Value) {
        let mut state = self.state.lock();
        let id = state.ring.len() + 1;
        state
            .ring
            .push(json!({"v": 1, "id": id, "type": name, "promptId": prompt, "data": data}));
        self.grown.notify_waiters();
    }

    fn answer(&self, method: &str, path: &str, client: Option<&str>, body: &Value) -> (u16, Value) {
        let mut state = self.state.lock();
        let epoch = format!("life-{}", state.life);
        match (method, path) {
            ("GET", "/capabilities") => {
                let features = [
                    "session_create",
                    "session_prompt",
                    "session_events",
                    "session_cancel",
                    "session_permission_vote",
                    "session_load",
                ];
                return (
                    200,
                    json!({"v": 1, "features": features, "workspaceCwd": state.workspace, "modelServices": [],
                        "workspaces": [{"cwd": state.workspace, "primary": true}]}),
                );
            }
            ("GET", "/health" | "/daemon/status") => {
                return (200, json!({"status": "ok", "daemon": {"runId": epoch}}));
            }
            ("GET", "/workspace/preflight") => return (200, json!({"v": 1, "cells": []})),
            _ => {}
        }
        let opens = path == "/session" || path.ends_with("/load") || path.ends_with("/resume");
        if opens {
            let attached = state.live || path != "/session";
            state.live = true;
            let known = client.filter(|client| client.ends_with(&format!("of-{epoch}")));
            let client = if let Some(known) = known {
                known.to_owned()
            } else {
                state.clients += 1;
                format!("client_{}-of-{epoch}", state.clients)
            };
            let mut answer = json!({"sessionId": SESSION, "workspaceCwd": state.workspace, "attached": attached,
                "clientId": client, "state": {}});
            if path != "/session" {
                answer["lastEventId"] = json!(state.ring.len());
                answer["eventEpoch"] = json!(epoch);
            }
            if path.ends_with("/load") {
                let (mut history, mut journal) = (state.record.clone(), Vec::new());
                if let Some(running) = &state.running {
                    let of_turn = state.ring.iter().filter(|event| event["promptId"] == *running);
                    journal = of_turn.cloned().collect();
                    // What was said to begin it is recorded already.
                    history.pop();
                }
                answer["compactedReplay"] = json!(history);
                answer["liveJournal"] = json!(journal);
            }
            return (200, answer);
        }
        if !state.live {
            return (
                404,
                json!({"error": "No session", "code": "session_not_found", "sessionId": SESSION}),
            );
        }
        match path.rsplit('/').next().unwrap_or_default() {
            "prompt" => {
                let text = body["prompt"][0]["text"].as_str().unwrap_or_default().to_owned();
                let id = format!("prompt-{}", self.prompts.fetch_add(1, Ordering::Relaxed));
                let last = state.ring.len();
                let echo = chunk("user_message_chunk", &text);
                state.record.push(recorded(&echo));
                state.ring.push(
                    json!({"v": 1, "id": last + 1, "type": "session_update", "promptId": id, "data": echo,
                    "originatorClientId": client}),
                );
                state.queue.push((id.clone(), text));
                self.grown.notify_waiters();
                self.prompted.notify_one();
                (202, json!({"promptId": id, "lastEventId": last, "eventEpoch": epoch}))
            }
            "status" => (200, json!({"sessionId": SESSION, "pendingInteractions": []})),
            "context" => (200, json!({"v": 1, "state": {}})),
            "pending-prompts" => (200, json!({"pendingPrompts": []})),
            _ => (200, json!({})),
        }
    }

    /// What a stream begins with, and how many events of the ring it has then.
    fn replay(&self, cursor: Option<usize>, epoch: Option<&str>) -> (String, usize) {
        let state = self.state.lock();
        let mut text = "retry: 3000\n\n".to_owned();
        let Some(cursor) = cursor else {
            return (text, state.ring.len());
        };
        let mut from = cursor;
        if epoch.is_some_and(|epoch| epoch != format!("life-{}", state.life)) || cursor > state.ring.len() {
            text.push_str(&frame(&json!({"v": 1, "type": "state_resync_required",
                "data": {"reason": "epoch_reset", "lastDeliveredId": cursor, "earliestAvailableId": 1}})));
            from = 0;
        }
        let missed: String = state.ring[from..].iter().map(frame).collect();
        text.push_str(&missed);
        text.push_str(&frame(
            &json!({"v": 1, "type": "replay_complete", "data": {"replayedCount": state.ring.len() - from}}),
        ));
        (text, state.ring.len())
    }
}

fn frame(event: &Value) -> String {
    let id = event.get("id").map(|id| format!("id: {id}\n")).unwrap_or_default();
    format!("{id}event: {}\ndata: {event}\n\n", event["type"].as_str().unwrap())
}

async fn serve(inner: Arc<Inner>, mut stream: TcpStream) {
    let mut buffer = Vec::new();
    while let Some((head, body)) = read_request(&mut stream, &mut buffer).await {
        let mut first = head.lines().next().unwrap_or_default().split(' ');
        let method = first.next().unwrap_or_default();
        let path = first.next().unwrap_or_default().split('?').next().unwrap_or_default();
        let header = |name: &str| {
            let lines = head.lines().filter_map(|line| line.split_once(": "));
            lines
                .filter(|(own, _)| own.eq_ignore_ascii_case(name))
                .map(|(_, value)| value.to_owned())
                .next()
        };
        if path.ends_with("/events") && inner.state.lock().live {
            let cursor = header("last-event-id").and_then(|cursor| cursor.parse().ok());
            stream_events(&inner, &mut stream, cursor, header("x-qwen-event-epoch").as_deref()).await;
            return;
        }
        let client = header("x-qwen-client-id");
        let (status, body) = inner.answer(method, path, client.as_deref(), &body);
        if path.ends_with("/prompt") && inner.drops_response.swap(false, Ordering::Relaxed) {
            return;
        }
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        if stream.write_all(format!("{head}{body}").as_bytes()).await.is_err() {
            return;
        }
    }
}

async fn stream_events(inner: &Inner, stream: &mut TcpStream, cursor: Option<usize>, epoch: Option<&str>) {
    let life = inner.state.lock().life;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nX-Qwen-Event-Epoch: life-{life}\r\n\
         Transfer-Encoding: chunked\r\n\r\n"
    );
    let (mut text, mut next) = inner.replay(cursor, epoch);
    if stream.write_all(head.as_bytes()).await.is_err() {
        return;
    }
    loop {
        let grown = inner.grown.notified();
        tokio::pin!(grown);
        grown.as_mut().enable();
        {
            let state = inner.state.lock();
            text.extend(state.ring[next..].iter().map(frame));
            next = state.ring.len();
        }
        if !text.is_empty() {
            let sent = format!("{:x}\r\n{text}\r\n", text.len());
            if stream.write_all(sent.as_bytes()).await.is_err() {
                return;
            }
            text.clear();
        }
        let mut byte = [0];
        tokio::select! {
            () = grown => {}
            read = stream.read(&mut byte) => if matches!(read, Ok(0) | Err(_)) { return },
        }
    }
}

async fn read_request(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> Option<(String, Value)> {
    loop {
        if let Some(end) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
            let lengths = head.lines().filter_map(|line| line.split_once(": "));
            let length = lengths
                .filter(|(name, _)| name.eq_ignore_ascii_case("content-length"))
                .find_map(|(_, value)| value.parse::<usize>().ok())
                .unwrap_or_default();
            if buffer.len() >= end + 4 + length {
                let body = serde_json::from_slice(&buffer[end + 4..end + 4 + length]).unwrap_or_default();
                buffer.drain(..end + 4 + length);
                return Some((head, body));
            }
        }
        if stream.read_buf(buffer).await.ok()? == 0 {
            return None;
        }
    }
}
