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
    ///
    /// A decision that is still pending when the agent opens a new review of the same path is dropped: it is about the
    /// previous review, which the agent has closed on its own, and would decide the new one unseen.
    pub fn notify(&self, session: &SessionId, decision: impl Into<Outgoing>) -> bool {
        self.0.notify(session, decision.into())
    }
}
