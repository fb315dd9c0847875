//! The chat's share of the protocol: who hears it, and what it holds up.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::time::Duration;

use alongside_core::Secret;
use alongside_core::context::IdeContext;
use alongside_front::client::Client;
use alongside_front::websocket;
use alongside_protocol::{ChatCommand, ChatEvent, Hello, Nothing, Notification, Request, VERSION, Welcome};
use alongside_protocol::{Desk, FrontEnd, Refusal};
use serde_json::{Value, json};
use tokio::sync::{Notify, broadcast};

const PATIENCE: Duration = Duration::from_secs(30);

/// A desk whose agent takes as long as a test wants.
struct Slow {
    news: broadcast::Sender<Notification>,
    chat: broadcast::Sender<Notification>,
    release: Notify,
}

impl Desk for Slow {
    async fn call(&self, _: &FrontEnd, request: Request) -> Result<Value, Refusal> {
        match request {
            Request::Hello(_) => Ok(serde_json::to_value(Welcome {
                protocol: VERSION,
                version: "1".into(),
                pid: 1,
                workspace: vec!["/project".into()],
            })
            .unwrap()),
            Request::ChatCommand(command) => {
                self.release.notified().await;
                Ok(command.command)
            }
            _ => Ok(json!([])),
        }
    }

    fn watch(&self) -> broadcast::Receiver<Notification> {
        self.news.subscribe()
    }

    fn watch_chat(&self) -> broadcast::Receiver<Notification> {
        self.chat.subscribe()
    }
}

async fn start() -> (Arc<Slow>, u16, Secret) {
    let desk = Arc::new(Slow {
        news: broadcast::channel(8).0,
        chat: broadcast::channel(8).0,
        release: Notify::new(),
    });
    let listener = websocket::Listener::bind().await.unwrap();
    let (port, token) = (listener.port(), Secret::from_bytes([3; 32]));
    tokio::spawn(listener.serve(Arc::clone(&desk), token.clone()));
    (desk, port, token)
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
        event: Arc::new(json!({"type": "assistantChunk"})),
    })
}

async fn next(client: &mut Client) -> Notification {
    tokio::time::timeout(PATIENCE, client.notification())
        .await
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn only_front_ends_that_want_the_chat_hear_it() {
    let (desk, port, token) = start().await;
    let mut editor = hello(port, &token, true, false).await;
    let mut page = hello(port, &token, true, true).await;
    let news = Notification::ContextChanged(IdeContext::default());
    desk.chat.send(word(1)).unwrap();
    assert_eq!(next(&mut page).await, word(1));
    desk.news.send(news.clone()).unwrap();
    assert_eq!(next(&mut page).await, news);
    assert_eq!(next(&mut editor).await, news, "the editor was told nothing before");
}

#[tokio::test]
async fn a_flood_of_words_pushes_out_no_other_news_and_is_not_lost_silently() {
    let (desk, port, token) = start().await;
    let mut editor = hello(port, &token, true, false).await;
    let mut page = hello(port, &token, true, true).await;
    let news = Notification::ContextChanged(IdeContext::default());
    desk.news.send(news.clone()).unwrap();
    // Nobody gets to read in between: the test has only one thread.
    for sequence in 1..=1000 {
        desk.chat.send(word(sequence)).unwrap();
    }
    assert_eq!(next(&mut editor).await, news);
    assert_eq!(next(&mut page).await, news);
    assert_eq!(
        next(&mut page).await,
        Notification::Resync(Nothing {}),
        "it is told that it missed some"
    );
    for sequence in 993..=1000 {
        assert_eq!(next(&mut page).await, word(sequence));
    }
}

#[tokio::test]
async fn what_takes_its_time_holds_up_nothing_else() {
    let (desk, port, token) = start().await;
    let mut page = hello(port, &token, true, true).await;
    let command = Request::ChatCommand(ChatCommand {
        command: json!({"type": "cancel"}),
    });
    let mut waiting = Box::pin(page.call::<Value>(command));
    let started = tokio::time::timeout(Duration::from_millis(50), &mut waiting).await;
    assert!(started.is_err(), "the agent takes its time");
    drop(waiting);
    desk.news
        .send(Notification::ContextChanged(IdeContext::default()))
        .unwrap();
    assert!(matches!(next(&mut page).await, Notification::ContextChanged(_)));
    let list: Value = page.call(Request::ReviewList(Nothing {})).await.unwrap();
    assert_eq!(list, json!([]));
    desk.release.notify_one();
}
