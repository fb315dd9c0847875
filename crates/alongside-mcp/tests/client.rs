//! The client, and the relay for agents that start a command.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use alongside_core::dialect::ClientInfo;
use alongside_core::{SessionEnd, SessionKey};
use alongside_mcp::client::{Client, ClientError, stdio};
use common::{Received, Setup, gemini, initialize, rejected, request, soon, token, trusted};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

#[tokio::test]
async fn handshake_identifies_the_companion() {
    let setup = Setup::start().await;
    for host in ["127.0.0.1", "localhost"] {
        let client = soon(Client::connect(host, setup.port(), token().reveal()))
            .await
            .unwrap();
        let server = soon(client.initialize(&gemini())).await.unwrap();
        assert_eq!(server.server_info.name, "alongside");
        assert_eq!(server.protocol_version, "2025-11-25");
        assert!(client.session_id().is_some());
    }
}

#[tokio::test]
async fn failures_have_distinct_errors() {
    let setup = Setup::start().await;
    let port = setup.port();
    let handshake = async |host: &str, port, token: &str| {
        let client = Client::new(host, port, token).unwrap().timeout(Duration::from_secs(5));
        soon(client.initialize(&gemini())).await.unwrap_err()
    };
    assert!(matches!(
        handshake("127.0.0.1", port, "wrong").await,
        ClientError::Unauthorized { .. }
    ));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = listener.local_addr().unwrap().port();
    drop(listener);
    assert!(matches!(
        handshake("127.0.0.1", free, "any").await,
        ClientError::Refused { .. }
    ));
    assert!(matches!(
        soon(Client::connect("127.0.0.1", free, "any")).await,
        Err(ClientError::Refused { .. })
    ));
    assert!(matches!(
        Client::new("127.0.0.1", 1, "line\nbreak"),
        Err(ClientError::Unsendable(_))
    ));
}

/// Sends the same bytes on every connection.
async fn impostor(response: &'static [u8]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let _ = stream.read(&mut [0; 4096]).await;
            let _ = stream.write_all(response).await;
            let _ = stream.read(&mut [0; 4096]).await;
        }
    });
    port
}

#[tokio::test]
async fn other_servers_are_recognized() {
    let me = ClientInfo {
        name: "doctor".to_owned(),
        version: "1".to_owned(),
    };
    let page = impostor(b"HTTP/1.1 200 OK\r\ncontent-type: text/html\r\ncontent-length: 4\r\n\r\n<p/>").await;
    let client = Client::new("127.0.0.1", page, "any").unwrap();
    assert!(matches!(
        soon(client.initialize(&me)).await,
        Err(ClientError::NotMcp(_))
    ));

    let wrong_host =
        impostor(b"HTTP/1.1 403 Forbidden\r\ncontent-length: 31\r\n\r\n{\"error\":\"Invalid Host header\"}").await;
    let client = Client::new("127.0.0.1", wrong_host, "any").unwrap();
    let error = soon(client.initialize(&me)).await.unwrap_err();
    assert!(
        matches!(&error, ClientError::Forbidden { sentence } if sentence == "Invalid Host header"),
        "{error}"
    );

    let silent = impostor(b"").await;
    let client = Client::new("127.0.0.1", silent, "any")
        .unwrap()
        .timeout(Duration::from_millis(50));
    assert!(matches!(
        soon(client.initialize(&me)).await,
        Err(ClientError::Timeout(_))
    ));
}

#[tokio::test]
async fn response_in_an_event_stream_is_read() {
    let body = "event: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"x\"}\n\ndata: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{}}\n\n";
    let response = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let port = impostor(Box::leak(response.into_boxed_str()).as_bytes()).await;
    let client = Client::new("127.0.0.1", port, "any").unwrap();
    assert_eq!(soon(client.request("ping", Value::Null)).await.unwrap(), json!({}));
}

#[tokio::test]
async fn truncated_stream_is_an_error() {
    let setup = Setup::start().await;
    let client = setup.client().await;
    let mut events = soon(client.events(None)).await.unwrap();
    soon(events.next()).await.unwrap();
    drop(setup);
    assert!(matches!(soon(events.next()).await, Err(ClientError::Lost(_))));
}

/// Reads one request from a connection.
async fn read_request(stream: &mut TcpStream) -> Option<String> {
    let mut text = String::new();
    loop {
        let (head, body) = text.split_once("\r\n\r\n").unwrap_or((&text, ""));
        let length = head
            .lines()
            .find_map(|line| line.strip_prefix("content-length: "))
            .map_or(0, |length| length.parse().unwrap());
        if text.contains("\r\n\r\n") && body.len() >= length {
            return Some(text);
        }
        let mut bytes = [0; 4096];
        let count = stream.read(&mut bytes).await.ok().filter(|count| *count > 0)?;
        text.push_str(std::str::from_utf8(&bytes[..count]).unwrap());
    }
}

#[tokio::test]
async fn open_diff_with_a_cut_off_response_is_not_sent_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let received = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&received);
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            while let Some(request) = read_request(&mut stream).await {
                if request.contains("openDiff") && counted.fetch_add(1, Ordering::SeqCst) == 0 {
                    stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-le").await.unwrap();
                    break;
                }
                let id = if request.contains("openDiff") { 2 } else { 1 };
                let body = format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ";
                let response = format!("{head}{}\r\n\r\n{body}", body.len());
                stream.write_all(response.as_bytes()).await.unwrap();
            }
        }
    });
    let client = Client::new("127.0.0.1", port, "any").unwrap();
    soon(client.request("ping", Value::Null)).await.unwrap();
    let params = json!({"name": "openDiff", "arguments": {"filePath": "/a", "newContent": "b"}});
    let lost = soon(client.request("tools/call", params)).await;
    assert_eq!(received.load(Ordering::SeqCst), 1, "{lost:?}");
    assert!(matches!(lost, Err(ClientError::Lost(_))), "{lost:?}");
}

#[tokio::test]
async fn cut_off_event_is_not_skipped_when_the_stream_is_resumed() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = Client::new("127.0.0.1", listener.local_addr().unwrap().port(), "any").unwrap();
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        read_request(&mut stream).await.unwrap();
        let response =
            "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n\r\nid: 1\ndata: {}\n\nid: 2\ndata: {\"cut";
        stream.write_all(response.as_bytes()).await.unwrap();
    });
    let mut events = soon(client.events(None)).await.unwrap();
    assert_eq!(soon(events.next()).await.unwrap(), Some(json!({})));
    assert_eq!(soon(events.next()).await.unwrap(), None);
    assert_eq!(events.last_event_id(), Some("1"));
}

/// A relay with both of its ends.
struct Relay {
    input: Option<DuplexStream>,
    output: Lines<BufReader<DuplexStream>>,
    task: JoinHandle<std::io::Result<()>>,
}

impl Relay {
    fn start(client: Client) -> Self {
        let (input, relay_input) = tokio::io::duplex(64 * 1024);
        let (output, relay_output) = tokio::io::duplex(64 * 1024);
        Self {
            input: Some(input),
            output: BufReader::new(output).lines(),
            task: tokio::spawn(stdio::relay(client, relay_input, relay_output)),
        }
    }

    async fn send(&mut self, line: &str) {
        let line = format!("{line}\n");
        self.input.as_mut().unwrap().write_all(line.as_bytes()).await.unwrap();
    }

    async fn receive(&mut self) -> Value {
        let line = soon(self.output.next_line()).await.unwrap().unwrap();
        serde_json::from_str(&line).unwrap()
    }

    async fn close(&mut self) {
        self.input = None;
        soon(&mut self.task).await.unwrap().unwrap();
    }
}

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

#[tokio::test]
async fn relay_carries_requests_and_events() {
    let mut setup = Setup::start().await;
    let mut relay = Relay::start(setup.stranger());
    relay.send(&initialize("2025-06-18")).await;
    assert_eq!(relay.receive().await["result"]["protocolVersion"], "2025-06-18");
    relay.send(INITIALIZED).await;
    assert_eq!(relay.receive().await["method"], "ide/contextUpdate");
    relay.send("").await;
    relay.send(r#"{"jsonrpc":"2.0","id":"a","method":"ping"}"#).await;
    assert_eq!(
        relay.receive().await,
        json!({"jsonrpc": "2.0", "id": "a", "result": {}})
    );
    relay.send(r#"{"jsonrpc":"2.0","id":9,"result":{}}"#).await;
    relay.send("nonsense").await;
    assert_eq!(relay.receive().await["error"]["code"], -32_700);
    let Received::Started(session, _) = setup.next_call().await else {
        panic!("a session starts first");
    };
    let session = SessionKey::from(session.as_str());
    setup.server.agents().notify(&session, rejected("/a"));
    assert_eq!(relay.receive().await["params"], json!({"filePath": "/a"}));
    relay.close().await;
    let ended = setup
        .call_eventually(|received| matches!(received, Received::Ended(..)))
        .await;
    assert_eq!(
        ended,
        Received::Ended(session.to_string(), SessionEnd::Deleted { unwritten: Vec::new() })
    );
}

#[tokio::test]
async fn slow_request_does_not_block_the_relay() {
    let mut setup = Setup::start().await;
    *setup.companion.hangs.lock() = true;
    let mut relay = Relay::start(setup.stranger());
    relay.send(&initialize("2025-06-18")).await;
    relay.receive().await;
    let params = json!({"name": "openDiff", "arguments": {"filePath": "/a", "newContent": "b"}});
    relay.send(&request("tools/call", &params)).await;
    setup
        .call_eventually(|received| matches!(received, Received::OpenDiff(..)))
        .await;
    relay.send(r#"{"jsonrpc":"2.0","id":8,"method":"ping"}"#).await;
    assert_eq!(relay.receive().await["id"], 8);
    soon(setup.server.shutdown()).await;
    assert_eq!(relay.receive().await["result"]["isError"], true);
}

#[tokio::test]
async fn relay_reads_no_more_while_64_requests_are_under_way() {
    let mut setup = Setup::start().await;
    *setup.companion.hangs.lock() = true;
    let mut relay = Relay::start(setup.stranger());
    relay.send(&initialize("2025-06-18")).await;
    relay.receive().await;
    for number in 0..64 {
        let params = json!({"name": "openDiff", "arguments": {"filePath": format!("/{number}"), "newContent": ""}});
        relay.send(&request("tools/call", &params)).await;
        setup
            .call_eventually(|received| matches!(received, Received::OpenDiff(..)))
            .await;
    }
    relay.send(r#"{"jsonrpc":"2.0","id":"last","method":"ping"}"#).await;
    let early = tokio::time::timeout(Duration::from_millis(100), relay.output.next_line()).await;
    assert!(early.is_err(), "{early:?}");
    soon(setup.server.shutdown()).await;
    let mut ids = Vec::new();
    for _ in 0..65 {
        ids.push(relay.receive().await["id"].clone());
    }
    assert_ne!(ids[0], "last", "{ids:?}");
    assert!(ids.contains(&json!("last")));
}

#[tokio::test]
async fn relay_responds_without_a_companion() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut relay = Relay::start(Client::new("127.0.0.1", port, "any").unwrap());
    relay.send(&initialize("2025-06-18")).await;
    let reply = relay.receive().await;
    assert_eq!((&reply["id"], &reply["error"]["code"]), (&json!(0), &json!(-32_000)));
    relay.send(r#"{"jsonrpc":"2.0","id":"b","method":"ping"}"#).await;
    assert_eq!(relay.receive().await["id"], "b");
    relay.close().await;
}

#[tokio::test]
async fn relay_reopens_its_stream_after_a_restart() {
    let before = Setup::start().await;
    let port = before.port();
    let mut relay = Relay::start(before.stranger());
    relay.send(&initialize("2025-06-18")).await;
    relay.receive().await;
    relay.send(INITIALIZED).await;
    assert_eq!(relay.receive().await["method"], "ide/contextUpdate");
    soon(before.server.shutdown()).await;

    let mut after = Setup::with(|config| {
        config.port = Some(port);
        config.initial_context = Some(trusted(false));
    })
    .await;
    let context = relay.receive().await;
    assert_eq!(context["params"]["workspaceState"]["isTrusted"], false);
    let Received::Started(session, _) = after.next_call().await else {
        panic!("the session is resumed first");
    };
    relay.close().await;
    let ended = after
        .call_eventually(|received| matches!(received, Received::Ended(..)))
        .await;
    assert_eq!(
        ended,
        Received::Ended(session, SessionEnd::Deleted { unwritten: Vec::new() })
    );
    assert!(after.has_no_more_calls(), "there was no other session");
}

#[tokio::test]
async fn relay_ends_when_its_output_is_closed() {
    let setup = Setup::start().await;
    let mut relay = Relay::start(setup.stranger());
    let (unused, _) = tokio::io::duplex(1);
    relay.output = BufReader::new(unused).lines();
    relay.send(&initialize("2025-06-18")).await;
    assert!(soon(&mut relay.task).await.unwrap().is_err());
}
