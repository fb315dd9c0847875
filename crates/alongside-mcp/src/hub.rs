//! The handle through which the companion sends to agents.

use std::fmt;
use std::sync::Arc;

use alongside_core::SessionKey;
use alongside_core::context::IdeContext;
use alongside_core::diagnostics::FileDiagnostics;
use thiserror::Error;

use crate::companion::Outgoing;
use crate::registry::Registry;

/// Sends to the connected agents. Cheap to clone. No method blocks, waits for an agent or calls back into the
/// [`Companion`](crate::Companion), so all of them may be called with a lock held.
#[derive(Clone)]
pub struct AgentHub(pub(crate) Arc<Registry>);

/// Lines of a file for an agent's prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mention {
    /// Absolute path.
    pub path: String,
    /// First and last line, from 1; `None` for the whole file.
    pub lines: Option<(u32, u32)>,
    /// The number of lines of the file, for agents that cannot be sent a whole one.
    pub line_count: u32,
}

/// Why a mention was not sent.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum MentionError {
    #[error("no connected agent can be sent a selection; connect Claude Code or opencode")]
    NoAgent,
    #[error("this agent cannot be sent a selection, or is no longer connected")]
    NotThisAgent,
    #[error("the agent has not received the previous ones yet; try again")]
    Full,
}

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

    /// Sends changed diagnostics to the sessions that want them, each file serialized once, here. An empty list clears a file. A session
    /// that has not received the previous diagnostics of a file yet never does.
    pub fn publish_diagnostics(&self, files: &[FileDiagnostics]) {
        self.0.publish_diagnostics(files);
    }

    /// Sends a decision to one session, in order, now or when its stream opens again, until the agent shows that it has it. `false`
    /// if the session is unknown; then the caller keeps the decision. If too many decisions are pending, the session ends.
    pub fn notify(&self, session: &SessionKey, decision: impl Into<Outgoing>) -> bool {
        self.0.notify(session, decision.into())
    }

    /// Puts a file or a part of it into the prompt of one agent: of this session, or of the one that was used last among those that
    /// have such a prompt. Returns the session.
    pub fn send_mention(&self, session: Option<&SessionKey>, mention: &Mention) -> Result<SessionKey, MentionError> {
        self.0.mention(session, mention)
    }

    /// The session's proposal of this file is a review now. Decisions that were sent before are about the previous proposal and
    /// are dropped; until this is called, an `openDiff` of the file holds them back.
    pub fn supersede(&self, session: &SessionKey, file_path: &str) {
        self.0.supersede(session, file_path);
    }
}
