//! The events of a daemon, typed.
//!
//! Everything is read from the JSON in an event's data, as the daemon's own clients do. Data that breaks the envelope's rules
//! is no event; an event whose name is not known, or whose data lacks what its name promises, is kept as
//! [`EventKind::Unknown`] with its name.

use serde_json::{Map, Value};

use super::error::ErrorCode;
use crate::conversation::{PermissionRequest, SessionUpdate, owned_text, read_permission_request, text_of};

/// The largest id that JavaScript can count to.
const LARGEST_ID: u64 = (1 << 53) - 1;

/// One event of a session.
#[derive(Clone, Debug, PartialEq)]
pub struct DaemonEvent {
    /// Its place in the order of the session. Those that concern only this stream have none.
    pub id: Option<u64>,
    /// The turn that it belongs to.
    pub prompt_id: Option<String>,
    /// The client whose request caused it.
    pub originator: Option<String>,
    /// When the daemon sent it, in milliseconds since 1970.
    pub timestamp: Option<u64>,
    /// What happened.
    pub kind: EventKind,
}

/// What happened. The fields are those of the daemon.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    missing_docs,
    reason = "the fields are the daemon's own and are described with the daemon"
)]
pub enum EventKind {
    /// The conversation went on.
    SessionUpdate(SessionUpdate),
    /// A turn ended.
    TurnComplete { stop_reason: String },
    /// A turn failed.
    TurnError { message: String, code: Option<ErrorCode> },
    /// Somebody asked to cancel. The turn has not ended yet.
    PromptCancelled { reason: Option<String> },
    /// A prompt waits its turn.
    PendingPromptAdded { prompt_id: String, text: String },
    /// A prompt that waited begins.
    PendingPromptStarted { prompt_id: String, text: String },
    /// A prompt waits no more; it may have been removed.
    PendingPromptCompleted { prompt_id: String, state: String },
    /// The agent needs a person.
    PermissionRequest(Box<PermissionRequest>),
    /// Somebody answered, or nobody needs to any more. The option is `None` if it was cancelled.
    PermissionResolved {
        request_id: String,
        option_id: Option<String>,
        voter: Option<String>,
    },
    /// Somebody answered what had been answered.
    PermissionAlreadyResolved {
        request_id: String,
        option_id: Option<String>,
    },
    /// One of several votes that it takes.
    PermissionPartialVote {
        request_id: String,
        received: u64,
        needed: u64,
    },
    /// Somebody voted who may not.
    PermissionForbidden {
        request_id: String,
        client_id: Option<String>,
        reason: String,
    },
    /// Another model is in use.
    ModelSwitched { model_id: String },
    /// Another model was wanted and is not in use.
    ModelSwitchFailed { model_id: String, error: String },
    /// Another approval mode is in force.
    ApprovalModeChanged { mode: String },
    /// The session is called something else.
    SessionMetadataUpdated { display_name: Option<String> },
    /// The state of the session as this stream begins.
    SessionSnapshot {
        model_id: Option<String>,
        mode: Option<String>,
        recording_degraded: bool,
    },
    /// The agent died. Nothing follows.
    SessionDied { session_id: Option<String>, reason: String },
    /// Somebody closed the session. Nothing follows.
    SessionClosed {
        session_id: Option<String>,
        reason: String,
        closed_by: Option<String>,
    },
    /// What is said is not recorded any more.
    RecordingDegraded,
    /// All that was missed has been sent again.
    ReplayComplete { replayed: u64 },
    /// What was missed cannot be sent again.
    StateResyncRequired { reason: String },
    /// A loaded history does not begin at its beginning.
    HistoryTruncated { truncated_events: u64 },
    /// We read too slowly.
    SlowClientWarning,
    /// We read too slowly for too long.
    ClientEvicted { reason: String },
    /// The daemon cannot go on with this stream.
    StreamError { error: String },
    /// Something to say next.
    FollowupSuggestion { suggestion: String },
    /// Something that this program has no use for, or does not know, or that lacks what it needs.
    Unknown { name: String, data: Value },
}

/// Why data is no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Not JSON, or not an object: most likely a part of one.
    #[error("the data is not a JSON object")]
    NotJson,
    /// Another version of the envelope.
    #[error("the envelope is not version 1")]
    Version,
    /// No name.
    #[error("the event has no type")]
    Type,
    /// An id that is no whole number from 1 on.
    #[error("the id is not a positive integer")]
    Id,
}

impl DaemonEvent {
    /// Reads the data of an event.
    pub fn parse(data: &str) -> Result<Self, EventError> {
        match serde_json::from_str(data) {
            Ok(Value::Object(envelope)) => Self::read(envelope),
            _ => Err(EventError::NotJson),
        }
    }

    /// Reads an envelope, as it comes in an event's data, in a loaded session or in a transcript.
    pub fn read(mut envelope: Map<String, Value>) -> Result<Self, EventError> {
        if envelope.get("v").and_then(Value::as_u64) != Some(1) {
            return Err(EventError::Version);
        }
        let Some(Value::String(name)) = envelope.remove("type") else {
            return Err(EventError::Type);
        };
        let id = match envelope.get("id") {
            None => None,
            Some(id) => Some(
                id.as_u64()
                    .filter(|id| (1..=LARGEST_ID).contains(id))
                    .ok_or(EventError::Id)?,
            ),
        };
        let data = envelope.remove("data").unwrap_or_default();
        let text = |name: &str| envelope.get(name).and_then(Value::as_str).map(str::to_owned);
        let prompt_id = text("promptId").or_else(|| text_of(&data, "promptId").map(str::to_owned));
        let timestamp = envelope
            .get("_meta")
            .and_then(|meta| meta.get("serverTimestamp"))
            .and_then(Value::as_u64);
        let kind = EventKind::read(&name, prompt_id.as_deref(), &data).unwrap_or(EventKind::Unknown { name, data });
        Ok(Self {
            id,
            prompt_id,
            originator: text("originatorClientId"),
            timestamp,
            kind,
        })
    }

    /// Whether nothing follows it in its session.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind,
            EventKind::SessionDied { .. } | EventKind::SessionClosed { .. }
        )
    }
}

impl EventKind {
    /// Reads what a name promises; `None` if it does not keep it.
    fn read(name: &str, prompt_id: Option<&str>, data: &Value) -> Option<Self> {
        let text = |name: &str| text_of(data, name).map(str::to_owned);
        let number = |name: &str| data.get(name).and_then(Value::as_u64);
        let option_id = || {
            let outcome = data.get("outcome")?;
            (text_of(outcome, "outcome") == Some("selected")).then(|| owned_text(outcome, "optionId"))
        };
        Some(match name {
            "session_update" => Self::SessionUpdate(SessionUpdate::read(data)),
            "turn_complete" => Self::TurnComplete {
                stop_reason: text("stopReason").unwrap_or_else(|| "end_turn".to_owned()),
            },
            "turn_error" => Self::TurnError {
                message: text("message").unwrap_or_else(|| "the turn failed".to_owned()),
                code: data
                    .get("code")
                    .or_else(|| data.get("errorKind"))
                    .and_then(ErrorCode::read),
            },
            "prompt_cancelled" => Self::PromptCancelled { reason: text("reason") },
            "pending_prompt_added" => Self::PendingPromptAdded {
                prompt_id: prompt_id?.to_owned(),
                text: owned_text(data, "text"),
            },
            "pending_prompt_started" => Self::PendingPromptStarted {
                prompt_id: prompt_id?.to_owned(),
                text: owned_text(data, "text"),
            },
            "pending_prompt_completed" => Self::PendingPromptCompleted {
                prompt_id: prompt_id?.to_owned(),
                state: owned_text(data, "state"),
            },
            "permission_request" => {
                let request = read_permission_request(text_of(data, "requestId")?, prompt_id, data)?;
                Self::PermissionRequest(Box::new(request))
            }
            "permission_resolved" => Self::PermissionResolved {
                request_id: text("requestId")?,
                option_id: option_id(),
                voter: text("voterClientId"),
            },
            "permission_already_resolved" => Self::PermissionAlreadyResolved {
                request_id: text("requestId")?,
                option_id: option_id(),
            },
            "permission_partial_vote" => Self::PermissionPartialVote {
                request_id: text("requestId")?,
                received: number("votesReceived")?,
                needed: number("votesNeeded")?,
            },
            "permission_forbidden" => Self::PermissionForbidden {
                request_id: text("requestId")?,
                client_id: text("clientId"),
                reason: owned_text(data, "reason"),
            },
            "model_switched" => Self::ModelSwitched {
                model_id: text("modelId")?,
            },
            "model_switch_failed" => Self::ModelSwitchFailed {
                model_id: text("requestedModelId")?,
                error: owned_text(data, "error"),
            },
            "approval_mode_changed" => Self::ApprovalModeChanged { mode: text("next")? },
            "session_metadata_updated" => Self::SessionMetadataUpdated {
                display_name: text("displayName"),
            },
            _ => return Self::read_about_stream(name, data),
        })
    }

    /// The events about the session as a whole, and about the stream itself.
    fn read_about_stream(name: &str, data: &Value) -> Option<Self> {
        let text = |name: &str| text_of(data, name).map(str::to_owned);
        let number = |name: &str| data.get(name).and_then(Value::as_u64);
        Some(match name {
            "session_snapshot" => Self::SessionSnapshot {
                model_id: text("currentModelId"),
                mode: text("currentApprovalMode"),
                recording_degraded: data
                    .get("recordingDegraded")
                    .and_then(Value::as_bool)
                    .unwrap_or_default(),
            },
            "session_died" => Self::SessionDied {
                session_id: text("sessionId"),
                reason: text("reason").unwrap_or_else(|| "session_died".to_owned()),
            },
            "session_closed" => Self::SessionClosed {
                session_id: text("sessionId"),
                reason: text("reason").unwrap_or_else(|| "session_closed".to_owned()),
                closed_by: text("closedBy"),
            },
            "session_recording_degraded" => Self::RecordingDegraded,
            "replay_complete" => Self::ReplayComplete {
                replayed: number("replayedCount").unwrap_or_default(),
            },
            "state_resync_required" => Self::StateResyncRequired {
                reason: owned_text(data, "reason"),
            },
            "history_truncated" => Self::HistoryTruncated {
                truncated_events: number("truncatedEvents").unwrap_or_default(),
            },
            "slow_client_warning" => Self::SlowClientWarning,
            "client_evicted" => Self::ClientEvicted {
                reason: owned_text(data, "reason"),
            },
            "stream_error" => Self::StreamError {
                error: owned_text(data, "error"),
            },
            "followup_suggestion" => Self::FollowupSuggestion {
                suggestion: text("suggestion")?,
            },
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn kind(name: &str, data: &Value) -> EventKind {
        let envelope = json!({"v": 1, "id": 1, "type": name, "data": data}).to_string();
        DaemonEvent::parse(&envelope).unwrap().kind
    }

    #[test]
    fn what_breaks_the_rules_of_the_envelope_is_no_event() {
        for (data, error) in [
            (r#"{"v":1,"type":"x""#, EventError::NotJson),
            ("[1]", EventError::NotJson),
            (r#"{"type":"x"}"#, EventError::Version),
            (r#"{"v":2,"type":"x"}"#, EventError::Version),
            (r#"{"v":1}"#, EventError::Type),
            (r#"{"v":1,"type":7}"#, EventError::Type),
            (r#"{"v":1,"type":"x","id":0}"#, EventError::Id),
            (r#"{"v":1,"type":"x","id":-1}"#, EventError::Id),
            (r#"{"v":1,"type":"x","id":1.5}"#, EventError::Id),
            (r#"{"v":1,"type":"x","id":"1"}"#, EventError::Id),
            (r#"{"v":1,"type":"x","id":9007199254740992}"#, EventError::Id),
        ] {
            assert_eq!(DaemonEvent::parse(data), Err(error), "{data}");
        }
    }

    #[test]
    fn an_event_that_is_not_known_or_not_whole_keeps_its_name_and_data() {
        for (name, data) in [
            ("hologram_projected", json!({"beam": 1})),
            (
                "permission_request",
                json!({"requestId": 7, "toolCall": {}, "options": []}),
            ),
            ("permission_request", json!({"requestId": "r", "options": []})),
            ("model_switched", json!({})),
        ] {
            let expected = EventKind::Unknown {
                name: name.to_owned(),
                data: data.clone(),
            };
            assert_eq!(kind(name, &data), expected);
        }
    }

    #[test]
    fn the_code_of_a_failed_turn_may_be_a_name_a_number_or_absent() {
        let code = |data: Value| match kind("turn_error", &data) {
            EventKind::TurnError { code, .. } => code.map(|code| code.to_string()),
            other => panic!("{other:?}"),
        };
        assert_eq!(
            code(json!({"message": "x", "code": "-32603"})).as_deref(),
            Some("-32603")
        );
        assert_eq!(code(json!({"message": "x", "code": -32603})).as_deref(), Some("-32603"));
        assert_eq!(code(json!({"message": "x"})), None);
    }

    #[test]
    fn the_turn_of_an_event_is_in_the_envelope_or_in_the_data() {
        let outer = r#"{"v":1,"type":"turn_complete","promptId":"p","data":{"stopReason":"end_turn"}}"#;
        let inner = r#"{"v":1,"type":"turn_complete","data":{"stopReason":"end_turn","promptId":"p"}}"#;
        for text in [outer, inner] {
            assert_eq!(DaemonEvent::parse(text).unwrap().prompt_id.as_deref(), Some("p"));
        }
    }

    #[test]
    fn a_cancelled_request_has_no_option() {
        let resolved =
            |outcome: Value| match kind("permission_resolved", &json!({"requestId": "r", "outcome": outcome})) {
                EventKind::PermissionResolved { option_id, .. } => option_id,
                other => panic!("{other:?}"),
            };
        assert_eq!(
            resolved(json!({"outcome": "selected", "optionId": "a"})).as_deref(),
            Some("a")
        );
        assert_eq!(resolved(json!({"outcome": "cancelled"})), None);
    }
}
