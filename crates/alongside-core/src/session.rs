//! Connected agents.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::core::DeliveryId;
use crate::dialect::ClientInfo;

/// The id of a session, as its agent knows it.
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

/// A session of the core. Clients choose their own MCP session ids when they reconnect, so a session is identified by its
/// kind and its id.
///
/// It is written as one string: a prefix for its kind and the id. An MCP session has the prefix `mcp-` only where its id could be
/// mistaken for something else.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionKey {
    /// An agent's MCP session.
    Mcp(SessionId),
    /// A session of an agent that the chat is connected to. It ends with the companion.
    Chat(SessionId),
    /// A connection on which an agent's call waits for the decision. It ends with the connection.
    Connection(SessionId),
    /// A hook process, which waits for the decision. It ends with the process.
    Hook(SessionId),
}

impl SessionKey {
    pub fn is_chat(&self) -> bool {
        matches!(self, Self::Chat(_))
    }

    pub fn is_hook(&self) -> bool {
        matches!(self, Self::Hook(_))
    }

    /// Whether the one that asked waits for the decision. Then a decision is for nobody else: it is neither kept nor repeated.
    pub fn is_waiting(&self) -> bool {
        !matches!(self, Self::Mcp(_))
    }

    /// Whether the reason for a rejection can reach the agent.
    pub fn takes_reason(&self) -> bool {
        matches!(self, Self::Chat(_) | Self::Hook(_))
    }

    /// As its agent knows it.
    pub fn id(&self) -> &SessionId {
        match self {
            Self::Mcp(id) | Self::Chat(id) | Self::Connection(id) | Self::Hook(id) => id,
        }
    }
}

impl From<SessionId> for SessionKey {
    fn from(mcp: SessionId) -> Self {
        Self::Mcp(mcp)
    }
}

const CHAT: &str = "chat-";
const CONNECTION: &str = "connection-";
const HOOK: &str = "hook-";
const MCP: &str = "mcp-";

impl fmt::Display for SessionKey {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self {
            Self::Chat(_) => CHAT,
            Self::Connection(_) => CONNECTION,
            Self::Hook(_) => HOOK,
            Self::Mcp(id) => {
                let is_ambiguous = |prefix| id.as_str().starts_with(prefix);
                if [CHAT, CONNECTION, HOOK, MCP].into_iter().any(is_ambiguous) {
                    MCP
                } else {
                    ""
                }
            }
        };
        write!(formatter, "{prefix}{}", self.id())
    }
}

impl From<&str> for SessionKey {
    fn from(text: &str) -> Self {
        let id_after = |prefix| text.strip_prefix(prefix).map(SessionId::new);
        None.or_else(|| id_after(CHAT).map(Self::Chat))
            .or_else(|| id_after(CONNECTION).map(Self::Connection))
            .or_else(|| id_after(HOOK).map(Self::Hook))
            .or_else(|| id_after(MCP).map(Self::Mcp))
            .unwrap_or_else(|| Self::Mcp(SessionId::new(text)))
    }
}

impl Serialize for SessionKey {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for SessionKey {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(|text| Self::from(text.as_str()))
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
    pub session: SessionKey,
    /// `None` for a session that was resumed after a restart by an unknown client.
    pub client: Option<ClientInfo>,
    /// Whether its event stream is open.
    pub listening: bool,
    pub since_unix_milliseconds: u64,
    /// The decisions of ended sessions that were reported to this one.
    pub(crate) orphans_reported: BTreeSet<DeliveryId>,
}

impl Agent {
    pub fn identity(&self) -> AgentIdentity {
        self.client
            .as_ref()
            .map_or_else(AgentIdentity::unknown, ClientInfo::identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn session_key_survives_being_written() {
        for id in [
            "a",
            "chat-a",
            "mcp-a",
            "mcp-chat-a",
            "chat-",
            "mcp-mcp-",
            "hook-a",
            "connection-a",
        ] {
            for key in [
                SessionKey::Mcp(SessionId::new(id)),
                SessionKey::Chat(SessionId::new(id)),
                SessionKey::Connection(SessionId::new(id)),
                SessionKey::Hook(SessionId::new(id)),
            ] {
                let written = serde_json::to_string(&key).unwrap();
                assert_eq!(serde_json::from_str::<SessionKey>(&written).unwrap(), key, "{written}");
            }
        }
        assert_eq!(SessionKey::Chat(SessionId::new("a")).to_string(), "chat-a");
        assert_eq!(SessionKey::Mcp(SessionId::new("a")).to_string(), "a");
    }
}
