//! The chat: one agent that the companion connects to directly, shared by all front ends.
//!
//! An [`AgentManager`] holds the conversation. One task puts its events into the [`Log`](log::Log) and broadcasts them, numbered, to the front
//! ends with a chat. Nothing is started or connected until a front end asks for it.

mod agents;
mod deliveries;
mod gate;
mod journal;
mod listen;
mod log;
mod merge;
mod record;
mod requests;
mod resume;

use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use alongside_agent::acp::ReviewGate;
use alongside_agent::daemon::DaemonError;
use alongside_agent::{AgentError, AgentManager, EventReceiver, OpenSession};
use alongside_core::SessionId;
use alongside_protocol::chat::{
    AgentCommand, AgentEvent, AgentReply, ContentBlock, DisconnectKind, MAX_PROMPT_ID_BYTES,
};
use alongside_protocol::{
    ChatAgent, ChatChanged, ChatState, ChatWrites, ChatWritesChoice, ErrorKind, Notification, RequestError,
    SharedNotification,
};
use anyhow::Context;
use parking_lot::Mutex;
use tokio::sync::{Notify, broadcast};
use tokio::time::timeout;

use super::journal::{Slot, key};
use crate::places::{Places, write_private};
use crate::writer::Writer;
use agents::AgentOption;
use deliveries::Outcome;
use record::{State, new_epoch};
use requests::{busy, request_error, superseded};

pub(super) use requests::diff;

/// How many events a front end may be behind before it has to fetch everything again.
const CHANNEL_CAPACITY: usize = 512;

/// How long the event of an accepted prompt may take.
const LOG_TIMEOUT: Duration = Duration::from_secs(10);

/// The chat of one companion.
pub(crate) struct Chat {
    manager: AgentManager,
    /// Taken by the task that receives the events.
    events: Mutex<Option<EventReceiver>>,
    state: Mutex<State>,
    notifications: broadcast::Sender<SharedNotification>,
    /// Cancels the running attempt to connect.
    superseded: Notify,
    /// Where the choice about writes is saved.
    choice_file: PathBuf,
    /// Writes the journal, and broadcasts what is in it.
    pub(super) writer: Arc<Writer>,
    /// Keeps prompts in order.
    prompts: tokio::sync::Mutex<()>,
    /// The log got another prompt.
    prompt_logged: Notify,
}

impl Chat {
    /// Restores the chat of the previous companion in this slot, or starts a new one.
    pub(super) fn new(places: &Places, workspace: &[PathBuf], slot: &Slot) -> anyhow::Result<Self> {
        let (manager, events) = AgentManager::new();
        let choice_file = places.chat().join(format!("{:016x}.json", key("", workspace)));
        let writer = Arc::new(Writer::start().context("cannot start the thread that writes the chat's log")?);
        let state = State::restore(&slot.directory, saved_choice(&choice_file), Arc::clone(&writer))?;
        Ok(Self {
            manager,
            events: Mutex::new(Some(events)),
            state: Mutex::new(state),
            notifications: broadcast::channel(CHANNEL_CAPACITY).0,
            superseded: Notify::new(),
            choice_file,
            writer,
            prompts: tokio::sync::Mutex::default(),
            prompt_logged: Notify::new(),
        })
    }

    pub(super) fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        self.notifications.subscribe()
    }

    /// Disconnects, because the companion is shutting down. After a clean shutdown the chat is not resumed: nothing is started until a
    /// front end asks for it.
    pub(super) async fn end(&self) {
        self.superseded.notify_waiters();
        let session = self.manager.session_id();
        self.manager.disconnect().await;
        if let Some(session) = session {
            let reason = "the companion stopped";
            self.settle(reason);
            let event = AgentEvent::Disconnected {
                kind: DisconnectKind::Requested,
                reason: reason.to_owned(),
                reopen: Some(session),
            };
            self.record(event, None);
        }
        // An agent that was replaced may still be exiting.
        self.manager.shut_down().await;
    }

    /// Differs whenever front ends would see a difference.
    fn version(&self) -> (Arc<str>, u64, ChatChanged) {
        let state = self.state.lock();
        (Arc::clone(&state.epoch), state.sequence, state.changed())
    }

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

    /// Connects to an agent in place of the current one: to the session `open`, or to a default one.
    async fn connect(
        &self,
        choice: &AgentOption,
        open: Option<OpenSession>,
        workspace: PathBuf,
        gate: Arc<dyn ReviewGate>,
        if_idle: bool,
    ) -> Result<(), RequestError> {
        let open = open.unwrap_or(if choice.is_child() {
            OpenSession::New
        } else {
            OpenSession::CreateOrAttach
        });
        let target = choice
            .target(workspace, gate, open)
            .map_err(|unusable| RequestError::new(ErrorKind::AgentUnusable, unusable.0))?;
        let attempt = if if_idle {
            self.start_if_idle(choice)?
        } else {
            self.start_attempt(choice)
        };
        self.superseded.notify_waiters();
        let superseded = self.superseded.notified();
        let connected = tokio::select! {
            connected = self.manager.connect(target) => connected.map(drop).map_err(|error| request_error(&error)),
            () = superseded => Err(self::superseded()),
        };
        if let Err(error) = &connected {
            self.writer.ready().await;
            self.failed(attempt, error);
        }
        connected
    }

    /// Selects an agent and returns the number of the attempt to connect to it.
    fn start_attempt(&self, choice: &AgentOption) -> u64 {
        self.change(|state| state.select(choice))
    }

    /// The same, unless the chat is in use. The check and the selection are one step, so that of two front ends only one gets the chat.
    fn start_if_idle(&self, choice: &AgentOption) -> Result<u64, RequestError> {
        self.change(|state| {
            if state.is_busy() {
                return Err(busy(state.agent.as_deref().unwrap_or_default()));
            }
            let attempt = state.select(choice);
            state.is_reserved = true;
            Ok(attempt)
        })
    }

    pub(super) async fn disconnect(&self) {
        self.superseded.notify_waiters();
        self.change(State::end);
        self.manager.disconnect().await;
    }

    async fn command(&self, mut command: AgentCommand) -> Result<AgentReply, RequestError> {
        let execute = async |command| {
            let executed = self.manager.execute(command).await;
            executed.map_err(|error| request_error(&error))
        };
        match command {
            AgentCommand::Prompt { ref mut id, .. } | AgentCommand::MidTurn { ref mut id, .. } => {
                let _turn = self.prompts.lock().await;
                // Known to the journal before it is sent, so that it cannot be sent and then forgotten.
                let id = id.take().unwrap_or_else(|| new_epoch().to_string());
                self.prompt_once(id, command).await
            }
            AgentCommand::Rewind { turn } => self.rewind(turn).await,
            command => execute(command).await,
        }
    }

    /// Removes turns from the conversation. The event reports it.
    async fn rewind(&self, turn: usize) -> Result<AgentReply, RequestError> {
        let (turns, is_complete) = {
            let state = self.state.lock();
            (state.log.turns(), state.log.is_complete())
        };
        if !is_complete || turn >= turns {
            let message =
                "cannot rewind: the start of this conversation is no longer available; start a new session instead";
            return Err(RequestError::new(ErrorKind::Failed, message));
        }
        let rewound = self.manager.rewind(turn, turns).await;
        rewound.map_err(|error| request_error(&error))?;
        Ok(AgentReply::Done)
    }

    /// Sends a prompt, unless one with this id was sent before. Call it with `prompts` locked.
    async fn prompt_once(&self, id: String, command: AgentCommand) -> Result<AgentReply, RequestError> {
        if id.len() > MAX_PROMPT_ID_BYTES {
            let message = format!("the id of a prompt has at most {MAX_PROMPT_ID_BYTES} bytes");
            return Err(RequestError::new(ErrorKind::Failed, message));
        }
        let (AgentCommand::Prompt { blocks, .. } | AgentCommand::MidTurn { blocks, .. }) = &command else {
            return Err(RequestError::new(ErrorKind::Internal, "not a prompt"));
        };
        if let Some(prompt_id) = self.find_delivery(&id, blocks)? {
            return Ok(AgentReply::Prompt { prompt_id });
        }
        {
            let mut state = self.state.lock();
            let after = deliveries::last_accepted(&state.log);
            state.set_delivery(&id, Outcome::Unknown { after });
        }
        // The next companion must know of it if this one is killed.
        if let Err(problem) = self.writer.written().await {
            self.state.lock().set_delivery(&id, Outcome::Failed);
            return Err(RequestError::new(ErrorKind::NotSaved, problem.to_string()));
        }
        let sent = self.manager.execute(command).await;
        let outcome = match &sent {
            Ok(AgentReply::Prompt { prompt_id }) => {
                let prompt_id = prompt_id.clone();
                Some(Outcome::Accepted { prompt_id })
            }
            Err(AgentError::Daemon(DaemonError::Unconfirmed(_))) => None,
            _ => Some(Outcome::Failed),
        };
        if let Some(outcome) = outcome {
            self.state.lock().set_delivery(&id, outcome);
        }
        let sent = sent.map_err(|error| request_error(&error))?;
        let not_saved = |problem: &str| {
            let message = format!("the prompt was sent, but {problem}");
            RequestError::new(ErrorKind::NotSaved, message)
        };
        if let AgentReply::Prompt { prompt_id } = &sent
            && timeout(LOG_TIMEOUT, self.logged(prompt_id)).await.is_err()
        {
            return Err(not_saved("it is not in the log of the chat"));
        }
        self.writer.written().await.map_err(|problem| not_saved(&problem))?;
        Ok(sent)
    }

    /// Waits until a prompt that the agent accepted was logged. Its event is on the way: another task records it.
    async fn logged(&self, prompt_id: &str) {
        loop {
            let mut logged = pin!(self.prompt_logged.notified());
            // From here on no notification is missed, so the state is looked at after it.
            logged.as_mut().enable();
            if self.state.lock().recent_prompts.contain(prompt_id) {
                return;
            }
            logged.await;
        }
    }

    /// The prompt that was accepted with this id. An error if it cannot be known whether there is one.
    fn find_delivery(&self, id: &str, blocks: &[ContentBlock]) -> Result<Option<String>, RequestError> {
        let mut state = self.state.lock();
        let after = match state.deliveries.get(id) {
            None | Some(Outcome::Failed) => return Ok(None),
            Some(Outcome::Accepted { prompt_id }) => return Ok(Some(prompt_id.clone())),
            Some(Outcome::Unknown { after }) => after.clone(),
        };
        let Some(prompt_id) = deliveries::find_accepted(&state.log, after.as_deref(), blocks) else {
            let message = "the prompt may have been received before the connection was lost";
            return Err(RequestError::new(ErrorKind::AgentFailed, message));
        };
        let accepted = prompt_id.clone();
        state.set_delivery(id, Outcome::Accepted { prompt_id });
        Ok(Some(accepted))
    }

    pub(super) async fn set_writes(&self, writes: ChatWrites) -> Result<(), RequestError> {
        let file = self.choice_file.clone();
        let saving = tokio::task::spawn_blocking(move || {
            let text = serde_json::to_vec(&ChatWritesChoice { writes })?;
            write_private(&file, &text)
        });
        let kept = saving.await.unwrap_or_else(|error| Err(error.into()));
        if let Err(error) = kept {
            return Err(RequestError::new(
                ErrorKind::Failed,
                format!("cannot save this choice: {error}"),
            ));
        }
        self.change(|state| state.writes = writes);
        Ok(())
    }

    /// Whether the log is that of this session.
    fn shows(&self, session: &SessionId) -> bool {
        self.state.lock().log.session() == Some(session)
    }

    fn writes(&self) -> ChatWrites {
        self.state.lock().writes
    }

    fn failed(&self, attempt: u64, error: &RequestError) {
        if self.state.lock().attempt() != Some(attempt) {
            return;
        }
        self.notice(error.message.clone());
        self.change(State::end);
    }

    /// Broadcasts after everything that was journaled before. Call it with the state locked, to keep the order.
    fn broadcast(&self, notification: Notification) {
        let notifications = self.notifications.clone();
        let notification = SharedNotification::from(notification);
        self.writer.append(move || {
            // Fails only while no front end is connected.
            let _ = notifications.send(notification.clone());
            Ok(())
        });
    }

    /// Changes the state and broadcasts it if front ends can see the difference.
    fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state.lock();
        let before = state.changed();
        let result = change(&mut state);
        let after = state.changed();
        if after != before {
            self.broadcast(Notification::ChatChanged(after));
        }
        result
    }
}

/// The workspace's saved choice; `review` if there is none that can be read.
fn saved_choice(file: &Path) -> ChatWrites {
    let text = std::fs::read(file).unwrap_or_default();
    let choice: Option<ChatWritesChoice> = serde_json::from_slice(&text).ok();
    choice.map(|choice| choice.writes).unwrap_or_default()
}
