//! Local agents: child processes that speak the Agent Client Protocol over stdio, such as `qwen --acp` and `gemini --acp`.
//!
//! `AcpConnection` does for a local agent what `DaemonConnection` does for a daemon. What ACP leaves to the client is
//! done here: the queue of prompts, and the files of the workspace, which are written through a [`ReviewGate`] and searched for mentions.
//!
//! The crate `agent-client-protocol` is not used: its schema lacks the models that Qwen Code and Gemini CLI send, it has no place for
//! unknown updates, which must keep their name here, and it switches `serde_json` to another order of fields for the whole program.

mod change;
mod child;
mod connection;
mod ending;
mod error;
mod file_io;
mod files;
mod known;
mod messages;
mod paragraphs;
mod permission_review;
mod session;
mod session_state;
mod turns;
mod workspace_file;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use crate::connection::OpenSession;

pub use child::AgentProcess;
pub(crate) use connection::AcpConnection;
pub(crate) use ending::Children;
pub use ending::Group;
pub use error::AcpError;
pub use files::{AllowWrites, ProposedWrite, ReviewGate, WriteDecision};
pub use known::{KNOWN_AGENTS, KnownAgent, Writes};
pub use permission_review::ChangeRequests;

/// Which agent to start, and how.
#[derive(Clone)]
pub struct AcpOptions {
    pub process: AgentProcess,
    /// What is known about this agent.
    pub known: Option<&'static KnownAgent>,
    /// The working directory.
    pub workspace: PathBuf,
    pub open: OpenSession,
    /// The model to start with.
    pub model: Option<String>,
    /// The mode to start with.
    pub mode: Option<String>,
    /// The id of the login method to use if the agent requires a login.
    pub authentication: Option<String>,
    /// Decides about every write.
    pub gate: Arc<dyn ReviewGate>,
}

impl AcpOptions {
    /// A new session, with the agent's defaults.
    pub fn new(process: AgentProcess, workspace: impl Into<PathBuf>, gate: Arc<dyn ReviewGate>) -> Self {
        Self {
            known: KnownAgent::find("", &process.program),
            process,
            workspace: workspace.into(),
            open: OpenSession::New,
            model: None,
            mode: None,
            authentication: None,
            gate,
        }
    }
}

impl fmt::Debug for AcpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcpOptions")
            .field("process", &self.process)
            .field("workspace", &self.workspace)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}
