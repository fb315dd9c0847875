//! A conversation with an agent in a daemon, with a daemon that does what the test says.

mod approvals;
mod connecting;
mod endings;
mod turns;

use std::time::Duration;

use alongside_agent::daemon::DaemonAddress;
use alongside_agent::ide::{DaemonIdeConnection, DaemonOptions};
use alongside_agent::{AgentEvent, EventReceiver};
use serde_json::{Value, json};

use crate::fake::{FakeDaemon, SESSION};

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
