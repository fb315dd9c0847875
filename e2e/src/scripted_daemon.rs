//! A fake daemon that puts the time of sending into each answer.

use std::io::{self, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde_json::{Value, json};

use alongside_testing::http::{self, Request};

const SESSION: &str = "5f0c1c1e-6a3b-4d56-9a34-0c9f4e6f7a11";
/// Delay before an answer, so that everything triggered by the prompt itself is over.
const THINKING: Duration = Duration::from_millis(60);

/// The daemon. Each answer is `stamp:<microseconds since 1970>`.
pub struct ScriptedDaemon {
    pub port: u16,
}

#[derive(Default)]
struct Ring {
    events: Mutex<Vec<Event>>,
    grown: Condvar,
}

#[derive(Clone)]
struct Event {
    name: &'static str,
    prompt: String,
    data: Value,
}

impl ScriptedDaemon {
    pub fn start(workspace: &Path) -> Self {
        let ring = Arc::new(Ring::default());
        let workspace = workspace.to_string_lossy().into_owned();
        let port = http::serve(move |stream, request| answer(stream, &request, &workspace, &ring));
        Self { port }
    }
}

fn answer(stream: &TcpStream, request: &Request, workspace: &str, ring: &Arc<Ring>) -> io::Result<()> {
    let path = request.target.split('?').next().unwrap_or_default();
    let last = path.rsplit('/').next().unwrap_or_default();
    let (status, body) = match (request.method.as_str(), last) {
        ("GET", "events") => return stream_events(stream, ring),
        ("GET", "capabilities") => {
            let features = [
                "session_create",
                "session_prompt",
                "session_events",
                "session_cancel",
                "session_permission_vote",
            ];
            (
                200,
                json!({"v": 1, "features": features, "workspaceCwd": workspace, "modelServices": [],
                    "workspaces": [{"cwd": workspace, "primary": true}]}),
            )
        }
        ("GET", "preflight") => (200, json!({"v": 1, "cells": []})),
        ("POST", "session") => (
            200,
            json!({"sessionId": SESSION, "workspaceCwd": workspace, "attached": false, "clientId": "client_1", "state": {}}),
        ),
        ("POST", "prompt") => {
            let mut events = ring.events.lock().unwrap_or_else(PoisonError::into_inner);
            let (count, id) = (events.len(), format!("prompt-{}", events.len()));
            events.push(Event {
                name: "session_update",
                prompt: id.clone(),
                data: message_chunk("user_message_chunk", "asked"),
            });
            let (ring, prompt) = (Arc::clone(ring), id.clone());
            thread::spawn(move || send_answer(&ring, &prompt));
            (202, json!({"promptId": id, "lastEventId": count, "eventEpoch": "e"}))
        }
        (_, "status") => (
            200,
            json!({"status": "ok", "daemon": {"runId": "e"}, "sessionId": SESSION, "pendingInteractions": []}),
        ),
        (_, "pending-prompts") => (200, json!({"pendingPrompts": []})),
        (_, "context") => (200, json!({"v": 1, "state": {}})),
        _ => (200, json!({"status": "ok"})),
    };
    respond(stream, status, &body.to_string())
}

fn respond(mut stream: &TcpStream, status: u16, body: &str) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status} X\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
    )
}

fn send_answer(ring: &Ring, prompt: &str) {
    thread::sleep(THINKING);
    let end = json!({"sessionId": SESSION, "stopReason": "end_turn"});
    for (name, data) in [
        ("session_update", message_chunk("agent_message_chunk", "")),
        ("turn_complete", end),
    ] {
        let prompt = prompt.to_owned();
        ring.events
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(Event { name, prompt, data });
        ring.grown.notify_all();
        thread::sleep(Duration::from_millis(30));
    }
}

fn message_chunk(kind: &str, text: &str) -> Value {
    json!({"sessionId": SESSION, "update": {"sessionUpdate": kind, "content": {"type": "text", "text": text}}})
}

/// Writes events as they come. An answer contains the time it is written.
fn stream_events(mut stream: &TcpStream, ring: &Ring) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut next = ring.events.lock().unwrap_or_else(PoisonError::into_inner).len();
    stream.write_all(
        b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nx-qwen-event-epoch: e\r\nconnection: close\r\n\r\nretry: 3000\n\n",
    )?;
    loop {
        let events = ring.events.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ring.grown.wait_while(events, |events| events.len() == next);
        let events = waited.unwrap_or_else(PoisonError::into_inner);
        let new = events[next..].to_vec();
        drop(events);
        for event in new {
            next += 1;
            let Event { name, prompt, mut data } = event;
            let content = &mut data["update"]["content"];
            if content["text"] == "" {
                let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
                content["text"] = json!(format!("stamp:{}", now.as_micros()));
            }
            let event = json!({"v": 1, "id": next, "type": name, "promptId": prompt, "data": data});
            stream.write_all(format!("id: {next}\nevent: {name}\ndata: {event}\n\n").as_bytes())?;
        }
    }
}
