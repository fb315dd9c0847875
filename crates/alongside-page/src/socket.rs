//! A conversation with one page: a WebSocket on one side, a stream and a sink of messages on the other.

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{Sink, SinkExt, Stream, StreamExt, sink, stream};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, mpsc, watch};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::config::Config;

/// The messages of a page. Ends when the page hangs up.
pub type Incoming = Pin<Box<dyn Stream<Item = String> + Send>>;
/// Takes messages for a page. Waits while the page reads slowly, and fails once it is gone.
pub type Outgoing = Pin<Box<dyn Sink<String, Error = Gone> + Send>>;

/// The page is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

impl fmt::Display for Gone {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the page disconnected")
    }
}

impl std::error::Error for Gone {}

/// Whoever answers pages.
pub(crate) type Converse = dyn Fn(Incoming, Outgoing) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// All conversations.
pub(crate) struct Conversations {
    converse: Arc<Converse>,
    tasks: Mutex<JoinSet<()>>,
}

impl Conversations {
    pub(crate) fn new(converse: Arc<Converse>) -> Self {
        let tasks = Mutex::new(JoinSet::new());
        Self { converse, tasks }
    }

    /// Speaks with a page once its connection has become a WebSocket.
    pub(crate) fn start(
        &self,
        upgrading: OnUpgrade,
        config: Config,
        closing: watch::Receiver<bool>,
        place: OwnedSemaphorePermit,
    ) {
        let converse = self.converse.clone();
        let mut tasks = self.tasks.lock();
        while tasks.try_join_next().is_some() {}
        tasks.spawn(async move {
            let upgraded = match timeout(config.timing.write, upgrading).await {
                Ok(Ok(upgraded)) => upgraded,
                Ok(Err(error)) => return tracing::debug!(%error, "a page disconnected before the handshake"),
                Err(_) => return tracing::debug!("a page took too long to open its WebSocket"),
            };
            let limits = WebSocketConfig::default()
                .max_message_size(Some(config.limits.message_bytes))
                .max_frame_size(Some(config.limits.message_bytes));
            let socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(limits)).await;
            carry(socket, &*converse, config, closing).await;
            drop(place);
        });
    }

    /// Waits for all conversations to end.
    pub(crate) async fn ended(&self) {
        let mut tasks = std::mem::take(&mut *self.tasks.lock());
        while tasks.join_next().await.is_some() {}
    }
}

/// Carries messages both ways until either side ends.
async fn carry<S>(socket: WebSocketStream<S>, converse: &Converse, config: Config, closing: watch::Receiver<bool>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let (from_page, incoming) = mpsc::channel::<String>(config.limits.waiting_messages.max(1));
    let (outgoing, to_page) = mpsc::channel::<String>(config.limits.waiting_messages.max(1));
    let incoming = stream::unfold(incoming, |mut incoming| async move {
        let text = incoming.recv().await?;
        Some((text, incoming))
    });
    let outgoing = sink::unfold(outgoing, |outgoing, text: String| async move {
        outgoing.send(text).await.map_err(|_| Gone)?;
        Ok(outgoing)
    });
    let (writer, reader) = socket.split();
    let conversation = async {
        converse(Box::pin(incoming), Box::pin(outgoing)).await;
        // The sink went with it, so the writer ends by itself once all is written.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = read(reader, from_page, config.timing.silence) => {}
        () = write(writer, to_page, config, closing) => {}
        () = conversation => {}
    }
}

/// Passes on what the page says, until it hangs up or has been silent for too long.
async fn read<S, E>(mut reader: S, from_page: mpsc::Sender<String>, silence: Duration)
where
    S: Stream<Item = Result<Message, E>> + Unpin,
    E: fmt::Display,
{
    loop {
        let message = match timeout(silence, reader.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return tracing::debug!(%error, "lost the connection to a page"),
            Ok(None) => return,
            Err(_) => return tracing::debug!("a page timed out"),
        };
        let text = match message {
            Message::Text(text) => text.as_str().to_owned(),
            Message::Close(_) => return,
            // Answers to pings count as a sign of life; nothing else has a meaning here.
            _ => continue,
        };
        if from_page.send(text).await.is_err() {
            return;
        }
    }
}

/// Passes on what is said to the page, and asks from time to time whether it is there.
async fn write<W>(
    mut writer: W,
    mut to_page: mpsc::Receiver<String>,
    config: Config,
    mut closing: watch::Receiver<bool>,
) where
    W: Sink<Message> + Unpin,
{
    let mut ping = interval(config.timing.ping);
    ping.set_missed_tick_behavior(MissedTickBehavior::Delay);
    ping.reset();
    let reason = loop {
        let message = tokio::select! {
            text = to_page.recv() => match text {
                Some(text) => Message::text(text),
                None => break "The companion closed the connection.",
            },
            _ = ping.tick() => Message::Ping(Bytes::new()),
            _ = closing.wait_for(|closing| *closing) => break "The companion is shutting down.",
        };
        match timeout(config.timing.write, writer.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => return tracing::debug!("a page is reading too slowly"),
        }
    };
    let farewell = CloseFrame {
        code: CloseCode::Away,
        reason: reason.into(),
    };
    // The page may be gone already; there is nobody to tell.
    let _ = timeout(config.timing.shutdown, writer.send(Message::Close(Some(farewell)))).await;
}
