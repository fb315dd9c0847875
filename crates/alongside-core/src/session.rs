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

/// One connected agent.
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
    /// What people call it.
    pub fn display_name(&self) -> String {
        self.client
            .as_ref()
            .map_or_else(|| "an agent".to_owned(), ClientInfo::display_name)
    }
}
