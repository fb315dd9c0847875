//! The `IdeContext` of the specification.
//!
//! An optional field is absent, never null: a null disconnects Gemini CLI and Qwen Code.

use serde::{Deserialize, Serialize};

/// The parameters of `ide/contextUpdate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdeContext {
    pub workspace_state: WorkspaceState,
}

/// What is open, and whether the workspace is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceState {
    /// Most recently focused first.
    pub open_files: Vec<File>,
    /// Present only if the front end has a notion of trust: a value overrides the user's choice in the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_trusted: Option<bool>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Absolute path.
    pub path: String,
    /// When it was last focused, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// Present, and true, only on the focused file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_text: Option<String>,
    /// Where the selected text begins, if the front end says so. Not part of the specification.
    #[serde(skip)]
    pub selection_start: Option<Cursor>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// 1-based.
    pub line: u32,
    /// 1-based, in UTF-16 code units.
    pub character: u32,
}
