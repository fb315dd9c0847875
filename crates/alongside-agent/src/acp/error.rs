//! What can fail with a local agent.

use std::io;
use std::time::Duration;

use alongside_wire::rpc::{METHOD_NOT_FOUND, RpcError};
use serde_json::Value;

use crate::conversation::{list_of, text_of};

/// The code with which an agent says that somebody has to log in.
const AUTHENTICATION_REQUIRED: i64 = -32000;

/// Why an agent did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum AcpError {
    /// The program could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// What was started.
        program: String,
        /// What the system says.
        source: io::Error,
    },
    /// The program ended.
    #[error("the agent exited ({status}){}", stderr_tail.as_ref().map(|line| format!(": {line}")).unwrap_or_default())]
    Exited {
        /// As far as known.
        status: String,
        /// The last line of its stderr.
        stderr_tail: Option<String>,
    },
    /// There was no answer in time.
    #[error("the agent did not answer {method} within {limit:?}")]
    Timeout {
        /// What was asked.
        method: &'static str,
        /// How long was waited.
        limit: Duration,
    },
    /// Another version of the protocol.
    #[error("the agent uses protocol version {0}, but only version 1 is supported")]
    Version(Value),
    /// Somebody has to log in first.
    #[error("the agent requires you to log in first; it offers {}", methods.join(", "))]
    AuthenticationRequired {
        /// The ways of logging in, by name.
        methods: Vec<String>,
    },
    /// The agent answered with an error.
    #[error("{message} (code {code})")]
    Rpc {
        /// Its code.
        code: i64,
        /// What it says.
        message: String,
    },
    /// The agent answered something else than the protocol says.
    #[error("the agent violated the protocol: {0}")]
    NotAcp(&'static str),
    /// The agent leaves what it is sent unread.
    #[error("the agent has stopped reading its stdin")]
    NotReading,
    /// Too many prompts wait.
    #[error("{0} prompts are already queued")]
    QueueFull(usize),
}

impl AcpError {
    /// What a person can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Start { program, .. } => Some(format!("Is {program} installed and on your PATH?")),
            Self::AuthenticationRequired { .. } => {
                Some("Start the agent once in a terminal and log in there.".to_owned())
            }
            Self::Exited { .. } => Some("Start the agent once in a terminal to see what is wrong.".to_owned()),
            _ => None,
        }
    }

    pub(super) fn is_unknown_method(&self) -> bool {
        matches!(self, Self::Rpc { code, .. } if *code == METHOD_NOT_FOUND)
    }

    pub(super) fn is_login_required(&self) -> bool {
        matches!(self, Self::Rpc { code, .. } if *code == AUTHENTICATION_REQUIRED)
    }

    /// Lists the login methods of the agent's response to `initialize`.
    pub(super) fn login_required(initialized: &Value) -> Self {
        let methods = list_of(initialized, "authMethods").iter();
        Self::AuthenticationRequired {
            methods: methods
                .filter_map(|method| text_of(method, "name"))
                .map(str::to_owned)
                .collect(),
        }
    }
}

impl From<RpcError> for AcpError {
    fn from(error: RpcError) -> Self {
        // "Internal error" explains nothing: the cause is in the data, in one shape or another.
        let details = error.data.as_str().or_else(|| text_of(&error.data, "details"));
        let message = details.unwrap_or(&error.message);
        let message = if message.is_empty() {
            "the agent gave no reason"
        } else {
            message
        };
        Self::Rpc {
            code: error.code,
            message: message.chars().take(1000).collect(),
        }
    }
}
