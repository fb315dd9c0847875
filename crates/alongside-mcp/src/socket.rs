//! A WebSocket of Claude Code or opencode: requests, responses and notifications on one connection.
//!
//! The session ends with the connection. One task serves it: a call that waits for a decision delays no other, and while the agent
//! reads nothing, nothing more is read from it.

use std::future::poll_fn;
use std::time::Duration;

use alongside_core::SessionKey;
use alongside_core::dialect::{ContextForm, SelectionForm, Transport};
use alongside_wire::rpc::{INVALID_REQUEST, Message, Payload, Request, RpcError};
use bytes::Bytes;
use futures_util::stream::FuturesUnordered;
use futures_util::{SinkExt, StreamExt};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::protocol::frame::Utf8Bytes;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{self, Error};

use crate::companion::Companion;
use crate::endpoint::Endpoint;
use crate::protocol;
use crate::registry::Registry;

/// Calls under way. A call may wait for a decision, so no more are read to wait behind it: they are refused.
const MAX_CALLS: usize = 64;
/// Claude Code drops what it receives before its screen listens, which is up to a second after `ide_connected`.
const CLAUDE_STARTS_TO_LISTEN: Duration = Duration::from_secs(2);
/// The application's range of JSON-RPC errors.
const TOO_MANY_CALLS: i64 = -32000;

type Socket = WebSocketStream<TokioIo<Upgraded>>;

/// Serves a WebSocket until either side closes it.
pub(crate) async fn run<C: Companion>(upgrade: OnUpgrade, endpoint: &Endpoint<C>) {
    let upgraded = match tokio::time::timeout(endpoint.timing.write, upgrade).await {
        Ok(Ok(upgraded)) => upgraded,
        Ok(Err(error)) => return tracing::debug!(%error, "an agent disconnected before its WebSocket was open"),
        Err(_) => return tracing::debug!("an agent took too long to open its WebSocket"),
    };
    let limits = WebSocketConfig::default()
        .max_message_size(Some(endpoint.limits.body_bytes))
        .max_frame_size(Some(endpoint.limits.body_bytes));
    let mut socket = WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Server, Some(limits)).await;
    let mut connection = Connection {
        session: None,
        stream: None,
        repeat_at: None,
        endpoint,
    };
    let Err(ended) = connection.converse(&mut socket).await;
    // The session ends now, and the calls that waited are already dropped: what the agent's connection had open, closes.
    drop(connection);
    match ended {
        Ended::ByAgent => {}
        Ended::Lost(error) => tracing::debug!(%error, "lost the WebSocket of an agent"),
        Ended::ByUs(reason) => {
            let frame = CloseFrame {
                code: CloseCode::Away,
                reason: reason.into(),
            };
            // The agent may have disconnected already.
            let _ = tokio::time::timeout(endpoint.timing.shutdown, socket.close(Some(frame))).await;
        }
    }
}

const SESSION_ENDED: Ended = Ended::ByUs("The session has ended.");

enum Ended {
    ByAgent,
    Lost(Error),
    ByUs(&'static str),
}

impl From<Error> for Ended {
    fn from(error: Error) -> Self {
        match error {
            Error::ConnectionClosed | Error::AlreadyClosed => Self::ByAgent,
            error => Self::Lost(error),
        }
    }
}

struct Connection<'a, C: Companion> {
    endpoint: &'a Endpoint<C>,
    /// Set by `initialize`.
    session: Option<SessionKey>,
    /// Set when the agent is ready for notifications.
    stream: Option<u64>,
    /// When to send the context again.
    repeat_at: Option<Instant>,
}

impl<C: Companion> Connection<'_, C> {
    async fn converse(&mut self, socket: &mut Socket) -> Result<std::convert::Infallible, Ended> {
        let (endpoint, registry) = (self.endpoint, &self.endpoint.registry);
        let mut calls = FuturesUnordered::new();
        let mut is_closing = false;
        loop {
            if is_closing && calls.is_empty() {
                return Err(Ended::ByUs("The companion is shutting down."));
            }
            tokio::select! {
                Some(response) = calls.next() => send(socket, response).await?,
                event = next_event(registry, self.session.as_ref().zip(self.stream)) => match event {
                    Some(event) => send(socket, event).await?,
                    // The port is closing, and calls are still to be answered.
                    None if self.has_session() => self.stream = None,
                    None => return Err(SESSION_ENDED),
                },
                () = until(self.repeat_at), if self.repeat_at.is_some() => {
                    self.repeat_at = None;
                    if let Some((session, number)) = self.session.as_ref().zip(self.stream) {
                        registry.repeat(session, number);
                    }
                }
                () = endpoint.closing.wait(), if !is_closing => is_closing = true,
                message = socket.next() => match message {
                    Some(Ok(tungstenite::Message::Text(text))) => {
                        registry.ready().await;
                        match self.receive(&text).await? {
                            Next::Nothing => {}
                            Next::Respond(response) => send(socket, response).await?,
                            Next::Call(session) if calls.len() < MAX_CALLS => {
                                calls.push(call(endpoint, session, text));
                            }
                            Next::Call(_) => send(socket, too_many_calls(&text)).await?,
                        }
                    }
                    Some(Ok(tungstenite::Message::Close(_))) | None => return Err(Ended::ByAgent),
                    // Pings are answered by the library.
                    Some(Ok(_)) => {}
                    Some(Err(error)) => return Err(error.into()),
                },
            }
        }
    }

    /// Handles everything that must happen in order. Only calls are left, each in a future of its own.
    async fn receive(&mut self, text: &str) -> Result<Next, Ended> {
        let message = match Payload::parse_strict(text) {
            Ok(Payload::One(message)) => message,
            Ok(Payload::Batch(_)) => {
                let error = RpcError::new(INVALID_REQUEST, "batches are not supported here");
                return Ok(Next::Respond(alongside_wire::rpc::error_response(None, &error)));
            }
            Err(invalid) => return Ok(Next::Respond(invalid.to_response())),
        };
        match (message, &self.session) {
            (Message::Request(request), None) if request.method == "initialize" => {
                self.initialize(&request).await.map(Next::Respond)
            }
            (Message::Request(request), None) => {
                let error = RpcError::new(INVALID_REQUEST, "the first request must be initialize");
                Ok(Next::Respond(request.error(&error)))
            }
            (Message::Request(request), Some(_)) if request.method == "initialize" => {
                let error = RpcError::new(INVALID_REQUEST, "this connection is already initialized");
                Ok(Next::Respond(request.error(&error)))
            }
            (Message::Request(request), Some(session)) => {
                // Only a session that never became ready for notifications can have expired.
                if !self.has_session() {
                    return Err(SESSION_ENDED);
                }
                let session = session.clone();
                self.listen_after(&request.method);
                Ok(Next::Call(session))
            }
            (Message::Notification(notification), _) => {
                self.listen_after(&notification.method);
                Ok(Next::Nothing)
            }
            (Message::Response(_), _) => Ok(Next::Nothing),
        }
    }

    /// Marks the session as used; `false` if it has ended.
    fn has_session(&self) -> bool {
        let session = self.session.as_ref();
        session.is_some_and(|session| matches!(self.endpoint.registry.touch(session), Ok(true)))
    }

    async fn initialize(&mut self, request: &Request<'_>) -> Result<String, Ended> {
        let params = match protocol::initialize_params(request) {
            Ok(params) => params,
            Err(error) => return Ok(request.error(&error)),
        };
        let registry = &self.endpoint.registry;
        let session = match registry.start(Transport::WebSocket, params.client, None) {
            Ok(session) => session,
            Err(error) => {
                tracing::debug!(?error, "an agent was not let in");
                return Err(Ended::ByUs("Too many agents are connected."));
            }
        };
        tracing::debug!(%session, version = params.version, "session started");
        self.session = Some(session);
        registry.caught_up().await;
        Ok(protocol::initialize_reply(request, params.version))
    }

    /// Starts to send notifications once the agent is ready for them: Claude Code says so with `ide_connected`.
    fn listen_after(&mut self, method: &str) {
        let Some(session) = self.session.as_ref().filter(|_| self.stream.is_none()) else {
            return;
        };
        let registry = &self.endpoint.registry;
        let is_ready = match registry.dialect(session).context {
            ContextForm::Selection(SelectionForm::Claude) => matches!(method, "ide_connected" | "tools/list"),
            _ => method == "notifications/initialized",
        };
        if is_ready {
            if registry.dialect(session).context == ContextForm::Selection(SelectionForm::Claude) {
                self.repeat_at = Some(Instant::now() + CLAUDE_STARTS_TO_LISTEN);
            }
            self.stream = registry.open_stream(session, None);
        }
    }
}

impl<C: Companion> Drop for Connection<'_, C> {
    fn drop(&mut self) {
        if let Some(session) = &self.session {
            self.endpoint.registry.lose(session);
        }
    }
}

/// What a message leads to.
enum Next {
    Nothing,
    Respond(String),
    Call(SessionKey),
}

async fn call<C: Companion>(endpoint: &Endpoint<C>, session: SessionKey, text: Utf8Bytes) -> Bytes {
    match Payload::parse_strict(&text) {
        Ok(Payload::One(Message::Request(request))) => {
            Bytes::from(protocol::respond(endpoint, &session, &request).await)
        }
        // Parsed before.
        _ => Bytes::new(),
    }
}

fn too_many_calls(text: &str) -> String {
    match Payload::parse_strict(text) {
        Ok(Payload::One(Message::Request(request))) => {
            request.error(&RpcError::new(TOO_MANY_CALLS, "too many calls are under way"))
        }
        _ => String::new(),
    }
}

async fn until(time: Option<Instant>) {
    if let Some(time) = time {
        tokio::time::sleep_until(time).await;
    }
}

/// The next notification; never ready without a stream.
async fn next_event(registry: &Registry, stream: Option<(&SessionKey, u64)>) -> Option<Bytes> {
    let Some((session, number)) = stream else {
        return std::future::pending().await;
    };
    loop {
        let event = poll_fn(|task| registry.poll_stream(session, number, task)).await?;
        match event.data() {
            Ok(message) => return Some(message),
            Err(error) => tracing::error!(%error, "cannot serialize an event"),
        }
    }
}

async fn send(socket: &mut Socket, message: impl Into<Bytes>) -> Result<(), Ended> {
    let message: Bytes = message.into();
    match Utf8Bytes::try_from(message) {
        Ok(text) => Ok(socket.send(tungstenite::Message::Text(text)).await?),
        Err(error) => {
            tracing::error!(%error, "a message is not valid UTF-8");
            Ok(())
        }
    }
}
