//! The agents that are connected.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dialect::ClientInfo;

/// The identity of one MCP session, as it travels in `mcp-session-id`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

impl SessionId {
    /// Takes an identity that was issued or received elsewhere.
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

    /// The identity as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for SessionId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

/// What an agent is called, for users. Displayed as name and version, separated by a space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentIdentity {
    pub name: String,
    /// `None` if the agent does not report its real version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
}

impl AgentIdentity {
    /// An agent that has not sent `initialize` since a restart.
    pub fn unknown() -> Self {
        Self {
            name: "an agent".to_owned(),
            version: None,
        }
    }
}

impl fmt::Display for AgentIdentity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.name)?;
        match &self.version {
            Some(version) => write!(formatter, " {version}"),
            None => Ok(()),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Agent {
    /// Its session.
    pub session: SessionId,
    /// Who it said it is; `None` for a session taken up again after a restart by a client that we have forgotten.
    pub client: Option<ClientInfo>,
    /// Whether its stream is open, so that it can be told something now.
    pub listening: bool,
    /// When it connected.
    pub since_unix_milliseconds: u64,
}

impl Agent {
    pub fn identity(&self) -> AgentIdentity {
        self.client
            .as_ref()
            .map_or_else(AgentIdentity::unknown, ClientInfo::identity)
    }
}
