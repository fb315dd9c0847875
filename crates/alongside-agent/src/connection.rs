//! What a connection to an agent can do, whatever the transport.

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use alongside_core::SessionId;
use alongside_protocol::chat::{ContentBlock, PermissionDecision};

use crate::acp::AcpOptions;
use crate::daemon::{DaemonOptions, SessionPage};
use crate::error::AgentError;
use crate::mention::Query;
use crate::position::Position;

/// An agent to connect to.
#[derive(Clone, Debug)]
pub enum AgentTarget {
    /// An agent in a `qwen serve` daemon.
    Daemon(Box<DaemonOptions>),
    /// A local agent: a child process that speaks ACP.
    Child(Box<AcpOptions>),
}

impl AgentTarget {
    pub(crate) fn set_open(&mut self, open: OpenSession) {
        match self {
            Self::Daemon(options) => options.open = open,
            Self::Child(options) => options.open = open,
        }
    }
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OpenSession {
    /// The workspace's shared session, or a new one. A local agent shares no sessions: it creates one.
    #[default]
    CreateOrAttach,
    /// A new session of our own.
    New,
    /// This session, with its history.
    Load(SessionId),
    /// This session, from this position on; with its history if the events after the position are no longer available, and always
    /// with a local agent.
    Resume(Box<Position>),
}

impl OpenSession {
    pub fn session_id(&self) -> Option<&SessionId> {
        match self {
            Self::Load(id) => Some(id),
            Self::Resume(position) => Some(&position.session_id),
            Self::CreateOrAttach | Self::New => None,
        }
    }
}

/// One session with one agent.
///
/// It reports everything through the [`crate::EventSender`] that it was created with: first `Connected`, last `Disconnected`. Dropping it
/// closes it without a last event.
pub(crate) trait AgentConnection: Send + Sync {
    /// Starts sending events. The manager calls this once, when the connection is the current one, so that a reader of `Connected`
    /// can send commands immediately. An error if the agent has exited since.
    fn start(&self) -> Result<(), AgentError>;

    /// Sends `Disconnected` and leaves the agent, unless it has disconnected already. Does not wait.
    fn close(&self, reason: &str);

    fn is_open(&self) -> bool;

    fn session_id(&self) -> Option<SessionId>;

    /// Sends a prompt, or queues it while a turn is running. Returns the prompt's id.
    fn prompt(&self, blocks: Vec<ContentBlock>) -> BoxFuture<'_, Result<String, AgentError>>;

    /// Sends a message that the agent may receive during the running turn. By default it is a prompt.
    fn mid_turn(&self, blocks: Vec<ContentBlock>) -> BoxFuture<'_, Result<String, AgentError>> {
        self.prompt(blocks)
    }

    /// Removes the turns from `turn` on, of `turns` in all.
    fn rewind(&self, turn: usize, turns: usize) -> BoxFuture<'_, Result<(), AgentError>> {
        let _ = (turn, turns);
        std::future::ready(Err(AgentError::Unsupported("rewind its conversation"))).boxed()
    }

    /// The content of an attached image, in base 64.
    fn read_attachment(&self, name: String) -> BoxFuture<'_, Result<String, AgentError>> {
        let _ = name;
        std::future::ready(Err(AgentError::Unsupported("read attachments"))).boxed()
    }

    /// Cancels the running turn, once.
    fn cancel(&self) -> BoxFuture<'_, Result<(), AgentError>>;

    /// Responds to a permission request. `false` if it was resolved before.
    fn respond(&self, request_id: String, decision: PermissionDecision) -> BoxFuture<'_, Result<bool, AgentError>>;

    /// `false` if the prompt is not queued.
    fn remove_queued(&self, prompt_id: String) -> BoxFuture<'_, Result<bool, AgentError>>;

    fn set_model(&self, model_id: String) -> BoxFuture<'_, Result<(), AgentError>>;

    fn set_mode(&self, mode_id: String) -> BoxFuture<'_, Result<(), AgentError>>;

    fn list_sessions(&self, cursor: Option<String>) -> BoxFuture<'_, Result<SessionPage, AgentError>>;

    fn rename(&self, title: String) -> BoxFuture<'_, Result<(), AgentError>>;

    fn find_files(&self, query: Query) -> BoxFuture<'_, Result<Vec<String>, AgentError>>;

    /// Opens another session over this connection. `None` if a connection has one session only: then the manager connects again.
    fn open_session(&self, open: OpenSession) -> Option<BoxFuture<'_, Result<(), AgentError>>> {
        let _ = open;
        None
    }
}
