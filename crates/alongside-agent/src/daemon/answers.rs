//! What the daemon answers, as far as this program uses it.
//!
//! Everything beyond the fields that a daemon has always sent is optional.

use alongside_core::SessionId;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;

use super::error::ErrorCode;
use super::event::DaemonEvent;
use crate::conversation::{TurnEnd, text_of};
use alongside_protocol::chat::SessionSummary;

/// What a daemon can do: `GET /capabilities`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Capabilities {
    /// The version of the envelope; 1 is the only one.
    #[serde(default)]
    pub v: Value,
    /// The version of the program.
    pub qwen_code_version: Option<String>,
    /// The tags of everything that it can do.
    #[serde(default)]
    pub features: Vec<String>,
    /// The directory that it works in first.
    pub workspace_cwd: Option<String>,
    /// All directories that it works in. Missing while the daemon starts.
    #[serde(default)]
    pub workspaces: Vec<Workspace>,
    /// Numbers that it does not exceed.
    #[serde(default)]
    pub limits: Value,
    /// Who may decide about requests for permission.
    #[serde(default)]
    pub policy: Value,
}

/// A directory that a daemon works in.
#[derive(Clone, Debug, Deserialize)]
pub struct Workspace {
    /// Its path on the daemon's machine.
    pub cwd: String,
    /// Whether it is the first one.
    #[serde(default)]
    pub primary: bool,
    /// Whether its owner trusts it.
    pub trusted: Option<bool>,
}

impl Capabilities {
    /// Whether the daemon can do what this tag means.
    pub fn has(&self, feature: &str) -> bool {
        self.features.iter().any(|own| own == feature)
    }

    /// The directories that it works in.
    pub fn directories(&self) -> Vec<&str> {
        let all = self.workspaces.iter().map(|workspace| workspace.cwd.as_str());
        let mut directories: Vec<&str> = self.workspace_cwd.as_deref().into_iter().chain(all).collect();
        directories.dedup();
        directories
    }
}

/// What is asked for with `POST /session`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct NewSession {
    /// The directory, absolute; the daemon's first one if missing.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// A conversation of one's own, or the one that all share.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_scope: Option<SessionScope>,
    /// The id that the session shall have. It must be a UUID, and new.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session_id: Option<String>,
    /// The model to begin with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model_service_id: Option<String>,
    /// The approval mode to begin with. The daemon's default lets a model decide.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approval_mode: Option<String>,
}

/// Who is in a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionScope {
    /// All clients of the directory.
    Single,
    /// Whoever knows its id.
    Thread,
}

/// A session that one is in: the answer to `POST /session`, `/load` and `/resume`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionHandle {
    pub session_id: SessionId,
    /// The directory that it works in.
    #[serde(default)]
    pub workspace_cwd: String,
    /// Whether it was live before.
    #[serde(default)]
    pub attached: bool,
    /// Who we are in it.
    pub client_id: Option<String>,
    /// Whether a turn is going on.
    #[serde(default)]
    pub has_active_prompt: bool,
    /// Whether the model that was asked for is in use.
    pub model_applied: Option<bool>,
    /// Modes and models. Often empty: `GET /session/:id/context` knows better.
    #[serde(default)]
    pub state: Value,
    /// The last event so far.
    pub last_event_id: Option<u64>,
    /// The life of the session that the ids count in.
    pub event_epoch: Option<String>,
    #[serde(default)]
    compacted_replay: Vec<Value>,
    #[serde(default)]
    live_journal: Vec<Value>,
    #[serde(default)]
    prompt_terminals: Vec<Value>,
    /// Whether there is more history than was sent.
    #[serde(default)]
    pub history_has_more: bool,
}

impl SessionHandle {
    /// Takes the history out of a loaded session, in order: what is finished, and then what is going on.
    pub fn take_history(&mut self) -> Vec<DaemonEvent> {
        let finished = std::mem::take(&mut self.compacted_replay);
        let going_on = std::mem::take(&mut self.live_journal);
        read_events(finished.into_iter().chain(going_on))
    }

    /// How the turns ended that the daemon remembers, by their prompts. Their last events may be lost.
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
                "complete" | "completed" => TurnEnd::Completed {
                    stop_reason: text_of(terminal, "stopReason").unwrap_or("end_turn").to_owned(),
                },
                other => TurnEnd::Completed {
                    stop_reason: other.to_owned(),
                },
            };
            Some((prompt, end))
        })
    }
}

/// Reads envelopes, leaving out what is none.
pub(super) fn read_events(envelopes: impl Iterator<Item = Value>) -> Vec<DaemonEvent> {
    envelopes
        .filter_map(|envelope| match envelope {
            Value::Object(envelope) => DaemonEvent::read(envelope).ok(),
            _ => None,
        })
        .collect()
}

/// That a prompt was accepted: its result comes as events.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PromptReceipt {
    /// The identity of the turn.
    pub prompt_id: String,
    /// The last event before it.
    pub last_event_id: Option<u64>,
    /// The life of the session that the id counts in.
    pub event_epoch: Option<String>,
}

/// A cursor is a text, or a number in some versions.
fn text_or_number<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<String>, D::Error> {
    Ok(match Value::deserialize(deserializer)? {
        Value::String(text) if !text.is_empty() => Some(text),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    })
}

/// A page of sessions.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionPage {
    /// The sessions.
    #[serde(default)]
    pub sessions: Vec<SessionSummary>,
    /// What to ask for the next page with.
    #[serde(default, deserialize_with = "text_or_number")]
    pub next_cursor: Option<String>,
}

/// How a session is: `GET /session/:id/status`.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionStatus {
    /// Its id.
    pub session_id: String,
    /// Whether a turn is going on.
    #[serde(default)]
    pub has_active_prompt: bool,
    /// How many clients are in it.
    #[serde(default)]
    pub client_count: u64,
    #[serde(default)]
    pub(super) pending_interactions: Vec<Value>,
}

impl SessionStatus {
    /// The requests that wait for an answer.
    pub fn open_requests(&self) -> Vec<crate::conversation::PermissionRequest> {
        let interactions = self.pending_interactions.iter();
        interactions
            .filter_map(crate::conversation::read_pending_interaction)
            .collect()
    }
}

/// A prompt that waits or runs.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PendingPrompt {
    /// The identity of the turn.
    pub prompt_id: String,
    /// What was said.
    #[serde(default)]
    pub text: String,
    /// `running` or `queued`.
    #[serde(default)]
    pub state: String,
    /// Who said it.
    pub originator_client_id: Option<String>,
}

/// A page of a recorded conversation.
#[derive(Clone, Debug)]
pub struct TranscriptPage {
    /// The events; none has an id.
    pub events: Vec<DaemonEvent>,
    /// What to ask for the next page with.
    pub next_cursor: Option<String>,
    /// Whether there is a next page.
    pub has_more: bool,
}

/// The text of a file on the daemon's machine.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileText {
    /// Its path within the workspace.
    pub path: String,
    /// The text.
    pub content: String,
    /// Whether there is more than was sent.
    #[serde(default)]
    pub truncated: bool,
    /// The hash of the whole file.
    pub hash: Option<String>,
    /// What to ask for the rest with.
    pub next_cursor: Option<String>,
}
