//! Records what the agent sends and broadcasts it.

use std::collections::BTreeSet;
use std::sync::Arc;

use alongside_agent::Position;
use alongside_core::{SessionId, SessionKey};
use alongside_journal::{Directory, OpenError};
use alongside_protocol::chat::{AgentEvent, ConnectedSession, NoticeLevel, TurnEnd};
use alongside_protocol::{ChatChanged, ChatEvent, ChatPhase, ChatWrites, Empty, Notification};

use super::Chat;
use super::agents::AgentOption;
use super::deliveries::{Deliveries, Delivery, Outcome, RecentPrompts};
use super::journal::Journal;
use super::log::{Log, Scope, is_larger_than};
use super::merge::merge;
use super::resume::Resume;
use crate::writer::Writer;

/// A larger event is not broadcast; front ends fetch it.
const MAX_NOTIFICATION_BYTES: usize = 1024 * 1024;

/// Where a rewind cannot be applied to what is shown.
const NOT_REWOUND: &str =
    "The conversation was rewound to an earlier point. Reopen the session to see its current state.";

/// The connection to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Idle,
    /// Until the attempt succeeds or fails, the end of the previous connection does not change the phase.
    Connecting {
        attempt: u64,
        /// Whether the log stays even if the session is another one.
        keep_log: bool,
    },
    Connected,
    Interrupted,
    Ended,
}

/// The chat of a companion.
pub(super) struct State {
    pub(super) log: Log,
    pub(super) deliveries: Deliveries,
    pub(super) recent_prompts: RecentPrompts,
    journal: Journal,
    pub(super) epoch: Arc<str>,
    pub(super) sequence: u64,
    pub(super) agent: Option<String>,
    phase: Phase,
    /// Counts the attempts to connect.
    attempts: u64,
    pub(super) writes: ChatWrites,
    /// The session that the log belongs to.
    session: Option<SessionId>,
    /// How far the log goes in the events of a daemon.
    position: Option<Position>,
    /// The events of a history that will be merged with the log.
    gathering: Option<Vec<AgentEvent>>,
    /// The session of a local agent in the core, while connected to one.
    pub(super) local: Option<SessionKey>,
    /// What to resume after a restart.
    pub(super) resume: Option<Resume>,
    /// The daemon's address, which must not reach a front end.
    pub(super) address: Option<String>,
    /// The front end that connected has not sent its prompt.
    pub(super) is_reserved: bool,
    /// The accepted prompts whose turns have not ended.
    unanswered: BTreeSet<String>,
}

impl State {
    /// Restores the chat from its journal.
    pub(super) fn restore(directory: &Directory, writes: ChatWrites, thread: Arc<Writer>) -> Result<Self, OpenError> {
        let (mut journal, kept) = Journal::open(directory, thread)?;
        let mut log = Log::default();
        for event in kept.events {
            log.push(event);
        }
        let resume = Resume::new(kept.agent.as_deref(), &log, kept.position.as_ref());
        if !log.is_empty() {
            // As short as it can be.
            let deliveries = kept.deliveries.iter();
            journal.rewrite(kept.agent.as_deref(), kept.position.as_ref(), deliveries, log.events());
        }
        let mut state = Self {
            session: log.session().cloned(),
            log,
            deliveries: kept.deliveries,
            recent_prompts: RecentPrompts::default(),
            journal,
            epoch: new_epoch(),
            sequence: 0,
            agent: kept.agent,
            phase: Phase::Idle,
            attempts: 0,
            writes,
            position: kept.position,
            gathering: None,
            local: None,
            resume,
            address: None,
            is_reserved: false,
            unanswered: BTreeSet::new(),
        };
        if state.resume.is_some() {
            state.start_attempt();
        } else {
            state.end();
        }
        Ok(state)
    }

    pub(super) fn changed(&self) -> ChatChanged {
        ChatChanged {
            agent: self.agent.clone(),
            phase: match self.phase {
                Phase::Idle => ChatPhase::Idle,
                Phase::Connecting { .. } => ChatPhase::Connecting,
                Phase::Connected => ChatPhase::Connected,
                Phase::Interrupted => ChatPhase::Interrupted,
                Phase::Ended => ChatPhase::Ended,
            },
            writes: self.writes,
        }
    }

    /// Selects an agent and returns the number of the attempt to connect to it.
    pub(super) fn select(&mut self, choice: &AgentOption) -> u64 {
        self.agent = Some(choice.id.clone());
        self.address = choice.address();
        self.is_reserved = false;
        self.start_attempt()
    }

    /// Returns the number of the attempt.
    pub(super) fn start_attempt(&mut self) -> u64 {
        self.attempts += 1;
        self.phase = Phase::Connecting {
            attempt: self.attempts,
            keep_log: false,
        };
        self.attempts
    }

    /// The number of the running attempt.
    pub(super) fn attempt(&self) -> Option<u64> {
        match self.phase {
            Phase::Connecting { attempt, .. } => Some(attempt),
            _ => None,
        }
    }

    /// Keeps the log although the attempt opens a new session.
    pub(super) fn keep_log(&mut self) {
        if let Phase::Connecting { keep_log, .. } = &mut self.phase {
            *keep_log = true;
        }
    }

    /// Whether another connection would take an answer, or the chance to ask, from a front end.
    pub(super) fn is_busy(&self) -> bool {
        match self.phase {
            Phase::Idle | Phase::Ended => false,
            Phase::Connecting { .. } => true,
            Phase::Connected | Phase::Interrupted => {
                self.is_reserved || !self.unanswered.is_empty() || self.log.is_running()
            }
        }
    }

    /// There is no connection.
    pub(super) fn end(&mut self) {
        self.phase = if self.log.is_empty() { Phase::Idle } else { Phase::Ended };
    }

    fn rewrite(&mut self) {
        let events = self.log.events();
        let deliveries = self.deliveries.iter();
        self.journal
            .rewrite(self.agent.as_deref(), self.position.as_ref(), deliveries, events);
    }

    /// Journals what became of a prompt.
    pub(super) fn set_delivery(&mut self, id: &str, outcome: Outcome) {
        let id = id.to_owned();
        let delivery = Delivery { id, outcome };
        self.journal.add_delivery(&delivery);
        self.deliveries.set(delivery);
    }

    /// Adds an event to the log and returns its notification.
    fn push(&mut self, event: Arc<AgentEvent>) -> Notification {
        self.sequence += 1;
        match &*event {
            AgentEvent::PromptAccepted { prompt_id: id, .. } => {
                self.recent_prompts.add(id);
                self.unanswered.insert(id.clone());
                self.is_reserved = false;
            }
            AgentEvent::MidTurnMessage {
                message_id: Some(id),
                own: true,
                ..
            } => self.recent_prompts.add(id),
            AgentEvent::TurnEnded {
                prompt_id: Some(id), ..
            }
            | AgentEvent::PromptUnqueued {
                prompt_id: id,
                removed: true,
            } => {
                self.unanswered.remove(id);
            }
            AgentEvent::Connected(_) | AgentEvent::Disconnected { .. } => self.unanswered.clear(),
            _ => {}
        }
        self.log.push(Arc::clone(&event));
        if is_larger_than(&event, MAX_NOTIFICATION_BYTES) {
            return Notification::Resync(Empty {});
        }
        Notification::ChatEvent(ChatEvent {
            epoch: Arc::clone(&self.epoch),
            sequence: self.sequence,
            event,
        })
    }
}

impl Chat {
    /// Handles an event of the agent, with the position after it.
    pub(super) fn take(&self, mut event: AgentEvent, position: Option<&Position>) {
        match &event {
            AgentEvent::Connected(session) => self.connected(session),
            AgentEvent::Interrupted { .. } => self.change(|state| {
                if state.phase == Phase::Connected {
                    state.phase = Phase::Interrupted;
                }
            }),
            AgentEvent::Reconnected => self.change(|state| {
                if state.phase == Phase::Interrupted {
                    state.phase = Phase::Connected;
                }
            }),
            AgentEvent::Disconnected { reason, .. } => {
                self.settle(reason);
                self.change(|state| {
                    if state.attempt().is_none() {
                        state.phase = Phase::Ended;
                    }
                });
            }
            AgentEvent::HistoryEnd if self.end_history(position) => return,
            AgentEvent::Rewound { .. } if !self.state.lock().log.is_complete() => {
                // Turns are counted from the first.
                event = AgentEvent::Notice {
                    level: NoticeLevel::Warning,
                    message: NOT_REWOUND.to_owned(),
                };
            }
            _ => {}
        }
        {
            let mut state = self.state.lock();
            if let Some(address) = state.address.as_deref() {
                redact(&mut event, address);
            }
            if matches!(event, AgentEvent::HistoryStart { .. }) && state.log.has_conversation() {
                state.gathering = Some(Vec::new());
            }
            if let Some(gathering) = &mut state.gathering
                && Scope::of(&event) != Scope::Session
            {
                gathering.push(event);
                return;
            }
        }
        self.record(event, position);
    }

    /// Closes everything pending.
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

    /// Starts a new log if the session is not the one that the log belongs to.
    fn connected(&self, session: &ConnectedSession) {
        let forgotten = self.change(|state| {
            let is_other = state.session.as_ref() != Some(&session.session_id);
            let keep_log = matches!(state.phase, Phase::Connecting { keep_log: true, .. });
            if is_other {
                state.session = Some(session.session_id.clone());
                state.position = None;
                if !keep_log {
                    state.log = Log::default();
                    state.epoch = new_epoch();
                }
            }
            state.gathering = None;
            state.phase = Phase::Connected;
            state.rewrite();
            is_other && keep_log && state.log.has_conversation()
        });
        if forgotten {
            self.notice("The agent was restarted and does not remember the conversation above.");
        }
    }

    /// The end of a history of a conversation that was shown before. A local agent's history was all shown before; a daemon may know
    /// more or less. `false` if nothing was gathered.
    fn end_history(&self, position: Option<&Position>) -> bool {
        let mut state = self.state.lock();
        let Some(gathered) = state.gathering.take() else {
            return false;
        };
        if state.local.is_some() {
            return true;
        }
        let mut gathered = gathered.into_iter();
        let start = gathered.next();
        let merged = merge(state.log.conversation(), gathered.collect());
        state.position = position.cloned();
        for event in start.into_iter().chain(merged).chain([AgentEvent::HistoryEnd]) {
            let notification = state.push(Arc::new(event));
            self.broadcast(notification);
        }
        self.prompt_logged.notify_waiters();
        // All at once: half of it would be neither what was shown nor what the daemon has.
        state.rewrite();
        true
    }

    pub(super) fn notice(&self, message: impl Into<String>) {
        let (level, message) = (NoticeLevel::Warning, message.into());
        self.record(AgentEvent::Notice { level, message }, None);
    }

    /// Journals an event and broadcasts it.
    pub(super) fn record(&self, event: AgentEvent, position: Option<&Position>) {
        let event = Arc::new(event);
        let mut state = self.state.lock();
        if let Some(position) = position {
            state.position = Some(position.clone());
        }
        // Journal before broadcasting, so that front ends can catch up after a restart.
        state.journal.add(&event, position);
        let notification = state.push(event);
        self.prompt_logged.notify_waiters();
        if state.journal.is_long() {
            state.rewrite();
        }
        self.broadcast(notification);
    }
}

/// A unique name for a log.
pub(super) fn new_epoch() -> Arc<str> {
    let mut bytes = [0; 8];
    // Without randomness the clock must do: no two logs start at the same time.
    if getrandom::fill(&mut bytes).is_err() {
        let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
        let nanoseconds = since.unwrap_or_default().as_nanos();
        bytes = u64::try_from(nanoseconds & u128::from(u64::MAX))
            .unwrap_or_default()
            .to_le_bytes();
    }
    format!("{:016x}", u64::from_le_bytes(bytes)).into()
}

/// Removes the daemon's address from messages about the connection. What the agent itself says stays as it is.
fn redact(event: &mut AgentEvent, address: &str) {
    let text = match event {
        AgentEvent::Interrupted { reason, .. } | AgentEvent::Disconnected { reason, .. } => reason,
        AgentEvent::Notice { message, .. }
        | AgentEvent::TurnEnded {
            end: TurnEnd::Failed { message, .. },
            ..
        } => message,
        _ => return,
    };
    let bare = address.trim_end_matches('/');
    *text = text
        .replace(&format!(" at {address}"), "")
        .replace(address, "…")
        .replace(bare, "…");
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;
    use crate::journal::Slot;
    use crate::test_companion;

    #[tokio::test]
    async fn prompt_that_left_the_log_at_once_was_logged() {
        let scratch = tempfile::tempdir().unwrap();
        let slot = Slot::take(
            &test_companion::places(&scratch),
            "editor",
            &[scratch.path().to_owned()],
        )
        .unwrap();
        let companion = test_companion::start(&scratch, &slot, crate::Host::default());
        let chat = &companion.chat;
        let (prompt_id, text) = ("p1".to_owned(), "hello".to_owned());
        assert!(chat.logged("p1").now_or_never().is_none());
        chat.record(AgentEvent::PromptAccepted { prompt_id, text }, None);
        let (prompt_id, removed) = ("p1".to_owned(), true);
        chat.record(AgentEvent::PromptUnqueued { prompt_id, removed }, None);
        assert!(chat.logged("p1").now_or_never().is_some());
    }
}
