//! The WebSocket of one page: a login, then a stream and a sink of messages.

use std::fmt;
use std::pin::Pin;
use std::time::Duration;

use alongside_loopback::{Closing, Seat};
use futures_util::{Sink, SinkExt, Stream, StreamExt, sink, stream};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::handshake::{Refusal, authenticate};

/// A page that is not logged in has only one short message to send.
const MAX_LOGIN_BYTES: usize = 1024;
/// Sent to a page that has to log in again; `web/src/login.ts` has it too.
const NOT_LOGGED_IN: u16 = 4401;

/// The messages of a page. Ends when the page disconnects.
pub type Incoming = Pin<Box<dyn Stream<Item = String> + Send>>;
/// Messages to a page. Waits while the page reads slowly, and fails once it has disconnected.
pub type Outgoing = Pin<Box<dyn Sink<String, Error = Disconnected> + Send>>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnected;

impl fmt::Display for Disconnected {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the page disconnected")
    }
}

impl std::error::Error for Disconnected {}

pub(crate) type Converse = dyn Fn(Incoming, Outgoing) -> Pin<Box<dyn Future<Output = ()> + Send>> + Send + Sync;

/// A connection that becomes a WebSocket after the current response.
pub(crate) struct Upgrade {
    pub(crate) upgrading: OnUpgrade,
    /// The `Host` of the request.
    pub(crate) host: String,
}

/// Logs in a page and runs the conversation with it until either side ends it.
pub(crate) async fn run(upgrade: Upgrade, seat: &Seat, converse: &Converse, endpoint: &Endpoint) {
    let (config, closing) = (&endpoint.config, &endpoint.closing);
    let upgraded = match timeout(config.timing.write, upgrade.upgrading).await {
        Ok(Ok(upgraded)) => upgraded,
        Ok(Err(error)) => return tracing::debug!(%error, "a page disconnected before the handshake"),
        Err(_) => return tracing::debug!("a page took too long to open its WebSocket"),
    };
    let mut socket = open(TokioIo::new(upgraded), MAX_LOGIN_BYTES).await;
    let refusal = tokio::select! {
        login = authenticate(&mut socket, &upgrade.host, &endpoint.logins, || seat.authenticate()) => login.err(),
        () = closing.wait() => return,
    };
    if let Some(refusal) = refusal {
        tracing::debug!(?refusal, "a page was not let in");
        return refuse(socket, refusal, config.timing.shutdown).await;
    }
    // Nothing is lost: a page sends nothing more before it has received the last message of the login.
    let socket = open(socket.into_inner(), config.limits.message_bytes).await;
    forward(socket, converse, config, closing).await;
}

async fn open<S>(stream: S, max_bytes: usize) -> WebSocketStream<S>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let limits = WebSocketConfig::default()
        .max_message_size(Some(max_bytes))
        .max_frame_size(Some(max_bytes));
    WebSocketStream::from_raw_socket(stream, Role::Server, Some(limits)).await
}

/// Closes the WebSocket with a reason, and waits briefly for the page to receive it.
async fn refuse<S>(mut socket: WebSocketStream<S>, refusal: Refusal, patience: Duration)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let (code, reason) = match refusal {
        Refusal::NotLoggedIn => (CloseCode::from(NOT_LOGGED_IN), "Not logged in; run `alongside page`."),
        Refusal::NoLogin => (CloseCode::Policy, "The first message must be a login."),
        Refusal::TooManyPages => (CloseCode::Again, "Too many pages are open; close one of them."),
        Refusal::NoRandomness => (CloseCode::Again, "The system has no random bytes; try again."),
    };
    let frame = CloseFrame {
        code,
        reason: reason.into(),
    };
    let close = async {
        if socket.close(Some(frame)).await.is_ok() {
            while socket.next().await.is_some_and(|message| message.is_ok()) {}
        }
    };
    // The page may have disconnected already.
    let _ = timeout(patience, close).await;
}

async fn forward<S>(socket: WebSocketStream<S>, converse: &Converse, config: &Config, closing: &Closing)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    let (from_page, incoming) = mpsc::channel::<String>(config.limits.queued_messages.max(1));
    let (outgoing, to_page) = mpsc::channel::<String>(config.limits.queued_messages.max(1));
    let incoming = stream::unfold(incoming, |mut incoming| async move {
        let text = incoming.recv().await?;
        Some((text, incoming))
    });
    let outgoing = sink::unfold(outgoing, |outgoing, text: String| async move {
        outgoing.send(text).await.map_err(|_| Disconnected)?;
        Ok(outgoing)
    });
    let (writer, reader) = socket.split();
    let conversation = async {
        converse(Box::pin(incoming), Box::pin(outgoing)).await;
        // The sink was dropped with it, so the writer ends after the last message.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = read(reader, from_page, config.timing.idle) => {}
        () = write(writer, to_page, config, closing) => {}
        () = conversation => {}
    }
}

/// Forwards messages from the page until it disconnects or is idle for too long.
async fn read<S, E>(mut reader: S, from_page: mpsc::Sender<String>, idle: Duration)
where
    S: Stream<Item = Result<Message, E>> + Unpin,
    E: fmt::Display,
{
    loop {
        let message = match timeout(idle, reader.next()).await {
            Ok(Some(Ok(message))) => message,
            Ok(Some(Err(error))) => return tracing::debug!(%error, "lost the connection to a page"),
            Ok(None) => return,
            Err(_) => return tracing::debug!("a page timed out"),
        };
        let text = match message {
            Message::Text(text) => text.as_str().to_owned(),
            Message::Close(_) => return,
            // A pong shows that the page is alive; nothing else matters here.
            _ => continue,
        };
        if from_page.send(text).await.is_err() {
            return;
        }
    }
}

/// Forwards messages to the page, and pings it.
async fn write<W>(mut writer: W, mut to_page: mpsc::Receiver<String>, config: &Config, closing: &Closing)
where
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
            () = closing.wait() => break "The companion is shutting down.",
        };
        match timeout(config.timing.write, writer.send(message)).await {
            Ok(Ok(())) => {}
            Ok(Err(_)) => return,
            Err(_) => return tracing::debug!("a page is reading too slowly"),
        }
    };
    let close = CloseFrame {
        code: CloseCode::Away,
        reason: reason.into(),
    };
    // The page may have disconnected already.
    let _ = timeout(config.timing.shutdown, writer.send(Message::Close(Some(close)))).await;
}
