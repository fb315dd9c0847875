//! A reader that stops, however far it has come, goes on where it was.

use std::time::Duration;

use crate::conversation::Chat;
use crate::fake::{CLIENT, FakeDaemon, SESSION, chunk};
use alongside_agent::OpenSession;
use alongside_agent::conversation::{Answers, ContentBlock, PermissionDecision, TurnEnd};
use alongside_agent::daemon::DaemonAddress;
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::{AgentEvent, AgentManager, AgentTarget, EventReceiver, Position, Secret};
use serde_json::{Value, json};

const TOKEN: &str = "not-for-any-file";

fn options(daemon: &FakeDaemon, open: OpenSession) -> DaemonOptions {
    DaemonOptions {
        address: DaemonAddress::parse(&daemon.url()).unwrap(),
        token: Secret::new(TOKEN),
        open,
        ..DaemonOptions::default()
    }
}

async fn next(events: &mut EventReceiver) -> AgentEvent {
    let event = tokio::time::timeout(Duration::from_secs(10), events.recv()).await;
    event.expect("an event within ten seconds").expect("more events")
}

/// Reads up to the event that ends the story.
async fn rest(events: &mut EventReceiver) -> Vec<AgentEvent> {
    let mut read = Vec::new();
    loop {
        let event = next(events).await;
        let last = matches!(&event, AgentEvent::AssistantChunk { content, .. } if content.as_text() == Some("the end"));
        read.push(event);
        if last {
            return read;
        }
    }
}

/// What is told of the conversation itself.
fn conversation(events: Vec<AgentEvent>) -> Vec<AgentEvent> {
    let beside = |event: &AgentEvent| {
        matches!(
            event,
            AgentEvent::Connected(_) | AgentEvent::Models(_) | AgentEvent::Modes(_) | AgentEvent::Disconnected { .. }
        )
    };
    events.into_iter().filter(|event| !beside(event)).collect()
}

/// Without requests that were both opened and closed: a reader that missed both does not get them.
fn without_settled_approvals(events: Vec<AgentEvent>) -> Vec<AgentEvent> {
    let id_of = |event: &AgentEvent| match event {
        AgentEvent::ApprovalOpened { request } => Some((true, request.request_id.clone())),
        AgentEvent::ApprovalClosed { request_id, .. } => Some((false, request_id.clone())),
        _ => None,
    };
    let all: Vec<_> = events.iter().filter_map(id_of).collect();
    let settled = |(opened, id): (bool, String)| all.contains(&(!opened, id));
    events
        .into_iter()
        .filter(|event| !id_of(event).is_some_and(settled))
        .collect()
}

fn request(id: &str, call: &str) -> Value {
    json!({"requestId": id, "sessionId": SESSION, "toolCall": {"toolCallId": call, "kind": "edit", "title": "Writing to a",
        "rawInput": {"file_path": "/project/a"}, "content": [{"type": "diff", "path": "/project/a", "oldText": "", "newText": "x"}]},
        "options": [{"optionId": "proceed_once", "name": "Allow", "kind": "allow_once"}]})
}

/// A turn of ours with everything in it, a queued one of another client, and a request that stays open.
fn publish_story(daemon: &FakeDaemon) {
    let publish = |name: &str, prompt: &str, by: &str, data: Value| {
        daemon.publish_envelope(
            json!({"v": 1, "type": name, "promptId": prompt, "originatorClientId": by, "data": data}),
        );
    };
    let update = |update: Value| json!({"sessionId": SESSION, "update": update});
    publish("session_update", "one", CLIENT, chunk("user_message_chunk", "do it"));
    publish("session_update", "one", CLIENT, chunk("agent_thought_chunk", "hm"));
    publish("session_update", "one", CLIENT, chunk("agent_message_chunk", "I will"));
    publish(
        "session_update",
        "one",
        CLIENT,
        update(
            json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": " and how"},
            "_meta": {"usage": {"inputTokens": 1, "outputTokens": 2, "totalTokens": 3}}}),
        ),
    );
    publish(
        "session_update",
        "one",
        CLIENT,
        update(
            json!({"sessionUpdate": "tool_call", "toolCallId": "call", "title": "WriteFile", "kind": "edit", "status": "pending"}),
        ),
    );
    publish(
        "pending_prompt_added",
        "two",
        "other",
        json!({"promptId": "two", "text": "then that"}),
    );
    publish("permission_request", "one", CLIENT, request("r", "call"));
    publish(
        "permission_resolved",
        "one",
        CLIENT,
        json!({"requestId": "r", "outcome": {"outcome": "selected", "optionId": "proceed_once"}, "voterClientId": CLIENT}),
    );
    // Nothing is shown of this one.
    publish("settings_changed", "one", CLIENT, json!({"key": "x"}));
    publish(
        "session_update",
        "one",
        CLIENT,
        update(
            json!({"sessionUpdate": "tool_call_update", "toolCallId": "call", "status": "completed", "rawOutput": "done"}),
        ),
    );
    publish(
        "turn_complete",
        "one",
        CLIENT,
        json!({"sessionId": SESSION, "stopReason": "end_turn"}),
    );
    publish(
        "pending_prompt_started",
        "two",
        "other",
        json!({"promptId": "two", "text": "then that"}),
    );
    publish(
        "session_update",
        "two",
        "other",
        chunk("user_message_chunk", "then that"),
    );
    publish("permission_request", "two", "other", request("open", "other call"));
    publish(
        "session_update",
        "two",
        "other",
        chunk("agent_message_chunk", "the end"),
    );
    daemon.with(|state| {
        state.keeps_clients = true;
        state.history.clone_from(&state.ring);
        state.pending = vec![
            json!({"requestId": "open", "kind": "permission", "action": {"title": "Writing to a"},
            "options": [{"optionId": "proceed_once", "label": "Allow", "kind": "allow_once"}]}),
        ];
    });
}

/// A reader up to the first event of the story, which is live for it.
async fn listening(daemon: &FakeDaemon) -> (Chat, EventReceiver) {
    let (connection, mut events) = Chat::new();
    connection
        .connect(options(daemon, OpenSession::CreateOrAttach))
        .await
        .unwrap();
    daemon.say("ready");
    while !matches!(next(&mut events).await, AgentEvent::AssistantChunk { .. }) {}
    (connection, events)
}

/// The position as it is kept, and read again.
fn kept(events: &EventReceiver) -> Position {
    let text = serde_json::to_string(events.position().unwrap()).unwrap();
    assert!(!text.contains(TOKEN) && !text.contains("127.0.0.1"), "{text}");
    serde_json::from_str(&text).unwrap()
}

async fn resumed(daemon: &FakeDaemon, position: Position) -> (Chat, EventReceiver) {
    let (connection, events) = Chat::new();
    let open = OpenSession::Resume(Box::new(position));
    let session = connection.connect(options(daemon, open)).await.unwrap();
    assert!(session.resumed);
    (connection, events)
}

/// Reads what is left of the story after a position, and puts it behind what was told before.
async fn finish(daemon: &FakeDaemon, position: Position, mut told: Vec<AgentEvent>) -> Vec<AgentEvent> {
    let (_connection, mut events) = resumed(daemon, position).await;
    let mut after = rest(&mut events).await;
    // What is still open is only sure when everything that was missed is told.
    if !told.iter().chain(&after).any(|event| is_opened(event, "open")) {
        after.push(next(&mut events).await);
    }
    told.extend(conversation(after));
    in_order(told)
}

fn in_order(events: Vec<AgentEvent>) -> Vec<AgentEvent> {
    let (open, mut others): (Vec<_>, Vec<_>) = without_settled_approvals(events)
        .into_iter()
        .partition(|event| is_opened(event, "open"));
    others.extend(open);
    others
}

async fn whole_story() -> Vec<AgentEvent> {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = listening(&daemon).await;
    publish_story(&daemon);
    let whole = rest(&mut events).await;
    assert_eq!(whole.len(), 19, "{whole:#?}");
    whole
}

#[tokio::test]
async fn reader_resumes_after_any_event() {
    let whole = whole_story().await;
    for stop in 0..whole.len() {
        let daemon = FakeDaemon::start().await;
        let (connection, mut events) = listening(&daemon).await;
        publish_story(&daemon);
        let mut told = Vec::new();
        for _ in 0..stop {
            told.push(next(&mut events).await);
        }
        let position = kept(&events);
        drop((connection, events));
        let told = finish(&daemon, position, told).await;
        assert_eq!(told, in_order(whole.clone()), "stopped after {stop}");
    }
}

#[tokio::test]
async fn reader_resumes_within_missed_events() {
    let whole = whole_story().await;
    // Without the approval that was settled, which such a reader is not told of, and without the last two events.
    for stop in 0..whole.len() - 3 {
        let daemon = FakeDaemon::start().await;
        let (connection, events) = listening(&daemon).await;
        let position = kept(&events);
        drop((connection, events));
        publish_story(&daemon);
        let (connection, mut events) = resumed(&daemon, position).await;
        let mut told = Vec::new();
        while told.len() < stop {
            told.extend(conversation(vec![next(&mut events).await]));
        }
        while events.position().is_none() {
            next(&mut events).await;
        }
        let position = kept(&events);
        drop((connection, events));
        let told = finish(&daemon, position, told).await;
        assert_eq!(told, in_order(whole.clone()), "stopped after {stop}");
    }
}

fn is_opened(event: &AgentEvent, id: &str) -> bool {
    matches!(event, AgentEvent::ApprovalOpened { request } if request.request_id == id)
}

#[tokio::test]
async fn prompt_echo_after_restart_is_not_repeated() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = listening(&daemon).await;
    let prompt_id = connection.prompt(&[ContentBlock::text("do it")]).await.unwrap();
    assert!(matches!(next(&mut events).await, AgentEvent::PromptAccepted { .. }));
    let position = kept(&events);
    drop((connection, events));
    // The daemon knows us under another name by now.
    let (connection, mut events) = resumed(&daemon, position).await;
    daemon.publish_envelope(
        json!({"v": 1, "type": "session_update", "promptId": prompt_id, "originatorClientId": CLIENT,
        "data": chunk("user_message_chunk", "do it")}),
    );
    daemon.publish_envelope(
        json!({"v": 1, "type": "turn_complete", "promptId": prompt_id, "originatorClientId": CLIENT,
        "data": {"sessionId": SESSION, "stopReason": "end_turn"}}),
    );
    daemon.say("the end");
    let told = conversation(rest(&mut events).await);
    assert!(
        matches!(
            &told[..],
            [
                AgentEvent::TurnStarted { .. },
                AgentEvent::TurnEnded {
                    end: TurnEnd::Completed { .. },
                    ..
                },
                _
            ]
        ),
        "{told:#?}"
    );
    drop(connection);
}

#[tokio::test]
async fn resumed_reader_keeps_its_client_id() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = listening(&daemon).await;
    publish_story(&daemon);
    rest(&mut events).await;
    let position = kept(&events);
    drop((connection, events));
    let (connection, _events) = resumed(&daemon, position).await;
    let load = daemon.wait_for_request("/load").await;
    assert_eq!(load.header("x-qwen-client-id"), Some(CLIENT));
    let decision = PermissionDecision::Select {
        option_id: "proceed_once".to_owned(),
        answers: Answers::default(),
    };
    assert!(connection.respond_to_permission("open", &decision).await.unwrap());
    let vote = daemon.wait_for_request("/permission/open").await;
    assert_eq!(vote.body["outcome"]["optionId"], "proceed_once");
    assert_eq!(vote.header("x-qwen-client-id"), Some(CLIENT));
}

#[tokio::test]
async fn position_of_another_epoch_loads_history() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = listening(&daemon).await;
    publish_story(&daemon);
    rest(&mut events).await;
    let position = kept(&events);
    drop((connection, events));
    daemon.restart(false);
    daemon.with(|state| state.pending.clear());
    let (manager, mut events) = AgentManager::new();
    let open = OpenSession::Resume(Box::new(position));
    let session = manager
        .connect(AgentTarget::Daemon(Box::new(options(&daemon, open))))
        .await
        .unwrap();
    assert!(!session.resumed);
    assert!(matches!(next(&mut events).await, AgentEvent::Connected(_)));
    assert!(matches!(next(&mut events).await, AgentEvent::HistoryStart { .. }));
    assert!(events.position().unwrap().needs_history(), "half a history is none");
    rest(&mut events).await;
    while !matches!(next(&mut events).await, AgentEvent::Modes(_)) {}
    assert!(!events.position().unwrap().needs_history());
}
