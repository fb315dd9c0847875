//! The chat: one agent that the companion speaks to directly, shared by all front ends.
//!
//! An [`AgentManager`] has the conversation. What it tells goes through one task into the [`Log`], and from there, numbered, to the front
//! ends that want it. Nothing is started or connected to before a person asks.

mod agents;
mod log;
mod requests;

use std::path::PathBuf;
use std::sync::Arc;

use alongside_agent::acp::{AllowWrites, ReviewGate};
use alongside_agent::ide::OpenSession;
use alongside_agent::{AgentCommand, AgentEvent, AgentManager, AgentReply, EventReceiver};
use alongside_front::Refusal;
use alongside_front::protocol::{
    ChatAgent, ChatChanged, ChatEvent, ChatPhase, ChatState, ChatWrites, Nothing, Notification,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

use agents::Choice;
use log::Log;
use requests::{given_up_refusal, refusal};

pub(super) use requests::difference;

/// How many events a front end may be behind before it has to ask again.
const NEWS_KEPT: usize = 512;
/// An event with more bytes than this is not told: whoever shows the chat asks for it.
const LARGEST_NEWS: usize = 1024 * 1024;

/// The chat of one companion.
pub(crate) struct Chat {
    manager: AgentManager,
    /// What the agent tells, until somebody listens.
    events: Mutex<Option<EventReceiver>>,
    state: Mutex<State>,
    news: broadcast::Sender<Notification>,
    /// An attempt to connect is not wanted any more.
    given_up: Notify,
    /// Prompts reach the agent in the order in which they were said.
    prompts: tokio::sync::Mutex<()>,
}

struct State {
    log: Log,
    epoch: Arc<str>,
    sequence: u64,
    agent: Option<String>,
    /// Counts the attempts to connect, so that one that was given up changes nothing any more.
    attempt: u64,
    connecting: bool,
    link: ChatPhase,
    writes: ChatWrites,
    /// The session that the log is of.
    session: Option<String>,
    /// What must not reach a front end: the address of the daemon.
    address: Option<String>,
}

impl State {
    fn changed(&self) -> ChatChanged {
        ChatChanged {
            agent: self.agent.clone(),
            phase: if self.connecting {
                ChatPhase::Connecting
            } else {
                self.link
            },
            writes: self.writes,
        }
    }
}

impl Chat {
    pub(super) fn new() -> Self {
        let (manager, events) = AgentManager::new();
        let state = State {
            log: Log::default(),
            epoch: new_epoch(),
            sequence: 0,
            agent: None,
            attempt: 0,
            connecting: false,
            link: ChatPhase::Idle,
            writes: ChatWrites::Review,
            session: None,
            address: None,
        };
        Self {
            manager,
            events: Mutex::new(Some(events)),
            state: Mutex::new(state),
            news: broadcast::channel(NEWS_KEPT).0,
            given_up: Notify::new(),
            prompts: tokio::sync::Mutex::default(),
        }
    }

    /// What happens in the chat from now on.
    pub(super) fn news(&self) -> broadcast::Receiver<Notification> {
        self.news.subscribe()
    }

    /// Takes down what the agent tells, as long as somebody holds this.
    pub(super) async fn listen(&self) {
        let Some(mut events) = self.events.lock().take() else {
            return;
        };
        while let Some(event) = events.recv().await {
            self.take(&event);
        }
    }

    /// Leaves the agent, because the companion ends.
    pub(super) async fn end(&self) {
        self.given_up.notify_waiters();
        self.manager.disconnect().await;
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

    /// Connects to an agent, in place of the one before.
    async fn connect(&self, choice: &Choice, workspace: PathBuf) -> Result<(), Refusal> {
        let gate: Arc<dyn ReviewGate> = Arc::new(AllowWrites);
        let open = if choice.is_child() {
            OpenSession::New
        } else {
            OpenSession::CreateOrAttach
        };
        let target = choice
            .target(workspace, gate, open)
            .map_err(|unusable| Refusal::new("agentUnusable", unusable.0))?;
        self.given_up.notify_waiters();
        let given_up = self.given_up.notified();
        let attempt = self.change(|state| {
            state.agent = Some(choice.id.clone());
            state.address = choice.address();
            state.attempt += 1;
            state.connecting = true;
            state.attempt
        });
        let connected = tokio::select! {
            connected = self.manager.connect(target) => connected.map(drop).map_err(|error| refusal(&error)),
            () = given_up => Err(given_up_refusal()),
        };
        if let Err(refusal) = &connected {
            self.failed(attempt, refusal);
        }
        connected
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
    pub(super) async fn command(&self, command: Value) -> Result<Value, Refusal> {
        let command: AgentCommand = serde_json::from_value(command)
            .map_err(|error| Refusal::new("badCommand", format!("this is no command for an agent: {error}")))?;
        let opens = matches!(command, AgentCommand::NewSession | AgentCommand::LoadSession { .. });
        let reply = if opens {
            self.open(command).await?
        } else {
            let _turn = match command {
                AgentCommand::Prompt { .. } => Some(self.prompts.lock().await),
                _ => None,
            };
            self.manager.execute(command).await.map_err(|error| refusal(&error))?
        };
        serde_json::to_value(reply).map_err(|error| Refusal::new("internal", error.to_string()))
    }

    /// Opens another session, which connects if there is no connection.
    async fn open(&self, command: AgentCommand) -> Result<AgentReply, Refusal> {
        let given_up = self.given_up.notified();
        let attempt = self.change(|state| {
            state.attempt += 1;
            state.connecting = !self.manager.is_connected();
            state.attempt
        });
        let opened = tokio::select! {
            opened = self.manager.execute(command) => opened.map_err(|error| refusal(&error)),
            () = given_up => Err(given_up_refusal()),
        };
        if let Err(refusal) = &opened
            && !self.manager.is_connected()
        {
            self.failed(attempt, refusal);
        }
        opened
    }

    /// Chooses what happens to files that a child wants to write.
    pub(super) fn set_writes(&self, writes: ChatWrites) {
        self.change(|state| state.writes = writes);
    }

    fn failed(&self, attempt: u64, refusal: &Refusal) {
        if self.state.lock().attempt != attempt {
            return;
        }
        self.record(json!({"type": "notice", "level": "warning", "message": refusal.message}));
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

    /// Takes what the agent tells.
    fn take(&self, event: &AgentEvent) {
        let Ok(mut value) = serde_json::to_value(event) else {
            return;
        };
        match event {
            AgentEvent::Connected(session) => self.connected(&session.session_id),
            AgentEvent::Interrupted { .. } => self.change(|state| state.link = ChatPhase::Interrupted),
            AgentEvent::Reconnected => self.change(|state| state.link = ChatPhase::Connected),
            AgentEvent::Disconnected { reason, .. } => {
                let settled = self.state.lock().log.settle(reason);
                for event in settled {
                    self.record(event);
                }
                self.change(|state| state.link = ChatPhase::Over);
            }
            _ => {}
        }
        if let Some(address) = self.state.lock().address.as_deref() {
            blot_out(&mut value, address);
        }
        self.record(value);
    }

    /// There is a session. If it is another one than the log is of, the log begins anew.
    fn connected(&self, session: &str) {
        self.change(|state| {
            if state.session.as_deref() != Some(session) {
                state.log = Log::default();
                state.epoch = new_epoch();
                state.session = Some(session.to_owned());
            }
            state.connecting = false;
            state.link = ChatPhase::Connected;
        });
    }

    /// Takes an event down and tells it.
    fn record(&self, event: Value) {
        let event = Arc::new(event);
        let mut state = self.state.lock();
        state.sequence += 1;
        state.log.push(Arc::clone(&event));
        let large = self.news.receiver_count() > 0 && is_large(&event);
        let notification = if large {
            Notification::Resync(Nothing {})
        } else {
            Notification::ChatEvent(ChatEvent {
                epoch: Arc::clone(&state.epoch),
                sequence: state.sequence,
                event,
            })
        };
        // Nobody may listen. Told with the lock held, so that it is told in order.
        let _ = self.news.send(notification);
    }
}

/// A name for a log that no other log has.
fn new_epoch() -> Arc<str> {
    let mut bytes = [0; 8];
    // Without randomness the clock must do: a log is not begun twice in the same moment.
    if getrandom::fill(&mut bytes).is_err() {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanoseconds = since.unwrap_or_default().as_nanos();
        bytes = u64::try_from(nanoseconds & u128::from(u64::MAX))
            .unwrap_or_default()
            .to_le_bytes();
    }
    format!("{:016x}", u64::from_le_bytes(bytes)).into()
}

/// Takes an address out of what is said about a connection. What the agent itself says is left alone.
fn blot_out(event: &mut Value, address: &str) {
    let field = match log::kind(event) {
        "interrupted" | "disconnected" => "/reason",
        "notice" => "/message",
        "turnEnded" => "/end/message",
        _ => return,
    };
    if let Some(Value::String(text)) = event.pointer_mut(field) {
        let bare = address.trim_end_matches('/');
        *text = text
            .replace(&format!(" at {address}"), "")
            .replace(address, "…")
            .replace(bare, "…");
    }
}

fn is_large(event: &Value) -> bool {
    /// Counts bytes without keeping them.
    struct Count(usize);
    impl std::io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    serde_json::to_writer(&mut count, event).is_ok() && count.0 > LARGEST_NEWS
}
