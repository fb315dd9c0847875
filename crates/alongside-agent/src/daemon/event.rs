//! The daemon's events, typed.
//!
//! Everything is read from the JSON in an event's data, as the daemon's own clients do. An invalid envelope is an error. An event with
//! an unknown name or with missing fields is kept as [`EventKind::Unknown`] with its name.

use alongside_core::SessionId;
use serde_json::{Map, Value};

use super::error::ErrorCode;
use crate::conversation::{
    ContentBlock, PermissionRequest, SessionUpdate, list_of, owned_text, read_permission_request, text_of,
};

/// JavaScript's largest safe integer.
const MAX_EVENT_ID: u64 = (1 << 53) - 1;

#[derive(Clone, Debug, PartialEq)]
pub struct DaemonEvent {
    /// Increases within the session. Events that concern only this stream have none.
    pub id: Option<u64>,
    pub prompt_id: Option<String>,
    /// The client whose request caused it.
    pub originator: Option<String>,
    /// When the daemon sent it, in milliseconds since 1970.
    pub timestamp: Option<u64>,
    pub kind: EventKind,
}

/// The fields are the daemon's.
#[derive(Clone, Debug, PartialEq)]
#[expect(
    missing_docs,
    reason = "the fields are the daemon's own and are described with the daemon"
)]
pub enum EventKind {
    SessionUpdate(SessionUpdate),
    TurnComplete {
        stop_reason: String,
    },
    TurnError {
        message: String,
        code: Option<ErrorCode>,
    },
    /// A client asked to cancel. The turn has not ended yet.
    PromptCancelled {
        reason: Option<String>,
    },
    PendingPromptAdded {
        prompt_id: String,
        text: String,
    },
    PendingPromptStarted {
        prompt_id: String,
        text: String,
    },
    /// The prompt left the queue; it may have been removed.
    PendingPromptCompleted {
        prompt_id: String,
        state: String,
    },
    PermissionRequest(Box<PermissionRequest>),
    /// The option is `None` if the request was cancelled.
    PermissionResolved {
        request_id: String,
        option_id: Option<String>,
        voter: Option<String>,
    },
    /// A client responded to a resolved request.
    PermissionAlreadyResolved {
        request_id: String,
        option_id: Option<String>,
    },
    /// More votes are needed.
    PermissionPartialVote {
        request_id: String,
        received: u64,
        needed: u64,
    },
    /// The client may not vote.
    PermissionForbidden {
        request_id: String,
        client_id: Option<String>,
        reason: String,
    },
    ModelSwitched {
        model_id: String,
    },
    ModelSwitchFailed {
        model_id: String,
        error: String,
    },
    ApprovalModeChanged {
        mode: String,
    },
    SessionMetadataUpdated {
        display_name: Option<String>,
    },
    /// Sent at the start of a stream.
    SessionSnapshot {
        model_id: Option<String>,
        mode: Option<String>,
        recording_degraded: bool,
    },
    /// The agent exited. Nothing follows.
    SessionDied {
        session_id: Option<SessionId>,
        reason: String,
    },
    /// A client closed the session. Nothing follows.
    SessionClosed {
        session_id: Option<SessionId>,
        reason: String,
        closed_by: Option<String>,
    },
    /// The session is no longer recorded.
    RecordingDegraded,
    /// All missed events were sent again.
    ReplayComplete {
        replayed: u64,
    },
    /// The missed events are no longer available.
    StateResyncRequired {
        reason: String,
    },
    /// The start of a loaded history is missing.
    HistoryTruncated {
        truncated_events: u64,
    },
    /// The client reads too slowly.
    SlowClientWarning,
    /// The client read too slowly for too long.
    ClientEvicted {
        reason: String,
    },
    StreamError {
        error: String,
    },
    FollowupSuggestion {
        suggestion: String,
    },
    /// The agent received messages during a turn.
    MidTurnMessageInjected {
        messages: Vec<MidTurnMessage>,
    },
    /// This turn and everything after it was removed.
    SessionRewound {
        target_turn_index: usize,
    },
    /// Not used here, unknown, or incomplete.
    Unknown {
        name: String,
        data: Value,
    },
}

/// A message that was sent during a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MidTurnMessage {
    pub id: Option<String>,
    pub blocks: Vec<ContentBlock>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EventError {
    /// Most likely cut off.
    #[error("the data is not a JSON object")]
    NotJson,
    #[error("the envelope is not version 1")]
    Version,
    #[error("the event has no type")]
    Type,
    #[error("the id is not a positive integer")]
    Id,
}

impl DaemonEvent {
    pub fn parse(data: &str) -> Result<Self, EventError> {
        match serde_json::from_str(data) {
            Ok(Value::Object(envelope)) => Self::read(envelope),
            _ => Err(EventError::NotJson),
        }
    }

    /// Reads an envelope: an event's data, or an entry of a history or a transcript.
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
                    .filter(|id| (1..=MAX_EVENT_ID).contains(id))
                    .ok_or(EventError::Id)?,
            ),
        };
        let data = envelope.remove("data").unwrap_or_default();
        let text = |name: &str| envelope.get(name).and_then(Value::as_str).map(str::to_owned);
        // A stored conversation has it only in the update.
        let stored = || data.pointer("/update/_meta/promptId").and_then(Value::as_str);
        let prompt_id = text("promptId").or_else(|| text_of(&data, "promptId").or_else(stored).map(str::to_owned));
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

    /// Whether this is the last event of its session.
    pub fn is_terminal(&self) -> bool {
        matches!(
            self.kind,
            EventKind::SessionDied { .. } | EventKind::SessionClosed { .. }
        )
    }
}

impl EventKind {
    /// `None` if a required field is missing.
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

    /// Events about the session as a whole and about the stream.
    fn read_about_stream(name: &str, data: &Value) -> Option<Self> {
        let text = |name: &str| text_of(data, name).map(str::to_owned);
        let session = || text_of(data, "sessionId").map(SessionId::new);
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
                session_id: session(),
                reason: text("reason").unwrap_or_else(|| "session_died".to_owned()),
            },
            "session_closed" => Self::SessionClosed {
                session_id: session(),
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
            "mid_turn_message_injected" => Self::MidTurnMessageInjected {
                messages: read_mid_turn_messages(data)?,
            },
            "session_rewound" => Self::SessionRewound {
                target_turn_index: usize::try_from(number("targetTurnIndex")?).ok()?,
            },
            _ => return None,
        })
    }
}

/// The texts, ids and attachments are in three lists. `None` if there is no message.
fn read_mid_turn_messages(data: &Value) -> Option<Vec<MidTurnMessage>> {
    let (ids, items) = (list_of(data, "messageIds"), list_of(data, "items"));
    let mut messages = Vec::new();
    for (index, message) in list_of(data, "messages").iter().enumerate() {
        let text = message.as_str().filter(|text| !text.is_empty());
        let media = items.get(index).map_or(&[][..], |item| list_of(item, "content"));
        messages.push(MidTurnMessage {
            id: ids.get(index).and_then(Value::as_str).map(str::to_owned),
            blocks: text
                .map(ContentBlock::text)
                .into_iter()
                .chain(media.iter().map(ContentBlock::from))
                .collect(),
        });
    }
    (!messages.is_empty()).then_some(messages)
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
    fn invalid_envelope_is_an_error() {
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
    fn unknown_or_incomplete_event_keeps_name_and_data() {
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
    fn turn_error_code_may_be_string_number_or_absent() {
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
    fn prompt_id_is_read_from_envelope_or_data() {
        let outer = r#"{"v":1,"type":"turn_complete","promptId":"p","data":{"stopReason":"end_turn"}}"#;
        let inner = r#"{"v":1,"type":"turn_complete","data":{"stopReason":"end_turn","promptId":"p"}}"#;
        for text in [outer, inner] {
            assert_eq!(DaemonEvent::parse(text).unwrap().prompt_id.as_deref(), Some("p"));
        }
    }

    #[test]
    fn cancelled_request_has_no_option() {
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
