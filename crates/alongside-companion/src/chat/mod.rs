//! The chat: one agent that the companion speaks to directly, shared by all front ends.
//!
//! An [`AgentManager`] has the conversation. What it tells goes through one task into the [`Log`](log::Log), and from there, numbered, to the front
//! ends that want it. Nothing is started or connected to before a person asks.

mod agents;
mod gate;
mod journal;
mod listen;
mod log;
mod merge;
mod record;
mod requests;
mod resume;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_agent::OpenSession;
use alongside_agent::acp::ReviewGate;
use alongside_agent::{AgentCommand, AgentManager, AgentReply, EventReceiver};
use alongside_protocol::Refusal;
use alongside_protocol::{ChatAgent, ChatPhase, ChatState, ChatWrites, ChatWritesChoice, Notification};
use parking_lot::Mutex;
use serde_json::json;
use tokio::sync::{Notify, broadcast};

use super::store::key;
use crate::places::{Places, write_private};
use agents::Choice;
use gate::Waiting;
use record::State;
use requests::{given_up_refusal, refusal};

pub(super) use requests::difference;

/// How many events a front end may be behind before it has to ask again.
const NEWS_KEPT: usize = 512;

/// The chat of one companion.
pub(crate) struct Chat {
    manager: AgentManager,
    /// What the agent tells, until somebody listens.
    events: Mutex<Option<EventReceiver>>,
    state: Mutex<State>,
    news: broadcast::Sender<Notification>,
    /// An attempt to connect is not wanted any more.
    given_up: Notify,
    /// What a child wants to write and somebody has to decide.
    pub(super) waiting: Waiting,
    /// Where the choice about writes is kept.
    choice_file: PathBuf,
    /// Prompts reach the agent in the order in which they were said.
    prompts: tokio::sync::Mutex<()>,
}

impl Chat {
    /// The chat that the companion with this slot had before, or a new one.
    pub(super) fn new(places: &Places, workspace: &[PathBuf], slot: &str) -> Self {
        let (manager, events) = AgentManager::new();
        let choice_file = places.chat().join(format!("{:016x}.json", key("", workspace)));
        let journal = places.chat().join(format!("{slot}.jsonl"));
        let state = State::restore(journal, kept_choice(&choice_file));
        Self {
            manager,
            events: Mutex::new(Some(events)),
            state: Mutex::new(state),
            news: broadcast::channel(NEWS_KEPT).0,
            given_up: Notify::new(),
            waiting: Waiting::default(),
            choice_file,
            prompts: tokio::sync::Mutex::default(),
        }
    }

    /// What happens in the chat from now on.
    pub(super) fn news(&self) -> broadcast::Receiver<Notification> {
        self.news.subscribe()
    }

    /// Leaves the agent, because the companion ends.
    ///
    /// A companion that ends in good order does not connect by itself when it is started again: nothing is started before a person asks.
    pub(super) async fn end(&self) {
        self.given_up.notify_waiters();
        let session = self.manager.session_id();
        self.manager.disconnect().await;
        if let Some(session) = session {
            let reason = "the companion stopped";
            self.settle(reason);
            self.record(
                json!({"type": "disconnected", "kind": "requested", "reason": reason, "reopen": session}),
                None,
            );
        }
    }

    /// Everything there is to show.
    fn state(&self, agents: Vec<ChatAgent>) -> ChatState {
        let state = self.state.lock();
        ChatState {
            agents,
            changed: state.changed(),
            epoch: Arc::clone(&state.epoch),
            sequence: state.sequence,
            events: state.log.events().cloned().collect(),
        }
    }

    /// Connects to an agent, in place of the one before: to a session of one's own choice, or the usual one.
    async fn connect(
        &self,
        choice: &Choice,
        open: Option<OpenSession>,
        workspace: PathBuf,
        gate: Arc<dyn ReviewGate>,
    ) -> Result<(), Refusal> {
        let open = open.unwrap_or(if choice.is_child() {
            OpenSession::New
        } else {
            OpenSession::CreateOrAttach
        });
        let target = choice
            .target(workspace, gate, open)
            .map_err(|unusable| Refusal::new("agentUnusable", unusable.0))?;
        self.given_up.notify_waiters();
        let given_up = self.given_up.notified();
        let attempt = self.attempt(choice);
        let connected = tokio::select! {
            connected = self.manager.connect(target) => connected.map(drop).map_err(|error| refusal(&error)),
            () = given_up => Err(given_up_refusal()),
        };
        if let Err(refusal) = &connected {
            self.failed(attempt, refusal);
        }
        connected
    }

    /// Begins to connect, and gives the number of the attempt.
    fn attempt(&self, choice: &Choice) -> u64 {
        self.change(|state| {
            state.agent = Some(choice.id.clone());
            state.address = choice.address();
            state.keep_text = false;
            state.attempt += 1;
            state.connecting = true;
            state.attempt
        })
    }

    /// Leaves the agent.
    pub(super) async fn disconnect(&self) {
        self.given_up.notify_waiters();
        self.change(|state| {
            state.attempt += 1;
            state.connecting = false;
            if state.link != ChatPhase::Idle {
                state.link = ChatPhase::Over;
            }
        });
        self.manager.disconnect().await;
    }

    /// Asks something of the agent.
    async fn command(&self, command: AgentCommand) -> Result<AgentReply, Refusal> {
        let _turn = match command {
            AgentCommand::Prompt { .. } => Some(self.prompts.lock().await),
            _ => None,
        };
        self.manager.execute(command).await.map_err(|error| refusal(&error))
    }

    /// Chooses what happens to files that a child wants to write.
    pub(super) fn set_writes(&self, writes: ChatWrites) -> Result<(), Refusal> {
        let kept = serde_json::to_vec(&ChatWritesChoice { writes })
            .map_err(Into::into)
            .and_then(|text| write_private(&self.choice_file, &text));
        if let Err(error) = kept {
            return Err(Refusal::new("failed", format!("cannot save this choice: {error}")));
        }
        self.change(|state| state.writes = writes);
        Ok(())
    }

    /// What happens to files that a child wants to write.
    fn writes(&self) -> ChatWrites {
        self.state.lock().writes
    }

    fn failed(&self, attempt: u64, refusal: &Refusal) {
        if self.state.lock().attempt != attempt {
            return;
        }
        self.record(
            json!({"type": "notice", "level": "warning", "message": refusal.message}),
            None,
        );
        self.change(|state| {
            state.connecting = false;
            state.link = ChatPhase::Over;
        });
    }

    /// Changes what the chat is like, and tells if it is another thing now.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        let before = state.changed();
        let result = change(&mut state);
        let after = state.changed();
        if after != before {
            // Nobody may listen. Told with the lock held, so that it is told in order.
            let _ = self.news.send(Notification::ChatChanged(after));
        }
        result
    }
}

/// The choice that a person made for this workspace; a review if they made none, or none that can be read.
fn kept_choice(file: &Path) -> ChatWrites {
    let text = std::fs::read(file).unwrap_or_default();
    let choice: Option<ChatWritesChoice> = serde_json::from_slice(&text).ok();
    choice.map(|choice| choice.writes).unwrap_or_default()
}
