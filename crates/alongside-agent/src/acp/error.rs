//! What can fail with a local agent.

use std::io;
use std::time::Duration;

use alongside_wire::rpc::{METHOD_NOT_FOUND, RpcError};
use serde_json::Value;

use crate::conversation::{list_of, text_of};

/// ACP's code.
const AUTHENTICATION_REQUIRED: i64 = -32000;

#[derive(Debug, thiserror::Error)]
pub enum AcpError {
    #[error("cannot start {program}: {source}")]
    Start { program: String, source: io::Error },
    #[error("the agent exited ({status}){}", stderr_tail.as_ref().map(|line| format!(": {line}")).unwrap_or_default())]
    Exited {
        /// As far as known.
        status: String,
        /// The last line of its stderr.
        stderr_tail: Option<String>,
    },
    #[error("the agent did not answer {method} within {limit:?}")]
    Timeout { method: &'static str, limit: Duration },
    #[error("the agent uses protocol version {0}, but only version 1 is supported")]
    Version(Value),
    #[error("the agent requires you to log in first; it offers {}", methods.join(", "))]
    AuthenticationRequired {
        /// The names of the login methods.
        methods: Vec<String>,
    },
    #[error("{message} (code {code})")]
    Rpc { code: i64, message: String },
    #[error("the agent violated the protocol: {0}")]
    NotAcp(&'static str),
    #[error("the agent has stopped reading its stdin")]
    NotReading,
    #[error("{0} prompts are already queued")]
    QueueFull(usize),
}

impl AcpError {
    /// What the user can do about it.
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
