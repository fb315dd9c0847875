//! The lookup of agents that read lock files, or know one socket: Claude Code, opencode, Copilot CLI and Codex.
//!
//! Like the lookups of Gemini CLI and Qwen Code, they change nothing: a lock file that the agent would delete is only marked. They
//! follow Claude Code 2.1.325, opencode 1.18.33, Copilot CLI 1.0.102 and Codex 0.166.0.

mod claude;
mod codex;
mod copilot;
mod opencode;
#[cfg(test)]
#[cfg(unix)]
mod tests;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use alongside_core::{HookAgent, Secret};
use serde::Serialize;
use serde_json::Value;

use super::unreviewed::unreviewed;
use crate::Environment;

pub use claude::claude;
pub use codex::codex;
pub use copilot::copilot;
pub use opencode::opencode;

/// Every step of a lookup.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockLookup {
    pub working_directory: PathBuf,
    /// Where it searches.
    pub directory: PathBuf,
    /// The files it considers, in its order.
    pub candidates: Vec<LockCandidate>,
    /// The name of the editor that it would connect to.
    pub display_name: Option<String>,
    pub outcome: LockOutcome,
    /// What does not stop the agent, but the user should know.
    pub advice: Vec<Advice>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockCandidate {
    pub path: PathBuf,
    pub status: LockStatus,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LockStatus {
    Chosen,
    /// It would do, but another one is preferred, or there are several.
    AlsoMatches,
    /// The working directory does not match its folders.
    OtherFolder(Vec<PathBuf>),
    DeadProcess(u64),
    /// This terminal belongs to another editor.
    OtherEditor,
    /// Nothing accepts connections.
    Unreachable,
    Invalid(String),
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum LockOutcome {
    Connects(Endpoint),
    /// It connects once the user has done this.
    #[serde(rename_all = "camelCase")]
    AfterStep {
        endpoint: Endpoint,
        step: String,
    },
    Fails(Advice),
}

/// What an agent connects to.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Endpoint {
    /// A WebSocket on this port.
    WebSocket {
        port: u16,
        /// Never printed or serialized.
        #[serde(skip)]
        token: Option<Secret>,
    },
    Socket {
        path: PathBuf,
    },
}

/// What is wrong or worth knowing, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Advice {
    pub message: String,
    pub hint: String,
}

impl Advice {
    pub(super) fn new(message: impl Into<String>, hint: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            hint: hint.into(),
        }
    }
}

impl LockLookup {
    /// What the agent would connect to, if anything, at once or after a step.
    pub fn endpoint(&self) -> Option<&Endpoint> {
        match &self.outcome {
            LockOutcome::Connects(endpoint) | LockOutcome::AfterStep { endpoint, .. } => Some(endpoint),
            LockOutcome::Fails(_) => None,
        }
    }
}

/// A lock file.
struct Lock {
    path: PathBuf,
    modified: Option<SystemTime>,
    /// `None` if it is not a JSON object.
    content: Option<Value>,
}

impl Lock {
    /// All lock files of a directory, by name.
    fn all(directory: &Path) -> Vec<Self> {
        let entries = fs::read_dir(directory).into_iter().flatten().flatten();
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.path())
            .filter(|path| path.extension().is_some_and(|extension| extension == "lock"))
            .collect();
        paths.sort();
        paths.into_iter().map(Self::read).collect()
    }

    fn read(path: PathBuf) -> Self {
        let text = fs::read_to_string(&path).unwrap_or_default();
        let content = serde_json::from_str::<Value>(&text).ok();
        Self {
            modified: path.metadata().and_then(|metadata| metadata.modified()).ok(),
            content: content.filter(Value::is_object),
            path,
        }
    }

    /// The port in its name.
    fn port(&self) -> Option<u16> {
        self.path.file_stem()?.to_str()?.parse().ok()
    }

    fn text(&self, key: &str) -> Option<&str> {
        self.content.as_ref()?.get(key)?.as_str()
    }

    fn pid(&self) -> Option<u64> {
        self.content.as_ref()?.get("pid")?.as_u64()
    }

    fn folders(&self) -> Vec<PathBuf> {
        let folders = self
            .content
            .as_ref()
            .and_then(|content| content.get("workspaceFolders"));
        let folders = folders.and_then(Value::as_array).into_iter().flatten();
        folders.filter_map(Value::as_str).map(PathBuf::from).collect()
    }

    fn display_name(&self) -> Option<String> {
        self.text("ideName").map(str::to_owned)
    }

    fn candidate(&self, status: LockStatus) -> LockCandidate {
        LockCandidate {
            path: self.path.clone(),
            status,
        }
    }
}

/// A JSON file, if it is there and can be read.
pub(super) fn read_json(path: &Path) -> Option<Value> {
    parse_json(&fs::read_to_string(path).ok()?)
}

/// JSON with comments, as agents read their settings.
pub(super) fn parse_json(text: &str) -> Option<Value> {
    jsonc_parser::parse_to_serde_value(text, &jsonc_parser::ParseOptions::default()).ok()
}

/// That changes would not be reviewed, if so.
fn review_advice(agent: HookAgent, environment: &Environment, directory: &Path) -> Vec<Advice> {
    let unreviewed = unreviewed(agent, environment, directory);
    let advice = unreviewed.map(|reason| reason.advice(agent, environment.platform));
    advice.into_iter().collect()
}

/// Where nothing matches.
fn nothing_found(agent: &str, directory: &Path) -> Advice {
    Advice::new(
        format!("no lock file in {} is for this directory", directory.display()),
        format!(
            "Start `alongside serve` or an editor with the plugin in this directory, or start {agent} with `alongside run`."
        ),
    )
}
