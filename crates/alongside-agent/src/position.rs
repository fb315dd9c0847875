//! How far a reader has come in a conversation, to continue there after a restart.
//!
//! Each event carries its position, and [`EventReceiver::position`] is that of the most recently received event.
//!
//! To lose nothing and to repeat nothing, save the position together with the effect of the event, in one write:
//!
//! ```no_run
//! # async fn run(mut events: alongside_agent::EventReceiver, mut save: impl FnMut(&alongside_agent::AgentEvent, String)) {
//! while let Some(event) = events.recv().await {
//!     if let Some(position) = events.position() {
//!         save(&event, serde_json::to_string(position).unwrap_or_default());
//!     }
//! }
//! # }
//! ```
//!
//! After a restart, connect with [`OpenSession::Resume`]. If the daemon still has the missed events,
//! [`ConnectedSession::resumed`] is true, what was saved stays valid, and the missed events follow. Otherwise the session is opened with
//! its history: `HistoryStart` says to forget what was saved. A session that the daemon no longer has is an error, as with
//! [`OpenSession::Load`].
//!
//! [`EventReceiver::position`]: crate::EventReceiver::position
//! [`OpenSession::Resume`]: crate::OpenSession::Resume
//! [`OpenSession::Load`]: crate::OpenSession::Load
//! [`ConnectedSession::resumed`]: crate::ConnectedSession::resumed

use alongside_core::SessionId;
use serde::{Deserialize, Serialize};

use crate::daemon::Cursor;

/// A position in a daemon's session. A local agent has none: it exits with us.
///
/// It contains no token and no address. Our client ids in the session authorize nothing, but they are not for a page either.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Position {
    pub session_id: SessionId,
    /// The last daemon event that was delivered completely. Without an id, the history is being delivered: resuming starts with the
    /// history again.
    #[serde(default)]
    pub(crate) cursor: Cursor,
    /// How many events of the next daemon event were delivered.
    #[serde(default)]
    pub(crate) partly: usize,
    /// Our client ids in the session, the current one last. What any of them caused was caused by us.
    #[serde(default)]
    pub(crate) clients: Vec<String>,
    #[serde(default)]
    pub(crate) delivered: Delivered,
}

/// What was delivered and later daemon events will repeat, so that it is not delivered again.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Delivered {
    /// Our accepted prompts that have not ended.
    pub(crate) accepted: Vec<String>,
    pub(crate) queued: Vec<String>,
    /// The running turn.
    pub(crate) running: Option<String>,
    /// The most recently ended turn.
    pub(crate) ended: Option<String>,
    /// The open permission requests.
    pub(crate) open: Vec<String>,
}

impl Position {
    pub(crate) fn new(session_id: SessionId) -> Self {
        Self {
            session_id,
            cursor: Cursor::default(),
            partly: 0,
            clients: Vec::new(),
            delivered: Delivered::default(),
        }
    }

    /// Whether resuming here starts with the history.
    pub fn needs_history(&self) -> bool {
        self.cursor.last_event_id.is_none() || self.cursor.epoch.is_none()
    }
}
