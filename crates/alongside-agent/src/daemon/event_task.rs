//! Reads a session's events and sends them on.

use std::sync::Arc;
use std::time::Duration;

use alongside_core::SessionId;
use alongside_protocol::chat::{AgentEvent, DisconnectKind, NoticeLevel};
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use super::error::DaemonError;
use super::event::{DaemonEvent, EventKind};
use super::open::{History, OpenedSession, SessionExtras, fetch_extras};
use super::session::{Cursor, DaemonSessionClient};
use super::session_state::SessionState;
use super::stream::{EventStream, StreamItem};
use crate::events::EventSender;

const HEARTBEAT_INTERVAL: Duration = Duration::from_secs(30);

/// The task that reads the events of one session. Dropping it stops it.
pub(super) struct EventTask {
    task: JoinHandle<()>,
}

impl Drop for EventTask {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl EventTask {
    pub(super) fn start(
        opened: OpenedSession,
        state: Arc<Mutex<SessionState>>,
        events: EventSender,
    ) -> Result<Self, DaemonError> {
        let stream = opened.session.events()?;
        let event_loop = EventLoop {
            session: opened.session.clone(),
            state,
            events,
            interrupted: false,
        };
        // Before the first command can be executed, and so before its events.
        event_loop.send_opened(opened);
        Ok(Self {
            task: tokio::spawn(event_loop.run(stream)),
        })
    }
}

struct EventLoop {
    session: DaemonSessionClient,
    state: Arc<Mutex<SessionState>>,
    events: EventSender,
    interrupted: bool,
}

impl EventLoop {
    async fn run(mut self, mut stream: EventStream) {
        let mut heartbeat =
            tokio::time::interval_at(tokio::time::Instant::now() + HEARTBEAT_INTERVAL, HEARTBEAT_INTERVAL);
        heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            let item = tokio::select! {
                // While the reader is behind, nothing more is read. Cancelling either step loses nothing.
                item = async {
                    self.events.ready().await;
                    stream.next().await
                } => item,
                _ = heartbeat.tick() => {
                    let session = self.session.clone();
                    // The events do not depend on its response.
                    tokio::spawn(async move { session.heartbeat().await });
                    continue;
                }
            };
            let end = match item {
                Some(Ok(item)) => self.handle(item, stream.cursor()).await,
                Some(Err(error)) => Some(self.failure(&error)),
                None => Some((DisconnectKind::Closed, "the session ended".to_owned())),
            };
            if let Some((kind, reason)) = end {
                stream.commit();
                return self.end(kind, reason);
            }
        }
    }

    fn send_opened(&self, opened: OpenedSession) {
        let cursor = opened.session.cursor();
        let connected = AgentEvent::Connected(opened.connected);
        let mut state = self.state.lock();
        match opened.history {
            History::None => {
                let mut events = vec![connected];
                events.extend(apply_extras(&mut state, opened.extras));
                state.send_together(events, cursor);
            }
            History::Full(history) => {
                let mut events = vec![connected];
                events.extend(state.history("loaded", history));
                events.extend(apply_extras(&mut state, opened.extras));
                state.send_together(events, cursor);
            }
            // The missed events report the queue and the open requests, in order.
            History::Partial(position, history) => {
                state.translator.mode = opened.extras.mode();
                state.resume(*position, history, opened.extras.open.unwrap_or_default());
                state.send([connected]);
                state.send(opened.extras.events);
            }
        }
    }

    /// Handles an item. `Some` if the session is over.
    async fn handle(&mut self, item: StreamItem, cursor: Cursor) -> Option<(DisconnectKind, String)> {
        match item {
            StreamItem::Connected => {
                let mut state = self.state.lock();
                state.translator.stream_begins();
                state.set_epoch(cursor);
                if std::mem::take(&mut self.interrupted) {
                    state.send([AgentEvent::Reconnected]);
                }
            }
            StreamItem::Interrupted { reason, retry_in } => {
                self.interrupted = true;
                let retry_in_milliseconds = u64::try_from(retry_in.as_millis()).unwrap_or(u64::MAX);
                self.state.lock().send([AgentEvent::Interrupted {
                    reason,
                    retry_in_milliseconds,
                }]);
            }
            StreamItem::Rebuilt { reason, history } => {
                let extras = fetch_extras(&self.session).await;
                let current_mode = extras.mode();
                let before = {
                    let mut state = self.state.lock();
                    let before = state.translator.mode.clone();
                    let mut events = state.history(&reason, history);
                    events.extend(apply_extras(&mut state, extras));
                    state.send_together(events, cursor);
                    before
                };
                let is_restart = matches!(reason.as_str(), "session_reopened" | "epoch_reset");
                if let Some(mode) = before.filter(|mode| is_restart && current_mode.as_ref() != Some(mode)) {
                    self.restore_mode(mode).await;
                }
            }
            StreamItem::Event(event) => return self.event(*event, cursor),
        }
        None
    }

    fn event(&mut self, event: DaemonEvent, cursor: Cursor) -> Option<(DisconnectKind, String)> {
        let own = |session: &Option<SessionId>| session.as_ref() == Some(self.session.session_id());
        let end = match &event.kind {
            EventKind::SessionDied { session_id, reason } if own(session_id) => {
                Some((DisconnectKind::Died, reason.clone()))
            }
            EventKind::SessionClosed { session_id, reason, .. } if own(session_id) => {
                Some((DisconnectKind::Closed, reason.clone()))
            }
            _ => None,
        };
        self.state.lock().send_event(event, cursor, &self.session);
        end
    }

    /// Sets the mode that a restarted daemon has forgotten: a restart must not change what the user is asked about. An event
    /// confirms the mode.
    async fn restore_mode(&self, mode: String) {
        if let Err(error) = self.session.set_approval_mode(&mode).await {
            let message = format!("The daemon restarted and is no longer in mode {mode}: {error}");
            self.state.lock().send([AgentEvent::Notice {
                level: NoticeLevel::Warning,
                message,
            }]);
        }
    }

    fn failure(&self, error: &DaemonError) -> (DisconnectKind, String) {
        let kind = if error.is_session_gone() {
            DisconnectKind::Closed
        } else if error.is_unauthorized() {
            DisconnectKind::Unauthorized
        } else {
            DisconnectKind::Failed
        };
        tracing::warn!(%error, session = %self.session.session_id(), "a session's event stream ended");
        (kind, error.to_string())
    }

    fn end(&self, kind: DisconnectKind, reason: String) {
        self.state.lock().end(AgentEvent::Disconnected {
            kind,
            reason,
            reopen: Some(self.session.session_id().clone()),
        });
    }
}

/// Takes what a session has besides its conversation.
fn apply_extras(state: &mut SessionState, extras: SessionExtras) -> Vec<AgentEvent> {
    if let Some(mode) = extras.mode() {
        state.translator.mode = Some(mode);
    }
    let mut events = extras.events;
    events.extend(state.translator.set_prompts(extras.prompts));
    if let Some(open) = extras.open {
        events.extend(state.translator.set_open(open));
    }
    events
}
