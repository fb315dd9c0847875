//! Keeps the events of a session coming.

use std::sync::{Arc, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::Shared;
use super::open::{Opened, State, state_of};
use super::translator::{Source, Translator};
use crate::daemon::{DaemonError, DaemonEvent, DaemonSessionClient, EventKind, EventStream, StreamItem};
use crate::event::{AgentEvent, DisconnectKind, NoticeLevel};

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
    pub(super) fn start(
        shared: &Weak<Shared>,
        opened: Opened,
        talk: Arc<Mutex<Translator>>,
    ) -> Result<Self, DaemonError> {
        let stream = opened.session.events()?;
        let work = Work {
            shared: shared.clone(),
            session: opened.session.clone(),
            talk,
            interrupted: false,
        };
        Ok(Self {
            task: tokio::spawn(work.run(stream, opened)),
        })
    }
}

struct Work {
    shared: Weak<Shared>,
    session: DaemonSessionClient,
    talk: Arc<Mutex<Translator>>,
    interrupted: bool,
}

impl Work {
    async fn run(mut self, mut stream: EventStream, opened: Opened) {
        self.tell([AgentEvent::Connected(opened.connected)]);
        if let Some(history) = opened.history {
            self.tell_history("loaded", history);
        }
        self.tell_state(opened.state);
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
                Some(Ok(item)) => self.take(item).await,
                Some(Err(error)) => Some(self.failure(&error)),
                None => Some((DisconnectKind::Closed, "the session ended".to_owned())),
            };
            if let Some((kind, reason)) = end {
                stream.commit();
                return self.end(kind, reason);
            }
        }
    }

    /// Does something about an item. `Some` if the session is over.
    async fn take(&mut self, item: StreamItem) -> Option<(DisconnectKind, String)> {
        match item {
            StreamItem::Connected => {
                self.talk.lock().stream_begins();
                if std::mem::take(&mut self.interrupted) {
                    self.tell([AgentEvent::Reconnected]);
                }
            }
            StreamItem::Interrupted { reason, retry_in } => {
                self.interrupted = true;
                let retry_in_milliseconds = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX);
                self.tell([AgentEvent::Interrupted {
                    reason,
                    retry_in_milliseconds,
                }]);
            }
            StreamItem::Rebuilt { reason, history } => {
                self.tell_history(&reason, history);
                let state = state_of(&self.session).await;
                self.tell_state(state);
            }
            StreamItem::Event(event) => return self.event(*event),
        }
        None
    }

    fn event(&mut self, event: DaemonEvent) -> Option<(DisconnectKind, String)> {
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
        let client_id = self.session.client_id();
        let mut talk = self.talk.lock();
        let events = talk.translate(event, Source::Stream, client_id.as_deref());
        // Told with the lock held: whoever acts on the same conversation must not get in between.
        self.tell(events);
        end
    }

    fn tell_history(&self, reason: &str, history: Vec<DaemonEvent>) {
        let mut talk = self.talk.lock();
        talk.forget();
        let reason = reason.to_owned();
        self.tell([AgentEvent::HistoryStart { reason }]);
        for event in history {
            if let EventKind::HistoryTruncated { .. } = event.kind {
                let message = "The beginning of this conversation is too long ago to be shown.".to_owned();
                self.tell([AgentEvent::Notice {
                    level: NoticeLevel::Information,
                    message,
                }]);
            }
            self.tell(talk.translate(event, Source::History, None));
        }
        self.tell([AgentEvent::HistoryEnd]);
    }

    fn tell_state(&self, state: State) {
        let mut talk = self.talk.lock();
        self.tell(state.events);
        self.tell(talk.set_prompts(state.prompts));
        if let Some(open) = state.open {
            self.tell(talk.set_open(open));
        }
    }

    fn tell(&self, events: impl IntoIterator<Item = AgentEvent>) {
        if let Some(shared) = self.shared.upgrade() {
            events.into_iter().for_each(|event| shared.tell(event));
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
        tracing::warn!(%error, session = self.session.session_id(), "the events of a session ended");
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
            shared.tell(AgentEvent::Disconnected {
                kind,
                reason,
                reopen: Some(self.session.session_id().to_owned()),
            });
        }
    }
}
