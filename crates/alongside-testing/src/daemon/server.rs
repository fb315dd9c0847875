//! The responses of the fake daemon.

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::wire::{Connection, Wire, frame, read_request};
use super::{Reply, Request, SESSION, Shared, State, chunk, talk};

impl Shared {
    pub(super) async fn serve(&self, mut stream: impl Connection) {
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
                    &json!({"sessions": [{"sessionId": SESSION, "workspaceCwd": state.workspace}]}),
                );
            }
            ("POST", "/session") => {
                state.live = true;
                let client = state.issue_client();
                let attached = std::mem::replace(&mut state.attached, true);
                let body = json!({"sessionId": SESSION, "workspaceCwd": state.workspace, "attached": attached,
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
            let known_as = request.header("x-qwen-client-id").map(str::to_owned);
            return state.restore(rest == "load", known_as);
        }
        if !state.live {
            let body = json!({"error": "No session", "code": "session_not_found", "sessionId": SESSION});
            return Reply::json(404, &body);
        }
        let last = state.next_event() - 1;
        match rest {
            "prompt" => {
                let prompt = format!("prompt-{}", state.requests.len());
                if state.talk.is_some() {
                    self.ask(&mut state, &prompt, request);
                }
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

    /// Queues a prompt for the [`Talk`](super::Talk).
    fn ask(&self, state: &mut State, prompt: &str, request: &Request) {
        let text = request.body["prompt"][0]["text"].as_str().unwrap_or_default();
        let echo = chunk("user_message_chunk", text);
        state.history.push(talk::stored(&echo));
        state.push(
            json!({"v": 1, "type": "session_update", "promptId": prompt, "data": echo,
            "originatorClientId": request.header("x-qwen-client-id")}),
        );
        state.queue.push_back((prompt.to_owned(), text.to_owned()));
        self.grown.notify_waiters();
        self.prompted.notify_one();
    }

    async fn stream(&self, stream: &mut impl Connection, request: &Request) {
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
                // The client closed the connection.
                read = wire.stream.read(&mut byte) => if matches!(read, Ok(0) | Err(_)) { return },
            }
        }
    }
}

impl State {
    fn issue_client(&mut self) -> String {
        let client = format!("client_{}", self.next_client);
        self.next_client += 1;
        self.clients.push(client.clone());
        client
    }

    fn restore(&mut self, with_history: bool, known_as: Option<String>) -> Reply {
        let attached = std::mem::replace(&mut self.live, true);
        self.attached = true;
        let last = self.next_event() - 1;
        let client = known_as
            .filter(|client| self.keeps_clients && self.clients.contains(client))
            .unwrap_or_else(|| self.issue_client());
        let mut body = json!({"sessionId": SESSION, "workspaceCwd": self.workspace, "attached": attached, "clientId": client, "state": {},
            "lastEventId": last, "eventEpoch": self.epoch});
        if with_history {
            let (mut history, mut journal) = (self.history.clone(), Vec::new());
            if let Some(running) = &self.running {
                journal.extend(self.ring.iter().filter(|event| event["promptId"] == *running));
                // The journal contains the prompt too.
                history.pop();
            }
            body["compactedReplay"] = json!(history);
            body["liveJournal"] = json!(journal);
        }
        Reply::json(200, &body)
    }

    /// The first frames of a connection, and the ID of the next event.
    fn first_frames(&self, request: &Request) -> (String, u64) {
        let mut text = "retry: 3000\n\n".to_owned();
        let next = self.next_event();
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
