//! The companion itself: the handshake, its status and its agents.

use std::collections::BTreeMap;
use std::path::PathBuf;

use alongside_core::{AgentIdentity, SessionKey};
use serde::{Deserialize, Serialize};

use crate::ReviewSummary;

/// Changes only when an old front end would misunderstand.
pub const VERSION: u32 = 1;

/// Who a front end is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a field of the protocol")]
pub struct Hello {
    /// The protocol version of the front end.
    pub protocol: u32,
    /// A short name for logs: `neovim`, `alongside diff`.
    pub name: String,
    /// Whether it wants notifications.
    #[serde(default)]
    pub watch: bool,
    /// Whether its decisions come from keys or clicks, which must not decide what has only just appeared.
    #[serde(default)]
    pub interactive: bool,
    /// Whether the workspace is trusted; absent if the front end has no such notion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// Whether it shows the chat and wants its events.
    #[serde(default)]
    pub chat: bool,
    /// Whether it shows files on request.
    #[serde(default)]
    pub opens_files: bool,
}

impl Hello {
    /// A front end that is not interactive and wants no notifications.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            protocol: VERSION,
            name: name.into(),
            watch: false,
            interactive: false,
            trusted: None,
            chat: false,
            opens_files: false,
        }
    }
}

/// The response to [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The protocol version of the companion.
    pub protocol: u32,
    /// The companion's own version.
    pub version: String,
    pub pid: u32,
    pub workspace: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub pid: u32,
    /// The port for agents.
    pub port: u16,
    pub version: String,
    /// The name that agents show.
    pub display_name: String,
    pub workspace: Vec<PathBuf>,
    /// The discovery files.
    pub files: Vec<PathBuf>,
    /// Discovery files that could not be written, as sentences.
    pub problems: Vec<String>,
    pub agents: Vec<AgentSummary>,
    /// The pending reviews.
    pub reviews: Vec<ReviewSummary>,
}

/// What is wrong with the companion now; empty if nothing is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProblemsChanged {
    /// Sentences for users.
    pub problems: Vec<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentsChanged {
    /// One entry per session.
    pub agents: Vec<AgentSummary>,
}

/// A connected agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// `name` and `version`.
    #[serde(flatten)]
    pub identity: AgentIdentity,
    pub session: SessionKey,
    /// Whether it has an event stream, so that it can be notified.
    pub listening: bool,
    /// When it connected, in milliseconds since the Unix epoch.
    pub since: u64,
}

/// What the page shows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum PageView {
    #[default]
    Reviews,
    Chat,
}

/// Where a link to the page leads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageTarget {
    #[serde(default)]
    pub view: PageView,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLink {
    /// Works once. It is a secret: show it to the user, but do not pass it to a program as an argument.
    pub url: String,
}

/// A private file that redirects to a one-time link. It is removed when the link is used or expires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageFile {
    pub path: PathBuf,
}

/// Environment variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables {
    pub variables: BTreeMap<String, String>,
}
