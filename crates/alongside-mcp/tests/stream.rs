//! The event stream: which events an agent receives, and when.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::time::Duration;

use alongside_core::context::IdeContext;
use alongside_core::{SessionEnd, SessionKey};
use alongside_mcp::client::{Client, Events};
use alongside_mcp::{Config, Outgoing};
use common::{
    Call, Received, Setup, accepted, numbered, read_response, read_until, rejected, request, soon, start_session,
};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

async fn next(events: &mut Events) -> Value {
    soon(events.next()).await.unwrap().expect("the stream is open")
}

fn context(path: &str) -> IdeContext {
    serde_json::from_value(json!({"workspaceState": {"openFiles": [{"path": path, "timestamp": 1}]}})).unwrap()
}

fn path(message: &Value) -> &str {
    assert_eq!(message["method"], "ide/contextUpdate");
    message["params"]["workspaceState"]["openFiles"][0]["path"]
        .as_str()
        .unwrap_or_default()
}

/// Difference 13: agents require a stream; its head is sent immediately and never cached.
#[tokio::test]
async fn stream_starts_with_the_context() {
    let setup = Setup::with(|config| config.initial_context = Some(context("/a"))).await;
    let session = start_session(setup.port()).await;
    let mut stream = Call::get(setup.port(), &session).open(setup.port()).await;
    let head = soon(read_response(&mut stream)).await;
    assert_eq!(head.status, 200);
    assert_eq!(head.header("content-type"), Some("text/event-stream"));
    assert_eq!(head.header("cache-control"), Some("no-cache"));
    let event = soon(read_until(&mut stream, "\n\n")).await;
    assert!(event.contains(r#"data: {"jsonrpc":"2.0","method":"ide/contextUpdate","params":{"workspaceState":"#));
    assert!(event.contains("id: "));
}

/// Difference 14: the context is sent when a stream opens and again a little later, on every stream.
#[tokio::test]
async fn context_is_sent_twice_on_every_stream() {
    let setup = Setup::with(|config| {
        config.initial_context = Some(context("/a"));
        config.timing.context_repeat = Duration::from_millis(50);
    })
    .await;
    let client = setup.client().await;
    for _ in 0..2 {
        let mut events = soon(client.events(None)).await.unwrap();
        assert_eq!(path(&next(&mut events).await), "/a");
        assert_eq!(path(&next(&mut events).await), "/a");
        setup.server.agents().publish_context(&context("/b"));
        assert_eq!(path(&next(&mut events).await), "/b");
        setup.server.agents().publish_context(&context("/a"));
        assert_eq!(path(&next(&mut events).await), "/a");
    }
}

#[tokio::test]
async fn context_reaches_every_session() {
    let setup = Setup::start().await;
    let mut streams = Vec::new();
    for _ in 0..5 {
        let client = setup.client().await;
        let mut events = soon(client.events(None)).await.unwrap();
        next(&mut events).await;
        streams.push(events);
    }
    setup.server.agents().publish_context(&context("/new"));
    for events in &mut streams {
        assert_eq!(path(&next(events).await), "/new");
    }
}

/// The connection is no longer the HTTP library's when a stream begins.
#[tokio::test]
async fn stream_begins_after_a_response_that_is_still_being_read() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    // More than the system's buffers hold.
    let text = "x".repeat(20_000_000);
    setup.companion.final_texts.lock().insert("/a".to_owned(), text.clone());
    let close = request(
        "tools/call",
        &json!({"name": "closeDiff", "arguments": {"filePath": "/a"}}),
    );
    let close = Call::post(setup.port(), close).header("mcp-session-id", &session);
    let mut connection = close.open(setup.port()).await;
    let get = Call::get(setup.port(), &session);
    connection.write_all(&get.bytes()).await.unwrap();
    let closed = soon(read_response(&mut connection)).await;
    assert!(closed.body.contains(&text));
    let stream = soon(read_response(&mut connection)).await;
    assert_eq!(stream.header("content-type"), Some("text/event-stream"));
    soon(read_until(&mut connection, "ide/contextUpdate")).await;
}

#[tokio::test]
async fn connection_of_a_stream_is_closed_after_it_and_answers_nothing_else() {
    let mut setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    let mut connection = Call::get(setup.port(), &session).open(setup.port()).await;
    let head = soon(read_response(&mut connection)).await;
    assert_eq!(head.header("connection"), Some("close"));
    soon(read_until(&mut connection, "ide/contextUpdate")).await;
    let ping = Call::post(setup.port(), request("ping", &json!({}))).header("mcp-session-id", &session);
    connection.write_all(&ping.bytes()).await.unwrap();
    setup.server.agents().publish_context(&context("/new"));
    soon(read_until(&mut connection, "/new")).await;
    setup.call_eventually(|call| matches!(call, Received::Opened(_))).await;
    assert!(setup.has_no_more_calls(), "the stream must still be open");
    soon(setup.server.shutdown()).await;
    let mut rest = String::new();
    soon(connection.read_to_string(&mut rest)).await.unwrap();
    assert!(rest.ends_with("0\r\n\r\n") && !rest.contains("HTTP/1.1"), "{rest:?}");
}

#[tokio::test]
async fn stream_needs_chunks() {
    let setup = Setup::start().await;
    let session = start_session(setup.port()).await;
    let call = String::from_utf8(Call::get(setup.port(), &session).bytes()).unwrap();
    let mut connection = TcpStream::connect(("127.0.0.1", setup.port())).await.unwrap();
    let call = call.replace("HTTP/1.1", "HTTP/1.0");
    connection.write_all(call.as_bytes()).await.unwrap();
    assert_eq!(soon(read_response(&mut connection)).await.status, 505);
}

#[tokio::test]
async fn idle_stream_carries_comments() {
    let setup = Setup::with(|config| config.timing.keep_alive = Duration::from_millis(30)).await;
    let session = start_session(setup.port()).await;
    let mut stream = Call::get(setup.port(), &session).open(setup.port()).await;
    soon(read_until(&mut stream, "ide/contextUpdate")).await;
    soon(read_until(&mut stream, ": keep-alive\n\n")).await;
    soon(read_until(&mut stream, ": keep-alive\n\n")).await;
}

/// Difference 13: an event without data disconnects Gemini CLI.
#[tokio::test]
async fn every_event_has_data() {
    let setup = Setup::with(|config| {
        config.timing.keep_alive = Duration::from_millis(20);
        config.timing.context_repeat = Duration::from_millis(30);
    })
    .await;
    let client = setup.client().await;
    let session = Setup::session(&client);
    let mut stream = Call::get(setup.port(), session.id().as_str()).open(setup.port()).await;
    setup.server.agents().notify(&session, accepted("/a", ""));
    setup.server.agents().publish_context(&context("/a\n\r\nb"));
    let mut seen = soon(read_until(&mut stream, "keep-alive")).await;
    soon(setup.server.shutdown()).await;
    soon(stream.read_to_string(&mut seen)).await.unwrap();
    let data: Vec<&str> = seen.lines().filter(|line| line.starts_with("data")).collect();
    assert!(data.len() >= 2, "{seen}");
    for line in data {
        assert!(line.starts_with("data: {\"jsonrpc\":\"2.0\","), "{line}");
    }
}

/// Difference 11: a rejection is named `ide/diffRejected`, and a decision goes only to the session of its review.
#[tokio::test]
async fn decisions_arrive_once_and_in_order() {
    let setup = Setup::start().await;
    let agents = setup.server.agents();
    let (one, other) = (setup.client().await, setup.client().await);
    let mut events = soon(one.events(None)).await.unwrap();
    let mut others = soon(other.events(None)).await.unwrap();
    next(&mut events).await;
    next(&mut others).await;
    let session = Setup::session(&one);
    for number in 0..50 {
        assert!(agents.notify(&session, accepted(&format!("/{number}"), "text\r\n")));
        assert!(agents.notify(&session, rejected(&format!("/{number}"))));
    }
    for number in 0..50 {
        let file_path = format!("/{number}");
        let expected = json!({"jsonrpc": "2.0", "method": "ide/diffAccepted",
            "params": {"filePath": file_path, "content": "text\r\n"}});
        assert_eq!(next(&mut events).await, expected);
        let expected = json!({"jsonrpc": "2.0", "method": "ide/diffRejected", "params": {"filePath": file_path}});
        assert_eq!(next(&mut events).await, expected);
    }
    agents.publish_context(&context("/end"));
    assert_eq!(
        path(&next(&mut others).await),
        "/end",
        "the other session received none of it"
    );
}

#[tokio::test]
async fn decision_waits_for_a_stream() {
    let mut setup = Setup::start().await;
    let client = setup.client().await;
    let session = Setup::session(&client);
    assert!(setup.server.agents().notify(&session, numbered(1, rejected("/a"))));
    let mut events = soon(client.events(None)).await.unwrap();
    assert_eq!(next(&mut events).await["params"], json!({"filePath": "/a"}));
    soon(client.end()).await.unwrap();
    let ended = setup
        .call_eventually(|received| matches!(received, Received::Ended(..)))
        .await;
    assert_eq!(
        ended,
        Received::Ended(session.to_string(), SessionEnd::Deleted { unwritten: Vec::new() }),
        "it was delivered"
    );
}

#[tokio::test]
async fn event_ids_increase() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let session = Setup::session(&client);
    let mut numbers = Vec::new();
    for _ in 0..2 {
        let mut events = soon(client.events(None)).await.unwrap();
        for _ in 0..3 {
            next(&mut events).await;
            let id = events.last_event_id().unwrap();
            numbers.push(id.rsplit_once('-').unwrap().1.parse::<u64>().unwrap());
            setup.server.agents().notify(&session, rejected("/a"));
        }
        // Events in flight belong to this stream, not to the next.
        next(&mut events).await;
        numbers.push(numbers.last().unwrap() + 1);
    }
    assert!(numbers.is_sorted_by(|left, right| left < right), "{numbers:?}");
}

#[tokio::test]
async fn last_event_id_repeats_later_decisions() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let session = Setup::session(&client);
    let agents = setup.server.agents();
    let mut events = soon(client.events(None)).await.unwrap();
    next(&mut events).await;
    for file_path in ["/a", "/b", "/c"] {
        agents.notify(&session, rejected(file_path));
    }
    next(&mut events).await;
    let arrived = events.last_event_id().unwrap().to_owned();
    next(&mut events).await;
    next(&mut events).await;

    let mut events = soon(client.events(Some(&arrived))).await.unwrap();
    for file_path in ["/b", "/c"] {
        assert_eq!(next(&mut events).await["params"]["filePath"], file_path);
    }
    assert_eq!(next(&mut events).await["method"], "ide/contextUpdate");
    let arrived = events.last_event_id().unwrap().to_owned();
    let mut events = soon(client.events(Some(&arrived))).await.unwrap();
    assert_eq!(
        next(&mut events).await["method"],
        "ide/contextUpdate",
        "all are acknowledged now"
    );
}

/// An agent that has received a rejection of `/a`, and no longer listens.
async fn agent_with_a_decision() -> (Setup, Client) {
    let setup = Setup::with(|config| config.timing.context_repeat = Duration::from_millis(20)).await;
    let client = setup.client().await;
    let mut events = soon(client.events(None)).await.unwrap();
    next(&mut events).await;
    setup.server.agents().notify(&Setup::session(&client), rejected("/a"));
    next(&mut events).await;
    (setup, client)
}

#[tokio::test]
async fn missing_last_event_id_repeats_decisions_after_the_context() {
    let (_setup, client) = agent_with_a_decision().await;
    for last_event_id in [None, Some("0badc0de-1"), Some("0badc0de-0-a-99"), Some("17")] {
        let mut events = soon(client.events(last_event_id)).await.unwrap();
        assert_eq!(
            next(&mut events).await["method"],
            "ide/contextUpdate",
            "{last_event_id:?}"
        );
        assert_eq!(next(&mut events).await["params"]["filePath"], "/a", "{last_event_id:?}");
    }
}

#[tokio::test]
async fn decision_is_not_repeated_while_the_next_proposal_is_being_read() {
    let (setup, client) = agent_with_a_decision().await;
    let session = Setup::session(&client);

    let proposal = json!({"name": "openDiff", "arguments": {"filePath": "/a", "newContent": "new"}});
    let bytes = Call::post(setup.port(), request("tools/call", &proposal))
        .header("mcp-session-id", session.id().as_str())
        .bytes();
    let (head, rest) = bytes.split_at(bytes.len() - 5);
    let mut connection = TcpStream::connect(("127.0.0.1", setup.port())).await.unwrap();
    connection.write_all(head).await.unwrap();
    // The response to a later request on another connection shows that the head was read.
    soon(client.request("ping", json!({}))).await.unwrap();
    let mut events = soon(client.events(None)).await.unwrap();
    for _ in 0..2 {
        assert_eq!(next(&mut events).await["method"], "ide/contextUpdate");
    }
    connection.write_all(rest).await.unwrap();
    assert_eq!(soon(read_response(&mut connection)).await.status, 200);
    setup.server.agents().notify(&session, accepted("/a", "new"));
    assert_eq!(next(&mut events).await["params"]["content"], "new");
}

#[tokio::test]
async fn event_id_from_before_a_restart_confirms_what_the_same_journal_delivered() {
    let named = |config: &mut Config| config.epoch = Some("journal".into());
    let before = Setup::with(named).await;
    let client = before.client().await;
    let session = Setup::session(&client);
    let mut events = soon(client.events(None)).await.unwrap();
    next(&mut events).await;
    before.server.agents().notify(&session, numbered(1, rejected("/old")));
    next(&mut events).await;
    let old = events.last_event_id().unwrap().to_owned();
    let port = before.port();
    soon(before.server.shutdown()).await;

    let mut after = Setup::with(|config| {
        named(config);
        config.port = Some(port);
        config.timing.context_repeat = Duration::from_millis(50);
    })
    .await;
    let mut events = soon(client.events(Some(&old))).await.unwrap();
    next(&mut events).await;
    for (number, path) in [(1, "/old"), (2, "/lost")] {
        let outgoing = numbered(number, rejected(path));
        after.server.agents().notify(
            &session,
            Outgoing {
                repeated: true,
                ..outgoing
            },
        );
    }
    assert_eq!(next(&mut events).await["params"]["filePath"], "/lost");
    let settled = after
        .call_eventually(|received| matches!(received, Received::Settled(..)))
        .await;
    assert_eq!(settled, Received::Settled(session.to_string(), vec![1]));
}

#[tokio::test]
async fn closing_a_review_acknowledges_its_decision() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let session = Setup::session(&client);
    let mut events = soon(client.events(None)).await.unwrap();
    next(&mut events).await;
    let opened = events.last_event_id().unwrap().to_owned();
    setup.server.agents().notify(&session, rejected("/a"));
    setup.server.agents().notify(&session, rejected("/b"));
    next(&mut events).await;
    next(&mut events).await;
    let params = json!({"name": "closeDiff", "arguments": {"filePath": "/a"}});
    soon(client.request("tools/call", params)).await.unwrap();
    let mut events = soon(client.events(Some(&opened))).await.unwrap();
    assert_eq!(next(&mut events).await["params"]["filePath"], "/b");
    assert_eq!(next(&mut events).await["method"], "ide/contextUpdate");
}

#[tokio::test]
async fn second_stream_replaces_the_first() {
    let mut setup = Setup::start().await;
    let client = setup.client().await;
    let session = client.session_id().unwrap();
    setup.next_call().await;
    let mut first = soon(client.events(None)).await.unwrap();
    next(&mut first).await;
    let mut second = soon(client.events(None)).await.unwrap();
    next(&mut second).await;
    assert_eq!(soon(first.next()).await.unwrap(), None, "a clean end");
    setup.server.agents().notify(&Setup::session(&client), rejected("/a"));
    assert_eq!(next(&mut second).await["params"]["filePath"], "/a");
    for received in [
        Received::Opened(session.clone()),
        Received::Closed(session.clone()),
        Received::Opened(session),
    ] {
        assert_eq!(setup.next_call().await, received);
    }
    assert!(setup.has_no_more_calls(), "the second stream is still open");
    setup.server.agents().notify(&Setup::session(&client), rejected("/b"));
    assert_eq!(next(&mut second).await["params"]["filePath"], "/b");
}

#[tokio::test]
async fn stalled_agent_delays_no_other_and_costs_one_slot() {
    let setup = Setup::start().await;
    let agents = setup.server.agents();
    let stalled = setup.client().await;
    let mut stalled_events = soon(stalled.events(None)).await.unwrap();
    let reading = setup.client().await;
    let mut events = soon(reading.events(None)).await.unwrap();
    let reader = tokio::spawn(async move { while path(&next(&mut events).await) != "/last" {} });

    // More than the system's buffers hold, with time to write, so that the connection fills up.
    let filling = "x".repeat(100_000);
    for number in 0..200 {
        agents.publish_context(&context(&format!("/{number}{filling}")));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    for number in 0..20_000 {
        agents.publish_context(&context(&format!("/{number}")));
        if number % 10 == 0 {
            tokio::task::yield_now().await;
        }
    }
    agents.notify(&Setup::session(&stalled), rejected("/kept"));
    agents.publish_context(&context("/last"));
    soon(reader).await.unwrap();

    // Once it reads again, it receives what was in flight, its decision and the latest context, not 20,000 of them.
    let mut count = 0;
    let mut kept = false;
    loop {
        let message = next(&mut stalled_events).await;
        if message["method"] == "ide/diffRejected" {
            kept = true;
        } else if path(&message) == "/last" {
            break;
        }
        count += 1;
    }
    assert!(kept);
    assert!(count < 220, "{count} events");
}

#[tokio::test]
async fn stream_that_is_never_read_is_closed() {
    let mut setup = Setup::with(|config| config.timing.write = Duration::from_millis(50)).await;
    let session = start_session(setup.port()).await;
    let _unread = Call::get(setup.port(), &session).open(setup.port()).await;
    setup.call_eventually(|call| matches!(call, Received::Opened(_))).await;
    // More than the system's buffers hold.
    let decision = accepted("/a", &"x".repeat(30_000_000));
    setup
        .server
        .agents()
        .notify(&SessionKey::from(session.as_str()), numbered(1, decision));
    setup.call_eventually(|call| matches!(call, Received::Closed(_))).await;
}
