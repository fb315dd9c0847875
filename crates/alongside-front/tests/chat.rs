//! The chat's part of the protocol: which front ends get it, and what it delays.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use alongside_core::context::IdeContext;
use alongside_core::{ReviewId, Secret};
use alongside_front::client::{Client, ClientError};
use alongside_front::{connection, websocket};
use alongside_protocol::chat::{AgentCommand, AgentEvent, AgentReply};
use alongside_protocol::{
    Backend, ChatCommand, ChatEvent, Empty, ErrorKind, FrontEnd, Hello, Notification, Request, RequestError, Response,
    SharedNotification, VERSION, Welcome, requests,
};
use futures_util::{StreamExt, sink, stream};
use serde_json::json;
use tokio::sync::{Notify, broadcast, mpsc};

const TIMEOUT: Duration = Duration::from_secs(30);

/// Its agent responds when the test allows it.
struct Slow {
    notifications: broadcast::Sender<SharedNotification>,
    chat: broadcast::Sender<SharedNotification>,
    started: Notify,
    release: Notify,
}

impl Backend for Slow {
    async fn handle(&self, _: &FrontEnd, request: Request) -> Result<Response, RequestError> {
        match request {
            Request::Hello(_) => Ok(Response::Hello(Welcome {
                protocol: VERSION,
                version: "1".into(),
                pid: 1,
                workspace: vec!["/project".into()],
            })),
            Request::ReviewReject(_) => {
                self.started.notify_one();
                self.release.notified().await;
                Err(RequestError::new(ErrorKind::UnknownReview, "there is no review 1"))
            }
            Request::ChatCommand(_) => {
                self.release.notified().await;
                Ok(Response::ChatCommand(AgentReply::Done))
            }
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

async fn start() -> (Arc<Slow>, u16, Secret) {
    let (backend, server, token) = start_server().await;
    let port = server.port();
    // Until the test ends.
    std::mem::forget(server);
    (backend, port, token)
}

async fn start_server() -> (Arc<Slow>, alongside_loopback::Server, Secret) {
    let backend = Arc::new(Slow {
        notifications: broadcast::channel(8).0,
        chat: broadcast::channel(8).0,
        started: Notify::new(),
        release: Notify::new(),
    });
    let listener = websocket::Listener::bind().await.unwrap();
    let token = Secret::from_bytes([3; 32]);
    let server = listener.serve(Arc::clone(&backend), token.clone());
    (backend, server, token)
}

/// The decision may be what ends the companion, as in a demo that started its own.
#[tokio::test]
async fn request_under_way_is_answered_when_the_port_closes() {
    let (backend, server, token) = start_server().await;
    let mut client = hello(server.port(), &token, false, false).await;
    let deciding = tokio::spawn(async move { client.call::<requests::ReviewReject>(ReviewId(1).into()).await });
    backend.started.notified().await;
    let closing = tokio::spawn(server.shutdown(TIMEOUT));
    backend.release.notify_one();
    let response = deciding.await.unwrap();
    assert!(closing.await.unwrap(), "all connections finished");
    assert!(matches!(response, Err(ClientError::Rejected(_))), "{response:?}");
}

async fn hello(port: u16, token: &Secret, watch: bool, chat: bool) -> Client {
    let hello = Hello {
        watch,
        chat,
        ..Hello::new("test")
    };
    Client::connect_as(port, token, hello).await.unwrap().0
}

fn word(sequence: u64) -> Notification {
    Notification::ChatEvent(ChatEvent {
        epoch: "e".into(),
        sequence,
        event: Arc::new(AgentEvent::AssistantChunk {
            prompt_id: None,
            content: "word".into(),
        }),
    })
}

async fn next(client: &mut Client) -> Notification {
    tokio::time::timeout(TIMEOUT, client.notification())
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn chat_events_go_only_to_front_ends_with_chat() {
    let (backend, port, token) = start().await;
    let mut editor = hello(port, &token, true, false).await;
    let mut page = hello(port, &token, true, true).await;
    let news = Notification::ContextChanged(IdeContext::default());
    backend.chat.send(word(1).into()).unwrap();
    assert_eq!(next(&mut page).await, word(1));
    backend.notifications.send(news.clone().into()).unwrap();
    assert_eq!(next(&mut page).await, news);
    assert_eq!(next(&mut editor).await, news, "the editor got nothing before");
}

#[tokio::test]
async fn flood_of_chat_events_keeps_reviews_and_ends_in_resync() {
    let (backend, port, token) = start().await;
    let mut editor = hello(port, &token, true, false).await;
    let mut page = hello(port, &token, true, true).await;
    let news = Notification::ContextChanged(IdeContext::default());
    backend.notifications.send(news.clone().into()).unwrap();
    // Nothing is read in between: the test has only one thread.
    for sequence in 1..=1000 {
        backend.chat.send(word(sequence).into()).unwrap();
    }
    assert_eq!(next(&mut editor).await, news);
    assert_eq!(next(&mut page).await, news);
    assert_eq!(
        next(&mut page).await,
        Notification::Resync(Empty {}),
        "it knows that it missed some"
    );
    for sequence in 993..=1000 {
        assert_eq!(next(&mut page).await, word(sequence));
    }
}

#[tokio::test]
async fn slow_request_delays_no_other() {
    let (backend, port, token) = start().await;
    let mut page = hello(port, &token, true, true).await;
    let command = AgentCommand::Cancel;
    let mut waiting = Box::pin(page.call::<requests::ChatCommand>(ChatCommand { command }));
    let started = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
    assert!(started.is_err(), "the agent is still working");
    drop(waiting);
    backend
        .notifications
        .send(Notification::ContextChanged(IdeContext::default()).into())
        .unwrap();
    assert!(matches!(next(&mut page).await, Notification::ContextChanged(_)));
    let list = page.call::<requests::ReviewList>(Empty {}).await.unwrap();
    assert_eq!(list, []);
    backend.release.notify_one();
    // The late response of the dropped call is skipped.
    let list = page.call::<requests::ReviewList>(Empty {}).await.unwrap();
    assert_eq!(list, []);
}

#[tokio::test]
async fn nothing_more_is_read_while_64_slow_requests_are_under_way() {
    let (backend, port, token) = start().await;
    let mut page = hello(port, &token, false, true).await;
    for _ in 0..64 {
        let command = AgentCommand::Cancel;
        let call = page.call::<requests::ChatCommand>(ChatCommand { command });
        assert!(tokio::time::timeout(Duration::from_millis(5), call).await.is_err());
    }
    let mut list = Box::pin(page.call::<requests::ReviewList>(Empty {}));
    assert!(
        tokio::time::timeout(Duration::from_millis(100), &mut list)
            .await
            .is_err()
    );
    backend.release.notify_one();
    assert_eq!(tokio::time::timeout(TIMEOUT, list).await.unwrap().unwrap(), []);
}

#[tokio::test]
async fn second_hello_loses_no_notification() {
    let backend = Arc::new(Slow {
        notifications: broadcast::channel(8).0,
        chat: broadcast::channel(8).0,
        started: Notify::new(),
        release: Notify::new(),
    });
    let hello = |id: u32, chat: bool| {
        let params = json!({ "protocol": VERSION, "name": "test", "watch": true, "chat": chat });
        json!({ "jsonrpc": "2.0", "id": id, "method": "hello", "params": params }).to_string()
    };
    let (first, second) = (hello(1, false), hello(2, true));
    let notifications = backend.notifications.clone();
    // The notification and the second `hello` arrive together.
    let incoming = stream::iter([first])
        .chain(stream::once(async move {
            notifications
                .send(Notification::ContextChanged(IdeContext::default()).into())
                .unwrap();
            second
        }))
        .chain(stream::pending());
    let (sender, mut sent) = mpsc::unbounded_channel();
    let outgoing = sink::unfold(sender, |sender, message: String| async {
        sender.send(message).map(|()| sender)
    });
    let serving = tokio::spawn(connection::serve(backend, incoming, outgoing));
    let notification = tokio::time::timeout(TIMEOUT, async {
        loop {
            let message = sent.recv().await.unwrap();
            if message.contains("context/changed") {
                return message;
            }
        }
    });
    notification.await.unwrap();
    serving.abort();
}
