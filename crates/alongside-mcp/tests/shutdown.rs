//! Shutdown and restart of the port.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::time::Duration;

use common::{Call, Received, Setup, accepted, read_response, rejected, soon, trusted};
use serde_json::{Value, json};
use tokio::io::AsyncReadExt;

#[tokio::test]
async fn shutdown_delivers_pending_events_and_ends_streams() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let mut events = soon(client.events(None)).await.unwrap();
    soon(events.next()).await.unwrap();
    let session = Setup::session(&client);
    let agents = setup.server.agents();
    for number in 0..20 {
        agents.notify(&session, accepted(&format!("/{number}"), &"x".repeat(50_000)));
    }
    agents.publish_context(&trusted(true));
    tokio::join!(soon(setup.server.shutdown()), async {
        for number in 0..20 {
            let message = soon(events.next()).await.unwrap().unwrap();
            assert_eq!(message["params"]["filePath"], format!("/{number}"));
        }
        let context = soon(events.next()).await.unwrap().unwrap();
        assert_eq!(context["params"]["workspaceState"]["isTrusted"], true);
        assert_eq!(soon(events.next()).await.unwrap(), None, "a clean end");
    });
}

/// Difference 13: a truncated stream disconnects an agent; one that ends with the terminator does not.
#[tokio::test]
async fn stream_ends_with_the_chunked_terminator() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let mut stream = Call::get(setup.port(), &client.session_id().unwrap())
        .open(setup.port())
        .await;
    soon(read_response(&mut stream)).await;
    soon(setup.server.shutdown()).await;
    let mut rest = Vec::new();
    soon(stream.read_to_end(&mut rest)).await.unwrap();
    assert!(rest.ends_with(b"\r\n0\r\n\r\n"), "{:?}", String::from_utf8_lossy(&rest));
}

#[tokio::test]
async fn idle_connection_does_not_delay_shutdown() {
    let setup = Setup::with(|config| config.timing.shutdown = Duration::from_mins(10)).await;
    let client = setup.client().await;
    let idle = tokio::net::TcpStream::connect(("127.0.0.1", setup.port()))
        .await
        .unwrap();
    soon(client.request("ping", Value::Null)).await.unwrap();
    soon(setup.server.shutdown()).await;
    drop(idle);
}

#[tokio::test]
async fn hanging_tool_responds_on_shutdown() {
    let mut setup = Setup::start().await;
    *setup.companion.hangs.lock() = true;
    let client = setup.client().await;
    let params = json!({"name": "openDiff", "arguments": {"filePath": "/a", "newContent": "b"}});
    let call = tokio::spawn(async move { client.request("tools/call", params).await });
    setup
        .call_eventually(|received| matches!(received, Received::OpenDiff(..)))
        .await;
    soon(setup.server.shutdown()).await;
    let result = soon(call).await.unwrap().unwrap();
    assert_eq!(result["isError"], true);
}

/// Difference 13: after a clean end an agent reconnects to the same port and continues its session.
#[tokio::test]
async fn restart_on_the_same_port_resumes_sessions() {
    let before = Setup::start().await;
    let port = before.port();
    let client = before.client().await;
    let session = client.session_id().unwrap();
    let mut events = soon(client.events(None)).await.unwrap();
    soon(events.next()).await.unwrap();
    soon(before.server.shutdown()).await;
    assert_eq!(soon(events.next()).await.unwrap(), None);

    let mut after = Setup::with(|config| config.port = Some(port)).await;
    after.companion.known.lock().insert(session.clone(), common::gemini());
    let mut events = soon(client.events(events.last_event_id())).await.unwrap();
    assert_eq!(
        soon(events.next()).await.unwrap().unwrap()["method"],
        "ide/contextUpdate"
    );
    assert_eq!(
        after.next_call().await,
        Received::Started(session.clone(), Some(common::gemini()))
    );
    assert_eq!(after.next_call().await, Received::Opened(session));
    soon(client.request("ping", Value::Null)).await.unwrap();
}

#[tokio::test]
async fn dropping_the_server_closes_the_port() {
    let setup = Setup::start().await;
    let port = setup.port();
    let session = common::start_session(port).await;
    let mut stream = Call::get(port, &session).open(port).await;
    soon(read_response(&mut stream)).await;
    drop(setup);
    let mut rest = Vec::new();
    // Truncated or ended, but not left open.
    let _ = soon(stream.read_to_end(&mut rest)).await;
    assert!(tokio::net::TcpStream::connect(("127.0.0.1", port)).await.is_err());
}

#[tokio::test]
async fn drain_waits_until_a_session_between_two_streams_is_back() {
    let setup = Setup::with(|config| config.timing.reconnect = Duration::from_mins(10)).await;
    let client = setup.client().await;
    setup.server.agents().notify(&Setup::session(&client), rejected("/a"));
    let mut draining = Box::pin(setup.server.drain(&[]));
    let early = tokio::time::timeout(Duration::from_millis(50), &mut draining).await;
    assert!(early.is_err(), "no stream is open");
    let (events, ()) = soon(async { tokio::join!(client.events(None), draining) }).await;
    let mut events = events.unwrap();
    let ((), decision) = tokio::join!(soon(setup.server.shutdown()), soon(events.next()));
    assert_eq!(decision.unwrap().unwrap()["method"], "ide/diffRejected");
}

#[tokio::test]
async fn drain_waits_for_an_expected_session_and_not_for_idle_ones() {
    let setup = Setup::with(|config| config.timing.reconnect = Duration::from_mins(10)).await;
    let client = setup.client().await;
    soon(setup.server.drain(&[])).await;
    let expected = [Setup::session(&client)];
    let drained = async { tokio::join!(setup.server.drain(&expected), client.events(None)).1 };
    soon(drained).await.unwrap();
}

#[tokio::test]
async fn drain_ends_when_its_time_is_up() {
    let setup = Setup::with(|config| config.timing.reconnect = Duration::from_millis(10)).await;
    let client = setup.client().await;
    setup.server.agents().notify(&Setup::session(&client), rejected("/a"));
    soon(setup.server.drain(&[])).await;
    soon(setup.server.shutdown()).await;
}
