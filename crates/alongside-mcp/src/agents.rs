//! The handle through which the binary speaks to agents.

use std::fmt;
use std::sync::Arc;

use alongside_core::dialect::ClientInfo;

use crate::registry::Registry;
use alongside_core::{Decision, SessionId};

/// Speaks to the agents that are connected. Cheap to clone. No method blocks, waits for an agent or calls back into the
/// [`Companion`](crate::Companion), so all of them may be called with a lock held.
#[derive(Clone)]
pub struct Agents(pub(crate) Arc<Registry>);

/// How one session stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionStatus {
    /// Which one.
    pub session: SessionId,
    /// Who; `None` for a session from before a restart whose agent nobody remembers.
    pub client: Option<ClientInfo>,
    /// The MCP version that is spoken, if known.
    pub protocol_version: Option<&'static str>,
    /// Whether it listens.
    pub stream_open: bool,
    /// How many decisions wait for it.
    pub undelivered: usize,
}

impl fmt::Debug for Agents {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_tuple("Agents").field(&self.sessions()).finish()
    }
}

impl Agents {
    /// Tells every session what the person is looking at. `params` is the serialised context. A session that has not
    /// taken the former one yet never hears of it: the latest wins.
    pub fn publish_context(&self, params: impl AsRef<str>) {
        self.0.publish(params.as_ref());
    }

    /// Tells one session how a review ended, once and in order, now or when it listens again. `false` if there is no such
    /// session; then the decision is the caller's to remember. If too many decisions wait, the session ends and they all
    /// come back through [`session_ended`](crate::Companion::session_ended).
    ///
    /// A decision that still waits when the agent opens a new review of the same path is dropped: it is about the former
    /// review, which the agent has settled by itself, and would settle the new one unseen.
    pub fn notify(&self, session: &SessionId, notification: Decision) -> bool {
        self.0.notify(session, notification)
    }

    /// Everybody who is connected.
    pub fn sessions(&self) -> Vec<SessionStatus> {
        self.0.statuses()
    }
}
