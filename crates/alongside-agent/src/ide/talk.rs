//! What is being said in a session of a daemon, and how far it was told.

use super::translator::{Source, Translator};
use crate::conversation::PermissionRequest;
use crate::daemon::{Cursor, DaemonEvent, DaemonSessionClient, EventKind};
use crate::position::{EventSender, Position};
use alongside_protocol::chat::{AgentEvent, NoticeLevel};

/// How many ids of ours are remembered. The daemon issues another one when it was restarted.
const MOST_CLIENTS: usize = 8;

/// The state of a session, and where to tell about it. Everything is told while it is locked, so that it is told in order, and so that
/// the position that an event brings along is its own.
pub(super) struct Talk {
    pub(super) translator: Translator,
    position: Position,
    events: EventSender,
    /// The end was told: nothing comes after it.
    over: bool,
}

impl Talk {
    pub(super) fn new(events: EventSender, session: &DaemonSessionClient) -> Self {
        let mut talk = Self {
            translator: Translator::default(),
            position: Position {
                session_id: session.session_id().to_owned(),
                ..Position::default()
            },
            events,
            over: false,
        };
        talk.know_client(session);
        talk
    }

    /// Goes on where somebody was before.
    pub(super) fn resume(&mut self, position: Position, history: Vec<DaemonEvent>, open: Vec<PermissionRequest>) {
        let clients = std::mem::replace(&mut self.position, position).clients;
        for client in clients {
            self.add_client(client);
        }
        let told = self.position.told.clone();
        let last = self.position.cursor.last_event_id.unwrap_or_default();
        self.translator.resume(told, open, history, last);
    }

    /// Tells something that is no event of the daemon.
    pub(super) fn tell(&mut self, events: impl IntoIterator<Item = AgentEvent>) {
        self.position.told = self.translator.told();
        for event in events {
            self.send(event);
        }
    }

    /// Tells things that belong together: whoever has not heard the last of them comes back to begin with the first.
    pub(super) fn tell_together(&mut self, events: Vec<AgentEvent>, cursor: Cursor) {
        let mut events = events.into_iter().peekable();
        self.position.cursor = Cursor::default();
        self.position.partly = 0;
        while let Some(event) = events.next() {
            if events.peek().is_none() {
                self.position.cursor = cursor.clone();
                self.position.told = self.translator.told();
            }
            self.send(event);
        }
        self.position.cursor = cursor;
    }

    /// Tells what an event of the daemon means. `cursor` is where it is.
    pub(super) fn tell_event(&mut self, event: DaemonEvent, cursor: Cursor, session: &DaemonSessionClient) {
        self.know_client(session);
        let before = self.translator.told();
        let has_id = event.id.is_some();
        let events = self.translator.translate(event, Source::Stream, &self.position.clients);
        if !has_id {
            return self.tell(events);
        }
        // The first event after a position may have been told in part.
        let skipped = std::mem::take(&mut self.position.partly);
        let count = events.len();
        for (index, event) in events.into_iter().enumerate().skip(skipped) {
            if index + 1 == count {
                self.come_to(cursor.clone());
            } else {
                self.position.partly = index + 1;
                self.position.told.clone_from(&before);
            }
            self.send(event);
        }
        self.come_to(cursor);
    }

    /// The daemon says which life its ids count in, which it does not when a session is begun.
    pub(super) fn know_epoch(&mut self, cursor: Cursor) {
        if self.position.cursor.last_event_id == cursor.last_event_id {
            self.position.cursor = cursor;
        }
    }

    fn come_to(&mut self, cursor: Cursor) {
        self.position.cursor = cursor;
        self.position.partly = 0;
        self.position.told = self.translator.told();
    }

    /// The events of a history.
    pub(super) fn history(&mut self, reason: &str, history: Vec<DaemonEvent>) -> Vec<AgentEvent> {
        self.translator.forget();
        let mut events = vec![AgentEvent::HistoryStart {
            reason: reason.to_owned(),
        }];
        for event in history {
            if let EventKind::HistoryTruncated { .. } = event.kind {
                events.push(AgentEvent::Notice {
                    level: NoticeLevel::Information,
                    message: "Earlier messages in this conversation are no longer available.".to_owned(),
                });
            }
            events.extend(self.translator.translate(event, Source::History, &[]));
        }
        events.push(AgentEvent::HistoryEnd);
        events
    }

    /// Tells the end.
    pub(super) fn end(&mut self, disconnected: AgentEvent) {
        self.tell([disconnected]);
        self.over = true;
    }

    fn send(&self, event: AgentEvent) {
        if !self.over {
            self.events.send(event, Some(self.position.clone()));
        }
    }

    /// Remembers who we are.
    fn know_client(&mut self, session: &DaemonSessionClient) {
        if let Some(client) = session.client_id() {
            self.add_client(client);
        }
    }

    fn add_client(&mut self, client: String) {
        let clients = &mut self.position.clients;
        if clients.last() != Some(&client) {
            clients.retain(|known| *known != client);
            clients.push(client);
            if clients.len() > MOST_CLIENTS {
                clients.remove(0);
            }
        }
    }
}
