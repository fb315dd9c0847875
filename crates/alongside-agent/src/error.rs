//! Why a command failed, whatever the transport.

use crate::acp::AcpError;
use crate::daemon::DaemonError;

#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    #[error("not connected to an agent")]
    NotConnected,
    #[error("this request is no longer open")]
    NoSuchRequest,
    #[error("the prompt is empty")]
    EmptyPrompt,
    #[error("invalid file pattern: {0}")]
    Pattern(String),
    #[error("this agent cannot {0}")]
    Unsupported(&'static str),
    #[error("cannot attach {0}: {1}")]
    Attachment(String, &'static str),
    #[error("cannot rewind: {0}")]
    Rewind(&'static str),
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    #[error(transparent)]
    Acp(#[from] AcpError),
}

impl AgentError {
    /// What the user can do about it.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Daemon(error) => error.hint().map(str::to_owned),
            Self::Acp(error) => error.hint(),
            _ => None,
        }
    }
}
