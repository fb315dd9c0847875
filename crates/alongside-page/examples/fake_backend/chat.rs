//! A fake conversation: the prompt selects what happens. It responds with the same JSON as the companion.

use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::broadcast;

use crate::scripts;

/// The chat that all pages share. Clones refer to the same chat.
#[derive(Clone)]
pub(crate) struct Chat(Arc<Mutex<State>>);

struct State {
    notifications: broadcast::Sender<String>,
    agent: Option<String>,
    phase: &'static str,
    writes: String,
    epoch: u64,
    sequence: u64,
    events: Vec<Value>,
    /// The running turn.
    running: Option<String>,
    queue: Vec<(String, String)>,
    cancelled: bool,
    next_prompt: u64,
}

type Failure = (&'static str, String);

impl Chat {
    pub(crate) fn new(notifications: broadcast::Sender<String>) -> Self {
        Self(Arc::new(Mutex::new(State {
            notifications,
            agent: None,
            phase: "idle",
            writes: "review".to_owned(),
            epoch: 1,
            sequence: 0,
            events: Vec::new(),
            running: None,
            queue: Vec::new(),
            cancelled: false,
            next_prompt: 1,
        })))
    }

    pub(crate) fn call(&self, method: &str, params: &Value) -> Option<Result<Value, Failure>> {
        Some(match method {
            "chat/state" => Ok(self.0.lock().state()),
            "chat/connect" => Ok(self.connect(params["agent"].as_str().unwrap_or_default())),
            "chat/disconnect" => Ok(self.end("requested", "You disconnected.")),
            "chat/writes" => {
                let mut state = self.0.lock();
                params["writes"]
                    .as_str()
                    .unwrap_or("review")
                    .clone_into(&mut state.writes);
                state.changed();
                Ok(json!({}))
            }
            "chat/command" => self.command(&params["command"]),
            "dev/chat" => {
                for event in params["events"].as_array().into_iter().flatten() {
                    self.emit(event.clone());
                }
                Ok(json!({}))
            }
            "dev/chatPhase" => {
                let mut state = self.0.lock();
                state.phase = match params["phase"].as_str() {
                    Some("interrupted") => "interrupted",
                    Some("ended") => "ended",
                    _ => "connected",
                };
                state.changed();
                Ok(json!({}))
            }
            // Logged but not sent, so that the next event leaves a gap.
            "dev/chatMiss" => {
                let mut state = self.0.lock();
                state.sequence += 1;
                state.events.push(params["event"].clone());
                Ok(json!({}))
            }
            _ => return None,
        })
    }

    pub(crate) fn emit(&self, event: Value) {
        self.0.lock().emit(event);
    }

    fn connect(&self, agent: &str) -> Value {
        let mut state = self.0.lock();
        state.agent = Some(agent.to_owned());
        state.phase = "connecting";
        state.epoch += 1;
        state.sequence = 0;
        state.events.clear();
        state.changed();
        for event in scripts::connected(agent == "daemon") {
            state.emit(event);
        }
        state.phase = "connected";
        state.changed();
        json!({})
    }

    fn end(&self, kind: &str, reason: &str) -> Value {
        let mut state = self.0.lock();
        state.running = None;
        state.emit(json!({"type": "disconnected", "kind": kind, "reason": reason, "reopen": "session-1"}));
        state.phase = "ended";
        state.changed();
        json!({})
    }

    fn command(&self, command: &Value) -> Result<Value, Failure> {
        let text = |name: &str| command[name].as_str().unwrap_or_default().to_owned();
        match command["type"].as_str().unwrap_or_default() {
            "prompt" => Ok(self.prompt(command["blocks"][0]["text"].as_str().unwrap_or_default())),
            "cancel" => {
                let mut state = self.0.lock();
                state.cancelled = true;
                let prompt = state.running.clone();
                state.emit(json!({"type": "cancelRequested", "promptId": prompt}));
                Ok(json!({"type": "done"}))
            }
            "answer" => {
                let option = command["decision"]["optionId"].clone();
                self.emit(
                    json!({"type": "approvalClosed", "requestId": text("requestId"), "optionId": option, "own": true}),
                );
                if let Some(answers) = command["decision"]["answers"].as_object() {
                    let given_answers = answers
                        .values()
                        .filter_map(Value::as_str)
                        .collect::<Vec<_>>()
                        .join("; ");
                    self.emit(scripts::words(&format!("You answered: {given_answers}\n\n")));
                }
                let status = if option == "cancel" { "failed" } else { "completed" };
                self.emit(json!({"type": "toolCall", "promptId": null, "call": scripts::edit_call(status)}));
                self.finish("end_turn");
                Ok(json!({"type": "done"}))
            }
            "removeQueued" => {
                let mut state = self.0.lock();
                state.queue.retain(|(id, _)| *id != text("promptId"));
                state.emit(json!({"type": "promptUnqueued", "promptId": text("promptId"), "removed": true}));
                Ok(json!({"type": "done"}))
            }
            "setModel" if text("modelId") == "broken" => Err(("agent", "This model does not answer.".to_owned())),
            "setModel" => {
                self.emit(json!({"type": "modelChanged", "modelId": text("modelId")}));
                Ok(json!({"type": "done"}))
            }
            "setMode" => {
                self.emit(json!({"type": "modeChanged", "modeId": text("modeId")}));
                Ok(json!({"type": "done"}))
            }
            "rename" => {
                self.emit(json!({"type": "title", "title": text("title")}));
                Ok(json!({"type": "done"}))
            }
            "listSessions" => Ok(scripts::sessions(command["cursor"].as_str())),
            "newSession" | "loadSession" => {
                self.connect("qwen");
                Ok(json!({"type": "done"}))
            }
            "findFiles" => Ok(scripts::files(&text("pattern"))),
            other => Err(("agent", format!("this agent cannot {other}"))),
        }
    }

    fn prompt(&self, text: &str) -> Value {
        let mut state = self.0.lock();
        let id = format!("prompt-{}", state.next_prompt);
        state.next_prompt += 1;
        state.emit(json!({"type": "promptAccepted", "promptId": id, "text": text}));
        if state.running.is_some() {
            state.queue.push((id.clone(), text.to_owned()));
            state.emit(json!({"type": "promptQueued", "promptId": id, "text": text}));
        } else {
            state.running = Some(id.clone());
            state.cancelled = false;
            state.emit(json!({"type": "turnStarted", "promptId": id}));
            let chat = self.clone();
            let text = text.to_owned();
            tokio::spawn(async move { chat.play(&text).await });
        }
        json!({"type": "prompt", "promptId": id})
    }

    async fn play(&self, prompt: &str) {
        let (events, pause, waits) = scripts::turn(prompt);
        for event in events {
            tokio::time::sleep(Duration::from_millis(pause)).await;
            if self.0.lock().cancelled {
                self.finish("cancelled");
                return;
            }
            self.emit(event);
        }
        if !waits {
            self.finish("end_turn");
        }
    }

    fn finish(&self, reason: &str) {
        let mut state = self.0.lock();
        let Some(id) = state.running.take() else { return };
        state.emit(json!({"type": "turnEnded", "promptId": id, "end": {"outcome": "completed", "stopReason": reason}}));
        if state.queue.is_empty() {
            return;
        }
        let (next, text) = state.queue.remove(0);
        state.running = Some(next.clone());
        state.cancelled = false;
        state.emit(json!({"type": "promptUnqueued", "promptId": next, "removed": false}));
        state.emit(json!({"type": "turnStarted", "promptId": next}));
        let chat = self.clone();
        tokio::spawn(async move { chat.play(&text).await });
    }
}

impl State {
    fn emit(&mut self, event: Value) {
        self.sequence += 1;
        let params = json!({"epoch": self.epoch.to_string(), "sequence": self.sequence, "event": event});
        self.events.push(event);
        self.notify("chat/event", &params);
    }

    fn changed(&self) {
        self.notify(
            "chat/changed",
            &json!({"agent": self.agent, "phase": self.phase, "writes": self.writes}),
        );
    }

    fn notify(&self, method: &str, params: &Value) {
        let text = json!({"jsonrpc": "2.0", "method": method, "params": params}).to_string();
        let _ = self.notifications.send(text);
    }

    fn state(&self) -> Value {
        json!({"agents": [
                {"id": "qwen", "name": "Qwen Code", "kind": "child", "problem": null},
                {"id": "daemon", "name": "Qwen Code daemon", "kind": "daemon", "problem": null},
                {"id": "gemini", "name": "Gemini CLI", "kind": "child", "problem": "gemini was not found on the path."}],
            "agent": self.agent, "phase": self.phase, "writes": self.writes, "epoch": self.epoch.to_string(),
            "sequence": self.sequence, "events": self.events})
    }
}
