//! Tool calls.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::ContentBlock;

/// A tool call as far as it is known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// Unique within the session.
    pub id: String,
    pub title: String,
    /// `read`, `edit`, `execute`, `think` and so on.
    pub kind: String,
    pub status: ToolStatus,
    /// The tool's name as the model knows it.
    pub tool_name: Option<String>,
    pub input: Value,
    pub output: Value,
    pub locations: Vec<Location>,
    pub content: Vec<ToolContent>,
}

/// The state of a tool call. Agents may send states that ACP does not define.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub enum ToolStatus {
    /// Not started, perhaps waiting for permission.
    #[default]
    Pending,
    InProgress,
    Completed,
    /// Failed, denied or cancelled.
    Failed,
    Other(String),
}

impl ToolStatus {
    /// ACP's name for it.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Pending => "pending",
            Self::InProgress => "in_progress",
            Self::Completed => "completed",
            Self::Failed => "failed",
            Self::Other(other) => other,
        }
    }
}

impl From<&str> for ToolStatus {
    fn from(name: &str) -> Self {
        match name {
            "pending" => Self::Pending,
            "in_progress" => Self::InProgress,
            "completed" => Self::Completed,
            "failed" => Self::Failed,
            other => Self::Other(other.to_owned()),
        }
    }
}

impl From<String> for ToolStatus {
    fn from(name: String) -> Self {
        Self::from(name.as_str())
    }
}

impl From<ToolStatus> for String {
    fn from(status: ToolStatus) -> Self {
        status.as_str().to_owned()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Location {
    /// A path on the agent's machine.
    pub path: String,
    /// 1-based.
    pub line: Option<u64>,
}

/// Something to show with a tool call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ToolContent {
    Content {
        content: ContentBlock,
    },
    Diff {
        path: String,
        /// `None` for a new file.
        old_text: Option<String>,
        new_text: String,
    },
    Other {
        value: Value,
    },
}
