//! What a session offers: models, modes, slash commands, and where its agent runs.

use alongside_core::SessionId;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A session that was created, loaded or resumed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedSession {
    pub session_id: SessionId,
    /// The agent's name.
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    /// Whether the session existed before.
    pub attached: bool,
    /// Whether this continues what was shown before: it stays, and the missed events follow.
    pub resumed: bool,
    /// The working directory, on the machine where the agent runs.
    pub workspace: String,
    pub abilities: Abilities,
    pub locality: Locality,
}

/// What can be done in a session, so that a front end offers nothing else.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Abilities {
    pub list_sessions: bool,
    /// An old session can be opened with its history.
    pub load_sessions: bool,
    pub rename_sessions: bool,
    /// Workspace files can be searched.
    pub find_files: bool,
    pub switch_models: bool,
    pub switch_modes: bool,
    /// A prompt can contain images.
    pub images: bool,
    /// A prompt can contain files that are not images.
    #[serde(default)]
    pub files: bool,
    /// An attached image can be read again, to show it.
    #[serde(default)]
    pub read_attachments: bool,
    /// The agent can receive a message during a turn.
    #[serde(default)]
    pub mid_turn: bool,
    /// The conversation can be rewound.
    #[serde(default)]
    pub rewind: bool,
    /// Other clients may be in the same session.
    pub shared: bool,
    /// File writes can be reviewed first.
    pub reviews_writes: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "where", rename_all = "camelCase")]
pub enum Locality {
    /// A child process of the companion, which reads and writes files for it.
    Child,
    /// A daemon: files, MCP servers, skills and credentials are those of the daemon's process.
    Daemon { preflight: Vec<PreflightCell> },
}

/// What a daemon reports about the machine it runs on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PreflightCell {
    /// `node_version`, `auth`, `mcp_discovery` and so on.
    pub kind: String,
    /// `ok`, `warning`, `error` and so on.
    #[serde(default)]
    pub status: String,
    /// The process that it applies to: `daemon` or `acp`.
    pub locality: Option<String>,
    pub error: Option<String>,
    #[serde(default)]
    pub detail: Value,
}

/// A session in a list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionSummary {
    pub session_id: SessionId,
    #[serde(default, alias = "cwd")]
    pub workspace_cwd: String,
    #[serde(alias = "title")]
    pub display_name: Option<String>,
    pub created_at: Option<String>,
    pub updated_at: Option<String>,
    /// Whether a turn is running.
    #[serde(default)]
    pub has_active_prompt: bool,
    /// 0 for a session that is only stored.
    #[serde(default)]
    pub client_count: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Models {
    pub current: Option<String>,
    pub available: Vec<ModelInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelInfo {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    /// In tokens.
    pub context_limit: Option<u64>,
}

/// How much an agent may do without asking.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Modes {
    pub current: Option<String>,
    pub available: Vec<ModeInfo>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModeInfo {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SlashCommand {
    /// Without the slash.
    pub name: String,
    pub description: String,
    /// What may follow the name.
    pub hint: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    pub content: String,
    /// `high`, `medium` or `low`.
    pub priority: String,
    /// `pending`, `in_progress` or `completed`.
    pub status: String,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct TokenUsage {
    pub input_tokens: u64,
    pub output_tokens: u64,
    pub total_tokens: u64,
    pub thought_tokens: u64,
    pub cached_read_tokens: u64,
}
