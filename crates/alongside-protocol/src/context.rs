//! The editor context.

use std::path::PathBuf;
use std::sync::Arc;

use alongside_core::context::{Cursor, Hidden, HiddenReason, IdeContext};
use alongside_core::privacy::Rule;
use alongside_core::{AgentIdentity, SessionKey};
use serde::{Deserialize, Serialize};

use crate::long_text;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePath {
    /// Absolute.
    pub path: String,
}

/// The focused file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Focus {
    /// Absolute.
    pub path: String,
    /// Absent leaves it where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// Absent means no selection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_text: Option<String>,
    /// Where the selected text begins. Absent if the front end knows only the cursor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selection_start: Option<Cursor>,
}

/// Who is sent the selection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MentionTarget {
    /// Absent: the most recently used agent that has a prompt to send to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionKey>,
}

/// What was sent, and to whom.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Mentioned {
    pub session: SessionKey,
    pub agent: AgentIdentity,
    pub path: String,
    /// The first and the last line, 1-based; both are absent for a whole file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_line: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_line: Option<u32>,
}

/// A file with unsaved changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Absolute.
    pub path: String,
    /// What the editor holds; absent once it equals the file on disk.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "long_text::optional"
    )]
    pub text: Option<Arc<str>>,
}

/// A place to show to the user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileTarget {
    /// Absolute.
    pub path: String,
    /// 1-based.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

/// Which diagnostics to return.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DiagnosticsQuery {
    /// Absolute; absent for all files.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

/// The workspace folders.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folders {
    /// Absolute.
    pub folders: Vec<PathBuf>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownContext {
    /// Exactly what agents were sent.
    pub context: IdeContext,
    /// The open files that agents do not see.
    pub hidden: Vec<HiddenFile>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenFile {
    /// Absolute.
    pub path: String,
    /// As text.
    pub reason: String,
    /// The privacy rule that hides the file, if one does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
}

impl From<Hidden> for HiddenFile {
    fn from(hidden: Hidden) -> Self {
        let reason = hidden.reason.to_string();
        let rule = match hidden.reason {
            HiddenReason::Rule(rule) => Some(rule),
            HiddenReason::NotOnDisk | HiddenReason::NotLookedUp | HiddenReason::TooMany => None,
        };
        Self {
            path: hidden.path,
            reason,
            rule,
        }
    }
}
