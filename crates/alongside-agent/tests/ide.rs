//! A conversation with an agent in a daemon, with a daemon that does what the test says.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on should panic, and may say why"
)]

mod common;

use std::time::Duration;

use alongside_agent::conversation::{Answers, ContentBlock, PermissionDecision, TurnEnd};
use alongside_agent::daemon::{AddressError, DaemonAddress, DaemonError};
use alongside_agent::ide::{DaemonIdeConnection, DaemonOptions, OpenSession};
use alongside_agent::{
    AgentCommand, AgentError, AgentEvent, AgentReply, DisconnectKind, EventReceiver, NoticeLevel, Secret,
};
use common::{CLIENT, FakeDaemon, Reply, SESSION, chunk};
use serde_json::{Value, json};

fn options(daemon: &FakeDaemon) -> DaemonOptions {
    DaemonOptions {
        address: DaemonAddress::parse(&daemon.url()).unwrap(),
        ..DaemonOptions::default()
    }
}

async fn connected(daemon: &FakeDaemon) -> (DaemonIdeConnection, EventReceiver) {
    let (connection, mut events) = DaemonIdeConnection::new();
    connection.connect(options(daemon)).await.unwrap();
    until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    (connection, events)
}

/// Reads events up to one that satisfies the test; fails after ten seconds.
async fn until(events: &mut EventReceiver, enough: impl Fn(&AgentEvent) -> bool) -> Vec<AgentEvent> {
    let mut read = Vec::new();
    let wait = async {
        while let Some(event) = events.recv().await {
            let done = enough(&event);
            read.push(event);
            if done {
                return;
            }
        }
        panic!("the events ended");
    };
    let finished = tokio::time::timeout(Duration::from_secs(10), wait).await;
    assert!(finished.is_ok(), "only {read:#?}");
    read
}

/// Publishes a piece of an answer and reads up to it: everything before it has arrived then.
async fn settle(daemon: &FakeDaemon, events: &mut EventReceiver) -> Vec<AgentEvent> {
    daemon.say("settled");
    until(
        events,
        |event| matches!(event, AgentEvent::AssistantChunk { content, .. } if content.as_text() == Some("settled")),
    )
    .await
}

fn request(id: &str) -> Value {
    json!({"requestId": id, "sessionId": SESSION, "toolCall": {"toolCallId": "call", "kind": "edit", "title": "Writing to a",
        "rawInput": {"file_path": "/project/a"}, "content": [{"type": "diff", "path": "/project/a", "oldText": "", "newText": "x"}]},
        "options": [{"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"},
            {"optionId": "cancel", "name": "Reject", "kind": "reject_once"}]})
}

fn resolved(id: &str, by: &str) -> Value {
    json!({"requestId": id, "outcome": {"outcome": "selected", "optionId": "proceed_once"}, "voterClientId": by})
}

fn opened(events: &[AgentEvent]) -> Vec<&str> {
    let opened = events.iter().filter_map(|event| match event {
        AgentEvent::ApprovalOpened { request } => Some(request.request_id.as_str()),
        _ => None,
    });
    opened.collect()
}

fn closed(events: &[AgentEvent]) -> Vec<(&str, bool)> {
    let closed = events.iter().filter_map(|event| match event {
        AgentEvent::ApprovalClosed { request_id, own, .. } => Some((request_id.as_str(), *own)),
        _ => None,
    });
    closed.collect()
}

async fn open_approval(daemon: &FakeDaemon, events: &mut EventReceiver) {
    settle(daemon, events).await;
    daemon.publish("permission_request", &request("r"));
    until(events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
}

#[tokio::test]
async fn connecting_enters_a_session_and_forwards_its_updates() {
    let daemon = FakeDaemon::start().await;
    daemon.say("before anyone listened");
    let (connection, mut events) = DaemonIdeConnection::new();
    let session = connection.connect(options(&daemon)).await.unwrap();
    assert_eq!((session.session_id.as_str(), session.attached), (SESSION, false));
    let told = until(&mut events, |event| matches!(event, AgentEvent::AssistantChunk { .. })).await;
    assert!(matches!(told[0], AgentEvent::Connected(_)));
    daemon.publish("session_update", &chunk("agent_thought_chunk", "hm"));
    until(&mut events, |event| matches!(event, AgentEvent::ThinkingChunk { .. })).await;
    settle(&daemon, &mut events).await;
    assert!(connection.is_connected());
    assert!(connection.cursor().unwrap().last_event_id >= Some(2));
}

#[tokio::test]
async fn two_connects_at_once_leave_one_session_and_orphan_none() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = DaemonIdeConnection::new();
    let (first, second) = tokio::join!(
        connection.connect(options(&daemon)),
        connection.connect(options(&daemon))
    );
    first.unwrap();
    second.unwrap();
    assert!(connection.is_connected());
    daemon.wait_for_request("/detach").await;
    let told = settle(&daemon, &mut events).await;
    let over = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::Disconnected { .. }))
        .count();
    assert_eq!(over, 1);
}

#[tokio::test]
async fn a_connect_after_one_that_failed_succeeds() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("GET /capabilities", Reply::json(401, &json!({"error": "Unauthorized"})));
    let (connection, _events) = DaemonIdeConnection::new();
    let (first, second) = tokio::join!(
        connection.connect(options(&daemon)),
        connection.connect(options(&daemon))
    );
    let error = first.unwrap_err();
    assert!(error.hint().unwrap().contains("QWEN_SERVER_TOKEN"), "{error}");
    second.unwrap();
}

#[tokio::test]
async fn prompts_go_to_the_session_and_their_end_comes_back() {
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
    assert!(error.hint().unwrap().contains("Too many prompts"));
    assert!(matches!(connection.prompt(&[]).await, Err(AgentError::EmptyPrompt)));
}

#[tokio::test]
async fn our_own_words_are_told_once_and_never_as_an_answer() {
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
async fn an_approval_is_answered_with_the_chosen_option_on_the_route_of_the_session() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    assert!(
        connection
            .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
            .await
            .unwrap()
    );
    let vote = daemon
        .wait_for_request(&format!("POST /session/{SESSION}/permission/r"))
        .await;
    assert_eq!(
        vote.body,
        json!({"outcome": {"outcome": "selected", "optionId": "proceed_once"}})
    );
    daemon.publish("permission_resolved", &resolved("r", CLIENT));
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalClosed { .. })).await;
    assert_eq!(closed(&told), [("r", true)]);
}

#[tokio::test]
async fn no_choice_a_refusal_and_a_stale_option_are_cancelled() {
    for decision in [
        PermissionDecision::Cancel,
        PermissionDecision::select("cancel"),
        PermissionDecision::select("stale"),
        PermissionDecision::select(""),
        PermissionDecision::from_preference(Err("the dialog broke")),
    ] {
        let daemon = FakeDaemon::start().await;
        let (connection, mut events) = connected(&daemon).await;
        open_approval(&daemon, &mut events).await;
        connection.respond_to_permission("r", &decision).await.unwrap();
        let vote = daemon.wait_for_request("/permission/r").await;
        assert_eq!(vote.body, json!({"outcome": {"outcome": "cancelled"}}), "{decision:?}");
    }
}

#[tokio::test]
async fn an_open_approval_holds_up_neither_the_events_nor_a_disconnect() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    settle(&daemon, &mut events).await;
    tokio::time::timeout(Duration::from_millis(50), connection.disconnect())
        .await
        .expect("disconnecting waited");
    assert!(matches!(
        connection
            .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
            .await,
        Err(AgentError::NotConnected)
    ));
    assert_eq!(daemon.requests("/permission/").len(), 0);
}

#[tokio::test]
async fn a_disconnect_does_not_wait_for_a_vote_under_way() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.reply("/permission/r", Reply::json(200, &json!({})).held());
    let decision = PermissionDecision::select("proceed_once");
    let voting = connection.respond_to_permission("r", &decision);
    let leaving = async {
        daemon.wait_for_request("/permission/r").await;
        tokio::time::timeout(Duration::from_millis(50), connection.disconnect())
            .await
            .expect("disconnecting waited");
        daemon.release();
    };
    let (voted, ()) = tokio::join!(voting, leaving);
    assert!(voted.unwrap());
}

#[tokio::test]
async fn answers_to_questions_are_sent_with_the_vote() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    settle(&daemon, &mut events).await;
    let call = json!({"toolCallId": "call", "kind": "think", "title": "Ask user 1 question",
        "_meta": {"toolName": "ask_user_question", "qwenInteractionKind": "user_question"},
        "rawInput": {"questions": [{"question": "Which color?", "header": "Color", "options": [{"label": "Blue"}]}]}});
    let options = json!([{"optionId": "proceed_once", "name": "Submit", "kind": "allow_once"}]);
    daemon.publish(
        "permission_request",
        &json!({"requestId": "q", "toolCall": call, "options": options}),
    );
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
    assert!(matches!(told.last(), Some(AgentEvent::ApprovalOpened { request }) if request.is_question()));
    let answers = Answers::from([("0".to_owned(), "Blue".to_owned())]);
    let decision = PermissionDecision::Select {
        option_id: "proceed_once".to_owned(),
        answers,
    };
    connection.respond_to_permission("q", &decision).await.unwrap();
    let vote = daemon.wait_for_request("/permission/q").await;
    assert_eq!(vote.body["answers"], json!({"0": "Blue"}));
}

#[tokio::test]
async fn a_request_that_cannot_be_answered_is_said_so_and_not_answered() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    settle(&daemon, &mut events).await;
    daemon.publish("permission_request", &json!({"requestId": "r", "options": []}));
    daemon.publish("permission_request", &json!({"toolCall": {}, "options": []}));
    let told = settle(&daemon, &mut events).await;
    let notices = told.iter().filter(|event| {
        matches!(
            event,
            AgentEvent::Notice {
                level: NoticeLevel::Unsupported,
                ..
            }
        )
    });
    assert_eq!((notices.count(), opened(&told).len()), (2, 0));
    assert_eq!(daemon.requests("/permission/").len(), 0);
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
async fn a_second_cancel_does_not_hit_the_next_turn() {
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
async fn without_a_session_cancelling_is_nothing_and_the_rest_is_refused() {
    let (connection, _events) = DaemonIdeConnection::new();
    connection.cancel().await.unwrap();
    assert!(matches!(
        connection.prompt(&["x".into()]).await,
        Err(AgentError::NotConnected)
    ));
    assert!(matches!(connection.set_model("x").await, Err(AgentError::NotConnected)));
    connection.disconnect().await;
}

#[tokio::test]
async fn the_death_of_the_session_is_told_once_with_a_way_back() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    daemon.publish("session_died", &json!({"sessionId": SESSION, "reason": "agent exited"}));
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    let expected = AgentEvent::Disconnected {
        kind: DisconnectKind::Died,
        reason: "agent exited".to_owned(),
        reopen: Some(SESSION.to_owned()),
    };
    assert_eq!(told.last(), Some(&expected));
    assert!(!connection.is_connected());
    connection.disconnect().await;
    assert!(events.try_recv().is_none());
}

#[tokio::test]
async fn a_session_that_somebody_closed_is_told_as_closed() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    daemon.publish(
        "session_closed",
        &json!({"sessionId": SESSION, "reason": "client_close", "closedBy": "client_9"}),
    );
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    assert!(matches!(
        told.last(),
        Some(AgentEvent::Disconnected {
            kind: DisconnectKind::Closed,
            ..
        })
    ));
}

#[tokio::test]
async fn the_death_of_another_session_is_ignored() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    daemon.publish("session_died", &json!({"sessionId": "another", "reason": "x"}));
    let last = daemon.publish("session_died", &json!({"reason": "x"}));
    settle(&daemon, &mut events).await;
    assert!(connection.is_connected());
    assert!(connection.cursor().unwrap().last_event_id >= Some(last));
}

#[tokio::test]
async fn an_approval_whose_answer_could_not_be_sent_stays_open() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.reply("/permission/r", Reply::html(502));
    let allow = PermissionDecision::select("proceed_once");
    connection.respond_to_permission("r", &allow).await.unwrap_err();
    assert_eq!(closed(&settle(&daemon, &mut events).await), []);
    assert!(connection.respond_to_permission("r", &allow).await.unwrap());
    assert_eq!(daemon.requests("/permission/r").len(), 2);
}

#[tokio::test]
async fn an_approval_that_somebody_else_answered_closes() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.publish("permission_resolved", &resolved("r", "client_9"));
    let told = settle(&daemon, &mut events).await;
    assert_eq!(closed(&told), [("r", false)]);
    let late = connection
        .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
        .await;
    assert!(matches!(late, Err(AgentError::NoSuchRequest)));
}

#[tokio::test]
async fn a_vote_that_comes_too_late_closes_the_approval() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.reply(
        "/permission/r",
        Reply::json(404, &json!({"error": "No pending permission request for session"})),
    );
    let answer = AgentCommand::Answer {
        request_id: "r".to_owned(),
        decision: PermissionDecision::select("proceed_once"),
    };
    assert_eq!(connection.execute(answer).await.unwrap(), AgentReply::TooLate);
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalClosed { .. })).await;
    assert_eq!(closed(&told), [("r", false)]);
}

#[tokio::test]
async fn approvals_that_were_missed_open_only_if_they_still_wait() {
    let daemon = FakeDaemon::start().await;
    daemon.publish("permission_request", &request("answered"));
    daemon.publish("permission_resolved", &resolved("answered", "client_9"));
    daemon.publish("permission_request", &request("waiting"));
    let (_connection, mut events) = connected(&daemon).await;
    let mut told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
    told.extend(settle(&daemon, &mut events).await);
    assert_eq!(opened(&told), ["waiting"]);
}

#[tokio::test]
async fn whoever_comes_late_finds_the_open_approval_and_the_history() {
    let daemon = FakeDaemon::start().await;
    daemon.with(|state| {
        state.attached = true;
        state.history = vec![
            json!({"v": 1, "id": 1, "type": "session_update", "data": chunk("user_message_chunk", "hello")}),
            json!({"v": 1, "id": 2, "type": "permission_request", "data": request("old")}),
            json!({"v": 1, "id": 3, "type": "session_update", "data": chunk("agent_message_chunk", "hi")}),
        ];
        state.pending = vec![
            json!({"requestId": "r", "kind": "permission", "action": {"type": "edit", "title": "Writing"},
            "options": [{"optionId": "proceed_once", "label": "Allow", "kind": "allow_once"}]}),
        ];
    });
    let (connection, mut events) = DaemonIdeConnection::new();
    assert!(connection.connect(options(&daemon)).await.unwrap().attached);
    let told = until(&mut events, |event| matches!(event, AgentEvent::ApprovalOpened { .. })).await;
    assert_eq!(opened(&told), ["r"]);
    let order = told.iter().filter_map(|event| match event {
        AgentEvent::Connected(_) => Some("connected"),
        AgentEvent::HistoryStart { .. } => Some("history"),
        AgentEvent::UserMessage { .. } => Some("user"),
        AgentEvent::AssistantChunk { .. } => Some("agent"),
        AgentEvent::HistoryEnd => Some("now"),
        _ => None,
    });
    assert_eq!(
        order.collect::<Vec<_>>(),
        ["connected", "history", "user", "agent", "now"]
    );
    assert!(
        connection
            .respond_to_permission("r", &PermissionDecision::select("proceed_once"))
            .await
            .unwrap()
    );
}

#[tokio::test]
async fn the_card_of_a_tool_holds_what_the_approval_said() {
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
async fn a_cut_is_told_and_mended_with_the_last_event_id() {
    let daemon = FakeDaemon::start().await;
    daemon.say("one");
    daemon.with(|state| state.cuts.push_back(Some(2000)));
    let (connection, mut events) = connected(&daemon).await;
    for number in 0..50 {
        daemon.say(&format!("word{number} "));
    }
    let told = settle(&daemon, &mut events).await;
    let words: String = told
        .iter()
        .filter_map(|event| match event {
            AgentEvent::AssistantChunk { content, .. } => content.as_text(),
            _ => None,
        })
        .filter(|text| text.starts_with("word"))
        .collect();
    assert_eq!(
        words,
        (0..50)
            .map(|number| format!("word{number} "))
            .collect::<Vec<_>>()
            .concat()
    );
    let cut = told
        .iter()
        .position(|event| matches!(event, AgentEvent::Interrupted { .. }))
        .unwrap();
    let back = told
        .iter()
        .position(|event| matches!(event, AgentEvent::Reconnected))
        .unwrap();
    assert!(cut < back);
    let request = &daemon.requests("/events")[1];
    assert!(request.header("last-event-id").unwrap().parse::<u64>().unwrap() > 1);
    assert_eq!(request.header("x-qwen-event-epoch"), Some("epoch-1"));
    assert!(connection.is_connected());
}

#[tokio::test]
async fn lost_events_are_replaced_by_the_history() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    open_approval(&daemon, &mut events).await;
    daemon.with(|state| {
        state.history =
            vec![json!({"v": 1, "id": 1, "type": "session_update", "data": chunk("agent_message_chunk", "all")})];
    });
    daemon.restart(true);
    let told = until(&mut events, |event| matches!(event, AgentEvent::Modes(_))).await;
    let start = told
        .iter()
        .position(|event| matches!(event, AgentEvent::HistoryStart { .. }))
        .unwrap();
    let history = &told[start..];
    assert!(matches!(&history[1], AgentEvent::AssistantChunk { content, .. } if content.as_text() == Some("all")));
    assert_eq!(history[2], AgentEvent::HistoryEnd);
}

#[tokio::test]
async fn events_that_fail_are_told_as_such() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("/events", Reply::json(401, &json!({"error": "Unauthorized"})));
    let (connection, mut events) = DaemonIdeConnection::new();
    connection.connect(options(&daemon)).await.unwrap();
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    assert!(matches!(
        told.last(),
        Some(AgentEvent::Disconnected {
            kind: DisconnectKind::Unauthorised,
            ..
        })
    ));
    assert!(!connection.is_connected());
}

#[tokio::test]
async fn what_is_not_known_is_not_shown_and_what_cannot_be_shown_is_said() {
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
async fn a_daemon_that_works_elsewhere_is_refused_before_a_session_is_made() {
    let daemon = FakeDaemon::start().await;
    let (connection, _events) = DaemonIdeConnection::new();
    let elsewhere = DaemonOptions {
        workspace: Some("/elsewhere".to_owned()),
        ..options(&daemon)
    };
    let error = connection.connect(elsewhere).await.unwrap_err();
    let AgentError::Daemon(DaemonError::WorkspaceMismatch { wanted, offered }) = error else {
        panic!("{error}")
    };
    assert_eq!(
        (wanted.as_str(), offered),
        ("/elsewhere", vec!["/project".to_owned(), "/second".to_owned()])
    );
    assert_eq!(daemon.requests("POST /session").len(), 0);
    let second = DaemonOptions {
        workspace: Some("/second/".to_owned()),
        ..options(&daemon)
    };
    connection.connect(second).await.unwrap();
}

#[tokio::test]
async fn a_daemon_that_lacks_something_is_refused_by_its_name() {
    let daemon = FakeDaemon::start().await;
    daemon.with(|state| state.features.retain(|feature| feature != "session_permission_vote"));
    let (connection, _events) = DaemonIdeConnection::new();
    let error = connection.connect(options(&daemon)).await.unwrap_err();
    assert!(matches!(
        error,
        AgentError::Daemon(DaemonError::MissingFeature("session_permission_vote"))
    ));
}

#[tokio::test]
async fn another_session_takes_the_place_of_this_one() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    connection.execute(AgentCommand::NewSession).await.unwrap();
    let created: Vec<_> = daemon
        .requests("POST /session")
        .into_iter()
        .filter(|request| request.path == "/session")
        .collect();
    assert_eq!(created[1].body["sessionScope"], "thread");
    until(&mut events, |event| matches!(event, AgentEvent::Connected(_))).await;
    connection
        .execute(AgentCommand::LoadSession {
            session_id: SESSION.to_owned(),
        })
        .await
        .unwrap();
    until(&mut events, |event| matches!(event, AgentEvent::HistoryEnd)).await;
    let AgentReply::Sessions { sessions } = connection.execute(AgentCommand::ListSessions).await.unwrap() else {
        panic!("no sessions")
    };
    assert_eq!(sessions[0].session_id, SESSION);
}

#[tokio::test]
async fn nothing_secret_is_in_what_is_told_or_logged() {
    let daemon = FakeDaemon::start().await;
    let leak = json!({"error": "bad token s3cret-token", "code": "x"});
    let options = DaemonOptions {
        token: Secret::new("s3cret-token"),
        open: OpenSession::New,
        ..options(&daemon)
    };
    assert!(!format!("{options:?}").contains("s3cret"));
    let (connection, mut events) = DaemonIdeConnection::new();
    connection.connect(options).await.unwrap();
    assert_eq!(
        daemon.wait_for_request("/events").await.header("authorization"),
        Some("Bearer s3cret-token")
    );
    daemon.reply("/model", Reply::json(400, &leak));
    let error = connection.set_model("b").await.unwrap_err();
    assert!(
        !format!("{error} {error:?} {connection:?}").contains("s3cret"),
        "{error:?}"
    );
    let told = settle(&daemon, &mut events).await;
    let told = serde_json::to_string(&told).unwrap();
    for secret in ["s3cret", CLIENT, &daemon.port.to_string()] {
        assert!(!told.contains(secret), "{secret}");
    }
}

#[test]
fn only_addresses_of_this_machine_are_connected_to() {
    for (url, expected) in [
        ("file:///tmp/socket", "must use http or https scheme"),
        ("http://user:password@127.0.0.1:4170", "must not contain credentials"),
        (
            "http://example.com:4170",
            "must target a loopback address, got example.com",
        ),
    ] {
        let error: AddressError = DaemonAddress::parse(url).unwrap_err();
        assert!(error.to_string().contains(expected), "{error}");
    }
}
