//! Attachments, messages during a turn, and rewinding.

use alongside_agent::conversation::ContentBlock;
use alongside_agent::{AgentCommand, AgentEvent, AgentReply};
use serde_json::{Value, json};

use super::{Chat, connected, until};
use crate::fake::{CLIENT, FakeDaemon, Reply, SESSION, chunk};

async fn daemon_with_extras() -> FakeDaemon {
    let daemon = FakeDaemon::start().await;
    let features = [
        "session_attachments",
        "session_mid_turn_message_mutation",
        "session_rewind",
    ];
    daemon.with(|state| state.features.extend(features.map(str::to_owned)));
    daemon
}

fn file(name: &str, mime_type: &str) -> ContentBlock {
    ContentBlock::File {
        name: name.to_owned(),
        mime_type: mime_type.to_owned(),
        data: "AAAA".to_owned(),
    }
}

fn reference(name: &str, mime_type: &str) -> Value {
    let kind = if mime_type.starts_with("image/") {
        "image"
    } else {
        "resource"
    };
    json!({"type": kind, "attachmentId": name, "mimeType": mime_type, "size": 3})
}

async fn send_mid_turn(chat: &Chat, blocks: &[ContentBlock]) -> String {
    let blocks = blocks.to_vec();
    match chat.execute(AgentCommand::MidTurn { blocks, id: None }).await.unwrap() {
        AgentReply::Prompt { prompt_id } => prompt_id,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn attached_file_is_stored_first_and_shown_from_its_echo() {
    let daemon = daemon_with_extras().await;
    let (chat, mut events) = connected(&daemon).await;
    // The daemon derives the type from the name.
    daemon.reply("/attachments", Reply::json(201, &reference("a.png", "image/png")));
    let prompt_id = chat
        .prompt(&["look".into(), file("a.png", "image/jpeg")])
        .await
        .unwrap();
    let stored = daemon.wait_for_request("/attachments").await;
    assert!(stored.path.ends_with("/attachments?name=a.png"), "{}", stored.path);
    assert_eq!(stored.header("content-type"), Some("image/png"));
    let sent = daemon.wait_for_request("/prompt").await;
    assert_eq!(sent.body["prompt"][1], reference("a.png", "image/png"));
    let content = reference("a.png", "image/png");
    let update = json!({"sessionUpdate": "user_message_chunk", "content": content});
    daemon.publish_envelope(json!({"v": 1, "type": "session_update", "promptId": prompt_id,
        "originatorClientId": CLIENT, "data": {"sessionId": SESSION, "update": update}}));
    let seen = until(&mut events, |event| matches!(event, AgentEvent::TurnStarted { .. })).await;
    let shown = AgentEvent::UserMessage {
        prompt_id: Some(prompt_id),
        content: ContentBlock::from(content),
    };
    assert!(seen.contains(&shown), "{seen:?}");
}

#[tokio::test]
async fn refused_file_sends_nothing_and_says_why() {
    let daemon = daemon_with_extras().await;
    let (chat, _events) = connected(&daemon).await;
    daemon.reply(
        "/attachments",
        Reply::json(400, &json!({"error": "Session attachment name is invalid"})),
    );
    let error = chat
        .prompt(&["look".into(), file("a?", "text/plain")])
        .await
        .unwrap_err();
    let expected = "cannot attach a?: the daemon does not accept its name or type; rename the file";
    assert_eq!(error.to_string(), expected);
    assert!(
        daemon
            .requests("/prompt")
            .iter()
            .all(|request| request.method != "POST")
    );
    let older = FakeDaemon::start().await;
    let (chat, _events) = connected(&older).await;
    let error = chat.prompt(&[file("a.txt", "text/plain")]).await.unwrap_err();
    assert!(error.to_string().contains("update Qwen Code"), "{error}");
}

#[tokio::test]
async fn message_during_a_turn_is_queued_until_the_agent_received_it() {
    let daemon = daemon_with_extras().await;
    let (chat, mut events) = connected(&daemon).await;
    daemon.reply(
        "mid-turn-message",
        Reply::json(200, &json!({"accepted": true, "messageId": "m"})),
    );
    assert_eq!(send_mid_turn(&chat, &["by the way".into()]).await, "m");
    assert_eq!(daemon.wait_for_request("POST /session").await.method, "POST");
    daemon.publish_envelope(
        json!({"v": 1, "type": "pending_prompt_added", "promptId": "m", "originatorClientId": CLIENT,
        "data": {"promptId": "m", "text": "by the way"}}),
    );
    daemon.publish_envelope(json!({"v": 1, "type": "mid_turn_message_injected", "promptId": "p",
        "data": {"sessionId": SESSION, "messages": ["by the way"], "messageIds": ["m"], "items": [{}]}}));
    let seen = until(&mut events, |event| matches!(event, AgentEvent::MidTurnMessage { .. })).await;
    let accepted = AgentEvent::PromptAccepted {
        prompt_id: "m".to_owned(),
        text: "by the way".to_owned(),
    };
    let queued = AgentEvent::PromptQueued {
        prompt_id: "m".to_owned(),
        text: "by the way".to_owned(),
    };
    let received = AgentEvent::MidTurnMessage {
        prompt_id: Some("p".to_owned()),
        message_id: Some("m".to_owned()),
        blocks: vec!["by the way".into()],
        own: true,
    };
    assert_eq!(seen, [accepted, queued, received]);
}

#[tokio::test]
async fn message_that_is_too_late_or_too_long_for_the_turn_is_a_prompt() {
    let daemon = daemon_with_extras().await;
    let (chat, _events) = connected(&daemon).await;
    let late = json!({"accepted": false, "reason": "session_idle"});
    daemon.reply("mid-turn-message", Reply::json(200, &late));
    let prompt_id = send_mid_turn(&chat, &["late".into()]).await;
    assert!(prompt_id.starts_with("prompt-"), "{prompt_id}");
    let long = "a".repeat(16 * 1024 + 1);
    let prompt_id = send_mid_turn(&chat, &[long.as_str().into()]).await;
    assert!(prompt_id.starts_with("prompt-"), "{prompt_id}");
    let tried = daemon.requests("POST /session");
    let tried = tried
        .iter()
        .filter(|request| request.path.ends_with("/mid-turn-message"));
    assert_eq!(tried.count(), 1);
}

#[tokio::test]
async fn message_for_the_turn_is_taken_back() {
    let daemon = daemon_with_extras().await;
    let (chat, _events) = connected(&daemon).await;
    daemon.reply("DELETE /session", Reply::json(200, &json!({"removed": false})));
    daemon.reply("mid-turn-messages/m", Reply::json(200, &json!({"removed": true})));
    let prompt_id = "m".to_owned();
    let removed = chat.execute(AgentCommand::RemoveQueued { prompt_id }).await.unwrap();
    assert_eq!(removed, AgentReply::Done);
}

#[tokio::test]
async fn session_is_rewound_to_the_point_of_the_turn() {
    let daemon = daemon_with_extras().await;
    let (chat, mut events) = connected(&daemon).await;
    let points = json!({"snapshots": [{"promptId": "s########1"}, {"promptId": "s########2"}]});
    daemon.reply("rewind/snapshots", Reply::json(200, &points));
    chat.manager.rewind(1, 2).await.unwrap();
    let asked = daemon.wait_for_request("/rewind").await;
    assert_eq!(asked.method, "GET");
    let sent = daemon
        .requests("POST")
        .into_iter()
        .find(|request| request.path.ends_with("/rewind"));
    let body = json!({"promptId": "s########2", "rewindFiles": false});
    assert_eq!(sent.unwrap().body, body);
    daemon.publish(
        "session_rewound",
        &json!({"promptId": "s########2", "targetTurnIndex": 1}),
    );
    let seen = until(&mut events, |event| matches!(event, AgentEvent::Rewound { .. })).await;
    assert_eq!(seen.last(), Some(&AgentEvent::Rewound { turn: 1 }));
    // A slash command has no point, so the points do not say which turn is whose.
    daemon.reply("rewind/snapshots", Reply::json(200, &points));
    let error = chat.manager.rewind(1, 3).await.unwrap_err();
    assert!(error.to_string().starts_with("cannot rewind: "), "{error}");
}

#[tokio::test]
async fn history_of_a_rewound_session_has_only_the_turns_that_stay() {
    let daemon = daemon_with_extras().await;
    let event = |name: &str, prompt: &str, data: Value| json!({"v": 1, "type": name, "promptId": prompt, "data": data});
    let said = |prompt: &str, text: &str| {
        [
            event("session_update", prompt, chunk("user_message_chunk", text)),
            event("session_update", prompt, chunk("agent_message_chunk", "answer")),
        ]
    };
    daemon.with(|state| {
        state.attached = true;
        state.history.extend(said("1", "one"));
        state.history.extend(said("2", "two"));
        state.history.push(event(
            "session_rewound",
            "",
            json!({"promptId": "x", "targetTurnIndex": 1}),
        ));
        state.history.extend(said("3", "three"));
    });
    let (chat, mut events) = Chat::new();
    chat.connect(super::options(&daemon)).await.unwrap();
    let seen = until(&mut events, |event| matches!(event, AgentEvent::HistoryEnd)).await;
    let messages: Vec<&str> = seen
        .iter()
        .filter_map(|event| match event {
            AgentEvent::UserMessage { content, .. } => content.as_text(),
            _ => None,
        })
        .collect();
    assert_eq!(messages, ["one", "three"]);
}
