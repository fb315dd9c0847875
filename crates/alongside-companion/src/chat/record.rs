//! What the agent tells is taken down, and told.

use std::path::PathBuf;
use std::sync::Arc;

use alongside_agent::{AgentEvent, ConnectedSession, Position};
use alongside_core::SessionKey;
use alongside_protocol::{ChatChanged, ChatEvent, ChatPhase, ChatWrites, Nothing, Notification};
use serde_json::{Value, json};

use super::Chat;
use super::journal::Journal;
use super::log::{self, Log};
use super::merge::merge;
use super::resume::Resume;

/// An event with more bytes than this is not told: whoever shows the chat asks for it.
const LARGEST_NEWS: usize = 1024 * 1024;

/// What a chat is like.
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub(super) struct State {
    pub(super) log: Log,
    journal: Journal,
    pub(super) epoch: Arc<str>,
    pub(super) sequence: u64,
    pub(super) agent: Option<String>,
    /// Counts the attempts to connect, so that one that was given up changes nothing any more.
    pub(super) attempt: u64,
    pub(super) connecting: bool,
    pub(super) link: ChatPhase,
    pub(super) writes: ChatWrites,
    /// The session that the log is of.
    session: Option<String>,
    /// How far the log goes in the events of a daemon.
    position: Option<Position>,
    /// A history that is being told, and that does not simply take the place of what was shown.
    gathering: Option<Vec<Value>>,
    is_child: bool,
    /// The next session is another one, and what was shown stays all the same.
    pub(super) keep_text: bool,
    /// What to go on with after a restart.
    pub(super) resume: Option<Resume>,
    /// The session of the core that a child is.
    pub(super) core_session: Option<SessionKey>,
    /// The modes of the session are not known yet, and it shall begin in the one that fits reviews.
    pub(super) mode_pending: bool,
    /// What must not reach a front end: the address of the daemon.
    pub(super) address: Option<String>,
}

impl State {
    /// What was kept at a path.
    pub(super) fn restore(path: PathBuf, writes: ChatWrites) -> Self {
        let (mut journal, kept) = Journal::open(path);
        let mut log = Log::default();
        for event in kept.events {
            log.push(event);
        }
        let resume = Resume::of(kept.agent.as_deref(), &log, kept.position.as_ref());
        let link = if log.is_empty() {
            ChatPhase::Idle
        } else {
            ChatPhase::Over
        };
        if !log.is_empty() {
            // Without what was cut off.
            journal.rewrite(kept.agent.as_deref(), kept.position.as_ref(), log.events());
        }
        Self {
            session: log.session().map(str::to_owned),
            log,
            journal,
            epoch: new_epoch(),
            sequence: 0,
            agent: kept.agent,
            attempt: 0,
            connecting: resume.is_some(),
            link,
            writes,
            position: kept.position,
            gathering: None,
            is_child: false,
            keep_text: false,
            resume,
            core_session: None,
            mode_pending: false,
            address: None,
        }
    }

    pub(super) fn changed(&self) -> ChatChanged {
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

    fn rewrite(&mut self) {
        let events = self.log.events();
        self.journal
            .rewrite(self.agent.as_deref(), self.position.as_ref(), events);
    }

    /// Puts an event into the log, and gives what is told of it.
    fn push(&mut self, event: Arc<Value>) -> Notification {
        self.sequence += 1;
        self.log.push(Arc::clone(&event));
        if is_large(&event) {
            return Notification::Resync(Nothing {});
        }
        Notification::ChatEvent(ChatEvent {
            epoch: Arc::clone(&self.epoch),
            sequence: self.sequence,
            event,
        })
    }
}

impl Chat {
    /// Takes what the agent tells, and where in its events that is.
    pub(super) fn take(&self, event: &AgentEvent, position: Option<&Position>) {
        let Ok(mut value) = serde_json::to_value(event) else {
            return;
        };
        match event {
            AgentEvent::Connected(session) => self.connected(session),
            AgentEvent::Interrupted { .. } => self.change(|state| state.link = ChatPhase::Interrupted),
            AgentEvent::Reconnected => self.change(|state| state.link = ChatPhase::Connected),
            AgentEvent::Disconnected { reason, .. } => {
                self.settle(reason);
                self.change(|state| state.link = ChatPhase::Over);
            }
            AgentEvent::HistoryEnd if self.end_history(position) => return,
            _ => {}
        }
        {
            let mut state = self.state.lock();
            if let Some(address) = state.address.as_deref() {
                blot_out(&mut value, address);
            }
            let begins = matches!(event, AgentEvent::HistoryStart { .. }) && state.log.has_conversation();
            if begins {
                state.gathering = Some(Vec::new());
            }
            if let Some(gathering) = &mut state.gathering
                && !log::is_about_the_session(&value)
            {
                gathering.push(value);
                return;
            }
        }
        self.record(value, position);
    }

    /// Tells that nothing goes on any more.
    pub(super) fn settle(&self, reason: &str) {
        let settled = {
            let mut state = self.state.lock();
            state.gathering = None;
            state.log.settle(reason)
        };
        for event in settled {
            self.record(event, None);
        }
    }

    /// There is a session. If it is another one than the log is of, the log begins anew.
    fn connected(&self, session: &ConnectedSession) {
        let forgotten = self.change(|state| {
            let is_other = state.session.as_deref() != Some(&session.session_id);
            let keep_text = std::mem::take(&mut state.keep_text);
            if is_other {
                state.session = Some(session.session_id.clone());
                state.position = None;
                if !keep_text {
                    state.log = Log::default();
                    state.epoch = new_epoch();
                }
            }
            state.gathering = None;
            state.is_child = session.abilities.reviews_writes;
            state.connecting = false;
            state.link = ChatPhase::Connected;
            state.rewrite();
            is_other && keep_text && state.log.has_conversation()
        });
        if forgotten {
            let message = "The agent was restarted and does not remember the conversation above.";
            self.record(json!({"type": "notice", "level": "warning", "message": message}), None);
        }
    }

    /// A history was told of a conversation that was shown before. What a child remembers was all shown, and ends with what was said to
    /// it before; a daemon may know more, or less. `false` if there is nothing to put together.
    fn end_history(&self, position: Option<&Position>) -> bool {
        let mut state = self.state.lock();
        let Some(gathered) = state.gathering.take() else {
            return false;
        };
        if state.is_child {
            return true;
        }
        let mut gathered = gathered.into_iter();
        let start = gathered.next();
        let merged = merge(state.log.conversation(), gathered.collect());
        state.position = position.cloned();
        let end = json!({"type": "historyEnd"});
        for event in start.into_iter().chain(merged).chain([end]) {
            let notification = state.push(Arc::new(event));
            let _ = self.news.send(notification);
        }
        // In one piece: half of it would not be what was shown, nor what the daemon has.
        state.rewrite();
        true
    }

    /// Takes an event down and tells it.
    pub(super) fn record(&self, event: Value, position: Option<&Position>) {
        let event = Arc::new(event);
        let mut state = self.state.lock();
        if let Some(position) = position {
            state.position = Some(position.clone());
        }
        // Whoever is told of something must find it again after a restart.
        state.journal.add(&event, position);
        let notification = state.push(event);
        if state.journal.is_long() {
            state.rewrite();
        }
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
