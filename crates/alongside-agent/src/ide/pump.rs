//! Keeps the events of a session coming.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::Shared;
use super::open::{Opened, Past, State, state_of};
use super::talk::Talk;
use crate::daemon::{Cursor, DaemonError, DaemonEvent, DaemonSessionClient, EventKind, EventStream, StreamItem};
use alongside_protocol::chat::{AgentEvent, DisconnectKind, NoticeLevel};

/// How often the daemon is told that we are still here.
const HEARTBEAT: Duration = Duration::from_secs(30);

/// The task that reads the events of one session. Dropping it stops it: an old one has no say in what is current.
pub(super) struct Pump {
    task: JoinHandle<()>,
}

impl Drop for Pump {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Pump {
    pub(super) fn start(shared: &Weak<Shared>, opened: Opened, talk: Arc<Mutex<Talk>>) -> Result<Self, DaemonError> {
        let stream = opened.session.events()?;
        let work = Work {
            shared: shared.clone(),
            session: opened.session.clone(),
            talk,
            interrupted: false,
        };
        // Told before anybody can act on the session, and so before anything that comes of that.
        work.begin(opened);
        Ok(Self {
            task: tokio::spawn(work.run(stream)),
        })
    }
}

struct Work {
    shared: Weak<Shared>,
    session: DaemonSessionClient,
    talk: Arc<Mutex<Talk>>,
    interrupted: bool,
}

impl Work {
    async fn run(mut self, mut stream: EventStream) {
        let mut heartbeat = tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT, HEARTBEAT);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let item = tokio::select! {
                item = stream.next() => item,
                _ = heartbeat.tick() => {
                    let session = self.session.clone();
                    // Whether it arrives makes no difference to the events.
                    tokio::spawn(async move { session.heartbeat().await });
                    continue;
                }
            };
            let end = match item {
                Some(Ok(item)) => self.take(item, stream.cursor()).await,
                Some(Err(error)) => Some(self.failure(&error)),
                None => Some((DisconnectKind::Closed, "the session ended".to_owned())),
            };
            if let Some((kind, reason)) = end {
                stream.commit();
                return self.end(kind, reason);
            }
        }
    }

    /// Tells that there is a session, and what it is like.
    fn begin(&self, opened: Opened) {
        let cursor = opened.session.cursor();
        let connected = AgentEvent::Connected(opened.connected);
        let mut talk = self.talk.lock();
        match opened.past {
            Past::None => {
                let mut events = vec![connected];
                events.extend(state(&mut talk, opened.state));
                talk.tell_together(events, cursor);
            }
            Past::History(history) => {
                let mut events = vec![connected];
                events.extend(talk.history("loaded", history));
                events.extend(state(&mut talk, opened.state));
                talk.tell_together(events, cursor);
            }
            // What waits and what is open is told by the events that were missed, in their order.
            Past::Told(position, history) => {
                talk.translator.mode = opened.state.mode();
                talk.resume(*position, history, opened.state.open.unwrap_or_default());
                talk.tell([connected]);
                talk.tell(opened.state.events);
            }
        }
    }

    /// Does something about an item. `Some` if the session is over.
    async fn take(&mut self, item: StreamItem, cursor: Cursor) -> Option<(DisconnectKind, String)> {
        match item {
            StreamItem::Connected => {
                let mut talk = self.talk.lock();
                talk.translator.stream_begins();
                talk.know_epoch(cursor);
                if std::mem::take(&mut self.interrupted) {
                    talk.tell([AgentEvent::Reconnected]);
                }
            }
            StreamItem::Interrupted { reason, retry_in } => {
                self.interrupted = true;
                let retry_in_milliseconds = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX);
                self.talk.lock().tell([AgentEvent::Interrupted {
                    reason,
                    retry_in_milliseconds,
                }]);
            }
            StreamItem::Rebuilt { reason, history } => {
                let now = state_of(&self.session).await;
                let in_force = now.mode();
                let before = {
                    let mut talk = self.talk.lock();
                    let before = talk.translator.mode.clone();
                    let mut events = talk.history(&reason, history);
                    events.extend(state(&mut talk, now));
                    talk.tell_together(events, cursor);
                    before
                };
                let is_new_life = matches!(reason.as_str(), "session_reopened" | "epoch_reset");
                if let Some(mode) = before.filter(|mode| is_new_life && in_force.as_ref() != Some(mode)) {
                    self.restore_mode(mode).await;
                }
            }
            StreamItem::Event(event) => return self.event(*event, cursor),
        }
        None
    }

    fn event(&mut self, event: DaemonEvent, cursor: Cursor) -> Option<(DisconnectKind, String)> {
        let own = |session: &Option<String>| session.as_deref() == Some(self.session.session_id());
        let end = match &event.kind {
            EventKind::SessionDied { session_id, reason } if own(session_id) => {
                Some((DisconnectKind::Died, reason.clone()))
            }
            EventKind::SessionClosed { session_id, reason, .. } if own(session_id) => {
                Some((DisconnectKind::Closed, reason.clone()))
            }
            _ => None,
        };
        self.talk.lock().tell_event(event, cursor, &self.session);
        end
    }

    /// Puts the mode in force again that a restarted daemon has forgotten: what a person wants to be asked about is not for a restart to
    /// decide. That it is in force is told by an event.
    async fn restore_mode(&self, mode: String) {
        if let Err(error) = self.session.set_approval_mode(&mode).await {
            let message = format!("The daemon restarted and is no longer in mode {mode}: {error}");
            self.talk.lock().tell([AgentEvent::Notice {
                level: NoticeLevel::Warning,
                message,
            }]);
        }
    }

    fn failure(&self, error: &DaemonError) -> (DisconnectKind, String) {
        let kind = if error.is_session_gone() {
            DisconnectKind::Closed
        } else if error.is_unauthorised() {
            DisconnectKind::Unauthorised
        } else {
            DisconnectKind::Failed
        };
        tracing::warn!(%error, session = self.session.session_id(), "a session's event stream ended");
        (kind, error.to_string())
    }

    /// The session is over. If another one has taken its place, nobody is told.
    fn end(&self, kind: DisconnectKind, reason: String) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut current = shared.current.lock();
        if current
            .as_ref()
            .is_some_and(|current| Arc::ptr_eq(&current.talk, &self.talk))
        {
            // Dropping it stops this very task, at its next pause; there is none before its end.
            *current = None;
            self.talk.lock().end(AgentEvent::Disconnected {
                kind,
                reason,
                reopen: Some(self.session.session_id().to_owned()),
            });
        }
    }
}

/// What a session is like beside its conversation.
fn state(talk: &mut Talk, state: State) -> Vec<AgentEvent> {
    if let Some(mode) = state.mode() {
        talk.translator.mode = Some(mode);
    }
    let mut events = state.events;
    events.extend(talk.translator.set_prompts(state.prompts));
    if let Some(open) = state.open {
        events.extend(talk.translator.set_open(open));
    }
    events
}
