//! A front end that shows the chat: it assembles the events it receives, as a page does, and checks what must stay true of them.

use std::collections::HashMap;
use std::time::Duration;

use alongside_core::Secret;
use alongside_front::client::{Client, ClientError};
use alongside_protocol::{ChatCommand, ChatConnect, ChatPhase, ChatState, Empty, Hello, Notification, requests};
use serde_json::{Value, json};

/// How long anything may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// A front end with the chat.
pub struct ChatFront {
    pub client: Client,
    epoch: String,
    sequence: u64,
    pub phase: ChatPhase,
    /// Every event, the log first.
    pub events: Vec<Value>,
    /// How often everything was asked for again.
    pub resyncs: usize,
    /// Whether everything must be asked for again. Kept here, because a step may be cancelled while it waits for the answer.
    is_stale: bool,
}

impl ChatFront {
    pub async fn connect_to(port: u16, token: &Secret) -> Result<Self, ClientError> {
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
            is_stale: true,
        };
        front.ask().await?;
        Ok(front)
    }

    /// Asks for everything, in place of what is known.
    pub async fn ask(&mut self) -> Result<ChatState, ClientError> {
        let state = self.client.call::<requests::ChatState>(Empty {}).await?;
        self.epoch = state.epoch.to_string();
        self.sequence = state.sequence;
        self.phase = state.changed.phase;
        self.events = state.events.iter().map(|event| json!(event)).collect();
        self.is_stale = false;
        Ok(state)
    }

    pub async fn choose(&mut self, agent: &str) -> Result<Empty, ClientError> {
        let connect = ChatConnect {
            agent: agent.to_owned(),
            if_idle: false,
        };
        self.client.call::<requests::ChatConnect>(connect).await
    }

    pub async fn command(&mut self, command: Value) -> Result<Value, ClientError> {
        let command = serde_json::from_value(command).unwrap();
        let reply = self
            .client
            .call::<requests::ChatCommand>(ChatCommand { command })
            .await?;
        Ok(json!(reply))
    }

    pub async fn prompt(&mut self, text: &str) -> Result<String, ClientError> {
        let block = json!({"type": "text", "text": text});
        let reply = self.command(json!({"type": "prompt", "blocks": [block]})).await?;
        Ok(reply["promptId"].as_str().unwrap().to_owned())
    }

    /// Takes the next notification.
    pub async fn step(&mut self) -> Result<(), ClientError> {
        if self.is_stale {
            self.ask().await?;
            return Ok(());
        }
        match self.client.notification().await? {
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence <= self.sequence => {}
            Notification::ChatEvent(event) if *event.epoch == *self.epoch && event.sequence == self.sequence + 1 => {
                self.sequence = event.sequence;
                self.events.push(json!(event.event));
            }
            Notification::ChatEvent(_) | Notification::Resync(_) => {
                self.resyncs += 1;
                self.is_stale = true;
                self.ask().await?;
            }
            Notification::ChatChanged(changed) => self.phase = changed.phase,
            _ => {}
        }
        Ok(())
    }

    /// Waits until what is shown is as it should be.
    pub async fn until(&mut self, what: &str, enough: impl Fn(&Self) -> bool) {
        let wait = async {
            while !enough(self) {
                self.step().await.unwrap();
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, wait).await;
        assert!(waited.is_ok(), "never {what}: {:#?}", self.events);
    }

    pub async fn until_ended(&mut self, prompt: &str) {
        self.until("the end of the turn", |front| front.end(prompt).is_some())
            .await;
    }

    pub fn of_type<'a>(&'a self, kind: &'a str) -> impl DoubleEndedIterator<Item = &'a Value> {
        self.events.iter().filter(move |event| event["type"] == kind)
    }

    /// How a turn ended, if it did.
    pub fn end(&self, prompt: &str) -> Option<&Value> {
        let mut ends = self.of_type("turnEnded");
        ends.find(|event| event["promptId"] == prompt)
            .map(|event| &event["end"])
    }

    /// What the agent answered in a turn.
    pub fn answer(&self, prompt: &str) -> String {
        let of_turn = self
            .of_type("assistantChunk")
            .filter(|event| event["promptId"] == prompt);
        of_turn.filter_map(|event| event["content"]["text"].as_str()).collect()
    }

    /// What is shown, turn by turn: what was said to begin it, and the answer.
    pub fn turns(&self) -> Vec<(String, String)> {
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
    pub fn is_being_told(&self) -> bool {
        let last = |kind: &str| self.events.iter().rposition(|event| event["type"] == kind);
        last("historyStart") > last("historyEnd")
    }

    /// Whether nothing is known of a turn by its id: a history has taken its place.
    pub fn is_history(&self, prompt: &str) -> bool {
        let since = self.events.iter().rposition(|event| event["type"] == "historyStart");
        let shown = &self.events[since.unwrap_or_default()..];
        !shown.iter().any(|event| event["promptId"] == prompt)
    }
}

/// The answer of the scripted agents to `answer 7 30`: words 0 to 29 of turn 7.
pub fn words(prompt: &str) -> Vec<String> {
    let mut parts = prompt.split(' ').skip(1);
    let turn = parts.next().unwrap_or("0").to_owned();
    let count: usize = parts.next().and_then(|count| count.parse().ok()).unwrap_or(3);
    (0..count).map(|number| format!("t{turn}w{number} ")).collect()
}

/// What is known of the turns by a client that has watched them all.
#[derive(Default)]
pub struct Watched {
    /// By prompt: what was seen of the answer.
    seen: HashMap<String, String>,
    /// Whether the turn of a prompt ended as completed.
    pub completed: HashMap<String, bool>,
    /// The prompts in their order.
    pub order: Vec<String>,
}

impl Watched {
    /// Remembers what is shown now. The error is what was shown before and no longer is.
    pub fn look(&mut self, front: &ChatFront) -> Result<(), String> {
        if front.is_being_told() {
            return Ok(());
        }
        for (prompt, answer) in front.turns() {
            let seen = self.seen.entry(prompt.clone()).or_default();
            if !answer.starts_with(seen.as_str()) {
                return Err(format!("{prompt}: {seen:?} became {answer:?}"));
            }
            *seen = answer;
        }
        Ok(())
    }

    /// Every prompt is shown, in its order. There may be others in between.
    pub fn check_order(&self, front: &ChatFront) -> Result<(), String> {
        let shown = front.turns();
        let mut rest = shown.iter();
        match self
            .order
            .iter()
            .find(|prompt| !rest.any(|(shown, _)| shown == *prompt))
        {
            Some(prompt) => Err(format!("{prompt} is no longer shown in its place")),
            None => Ok(()),
        }
    }

    /// Everything that was said is shown as it should be, and nothing else is.
    pub fn check(&self, front: &ChatFront) -> Result<(), String> {
        let shown = front.turns();
        let prompts: Vec<&String> = shown.iter().map(|(prompt, _)| prompt).collect();
        if prompts != self.order.iter().collect::<Vec<_>>() {
            return Err(format!("the turns are {prompts:?}, and were {:?}", self.order));
        }
        for (prompt, answer) in &shown {
            let whole = words(prompt).concat();
            let is_kept = self
                .seen
                .get(prompt)
                .is_none_or(|seen| answer.starts_with(seen.as_str()));
            if !whole.starts_with(answer.as_str()) || !is_kept {
                return Err(format!("{prompt}: {answer:?}"));
            }
            if self.completed.get(prompt) == Some(&true) && *answer != whole {
                return Err(format!("{prompt} is complete, and shows {answer:?}"));
            }
        }
        Ok(())
    }
}
