//! A fake companion for working on the page: `cargo run -p alongside-page --example fake_backend [port]`.
//!
//! It implements as much of the front-end protocol as the page needs, with sample reviews, including hostile ones. For
//! development only.
#![expect(clippy::print_stdout, reason = "the links are what it is started for")]

mod backend;
mod chat;
mod review;
mod samples;
mod scripts;

use std::sync::Arc;

use alongside_page::{Config, Incoming, Outgoing, PageServer, View};
use futures_util::{SinkExt, StreamExt};
use parking_lot::Mutex;
use tokio::sync::broadcast;

use crate::backend::Backend;

#[tokio::main]
async fn main() -> std::io::Result<()> {
    let mut config = Config::default();
    config.limits.login_links = 48;
    config.port = std::env::args().nth(1).and_then(|port| port.parse().ok());
    let (notifications, _) = broadcast::channel(4096);
    let desk = Arc::new(Mutex::new(Backend::new(notifications.clone())));
    let server = PageServer::bind(config, move |incoming, outgoing| {
        converse(desk.clone(), notifications.clone(), incoming, outgoing)
    })
    .await?;
    for _ in 0..48 {
        println!("{}", server.login_links().create(View::Reviews)?);
    }
    std::future::pending().await
}

async fn converse(
    desk: Arc<Mutex<Backend>>,
    notifications: broadcast::Sender<String>,
    mut incoming: Incoming,
    mut outgoing: Outgoing,
) {
    let mut notified = notifications.subscribe();
    loop {
        let text = tokio::select! {
            message = incoming.next() => {
                let Some(message) = message else { return };
                desk.lock().answer(&message)
            }
            notification = notified.recv() => match notification {
                Ok(text) => text,
                Err(_) => r#"{"jsonrpc":"2.0","method":"resync","params":{}}"#.to_owned(),
            },
        };
        if outgoing.send(text).await.is_err() {
            return;
        }
    }
}
