//! The handle through which the companion sends to agents.

use std::fmt;
use std::sync::Arc;

use alongside_core::SessionId;
use alongside_core::context::IdeContext;

use crate::companion::Outgoing;
use crate::registry::Registry;

/// Sends to the connected agents. Cheap to clone. No method blocks, waits for an agent or calls back into the
/// [`Companion`](crate::Companion), so all of them may be called with a lock held.
#[derive(Clone)]
pub struct AgentHub(pub(crate) Arc<Registry>);

impl fmt::Debug for AgentHub {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("AgentHub").finish_non_exhaustive()
    }
}

impl AgentHub {
    /// Sends the context to every session. It is serialized once, here; all streams share the bytes. A session that has
    /// not received the previous context yet never does: the latest wins.
    pub fn publish_context(&self, context: &IdeContext) {
        self.0.publish(context);
    }

    /// Sends a decision to one session, in order, now or when its stream opens again, until the agent shows that it has it. `false`
    /// if the session is unknown; then the caller keeps the decision. If too many decisions are pending, the session ends.
    pub fn notify(&self, session: &SessionId, decision: impl Into<Outgoing>) -> bool {
        self.0.notify(session, decision.into())
    }

    /// The session's proposal of this file is a review now. Decisions that were sent before are about the previous proposal and
    /// are dropped; until this is called, an `openDiff` of the file holds them back.
    pub fn supersede(&self, session: &SessionId, file_path: &str) {
        self.0.supersede(session, file_path);
    }
}
