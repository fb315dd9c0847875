//! How sessions start and end.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::time::Duration;

use alongside_core::{DeliveryId, SessionEnd, SessionKey};
use alongside_mcp::client::ClientError;
use common::{Call, Received, Setup, gemini, initialize, numbered, rejected, request, soon, start_session};
use serde_json::{Value, json};

#[tokio::test]
async fn delete_ends_the_session() {
    let mut setup = Setup::start().await;
    let client = setup.client().await;
    let session = client.session_id().unwrap();
    let id = Setup::session(&client);
    let mut events = soon(client.events(None)).await.unwrap();
    soon(events.next()).await.unwrap();
    soon(client.end()).await.unwrap();
    assert_eq!(soon(events.next()).await.unwrap(), None, "a clean end");
    setup.next_call().await;
    assert_eq!(setup.next_call().await, Received::Opened(session.clone()));
    assert_eq!(setup.next_call().await, Received::Closed(session.clone()));
    assert_eq!(
        setup.next_call().await,
        Received::Ended(session.clone(), SessionEnd::Deleted { unwritten: Vec::new() })
    );
    assert!(!setup.server.agents().notify(&id, rejected("/a")), "unknown now");

    let delete = Call::new("DELETE", setup.port()).header("mcp-session-id", &session);
    assert_eq!(delete.send(setup.port()).await.status, 404);
    let ping = Call::post(setup.port(), request("ping", &json!({}))).header("mcp-session-id", &session);
    assert_eq!(
        ping.send(setup.port()).await.status,
        404,
        "a straggler does not bring it back"
    );
    let unknown = delete.header("mcp-session-id", "never-seen");
    assert_eq!(unknown.send(setup.port()).await.status, 404);
}

/// Difference 21: an agent that exits only closes its sockets.
#[tokio::test]
async fn latest_deleted_sessions_are_not_resumed() {
    let setup = Setup::start().await;
    let mut sessions = Vec::new();
    for _ in 0..65 {
        let session = start_session(setup.port()).await;
        let delete = Call::new("DELETE", setup.port()).header("mcp-session-id", &session);
        assert_eq!(delete.send(setup.port()).await.status, 204);
        sessions.push(session);
    }
    for (session, status) in [(&sessions[64], 404), (&sessions[1], 404), (&sessions[0], 200)] {
        let ping = Call::post(setup.port(), request("ping", &json!({}))).header("mcp-session-id", session);
        assert_eq!(ping.send(setup.port()).await.status, status);
    }
}

#[tokio::test]
async fn session_expires_after_its_stream() {
    let mut setup = Setup::with(|config| config.timing.stream_grace = Duration::from_millis(100)).await;
    let client = setup.client().await;
    let session = client.session_id().unwrap();
    let events = soon(client.events(None)).await.unwrap();
    setup.next_call().await;
    assert_eq!(setup.next_call().await, Received::Opened(session.clone()));
    drop(events);
    assert_eq!(setup.next_call().await, Received::Closed(session.clone()));
    let id = Setup::session(&client);
    assert!(setup.server.agents().notify(&id, rejected("/b")));
    assert_eq!(setup.next_call().await, Received::Ended(session, SessionEnd::Lost));
    assert!(!setup.server.agents().notify(&id, rejected("/c")), "unknown now");
}

#[tokio::test]
async fn session_that_reconnects_in_time_is_kept() {
    let mut setup = Setup::with(|config| config.timing.stream_grace = Duration::from_millis(300)).await;
    let client = setup.client().await;
    let first = soon(client.events(None)).await.unwrap();
    drop(first);
    setup
        .call_eventually(|received| matches!(received, Received::Closed(_)))
        .await;
    let mut second = soon(client.events(None)).await.unwrap();
    soon(second.next()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(setup.server.agents().notify(&Setup::session(&client), rejected("/a")));
    assert_eq!(soon(second.next()).await.unwrap().unwrap()["params"]["filePath"], "/a");
    setup
        .call_eventually(|received| matches!(received, Received::Opened(_)))
        .await;
    assert!(setup.has_no_more_calls());
}

#[tokio::test]
async fn session_without_a_stream_expires_when_idle() {
    let mut setup = Setup::with(|config| config.timing.idle = Duration::from_millis(50)).await;
    let session = start_session(setup.port()).await;
    assert!(matches!(setup.next_call().await, Received::Started(..)));
    assert_eq!(setup.next_call().await, Received::Ended(session, SessionEnd::Lost));
}

#[tokio::test]
async fn excess_session_replaces_the_one_idle_longest() {
    let mut setup = Setup::with(|config| config.limits.sessions = 3).await;
    let port = setup.port();
    let oldest = start_session(port).await;
    let listening = setup.client().await;
    let mut events = soon(listening.events(None)).await.unwrap();
    soon(events.next()).await.unwrap();
    let idle = start_session(port).await;
    // The oldest was used most recently.
    let ping = Call::post(port, request("ping", &json!({}))).header("mcp-session-id", &oldest);
    assert_eq!(ping.send(port).await.status, 200);
    let newest = start_session(port).await;
    let ended = setup
        .call_eventually(|received| matches!(received, Received::Ended(..)))
        .await;
    assert_eq!(ended, Received::Ended(idle, SessionEnd::Lost));
    for kept in [oldest, listening.session_id().unwrap(), newest] {
        assert!(
            setup
                .server
                .agents()
                .notify(&SessionKey::from(kept.as_str()), rejected("/a"))
        );
    }
}

#[tokio::test]
async fn excess_session_spares_one_between_two_streams() {
    let mut setup = Setup::with(|config| config.limits.sessions = 2).await;
    let between = setup.client().await;
    drop(soon(between.events(None)).await.unwrap());
    setup
        .call_eventually(|received| matches!(received, Received::Closed(_)))
        .await;
    let unused = start_session(setup.port()).await;
    start_session(setup.port()).await;
    let ended = setup
        .call_eventually(|received| matches!(received, Received::Ended(..)))
        .await;
    assert_eq!(ended, Received::Ended(unused, SessionEnd::Lost));
}

#[tokio::test]
async fn deleted_session_reports_what_was_never_written() {
    let mut setup = Setup::start().await;
    let client = setup.client().await;
    let session = Setup::session(&client);
    let mut events = soon(client.events(None)).await.unwrap();
    soon(events.next()).await.unwrap();
    setup.server.agents().notify(&session, numbered(1, rejected("/a")));
    soon(events.next()).await.unwrap();
    drop(events);
    setup
        .call_eventually(|received| matches!(received, Received::Closed(_)))
        .await;
    setup.server.agents().notify(&session, numbered(2, rejected("/b")));
    soon(client.end()).await.unwrap();
    let unwritten = vec![DeliveryId(2)];
    let ended = setup
        .call_eventually(|received| matches!(received, Received::Ended(..)))
        .await;
    assert_eq!(
        ended,
        Received::Ended(session.to_string(), SessionEnd::Deleted { unwritten })
    );
}

#[tokio::test]
async fn excess_session_gets_503_if_all_are_listening() {
    let setup = Setup::with(|config| config.limits.sessions = 1).await;
    let client = setup.client().await;
    let _events = soon(client.events(None)).await.unwrap();
    let response = Call::post(setup.port(), initialize("2025-06-18"))
        .send(setup.port())
        .await;
    assert_eq!(response.status, 503);
    let unknown = Call::get(setup.port(), "from-before").send(setup.port()).await;
    assert_eq!(unknown.status, 503);
}

#[tokio::test]
async fn too_many_pending_decisions_end_the_session() {
    let mut setup = Setup::with(|config| config.limits.pending_decisions = 3).await;
    let client = setup.client().await;
    let session = Setup::session(&client);
    setup.next_call().await;
    let all: Vec<_> = (0..4).map(|number| rejected(&format!("/{number}"))).collect();
    for notification in &all {
        assert!(setup.server.agents().notify(&session, notification.clone()));
    }
    assert_eq!(
        setup.next_call().await,
        Received::Ended(session.to_string(), SessionEnd::Lost)
    );
    assert!(!setup.server.agents().notify(&session, rejected("/x")));
}

#[tokio::test]
async fn session_is_reported_with_its_client_and_stream() {
    let mut setup = Setup::start().await;
    let client = setup.stranger();
    let initialized = soon(client.initialize(&gemini())).await.unwrap();
    assert_eq!(initialized.protocol_version, "2025-11-25");
    let _events = soon(client.events(None)).await.unwrap();
    let session = client.session_id().unwrap();
    assert_eq!(
        setup.next_call().await,
        Received::Started(session.clone(), Some(gemini()))
    );
    assert_eq!(setup.next_call().await, Received::Opened(session));
    assert!(setup.has_no_more_calls());
}

#[tokio::test]
async fn expired_session_is_resumed() {
    let mut setup = Setup::with(|config| config.timing.idle = Duration::from_millis(50)).await;
    let client = setup.client().await;
    setup
        .call_eventually(|received| matches!(received, Received::Ended(..)))
        .await;
    let response: Result<Value, ClientError> = soon(client.request("ping", Value::Null)).await;
    assert_eq!(response.unwrap(), json!({}));
    assert!(matches!(setup.next_call().await, Received::Started(_, None)));
}
