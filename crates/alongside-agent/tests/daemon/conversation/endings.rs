//! Cuts, and the end of a session.

use super::Chat;
use alongside_agent::OpenSession;
use alongside_agent::daemon::DaemonOptions;
use alongside_agent::{AgentEvent, DisconnectKind, NoticeLevel};
use alongside_core::SessionId;
use serde_json::json;

use super::{connected, last_event_id, open_approval, options, settle, until};
use crate::fake::{FakeDaemon, Reply, SESSION, chunk};

#[tokio::test]
async fn session_exit_is_reported_once_with_reopen() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    daemon.publish("session_died", &json!({"sessionId": SESSION, "reason": "agent exited"}));
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    let expected = AgentEvent::Disconnected {
        kind: DisconnectKind::Died,
        reason: "agent exited".to_owned(),
        reopen: Some(SessionId::new(SESSION)),
    };
    assert_eq!(told.last(), Some(&expected));
    assert!(!connection.is_connected());
    connection.disconnect().await;
    assert!(events.try_recv().is_none());
}

#[tokio::test]
async fn closed_session_is_reported_as_closed() {
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
async fn exit_of_another_session_is_ignored() {
    let daemon = FakeDaemon::start().await;
    let (connection, mut events) = connected(&daemon).await;
    daemon.publish("session_died", &json!({"sessionId": "another", "reason": "x"}));
    let last = daemon.publish("session_died", &json!({"reason": "x"}));
    settle(&daemon, &mut events).await;
    assert!(connection.is_connected());
    assert!(last_event_id(&events) >= Some(last));
}

#[tokio::test]
async fn lost_connection_resumes_with_last_event_id() {
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
async fn unauthorized_event_stream_disconnects() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("/events", Reply::json(401, &json!({"error": "Unauthorized"})));
    let (connection, mut events) = Chat::new();
    connection.connect(options(&daemon)).await.unwrap();
    let told = until(&mut events, |event| matches!(event, AgentEvent::Disconnected { .. })).await;
    assert!(matches!(
        told.last(),
        Some(AgentEvent::Disconnected {
            kind: DisconnectKind::Unauthorized,
            ..
        })
    ));
    assert!(!connection.is_connected());
}

#[tokio::test]
async fn mode_is_restored_after_daemon_restart() {
    let daemon = FakeDaemon::start().await;
    let (_connection, mut events) = connected(&daemon).await;
    let changed = json!({"sessionId": SESSION, "previous": "auto", "next": "default", "persisted": false});
    daemon.publish("approval_mode_changed", &changed);
    until(&mut events, |event| matches!(event, AgentEvent::ModeChanged { .. })).await;
    daemon.restart(false);
    let request = daemon.wait_for_request("/approval-mode").await;
    assert_eq!(request.body["mode"], "default");
    until(&mut events, |event| matches!(event, AgentEvent::HistoryEnd)).await;
    // If that fails, the user must know: the daemon may no longer ask.
    daemon.publish("approval_mode_changed", &changed);
    until(&mut events, |event| matches!(event, AgentEvent::ModeChanged { .. })).await;
    daemon.reply("/approval-mode", Reply::json(500, &json!({"error": "no"})));
    daemon.restart(true);
    let told = until(&mut events, |event| matches!(event, AgentEvent::Notice { .. })).await;
    assert!(
        matches!(told.last(), Some(AgentEvent::Notice { level: NoticeLevel::Warning, message }) if message.contains("default")),
        "{told:#?}"
    );
}

#[tokio::test]
async fn loaded_session_gets_mode_unless_shared() {
    let daemon = FakeDaemon::start().await;
    let (connection, _events) = Chat::new();
    let open = || DaemonOptions {
        open: OpenSession::Load(SessionId::new(SESSION)),
        mode: Some("default".to_owned()),
        ..options(&daemon)
    };
    connection.connect(open()).await.unwrap();
    assert_eq!(daemon.requests("/approval-mode").len(), 0);
    daemon.restart(false);
    connection.connect(open()).await.unwrap();
    assert_eq!(daemon.requests("/approval-mode")[0].body["mode"], "default");
}
