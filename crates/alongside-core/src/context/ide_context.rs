//! The `IdeContext` of the specification.
//!
//! An optional field is absent, never null: a null disconnects both command lines.

use serde::{Deserialize, Serialize};

/// The parameters of `ide/contextUpdate`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct IdeContext {
    /// The state of the workspace.
    pub workspace_state: WorkspaceState,
}

/// What is open, and whether the workspace is trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WorkspaceState {
    /// Most recently focused first.
    pub open_files: Vec<File>,
    /// Only there when the front end has a notion of trust: a value overrides what the person told the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_trusted: Option<bool>,
}

/// One open file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct File {
    /// Absolute path.
    pub path: String,
    /// When it was last focused, in milliseconds since the Unix epoch.
    pub timestamp: u64,
    /// Only there, and true, on the file that has the focus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_active: Option<bool>,
    /// Where the cursor is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// What is selected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_text: Option<String>,
}

/// A position in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cursor {
    /// The line, from 1.
    pub line: u32,
    /// The character in the line, from 1, in UTF-16 code units.
    pub character: u32,
}
