//! The daemon's responses, as far as they are used here.
//!
//! Only fields that every version sends are required.

use alongside_core::SessionId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::error::ErrorCode;
use super::event::DaemonEvent;
use crate::conversation::{TurnEnd, text_of};
use alongside_protocol::chat::SessionSummary;

/// `GET /capabilities`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// The version of the protocol; only 1 exists.
    #[serde(default)]
    pub v: Value,
    pub qwen_code_version: Option<String>,
    #[serde(default)]
    pub features: Vec<String>,
    /// The first workspace.
    pub workspace_cwd: Option<String>,
    /// Missing while the daemon starts.
    #[serde(default)]
    pub workspaces: Vec<Workspace>,
    #[serde(default)]
    pub limits: Value,
    /// Among others, which clients may respond to permission requests.
    #[serde(default)]
    pub policy: Value,
}

/// A directory that a daemon serves.
#[derive(Clone, Debug, Deserialize)]
pub struct Workspace {
    /// On the daemon's machine.
    pub cwd: String,
    #[serde(default)]
    pub primary: bool,
    pub trusted: Option<bool>,
}

impl Capabilities {
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|own| own == feature)
    }

    /// The directories of all workspaces.
    pub fn directories(&self) -> Vec<&str> {
        let all = self.workspaces.iter().map(|workspace| workspace.cwd.as_str());
        let mut directories: Vec<&str> = self.workspace_cwd.as_deref().into_iter().chain(all).collect();
        directories.dedup();
        directories
    }
}

/// The body of `POST /session`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// Absolute; without it, the daemon's first workspace.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_scope: Option<SessionScope>,
    /// Must be a new UUID.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<SessionId>,
    /// The model to start with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_service_id: Option<String>,
    /// The approval mode to start with. In the daemon's default mode, a model decides.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionScope {
    /// Shared by all clients of the workspace.
    Single,
    /// For clients that know its id.
    Thread,
}

/// The response to `POST /session`, `/load` and `/resume`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHandle {
    pub session_id: SessionId,
    /// The working directory.
    #[serde(default)]
    pub workspace_cwd: String,
    /// Whether the session was live before.
    #[serde(default)]
    pub attached: bool,
    /// Our id in the session.
    pub client_id: Option<String>,
    /// Whether a turn is running.
    #[serde(default)]
    pub has_active_prompt: bool,
    /// Whether the requested model is in use.
    pub model_applied: Option<bool>,
    /// Modes and models. Often empty: `GET /session/:id/context` is more reliable.
    #[serde(default)]
    pub state: Value,
    /// The most recent event.
    pub last_event_id: Option<u64>,
    /// The epoch of the event ids.
    pub event_epoch: Option<String>,
    #[serde(default)]
    compacted_replay: Vec<Value>,
    #[serde(default)]
    live_journal: Vec<Value>,
    #[serde(default)]
    prompt_terminals: Vec<Value>,
    #[serde(default)]
    pub history_has_more: bool,
}

impl SessionHandle {
    /// Takes the history out, in order: finished turns, then the running one.
    pub fn take_history(&mut self) -> Vec<DaemonEvent> {
        let finished = std::mem::take(&mut self.compacted_replay);
        let going_on = std::mem::take(&mut self.live_journal);
        read_events(finished.into_iter().chain(going_on))
    }

    /// How recent turns ended, by prompt id. Their last events may be lost.
    pub fn turn_ends(&self) -> impl Iterator<Item = (String, TurnEnd)> {
        self.prompt_terminals.iter().filter_map(|terminal| {
            let prompt = text_of(terminal, "promptId")?.to_owned();
            let end = match text_of(terminal, "terminal")? {
                "error" => TurnEnd::Failed {
                    message: text_of(terminal, "message")
                        .unwrap_or("the turn was interrupted")
                        .to_owned(),
                    code: terminal
                        .get("code")
                        .and_then(ErrorCode::read)
                        .map(|code| code.to_string()),
                },
                "complete" | "completed" => TurnEnd::stopped(text_of(terminal, "stopReason").unwrap_or("end_turn")),
                other => TurnEnd::stopped(other),
            };
            Some((prompt, end))
        })
    }
}

/// Reads envelopes and skips malformed ones.
pub(super) fn read_events(envelopes: impl Iterator<Item = Value>) -> Vec<DaemonEvent> {
    envelopes
        .filter_map(|envelope| match envelope {
            Value::Object(envelope) => DaemonEvent::read(envelope).ok(),
            _ => None,
        })
        .collect()
}

/// The response to a prompt. The answer arrives as events.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptReceipt {
    pub prompt_id: String,
    /// The last event before the prompt.
    pub last_event_id: Option<u64>,
    /// The epoch of the event id.
    pub event_epoch: Option<String>,
}

/// A cursor is a string, or a number in some versions.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    #[serde(default)]
    pub sessions: Vec<SessionSummary>,
    /// Requests the next page.
    #[serde(default, deserialize_with = "text_or_number")]
    pub next_cursor: Option<String>,
}

/// `GET /session/:id/status`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    pub session_id: SessionId,
    /// Whether a turn is running.
    #[serde(default)]
    pub has_active_prompt: bool,
    #[serde(default)]
    pub client_count: u64,
    #[serde(default)]
    pub(super) pending_interactions: Vec<Value>,
}

impl SessionStatus {
    pub fn open_requests(&self) -> Vec<crate::conversation::PermissionRequest> {
        let interactions = self.pending_interactions.iter();
        interactions
            .filter_map(crate::conversation::read_pending_interaction)
            .collect()
    }
}

/// A queued or running prompt.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingPrompt {
    pub prompt_id: String,
    #[serde(default)]
    pub text: String,
    /// `running` or `queued`.
    #[serde(default)]
    pub state: String,
    pub originator_client_id: Option<String>,
}

#[derive(Clone, Debug)]
pub struct TranscriptPage {
    /// Without ids.
    pub events: Vec<DaemonEvent>,
    /// Requests the next page.
    pub next_cursor: Option<String>,
    pub has_more: bool,
}

/// A file on the daemon's machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileText {
    /// Relative to the workspace.
    pub path: String,
    pub content: String,
    #[serde(default)]
    pub truncated: bool,
    /// Of the whole file.
    pub hash: Option<String>,
    /// Requests the rest.
    pub next_cursor: Option<String>,
}
