//! The state of a daemon session, and how far its events were delivered.

use std::sync::Arc;

use alongside_protocol::chat::{AgentEvent, EARLIER_MESSAGES_DROPPED, NoticeLevel, turn_starts};
use tokio::sync::Notify;

use super::event::{DaemonEvent, EventKind};
use super::session::{Cursor, DaemonSessionClient};
use crate::conversation::{PermissionRequest, Source, Translator};
use crate::events::EventSender;
use crate::position::Position;

/// The number of our client ids that are remembered. The daemon issues another one after a restart.
const MAX_CLIENT_IDS: usize = 8;

/// Everything is sent while this is locked, so that events are in order and each carries its own position.
pub(super) struct SessionState {
    pub(super) translator: Translator,
    position: Position,
    events: EventSender,
    /// `Disconnected` was sent: nothing follows it.
    is_over: bool,
    /// An event of the daemon was handled, or the last event was sent.
    pub(super) changed: Arc<Notify>,
}

impl SessionState {
    pub(super) fn new(events: EventSender, session: &DaemonSessionClient) -> Self {
        let mut state = Self {
            translator: Translator::default(),
            position: Position::new(session.session_id().clone()),
            events,
            is_over: false,
            changed: Arc::default(),
        };
        state.update_client_id(session);
        state
    }

    /// Continues from a saved position.
    pub(super) fn resume(&mut self, position: Position, history: Vec<DaemonEvent>, open: Vec<PermissionRequest>) {
        let clients = std::mem::replace(&mut self.position, position).clients;
        for client in clients {
            self.add_client_id(client);
        }
        let delivered = self.position.delivered.clone();
        let last = self.position.cursor.last_event_id.unwrap_or_default();
        self.translator.resume(delivered, open, history, last);
    }

    /// Sends events that no daemon event stands behind.
    pub(super) fn send(&mut self, events: impl IntoIterator<Item = AgentEvent>) {
        self.position.delivered = self.translator.delivered();
        for event in events {
            self.send_one(event);
        }
    }

    /// Sends events that belong together: a reader that resumes before the last of them starts with the first again.
    pub(super) fn send_together(&mut self, events: Vec<AgentEvent>, cursor: Cursor) {
        let mut events = events.into_iter().peekable();
        self.position.cursor = Cursor::default();
        self.position.partly = 0;
        while let Some(event) = events.next() {
            if events.peek().is_none() {
                self.position.cursor = cursor.clone();
                self.position.delivered = self.translator.delivered();
            }
            self.send_one(event);
        }
        self.position.cursor = cursor;
    }

    /// Translates a daemon event and sends the result. `cursor` is the event's position.
    pub(super) fn send_event(&mut self, event: DaemonEvent, cursor: Cursor, session: &DaemonSessionClient) {
        self.update_client_id(session);
        let before = self.translator.delivered();
        let has_id = event.id.is_some();
        let events = self.translator.translate(event, Source::Stream, &self.position.clients);
        self.changed.notify_waiters();
        if !has_id {
            return self.send(events);
        }
        // The first event after a position may have been delivered in part.
        let skipped = std::mem::take(&mut self.position.partly);
        let count = events.len();
        for (index, event) in events.into_iter().enumerate().skip(skipped) {
            if index + 1 == count {
                self.advance(cursor.clone());
            } else {
                self.position.partly = index + 1;
                self.position.delivered.clone_from(&before);
            }
            self.send_one(event);
        }
        self.advance(cursor);
    }

    /// Takes the epoch of the event ids, which the response to creating a session lacks.
    pub(super) fn set_epoch(&mut self, cursor: Cursor) {
        if self.position.cursor.last_event_id == cursor.last_event_id {
            self.position.cursor = cursor;
        }
    }

    fn advance(&mut self, cursor: Cursor) {
        self.position.cursor = cursor;
        self.position.partly = 0;
        self.position.delivered = self.translator.delivered();
    }

    /// Translates a history. The caller sends it.
    pub(super) fn history(&mut self, reason: &str, history: Vec<DaemonEvent>) -> Vec<AgentEvent> {
        self.translator.forget();
        let mut events = vec![AgentEvent::HistoryStart {
            reason: reason.to_owned(),
        }];
        for event in history {
            if let EventKind::HistoryTruncated { .. } = event.kind {
                events.push(AgentEvent::Notice {
                    level: NoticeLevel::Information,
                    message: EARLIER_MESSAGES_DROPPED.to_owned(),
                });
            }
            if let EventKind::SessionRewound { target_turn_index } = event.kind {
                // The daemon keeps the removed turns in the history of a live session.
                let starts = turn_starts(&events);
                let removed = events.split_off(starts.get(target_turn_index).copied().unwrap_or(events.len()));
                let stays =
                    |event: &AgentEvent| matches!(event, AgentEvent::Commands { .. } | AgentEvent::Title { .. });
                events.extend(removed.into_iter().filter(stays));
                continue;
            }
            events.extend(self.translator.translate(event, Source::History, &[]));
        }
        events.push(AgentEvent::HistoryEnd);
        events
    }

    /// Sends the last event. `false` if one was sent before.
    pub(super) fn end(&mut self, disconnected: AgentEvent) -> bool {
        if self.is_over {
            return false;
        }
        self.send([disconnected]);
        self.is_over = true;
        self.changed.notify_waiters();
        true
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over
    }

    fn send_one(&self, event: AgentEvent) {
        if !self.is_over {
            self.events.send(event, Some(self.position.clone()));
        }
    }

    fn update_client_id(&mut self, session: &DaemonSessionClient) {
        if let Some(client) = session.client_id() {
            self.add_client_id(client);
        }
    }

    fn add_client_id(&mut self, client: String) {
        let clients = &mut self.position.clients;
        if clients.last() != Some(&client) {
            clients.retain(|known| *known != client);
            clients.push(client);
            if clients.len() > MAX_CLIENT_IDS {
                clients.remove(0);
            }
        }
    }
}
