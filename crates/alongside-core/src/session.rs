//! Connected agents.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::dialect::ClientInfo;

/// The id of an MCP session, as in the `mcp-session-id` header.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct SessionId(Arc<str>);

impl SessionId {
    pub fn new(id: impl Into<Arc<str>>) -> Self {
        Self(id.into())
    }

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
    pub session: SessionId,
    /// `None` for a session that was resumed after a restart by an unknown client.
    pub client: Option<ClientInfo>,
    /// Whether its event stream is open.
    pub listening: bool,
    pub since_unix_milliseconds: u64,
}

impl Agent {
    pub fn identity(&self) -> AgentIdentity {
        self.client
            .as_ref()
            .map_or_else(AgentIdentity::unknown, ClientInfo::identity)
    }
}
