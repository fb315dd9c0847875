//! Everything that the chat exchanges reads back as it was written.

use alongside_core::SessionId;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::*;

fn round_trip<T: Serialize + DeserializeOwned + PartialEq + std::fmt::Debug>(value: &T) -> Value {
    let json = serde_json::to_value(value).unwrap();
    assert_eq!(&serde_json::from_value::<T>(json.clone()).unwrap(), value, "{json}");
    json
}

fn call() -> ToolCall {
    ToolCall {
        id: "c".to_owned(),
        title: "Write".to_owned(),
        kind: "edit".to_owned(),
        status: ToolStatus::Other("paused".to_owned()),
        tool_name: None,
        input: json!({"a": [1, null]}),
        output: Value::Null,
        locations: vec![Location {
            path: "/a".to_owned(),
            line: Some(3),
        }],
        content: vec![
            ToolContent::Content { content: "é".into() },
            ToolContent::Diff {
                path: "/a".to_owned(),
                old_text: None,
                new_text: "x\r\n".to_owned(),
            },
            ToolContent::Other {
                value: json!({"type": "terminal"}),
            },
        ],
    }
}

fn request() -> PermissionRequest {
    PermissionRequest {
        request_id: "r".to_owned(),
        prompt_id: None,
        tool_call: call(),
        options: vec![PermissionOption {
            option_id: "o".to_owned(),
            name: "Allow".to_owned(),
            kind: OptionKind::Other("odd".to_owned()),
        }],
        questions: vec![Question {
            answer_key: "0".to_owned(),
            question: "Which?".to_owned(),
            header: "H".to_owned(),
            choices: vec![QuestionChoice {
                label: "A".to_owned(),
                description: String::new(),
            }],
            multiple: true,
        }],
    }
}

fn session() -> ConnectedSession {
    ConnectedSession {
        session_id: SessionId::new("s"),
        agent: "Qwen Code".to_owned(),
        agent_version: Some("0.24.4".to_owned()),
        attached: true,
        resumed: false,
        workspace: "/w".to_owned(),
        abilities: Abilities {
            images: true,
            ..Abilities::default()
        },
        locality: Locality::Daemon {
            preflight: vec![PreflightCell {
                kind: "auth".to_owned(),
                status: "ok".to_owned(),
                locality: Some("acp".to_owned()),
                error: None,
                detail: json!({"n": 1}),
            }],
        },
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "one line per event")]
fn every_event_round_trips() {
    let id = || "p".to_owned();
    let text = || "é\n".to_owned();
    let events = [
        AgentEvent::Connected(session()),
        AgentEvent::Connected(ConnectedSession {
            locality: Locality::Child,
            ..session()
        }),
        AgentEvent::HistoryStart { reason: text() },
        AgentEvent::HistoryEnd,
        AgentEvent::PromptAccepted {
            prompt_id: id(),
            text: text(),
        },
        AgentEvent::UserMessage {
            prompt_id: None,
            content: "a".into(),
        },
        AgentEvent::MidTurnMessage {
            prompt_id: Some(id()),
            message_id: None,
            blocks: vec!["a".into()],
            own: true,
        },
        AgentEvent::Rewound { turn: 1 },
        AgentEvent::TurnStarted { prompt_id: id() },
        AgentEvent::AssistantChunk {
            prompt_id: Some(id()),
            content: ContentBlock::Other(json!({"type": "odd"})),
        },
        AgentEvent::ThinkingChunk {
            prompt_id: None,
            content: "b".into(),
        },
        AgentEvent::ToolCall {
            prompt_id: None,
            call: Box::new(call()),
        },
        AgentEvent::Plan {
            entries: vec![PlanEntry {
                content: text(),
                priority: "high".to_owned(),
                status: "pending".to_owned(),
            }],
        },
        AgentEvent::ApprovalOpened {
            request: Box::new(request()),
        },
        AgentEvent::ApprovalProgress {
            request_id: id(),
            received: 1,
            needed: 2,
        },
        AgentEvent::ApprovalClosed {
            request_id: id(),
            option_id: None,
            own: true,
        },
        AgentEvent::CancelRequested { prompt_id: None },
        AgentEvent::TurnEnded {
            prompt_id: None,
            end: TurnEnd::Completed { stop_reason: text() },
        },
        AgentEvent::TurnEnded {
            prompt_id: None,
            end: TurnEnd::Failed {
                message: text(),
                code: None,
            },
        },
        AgentEvent::PromptQueued {
            prompt_id: id(),
            text: text(),
        },
        AgentEvent::PromptUnqueued {
            prompt_id: id(),
            removed: false,
        },
        AgentEvent::Models(Models {
            current: None,
            available: vec![ModelInfo {
                id: id(),
                name: text(),
                description: None,
                context_limit: Some(u64::MAX),
            }],
        }),
        AgentEvent::ModelChanged { model_id: id() },
        AgentEvent::ModelChangeFailed {
            model_id: id(),
            message: text(),
        },
        AgentEvent::Modes(Modes {
            current: Some(id()),
            available: vec![ModeInfo {
                id: id(),
                name: text(),
                description: Some(text()),
            }],
        }),
        AgentEvent::ModeChanged { mode_id: id() },
        AgentEvent::Commands {
            commands: vec![SlashCommand {
                name: text(),
                description: text(),
                hint: None,
            }],
            skills: vec![text()],
        },
        AgentEvent::ContextUsage { used: 1, size: 2 },
        AgentEvent::TokenUsage(TokenUsage {
            input_tokens: 1,
            ..TokenUsage::default()
        }),
        AgentEvent::Title { title: text() },
        AgentEvent::Suggestion { text: text() },
        AgentEvent::Notice {
            level: NoticeLevel::Unsupported,
            message: text(),
        },
        AgentEvent::Interrupted {
            reason: text(),
            retry_in_milliseconds: 5,
        },
        AgentEvent::Reconnected,
        AgentEvent::Disconnected {
            kind: DisconnectKind::Died,
            reason: text(),
            reopen: Some(SessionId::new(id())),
        },
    ];
    for event in &events {
        assert!(round_trip(event)["type"].is_string());
    }
}

#[test]
fn every_command_and_reply_round_trips() {
    let id = || "p".to_owned();
    for command in [
        AgentCommand::Prompt {
            blocks: vec!["a".into()],
            id: None,
        },
        AgentCommand::Prompt {
            blocks: vec!["a".into()],
            id: Some(id()),
        },
        AgentCommand::MidTurn {
            blocks: vec!["a".into()],
            id: Some(id()),
        },
        AgentCommand::Rewind { turn: 1 },
        AgentCommand::ReadAttachment { name: id() },
        AgentCommand::Cancel,
        AgentCommand::Answer {
            request_id: id(),
            decision: PermissionDecision::Cancel,
        },
        AgentCommand::Answer {
            request_id: id(),
            decision: PermissionDecision::select("o"),
        },
        AgentCommand::RemoveQueued { prompt_id: id() },
        AgentCommand::SetModel { model_id: id() },
        AgentCommand::SetMode { mode_id: id() },
        AgentCommand::ListSessions { cursor: None },
        AgentCommand::ListSessions { cursor: Some(id()) },
        AgentCommand::NewSession,
        AgentCommand::LoadSession {
            session_id: SessionId::new(id()),
        },
        AgentCommand::Rename { title: id() },
        AgentCommand::FindFiles { pattern: id() },
    ] {
        assert!(round_trip(&command)["type"].is_string());
    }
    for reply in [
        AgentReply::Done,
        AgentReply::Prompt { prompt_id: id() },
        AgentReply::Attachment { data: id() },
        AgentReply::TooLate,
        AgentReply::Sessions {
            sessions: vec![SessionSummary {
                session_id: SessionId::new(id()),
                workspace_cwd: "/w".to_owned(),
                display_name: None,
                created_at: None,
                updated_at: None,
                has_active_prompt: false,
                client_count: 0,
            }],
            next_cursor: None,
        },
        AgentReply::Files { paths: vec![id()] },
    ] {
        assert!(round_trip(&reply)["type"].is_string());
    }
}
