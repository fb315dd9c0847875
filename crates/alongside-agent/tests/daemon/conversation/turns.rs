//! Prompts, their answers, their ends, and what cannot be shown.

use alongside_agent::conversation::{ContentBlock, TurnEnd};
use alongside_agent::daemon::DaemonError;
use alongside_agent::{AgentError, AgentEvent};
use serde_json::{Value, json};

use super::{connected, request, settle, until};
use crate::fake::{CLIENT, FakeDaemon, Reply, SESSION, chunk};

#[tokio::test]
async fn prompt_is_sent_and_its_end_reported() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    let picture = ContentBlock::Image {
        data: "AA==".to_owned(),
        mime_type: "image/png".to_owned(),
    };
    let prompt_id = connection.prompt(&["hello".into(), picture.clone()]).await.unwrap();
    let sent = daemon.wait_for_request("/prompt").await;
    assert_eq!(sent.body["prompt"][0], json!({"type": "text", "text": "hello"}));
    assert_eq!(sent.body["prompt"][1], picture.to_json());
    assert_eq!(sent.header("x-qwen-client-id"), Some(CLIENT));
    daemon.publish(
        "turn_complete",
        &json!({"promptId": prompt_id, "stopReason": "end_turn"}),
    );
    let told = until(&mut events, |event| matches!(event, AgentEvent::TurnEnded { .. })).await;
    let end = TurnEnd::Completed {
        stop_reason: "end_turn".to_owned(),
    };
    assert_eq!(
        told.last(),
        Some(&AgentEvent::TurnEnded {
            prompt_id: Some(prompt_id),
            end
        })
    );
    daemon.reply(
        "/prompt",
        Reply::json(503, &json!({"error": "full", "code": "prompt_queue_full", "limit": 5})),
    );
    let error = connection.prompt(&["more".into()]).await.unwrap_err();
    assert!(error.hint().unwrap().contains("queue is full"));
    assert!(matches!(connection.prompt(&[]).await, Err(AgentError::EmptyPrompt)));
}

#[tokio::test]
async fn prompt_echo_is_not_repeated() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    let echo = |prompt: &str, by: &str| {
        json!({"v": 1, "type": "session_update", "promptId": prompt, "originatorClientId": by,
            "data": chunk("user_message_chunk", "hello")})
    };
    let prompt_id = connection.prompt(&["hello".into()]).await.unwrap();
    daemon.publish_envelope(echo(&prompt_id, CLIENT));
    // The echo of another prompt of ours is here before its answer.
    daemon.publish_envelope(echo("early", CLIENT));
    daemon.publish_envelope(echo("other", "client_of_somebody_else"));
    let told = settle(&daemon, &mut events).await;
    let accepted = told.iter().filter_map(|event| match event {
        AgentEvent::PromptAccepted { prompt_id, .. } => Some(prompt_id.as_str()),
        _ => None,
    });
    assert_eq!(accepted.collect::<Vec<_>>(), [prompt_id.as_str(), "early"]);
    let others = told.iter().filter_map(|event| match event {
        AgentEvent::UserMessage { prompt_id, .. } => prompt_id.as_deref(),
        _ => None,
    });
    assert_eq!(others.collect::<Vec<_>>(), ["other"]);
}

#[tokio::test]
async fn cancel_and_switches_go_to_the_session() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    connection.cancel().await.unwrap();
    connection.set_model("b").await.unwrap();
    connection.set_mode("default").await.unwrap();
    assert_eq!(daemon.wait_for_request("/model").await.body, json!({"modelId": "b"}));
    assert_eq!(
        daemon.wait_for_request("/approval-mode").await.body,
        json!({"mode": "default"})
    );
    assert_eq!(daemon.requests("/cancel").len(), 1);
    daemon.publish("model_switched", &json!({"sessionId": SESSION, "modelId": "b"}));
    daemon.publish(
        "approval_mode_changed",
        &json!({"sessionId": SESSION, "next": "default"}),
    );
    let told = settle(&daemon, &mut events).await;
    assert!(told.contains(&AgentEvent::ModelChanged {
        model_id: "b".to_owned()
    }));
    assert!(told.contains(&AgentEvent::ModeChanged {
        mode_id: "default".to_owned()
    }));
}

#[tokio::test]
async fn second_cancel_spares_the_next_turn() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    let started = |prompt: &str| daemon.publish("pending_prompt_started", &json!({"promptId": prompt, "text": "x"}));
    started("one");
    until(&mut events, |event| matches!(event, AgentEvent::TurnStarted { .. })).await;
    connection.cancel().await.unwrap();
    connection.cancel().await.unwrap();
    assert_eq!(daemon.requests("/cancel").len(), 1);
    daemon.publish("turn_complete", &json!({"promptId": "one", "stopReason": "cancelled"}));
    started("two");
    until(
        &mut events,
        |event| matches!(event, AgentEvent::TurnStarted { prompt_id } if prompt_id == "two"),
    )
    .await;
    connection.cancel().await.unwrap();
    assert_eq!(daemon.requests("/cancel").len(), 2);
}

#[tokio::test]
async fn tool_card_includes_request_details() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    settle(&daemon, &mut events).await;
    let update = |update: Value| json!({"sessionId": SESSION, "update": update});
    let sighting = json!({"sessionUpdate": "tool_call", "toolCallId": "call", "title": "WriteFile", "status": "pending",
        "rawInput": {}, "content": []});
    daemon.publish("session_update", &update(sighting));
    daemon.publish("permission_request", &request("r"));
    let outcome = json!({"sessionUpdate": "tool_call_update", "toolCallId": "call", "status": "completed"});
    daemon.publish("session_update", &update(outcome));
    let told = settle(&daemon, &mut events).await;
    let card = told.iter().rev().find_map(|event| match event {
        AgentEvent::ToolCall { call, .. } => Some(call),
        _ => None,
    });
    let card = card.unwrap();
    assert_eq!(
        (card.title.as_str(), card.status.as_str(), card.content.len()),
        ("Writing to a", "completed", 1)
    );
}

#[tokio::test]
async fn unknown_events_are_hidden_or_noticed() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    settle(&daemon, &mut events).await;
    daemon.publish("hologram_projected", &json!({}));
    daemon.publish(
        "session_update",
        &json!({"sessionId": SESSION, "update": {"sessionUpdate": "hologram"}}),
    );
    assert_eq!(settle(&daemon, &mut events).await.len(), 1);
    daemon.publish("session_rewound", &json!({}));
    daemon.publish(
        "session_update",
        &json!({"sessionId": SESSION, "update": {"sessionUpdate": "tool_call"}}),
    );
    assert_eq!(settle(&daemon, &mut events).await.len(), 3);
}

#[tokio::test]
async fn slow_reader_loses_nothing() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    // More than the queue of events holds.
    for number in 0..6000 {
        daemon.say(&format!("{number} "));
    }
    let told = settle(&daemon, &mut events).await;
    let texts = told.iter().filter_map(|event| match event {
        AgentEvent::AssistantChunk { content, .. } => content.as_text(),
        _ => None,
    });
    let expected: Vec<String> = (0..6000).map(|number| format!("{number} ")).collect();
    assert_eq!(texts.filter(|text| *text != "settled").collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn prompt_whose_response_is_lost_is_known_by_its_echo() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    let echo = |prompt: &str, text: &str| {
        daemon.publish_envelope(
            json!({"v": 1, "type": "session_update", "promptId": prompt, "originatorClientId": CLIENT,
            "data": chunk("user_message_chunk", text)}),
        );
    };
    for (number, early) in [("1", true), ("2", false)] {
        daemon.reply("/prompt", Reply::lost().held());
        let text = format!("hello {number}");
        let blocks = [text.as_str().into()];
        let sending = connection.prompt(&blocks);
        let answering = async {
            daemon.wait_for_requests("/prompt", number.parse().unwrap()).await;
            if early {
                echo("early", &text);
                daemon.release();
            } else {
                daemon.release();
                echo("another", "hello 1");
                echo("late", &text);
            }
        };
        let (sent, ()) = tokio::join!(sending, answering);
        assert_eq!(sent.unwrap(), if early { "early" } else { "late" });
    }
    let told = settle(&daemon, &mut events).await;
    let accepted = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::PromptAccepted { .. }));
    assert_eq!(accepted.count(), 3);
    assert_eq!(daemon.requests("/prompt").len(), 2);
}

#[tokio::test]
async fn prompt_without_response_or_echo_may_have_been_received() {
    let daemon = FakeDaemon::start().await;
    let (connection, _events) = connected(&daemon).await;
    daemon.reply("/prompt", Reply::lost());
    let blocks = ["hello".into()];
    let ending = async {
        daemon.wait_for_request("/prompt").await;
        daemon.publish("session_closed", &json!({"sessionId": SESSION, "reason": "idle"}));
    };
    let (sent, ()) = tokio::join!(connection.prompt(&blocks), ending);
    let error = sent.unwrap_err();
    assert!(
        matches!(error, AgentError::Daemon(DaemonError::Unconfirmed(_))),
        "{error}"
    );
    assert!(
        error.to_string().ends_with("the prompt may have been received"),
        "{error}"
    );
}
