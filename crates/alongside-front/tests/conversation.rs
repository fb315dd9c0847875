//! The protocol over both transports, with a backend that records its requests.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::{Arc, Mutex};
use std::time::Duration;

use alongside_core::context::IdeContext;
use alongside_core::{ReviewId, Secret};
use alongside_front::client::{Client, ClientError};
use alongside_front::{stdio, websocket};
use alongside_protocol::{
    Backend, Empty, ErrorKind, FrontEnd, Notification, Request, RequestError, Response, SharedNotification, VERSION,
    Welcome, requests,
};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpStream;
use tokio::sync::broadcast;

const TIMEOUT: Duration = Duration::from_secs(30);

struct Recording {
    requests: Mutex<Vec<Request>>,
    notifications: broadcast::Sender<SharedNotification>,
    chat: broadcast::Sender<SharedNotification>,
}

impl Recording {
    fn new() -> Arc<Self> {
        Arc::new(Self {
            requests: Mutex::default(),
            notifications: broadcast::channel(4).0,
            chat: broadcast::channel(4).0,
        })
    }
}

impl Backend for Recording {
    async fn handle(&self, _: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        self.requests.lock().unwrap().push(request.clone());
        match request {
            Request::Hello(_) => {
                let welcome = Welcome {
                    protocol: VERSION,
                    version: "1".into(),
                    pid: 1,
                    workspace: vec!["/project".into()],
                };
                Ok(Response::Hello(welcome))
            }
            Request::ReviewReject(_) => Err(RequestError::new(ErrorKind::UnknownReview, "there is no review 7")),
            _ => Ok(Response::ReviewList(Vec::new())),
        }
    }

    fn disconnected(&self, _: &FrontEnd) {}

    fn subscribe(&self) -> broadcast::Receiver<SharedNotification> {
        self.notifications.subscribe()
    }

    fn subscribe_chat(&self) -> broadcast::Receiver<SharedNotification> {
        self.chat.subscribe()
    }
}

async fn listen(backend: Arc<Recording>) -> (u16, Secret) {
    let listener = websocket::Listener::bind().await.unwrap();
    let (port, token) = (listener.port(), Secret::from_bytes([3; 32]));
    // Until the test ends.
    std::mem::forget(listener.serve(backend, token.clone()));
    (port, token)
}

async fn handshake(port: u16, path: &str, headers: &str) -> String {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let request = format!(
        "GET {path} HTTP/1.1\r\n{headers}Connection: Upgrade\r\nUpgrade: websocket\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut head = vec![0; 12];
    tokio::time::timeout(TIMEOUT, stream.read_exact(&mut head))
        .await
        .unwrap()
        .unwrap();
    String::from_utf8(head).unwrap()
}

#[tokio::test]
async fn command_gets_a_response() {
    let backend = Recording::new();
    let (port, token) = listen(backend.clone()).await;
    let (mut client, welcome) = Client::connect(port, &token, "test", false).await.unwrap();
    assert_eq!(welcome.workspace, ["/project"].map(std::path::PathBuf::from));
    let list = client.call::<requests::ReviewList>(Empty {}).await.unwrap();
    assert!(list.is_empty());
    assert_eq!(backend.requests.lock().unwrap().len(), 2);
}

#[tokio::test]
async fn refusal_has_kind_and_message() {
    let (port, token) = listen(Recording::new()).await;
    let (mut client, _) = Client::connect(port, &token, "test", false).await.unwrap();
    let refused = client.call::<requests::ReviewReject>(ReviewId(7).into()).await;
    assert!(
        matches!(&refused, Err(ClientError::Rejected(error)) if error.kind == ErrorKind::UnknownReview && error.message.contains('7')),
        "{refused:?}"
    );
}

#[tokio::test]
async fn only_programs_with_the_token_are_let_in() {
    let (port, token) = listen(Recording::new()).await;
    let bearer = format!("Authorization: Bearer {}\r\n", token.reveal());
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    assert!(
        handshake(port, "/front", &format!("{host}{bearer}"))
            .await
            .ends_with("101")
    );
    assert!(handshake(port, "/front", &host).await.ends_with("401"));
    assert!(
        handshake(port, "/front", &format!("{host}Authorization: Bearer no\r\n"))
            .await
            .ends_with("401")
    );
    let page = format!("{host}{bearer}Origin: http://127.0.0.1:{port}\r\n");
    assert!(handshake(port, "/front", &page).await.ends_with("403"));
    assert!(
        handshake(port, "/front", &format!("Host: evil.example\r\n{bearer}"))
            .await
            .ends_with("403")
    );
    assert!(
        handshake(port, "/mcp", &format!("{host}{bearer}"))
            .await
            .ends_with("404")
    );
}

#[tokio::test]
async fn repeated_headers_and_foreign_targets_are_refused() {
    let (port, token) = listen(Recording::new()).await;
    let bearer = format!("Authorization: Bearer {}\r\n", token.reveal());
    let host = format!("Host: 127.0.0.1:{port}\r\n");
    for (path, headers, status) in [
        ("/front", format!("{host}{host}{bearer}"), "403"),
        ("/front", format!("{host}Host: evil.example\r\n{bearer}"), "403"),
        ("/front", format!("{host}{bearer}{bearer}"), "401"),
        ("/front", format!("{host}{bearer}Authorization: Bearer no\r\n"), "401"),
        ("http://evil.example/front", format!("{host}{bearer}"), "403"),
        (
            "/front",
            format!("Host: LOCALHOST:{port}\r\n{}", bearer.replace("Bearer", "bearer")),
            "101",
        ),
    ] {
        let answer = handshake(port, path, &headers).await;
        assert!(answer.ends_with(status), "{path} {headers}: {answer}");
    }
}

#[tokio::test]
async fn slow_watcher_gets_a_resync() {
    let backend = Recording::new();
    let (port, token) = listen(backend.clone()).await;
    let (mut client, _) = Client::connect(port, &token, "test", true).await.unwrap();
    backend
        .notifications
        .send(Notification::ContextChanged(IdeContext::default()).into())
        .unwrap();
    let told = tokio::time::timeout(TIMEOUT, client.notification())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(told, Notification::ContextChanged(IdeContext::default()));

    // Nothing is awaited in between, so the connection cannot keep up with this burst.
    for _ in 0..100 {
        backend
            .notifications
            .send(Notification::ContextChanged(IdeContext::default()).into())
            .unwrap();
    }
    let told = tokio::time::timeout(TIMEOUT, client.notification())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(told, Notification::Resync(Empty {}));
}

#[tokio::test]
async fn stdio_has_one_message_per_line_and_starts_with_hello() {
    let (ours, theirs) = tokio::io::duplex(64 * 1024);
    let (input, output) = tokio::io::split(ours);
    let serving = tokio::spawn(stdio::serve(Recording::new(), BufReader::new(input), output));
    let (answers, mut questions) = tokio::io::split(theirs);
    let mut answers = BufReader::new(answers).lines();
    let mut ask = async |question: &str| -> Value {
        questions.write_all(question.as_bytes()).await.unwrap();
        let line = tokio::time::timeout(TIMEOUT, answers.next_line())
            .await
            .unwrap()
            .unwrap()
            .unwrap();
        serde_json::from_str(&line).unwrap()
    };
    let early = ask("{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"review/list\"}\n").await;
    assert_eq!(early["error"]["data"]["kind"], "noHello");
    let future =
        ask("{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"hello\",\"params\":{\"protocol\":99,\"name\":\"x\"}}\n").await;
    assert_eq!(future["error"]["data"]["kind"], "protocolVersion");
    let hello =
        ask("\n{\"jsonrpc\":\"2.0\",\"id\":\"a\",\"method\":\"hello\",\"params\":{\"protocol\":1,\"name\":\"x\"}}\n")
            .await;
    assert_eq!((&hello["id"], &hello["result"]["pid"]), (&json!("a"), &json!(1)));
    // A notification gets no response; the one that arrives is for the request after it.
    let list = ask(concat!(
        "{\"jsonrpc\":\"2.0\",\"method\":\"context/open\",\"params\":{\"path\":\"/a\"}}\n",
        "{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"review/list\"}\n"
    ))
    .await;
    assert_eq!(list["id"], 3);
    drop((answers, questions));
    tokio::time::timeout(TIMEOUT, serving).await.unwrap().unwrap();
}

#[tokio::test]
async fn clients_without_a_token_lock_nobody_out() {
    let (port, token) = listen(Recording::new()).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        let mut stream = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
        // The oldest have been disconnected.
        let _ = stream.write_all(b"GET /front HTTP/1.1\r\nhost: ").await;
        idle.push(stream);
    }
    Client::connect(port, &token, "test", true).await.unwrap();
    drop(idle);
}
