//! How far whoever shows a conversation has come, to go on from there after a restart.
//!
//! Events wait in a channel until somebody takes them, so how far the connection has read says nothing about how far the reader is.
//! Therefore each event brings its own position along, and [`EventReceiver::position`] is that of the event that was taken last.
//!
//! To lose nothing and to be told nothing twice, keep the position together with what came of the event, in one write:
//!
//! ```no_run
//! # async fn run(mut events: alongside_agent::EventReceiver, mut keep: impl FnMut(&alongside_agent::AgentEvent, String)) {
//! while let Some(event) = events.recv().await {
//!     if let Some(position) = events.position() {
//!         keep(&event, serde_json::to_string(position).unwrap_or_default());
//!     }
//! }
//! # }
//! ```
//!
//! After a restart, connect with [`crate::ide::OpenSession::Resume`]. If the daemon still has what was missed,
//! [`crate::ConnectedSession::resumed`] is true, what was kept stays good, and the events after it follow. Otherwise the session is
//! opened with its history, as if it was new to us: [`crate::AgentEvent::HistoryStart`] says to forget what was kept. A session that the
//! daemon does not even remember is an error, as it is for [`crate::ide::OpenSession::Load`].

use serde::{Deserialize, Serialize};
use tokio::sync::mpsc;

use crate::daemon::Cursor;
use alongside_protocol::chat::AgentEvent;

/// The place of an event in a session of a daemon. An agent that is our child has none: it ends with us.
///
/// There is no token and no address in it. There are the ids that the daemon knows us by in the session: nothing that opens a door, and
/// nothing for a page either.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    /// The session.
    pub session_id: String,
    /// The last event of the daemon that was told to its end, and the life of the session that it counts in. Without an id the history
    /// is being told: to go on means to begin with the history again.
    #[serde(default)]
    pub(crate) cursor: Cursor,
    /// How many events were told of the one of the daemon after that.
    #[serde(default)]
    pub(crate) partly: usize,
    /// Who we have been in the session, the last one last. What one of them has caused was caused by us.
    #[serde(default)]
    pub(crate) clients: Vec<String>,
    #[serde(default)]
    pub(crate) told: Told,
}

/// What was told and will be said again by later events of the daemon, which must not be told again then.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Told {
    /// The prompts of ours that were accepted and have not ended.
    pub(crate) accepted: Vec<String>,
    /// The prompts that wait.
    pub(crate) queued: Vec<String>,
    /// The turn that is going on.
    pub(crate) running: Option<String>,
    /// The turn that has ended last.
    pub(crate) ended: Option<String>,
    /// The approvals that are open.
    pub(crate) open: Vec<String>,
}

impl Position {
    /// Whether somebody who comes from here needs the history first.
    pub fn needs_history(&self) -> bool {
        self.cursor.last_event_id.is_none() || self.cursor.epoch.is_none()
    }
}

/// Where events go. Sending never waits: whoever shows a conversation must not slow it down.
#[derive(Clone, Debug)]
pub struct EventSender {
    events: mpsc::UnboundedSender<(AgentEvent, Option<Position>)>,
}

/// Where events come from.
#[derive(Debug)]
pub struct EventReceiver {
    events: mpsc::UnboundedReceiver<(AgentEvent, Option<Position>)>,
    position: Option<Position>,
}

/// A way for events, for connections that share one.
pub fn event_channel() -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let receiver = EventReceiver {
        events: receiver,
        position: None,
    };
    (EventSender { events: sender }, receiver)
}

impl EventSender {
    pub(crate) fn send(&self, event: AgentEvent, position: Option<Position>) {
        // Nobody listens any more: then nobody misses it.
        let _ = self.events.send((event, position));
    }
}

impl EventReceiver {
    /// Takes the next event, or waits for it; `None` when there will be none. A call that is dropped has taken nothing.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        let (event, position) = self.events.recv().await?;
        self.position = position;
        Some(event)
    }

    /// Takes the next event if it is there.
    pub fn try_recv(&mut self) -> Option<AgentEvent> {
        let (event, position) = self.events.try_recv().ok()?;
        self.position = position;
        Some(event)
    }

    /// The place of the event that was taken last, to go on after it. `None` before the first one, and while the agent is a child.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }
}
