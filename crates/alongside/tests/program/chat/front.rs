//! A front end that shows the chat: it puts together what it is told, as a page does.

use alongside_core::Secret;
use alongside_front::client::{Client, ClientError};
use alongside_protocol::{ChatCommand, ChatConnect, ChatPhase, ChatState, Empty, Hello, Notification, requests};
use serde_json::{Value, json};

use crate::sandbox::{Sandbox, Serving, TIMEOUT};

/// A front end with the chat.
pub(crate) struct Front {
    pub(crate) client: Client,
    epoch: String,
    sequence: u64,
    pub(crate) phase: ChatPhase,
    /// Every event, the log first.
    pub(crate) events: Vec<Value>,
    /// How often everything was asked for again.
    pub(crate) resyncs: usize,
}

impl Front {
    pub(crate) async fn connect(serving: &Serving, sandbox: &Sandbox) -> Self {
        let (port, token) = serving.people(sandbox);
        Self::connect_to(port, &token).await.unwrap()
    }

    pub(crate) async fn connect_to(port: u16, token: &Secret) -> Result<Self, ClientError> {
        let hello = Hello {
            watch: true,
            chat: true,
            ..Hello::new("chat test")
        };
        let (client, _) = Client::connect_as(port, token, hello).await?;
        let mut front = Self {
            client,
            epoch: String::new(),
            sequence: 0,
            phase: ChatPhase::Idle,
            events: Vec::new(),
            resyncs: 0,
        };
        front.ask().await?;
        Ok(front)
    }

    /// Asks for everything, in place of what is known.
    pub(crate) async fn ask(&mut self) -> Result<ChatState, ClientError> {
        let state = self.client.call::<requests::ChatState>(Empty {}).await?;
        self.epoch = state.epoch.to_string();
        self.sequence = state.sequence;
        self.phase = state.changed.phase;
        self.events = state.events.iter().map(|event| json!(event)).collect();
        Ok(state)
    }

    pub(crate) async fn choose(&mut self, agent: &str) -> Result<Empty, ClientError> {
        let agent = agent.to_owned();
        self.client.call::<requests::ChatConnect>(ChatConnect { agent }).await
    }

    pub(crate) async fn command(&mut self, command: Value) -> Result<Value, ClientError> {
        let command = serde_json::from_value(command).unwrap();
        let reply = self
            .client
            .call::<requests::ChatCommand>(ChatCommand { command })
            .await?;
        Ok(json!(reply))
    }

    pub(crate) async fn prompt(&mut self, text: &str) -> Result<String, ClientError> {
        let block = json!({"type": "text", "text": text});
        let reply = self.command(json!({"type": "prompt", "blocks": [block]})).await?;
        Ok(reply["promptId"].as_str().unwrap().to_owned())
    }

    /// Takes the next notification.
    pub(crate) async fn step(&mut self) -> Result<(), ClientError> {
        match self.client.notification().await? {
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence <= self.sequence => {}
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence == self.sequence + 1 => {
                self.sequence = event.sequence;
                self.events.push(json!(event.event));
            }
            Notification::ChatEvent(_) | Notification::Resync(_) => {
                self.resyncs += 1;
                self.ask().await?;
            }
            Notification::ChatChanged(changed) => self.phase = changed.phase,
            _ => {}
        }
        Ok(())
    }

    /// Waits until what is shown is as it should be.
    pub(crate) async fn until(&mut self, what: &str, enough: impl Fn(&Self) -> bool) {
        let wait = async {
            while !enough(self) {
                self.step().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, wait).await;
        assert!(waited.is_ok(), "never {what}: {:#?}", self.events);
    }

    pub(crate) async fn until_ended(&mut self, prompt: &str) {
        self.until("the end of the turn", |front| front.end(prompt).is_some())
            .await;
    }

    pub(crate) fn of_type<'a>(&'a self, kind: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }

    /// How a turn ended, if it did.
    pub(crate) fn end(&self, prompt: &str) -> Option<&Value> {
        let mut ends = self.of_type("turnEnded");
        ends.find(|event| event["promptId"] == prompt)
            .map(|event| &event["end"])
    }

    /// What the agent answered in a turn.
    pub(crate) fn answer(&self, prompt: &str) -> String {
        let of_turn = self
            .of_type("assistantChunk")
            .filter(|event| event["promptId"] == prompt);
        of_turn.filter_map(|event| event["content"]["text"].as_str()).collect()
    }

    /// What is shown, turn by turn: what was said to begin it, and the answer.
    pub(crate) fn turns(&self) -> Vec<(String, String)> {
        let since = self.events.iter().rposition(|event| event["type"] == "historyStart");
        let mut turns: Vec<(Value, String, String)> = Vec::new();
        for event in &self.events[since.unwrap_or_default()..] {
            let id = event["promptId"].clone();
            let text = event["content"]["text"].as_str().unwrap_or_default();
            match event["type"].as_str().unwrap() {
                "promptAccepted" => turns.push((id, event["text"].as_str().unwrap().to_owned(), String::new())),
                "userMessage" => turns.push((id, text.to_owned(), String::new())),
                "assistantChunk" => {
                    let place = turns.iter().rposition(|turn| turn.0 == id && !id.is_null());
                    let last = turns.len() - 1;
                    turns[place.unwrap_or(last)].2.push_str(text);
                }
                _ => {}
            }
        }
        turns.into_iter().map(|(_, prompt, answer)| (prompt, answer)).collect()
    }

    /// Whether a history has begun and is not at its end.
    pub(crate) fn is_being_told(&self) -> bool {
        let last = |kind: &str| self.events.iter().rposition(|event| event["type"] == kind);
        last("historyStart") > last("historyEnd")
    }

    /// Whether nothing is known of a turn by its id: a history has taken its place.
    pub(crate) fn is_history(&self, prompt: &str) -> bool {
        let since = self.events.iter().rposition(|event| event["type"] == "historyStart");
        let shown = &self.events[since.unwrap_or_default()..];
        !shown.iter().any(|event| event["promptId"] == prompt)
    }
}
