//! Why a command failed, whichever way the agent is connected.

use crate::acp::AcpError;
use crate::daemon::DaemonError;

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// There is no session.
    #[error("not connected to an agent")]
    NotConnected,
    /// The approval is not open.
    #[error("this request is no longer open")]
    NoSuchRequest,
    /// A prompt without anything in it.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The pattern is none.
    #[error("invalid file pattern: {0}")]
    Pattern(String),
    /// The agent cannot do this.
    #[error("this agent cannot {0}")]
    Unsupported(&'static str),
    /// The daemon did not do it.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The child did not do it.
    #[error(transparent)]
    Acp(#[from] AcpError),
}

impl AgentError {
    /// What a person can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Daemon(error) => error.hint().map(str::to_owned),
            Self::Acp(error) => error.hint(),
            _ => None,
        }
    }
}
