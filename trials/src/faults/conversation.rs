//! The chat of one companion: prompts, and a front end that remembers everything it was shown.

use std::sync::Arc;
use std::time::{Duration, Instant};

use alongside_front::client::ClientError;
use alongside_protocol::ChatPhase;
use alongside_testing::chat::{ChatFront, Watched};
use serde_json::json;

use super::invariant::Invariant;
use super::ledger::Ledger;
use super::plan::Role;
use crate::program::{Endpoints, TIMEOUT};

/// How long a front end may take to be shown everything again.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) struct Conversation {
    role: Role,
    ledger: Arc<Ledger>,
    front: Option<ChatFront>,
    watched: Watched,
    /// A prompt without a response: it may be shown or not.
    unsure: Option<String>,
    /// The id of the last prompt.
    last: Option<String>,
    turns: usize,
}

impl Conversation {
    pub(super) fn new(role: Role, ledger: Arc<Ledger>) -> Self {
        Self {
            role,
            ledger,
            front: None,
            watched: Watched::default(),
            unsure: None,
            last: None,
            turns: 0,
        }
    }

    /// The agent of this companion's chat.
    fn agent(&self) -> &'static str {
        match self.role {
            Role::Serve => "scripted",
            Role::Bridge => "daemon",
        }
    }

    /// Connects to the agent, in a new conversation.
    pub(super) async fn begin(&mut self, endpoints: &Endpoints) {
        self.watched = Watched::default();
        (self.last, self.unsure) = (None, None);
        let agent = self.agent();
        let outcome = async { self.connect(endpoints).await?.choose(agent).await };
        if let Err(error) = outcome.await {
            let what = format!("the chat of {:?} cannot connect: {error}", self.role);
            self.ledger.violated(Invariant::Alive, what);
        }
    }

    /// Says something if the agent is ready for it, and watches what comes for a while.
    pub(super) async fn talk(&mut self, endpoints: &Endpoints, words: Option<u64>, time: Duration) {
        if self.front.is_none() && self.connect(endpoints).await.is_err() {
            return;
        }
        let _ = tokio::time::timeout(time, self.say_and_watch(words)).await;
    }

    async fn say_and_watch(&mut self, words: Option<u64>) {
        let outcome: Result<(), ClientError> = async {
            self.reopen_if_ended().await?;
            let front = self.front.as_mut().unwrap();
            let is_ready = front.phase == ChatPhase::Connected
                && !front.is_being_told()
                && self
                    .last
                    .as_ref()
                    .is_none_or(|last| front.end(last).is_some() || front.is_history(last));
            if let Some(words) = words.filter(|_| is_ready) {
                self.say(words).await?;
            }
            loop {
                self.front.as_mut().unwrap().step().await?;
                self.look();
            }
        }
        .await;
        if outcome.is_err() {
            self.front = None;
        }
    }

    async fn say(&mut self, words: u64) -> Result<(), ClientError> {
        self.turns += 1;
        let text = format!("answer {} {words}", self.turns);
        self.unsure = Some(text.clone());
        match self.front.as_mut().unwrap().prompt(&text).await {
            Ok(id) => {
                self.unsure = None;
                self.watched.order.push(text);
                self.last = Some(id);
                self.ledger.count("prompts acknowledged");
            }
            Err(ClientError::Rejected(error)) => self.ledger.note(|| format!("prompt refused: {error}")),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// A local agent that was killed is started again on request.
    async fn reopen_if_ended(&mut self) -> Result<(), ClientError> {
        let role = self.role;
        let front = self.front.as_mut().unwrap();
        if front.phase != ChatPhase::Ended || role == Role::Bridge {
            return Ok(());
        }
        let reopen = json!({"type": "loadSession", "sessionId": "session-1"});
        match front.command(reopen).await {
            Ok(_) | Err(ClientError::Rejected(_)) => {}
            Err(error) => return Err(error),
        }
        front.ask().await.map(drop)
    }

    /// The companion is back after a fault: everything that was shown is still there.
    pub(super) async fn inspect(&mut self, endpoints: &Endpoints) {
        self.front = None;
        let role = self.role;
        let start = Instant::now();
        // A chat that could not be saved waits until it can.
        while let Err(error) = self.connect(endpoints).await {
            if start.elapsed() > PATIENCE || !matches!(error, ClientError::Rejected(_)) {
                let what = format!("no front end can show the chat of {role:?}: {error}");
                return self.ledger.violated(Invariant::Chat, what);
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        let front = self.front.as_mut().unwrap();
        // A history is being merged; it is whole in a moment.
        let told = async {
            while front.is_being_told() {
                if front.step().await.is_err() {
                    return;
                }
            }
        };
        let _ = tokio::time::timeout(PATIENCE, told).await;
        let front = self.front.as_ref().unwrap();
        if let Some(unsure) = self.unsure.take()
            && front.turns().iter().any(|(prompt, _)| *prompt == unsure)
        {
            self.watched.order.push(unsure);
        }
        if let Err(what) = self.watched.check_order(front) {
            self.give_up(&what);
        }
        self.look();
    }

    fn look(&mut self) {
        if let Some(front) = &self.front
            && let Err(what) = self.watched.look(front)
        {
            self.give_up(&what);
        }
    }

    /// Reports a violation, and expects nothing more of what was shown so far.
    fn give_up(&mut self, what: &str) {
        self.ledger
            .violated(Invariant::Chat, format!("{:?}: {what}", self.role));
        self.watched = Watched::default();
    }

    /// Waits until the last turn has ended, and checks everything once more.
    pub(super) async fn finish(&mut self, endpoints: &Endpoints) {
        self.inspect(endpoints).await;
        let Some(last) = self.last.clone() else { return };
        let wait = async {
            loop {
                let front = self.front.as_mut().unwrap();
                let is_over = front.end(&last).is_some() || front.is_history(&last) || front.phase == ChatPhase::Ended;
                if is_over && !front.is_being_told() || front.step().await.is_err() {
                    return;
                }
                self.look();
            }
        };
        if tokio::time::timeout(TIMEOUT, wait).await.is_err() {
            let what = format!("the last turn of {:?} does not end", self.role);
            self.ledger.violated(Invariant::Chat, what);
        }
        self.inspect(endpoints).await;
    }

    async fn connect(&mut self, endpoints: &Endpoints) -> Result<&mut ChatFront, ClientError> {
        let (port, token) = endpoints.front();
        let front = ChatFront::connect_to(port, token).await?;
        Ok(self.front.insert(front))
    }
}
