//! The chat: what is shown of a conversation, and what keys send.

use std::sync::Arc;

use alongside_core::draft::Draft;
use alongside_protocol::chat::{AgentCommand, AgentEvent, PermissionDecision};
use alongside_protocol::{ChatCommand, ChatEvent, ChatState, Hunks};
use serde_json::Value;

use super::*;
use crate::model::{Overlay, View};

const SESSION: &str = r#"{"type": "connected", "sessionId": "s", "agent": "Qwen Code", "agentVersion": "0.9", "attached": false,
    "resumed": false, "workspace": "/home/me/project", "locality": {"where": "daemon", "preflight": []},
    "abilities": {"listSessions": true, "loadSessions": true, "renameSessions": true, "findFiles": true, "switchModels": true,
    "switchModes": true, "images": true, "shared": true, "reviewsWrites": false}}"#;

fn state(events: &[Value]) -> ChatState {
    let mut all: Vec<Value> = vec![serde_json::from_str(SESSION).unwrap()];
    all.extend_from_slice(events);
    serde_json::from_value(json!({
        "agents": [
            {"id": "qwen", "name": "Qwen Code", "kind": "child", "problem": null},
            {"id": "gemini", "name": "Gemini CLI", "kind": "child", "problem": "`gemini` is not installed."},
        ],
        "agent": "qwen", "phase": "connected", "writes": "review", "epoch": "e", "sequence": all.len(), "events": all,
    }))
    .unwrap()
}

fn conversation() -> Vec<Value> {
    vec![
        json!({"type": "models", "current": "m", "available": [{"id": "m", "name": "Coder", "description": null, "contextLimit": null}]}),
        json!({"type": "promptAccepted", "promptId": "1", "text": "Please fix the greeting."}),
        json!({"type": "turnStarted", "promptId": "1"}),
        json!({"type": "thinkingChunk", "promptId": "1", "content": {"type": "text", "text": "The file greets nobody."}}),
        json!({"type": "assistantChunk", "promptId": "1", "content": {"type": "text", "text": "I will **change** `greet`:\n\n```rust\nfn gre"}}),
        json!({"type": "assistantChunk", "promptId": "1", "content": {"type": "text", "text": "et() {}\n```\n\n- one\n- two"}}),
        json!({"type": "toolCall", "promptId": "1", "call": call("pending")}),
        json!({"type": "approvalOpened", "request": {"requestId": "r", "promptId": "1", "toolCall": call("pending"), "questions": [],
            "options": [{"optionId": "yes", "name": "Allow", "kind": "allow_once"}, {"optionId": "no", "name": "Reject", "kind": "reject_once"}]}}),
        json!({"type": "promptAccepted", "promptId": "2", "text": "And the tests."}),
        json!({"type": "promptQueued", "promptId": "2", "text": "And the tests."}),
    ]
}

fn call(status: &str) -> Value {
    json!({"id": "t", "title": "greet.rs", "kind": "edit", "status": status, "toolName": "edit", "input": {"path": "greet.rs"},
        "output": null, "locations": [],
        "content": [{"type": "diff", "path": "greet.rs", "oldText": "one\ntwo\n", "newText": "one\nTWO\n"}]})
}

impl Bench {
    fn chat(width: u16, height: u16, events: &[Value]) -> Self {
        let mut bench = Self::connected(width, height);
        bench.chat = Some(state(events));
        bench.keys("c");
        bench
    }

    fn event(&mut self, sequence: u64, event: Value) {
        let event: AgentEvent = serde_json::from_value(event).unwrap();
        self.notify(Notification::ChatEvent(ChatEvent {
            epoch: "e".into(),
            sequence,
            event: Arc::new(event),
        }));
    }

    fn commands(&self) -> Vec<&AgentCommand> {
        let commands = self.decided.iter().filter_map(|request| match request {
            Request::ChatCommand(ChatCommand { command }) => Some(command),
            _ => None,
        });
        commands.collect()
    }
}

/// The companion's own comparison.
pub(super) fn compare(texts: &alongside_protocol::Texts) -> Hunks {
    Hunks {
        hunks: Draft::new(texts.base.clone(), texts.proposal.clone(), None)
            .hunks()
            .collect(),
    }
}

#[test]
fn conversation_is_shown() {
    for (width, height) in [(40, 24), (80, 34), (160, 34)] {
        let mut bench = Bench::chat(width, height, &conversation());
        bench.wait(500);
        bench.keys("Thanks");
        insta::assert_snapshot!(format!("chat_{width}x{height}"), bench.shown());
    }
}

#[test]
fn empty_chat_says_what_to_do() {
    let mut bench = Bench::connected(80, 16);
    let mut empty = state(&[]);
    empty.events.clear();
    empty.changed.phase = alongside_protocol::ChatPhase::Idle;
    bench.chat = Some(empty);
    bench.keys("c");
    insta::assert_snapshot!("chat_empty", bench.shown());
    bench.control('o');
    insta::assert_snapshot!("chat_agents", bench.shown());
    assert!(matches!(bench.model.overlay, Some(Overlay::Agents { .. })));
    bench.press(KeyCode::Enter);
    assert!(matches!(bench.decided.last(), Some(Request::ChatConnect(connect)) if connect.agent == "qwen"));
}

#[test]
fn message_is_sent_once_with_an_id() {
    let mut bench = Bench::chat(80, 24, &[]);
    bench.keys("Hello");
    bench.control('j');
    bench.keys("there");
    bench.press(KeyCode::Enter);
    bench.press(KeyCode::Enter);
    let commands = bench.commands();
    let [AgentCommand::Prompt { blocks, id: Some(id) }] = commands.as_slice() else {
        panic!("{commands:?}")
    };
    assert_eq!((blocks[0].as_text(), id.as_str()), (Some("Hello\nthere"), "test-1"));
    assert_eq!(bench.model.chat.typed(), "");
}

#[test]
fn message_that_was_not_sent_comes_back() {
    let mut bench = Bench::chat(80, 24, &[]);
    bench.refuses_chat = true;
    bench.keys("Hello");
    bench.press(KeyCode::Enter);
    assert_eq!(bench.model.chat.typed(), "Hello");
    assert!(bench.shown().contains("the agent is gone"));
}

#[test]
fn permission_is_decided_by_a_digit_once_it_is_armed() {
    let mut bench = Bench::chat(80, 34, &conversation());
    let alt = |digit| Message::Key(KeyEvent::new(KeyCode::Char(digit), KeyModifiers::ALT));
    bench.apply(alt('1'));
    assert!(bench.commands().is_empty());
    bench.wait(400);
    // Without Alt it is part of the message.
    bench.keys("2");
    assert!(bench.commands().is_empty());
    bench.apply(alt('2'));
    let commands = bench.commands();
    let expected = AgentCommand::Answer {
        request_id: "r".to_owned(),
        decision: PermissionDecision::select("no"),
    };
    assert_eq!(commands, [&expected]);
}

#[test]
fn questions_are_answered_by_choice_and_by_text() {
    let question = |key: &str| {
        json!({"answerKey": key, "question": format!("Which {key}?"), "header": key, "multiple": false,
            "choices": [{"label": "red", "description": ""}, {"label": "blue", "description": ""}]})
    };
    let request = json!({"type": "approvalOpened", "request": {"requestId": "q", "promptId": null, "toolCall": call("pending"),
        "questions": [question("color"), question("size")], "options": [{"optionId": "ok", "name": "Submit", "kind": "allow_once"}]}});
    let mut bench = Bench::chat(80, 34, &[json!({"type": "turnStarted", "promptId": "1"}), request]);
    bench.wait(400);
    bench.apply(Message::Key(KeyEvent::new(KeyCode::Char('2'), KeyModifiers::ALT)));
    assert!(bench.commands().is_empty());
    bench.keys("rather small");
    bench.press(KeyCode::Enter);
    let commands = bench.commands();
    let [
        AgentCommand::Answer {
            decision: PermissionDecision::Select { option_id, answers },
            ..
        },
    ] = commands.as_slice()
    else {
        panic!("{commands:?}")
    };
    assert_eq!(option_id, "ok");
    assert_eq!(json!(answers), json!({"color": "blue", "size": "rather small"}));
}

#[test]
fn queue_and_turn_can_be_cancelled() {
    let mut bench = Bench::chat(80, 34, &conversation());
    bench.control('x');
    bench.press(KeyCode::Esc);
    bench.keys("d");
    let commands = bench.commands();
    assert!(
        matches!(commands.as_slice(), [AgentCommand::Cancel, AgentCommand::RemoveQueued { prompt_id }] if prompt_id == "2"),
        "{commands:?}"
    );
}

#[test]
fn streamed_events_are_followed_and_gaps_are_fetched() {
    let mut bench = Bench::chat(80, 34, &[]);
    bench.event(
        2,
        json!({"type": "assistantChunk", "promptId": null, "content": {"type": "text", "text": "Hel"}}),
    );
    bench.event(
        3,
        json!({"type": "assistantChunk", "promptId": null, "content": {"type": "text", "text": "lo"}}),
    );
    assert!(bench.shown().contains("Hello"));
    bench.chat = Some(state(&conversation()));
    bench.event(9, json!({"type": "title", "title": "later"}));
    assert!(bench.shown().contains("Please fix the greeting."));
}

#[test]
fn keys_for_the_chat_decide_no_review() {
    let mut bench = Bench::connected(80, 34);
    bench.open("/home/me/project/a.rs", "a\n", "b\n");
    bench.chat = Some(state(&[]));
    bench.keys("cARar");
    assert!(bench.decided.is_empty());
    assert_eq!(bench.model.chat.typed(), "ARar");
    // Back at the review, it is armed again.
    bench.press(KeyCode::F(2));
    assert_eq!(bench.model.view, View::Review);
    bench.keys("A");
    assert!(bench.decided.is_empty());
}
