//! The client that commands use to talk to a running companion.
//!
//! Calls are made one at a time, so there is no table of pending calls: a response that arrives after its call timed out has an old id and
//! is skipped. Notifications that arrive during calls are kept, up to [`MAX_NOTIFICATIONS`]; beyond that they are replaced by a
//! `resync`.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::time::Duration;

use alongside_core::Token;
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use serde_json::value::RawValue;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use crate::{rpc, websocket};
use alongside_protocol::{Empty, ErrorKind, Hello, Method, Notification, Request, RequestError, Welcome, requests};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Starting an agent may take a minute for each of several steps.
const LONG_RESPONSE_TIMEOUT: Duration = Duration::from_mins(5);
/// How many notifications are kept for [`Client::notification`].
const MAX_NOTIFICATIONS: usize = 1024;

/// A connection to a companion.
#[derive(Debug)]
pub struct Client {
    socket: WebSocketStream<TcpStream>,
    last_id: u64,
    notifications: VecDeque<Notification>,
}

#[derive(Debug, Error)]
pub enum ClientError {
    #[error("cannot reach the companion on port {port}: {source}")]
    Unreachable { port: u16, source: std::io::Error },
    #[error("the companion refused the connection: {0}")]
    Handshake(Box<tungstenite::Error>),
    #[error("the companion closed the connection before responding")]
    Closed,
    #[error("the companion did not respond within {0:?}")]
    TimedOut(Duration),
    /// The request failed.
    #[error(transparent)]
    Request(#[from] RequestError),
    #[error("invalid response from the companion: {0}")]
    InvalidResponse(#[from] serde_json::Error),
}

/// A message from the companion.
#[derive(Deserialize)]
struct Incoming<'a> {
    id: Option<u64>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow)]
    result: Option<&'a RawValue>,
    error: Option<WireError>,
}

#[derive(Deserialize)]
struct WireError {
    message: String,
    data: Option<ErrorData>,
}

#[derive(Deserialize)]
struct ErrorData {
    kind: ErrorKind,
}

impl Client {
    /// Connects to a companion's front-end port.
    pub async fn connect(port: u16, token: &Token, name: &str, watch: bool) -> Result<(Self, Welcome), ClientError> {
        let hello = Hello {
            watch,
            ..Hello::new(name)
        };
        Self::connect_as(port, token, hello).await
    }

    /// Connects to a companion's front-end port as the front end of `hello`.
    pub async fn connect_as(port: u16, token: &Token, hello: Hello) -> Result<(Self, Welcome), ClientError> {
        let connecting = Self::open(port, token);
        let mut client = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| ClientError::TimedOut(CONNECT_TIMEOUT))??;
        let welcome = client.call::<requests::Hello>(hello).await?;
        Ok((client, welcome))
    }

    async fn open(port: u16, token: &Token) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .map_err(|source| ClientError::Unreachable { port, source })?;
        let _ = stream.set_nodelay(true);
        let refused = |error| ClientError::Handshake(Box::new(error));
        let mut request = format!("ws://127.0.0.1:{port}{}", websocket::PATH)
            .into_client_request()
            .map_err(refused)?;
        let mut bearer = HeaderValue::try_from(format!("Bearer {}", token.reveal()))
            .map_err(|error| refused(tungstenite::Error::HttpFormat(error.into())))?;
        bearer.set_sensitive(true);
        request.headers_mut().insert(header::AUTHORIZATION, bearer);
        let (socket, _) = tokio_tungstenite::client_async_with_config(request, stream, Some(websocket::config()))
            .await
            .map_err(refused)?;
        Ok(Self {
            socket,
            last_id: 0,
            notifications: VecDeque::new(),
        })
    }

    pub async fn call<M: Method>(&mut self, params: M::Params) -> Result<M::Response, ClientError> {
        let request = M::request(params);
        let limit = if request.is_slow() {
            LONG_RESPONSE_TIMEOUT
        } else {
            RESPONSE_TIMEOUT
        };
        tokio::time::timeout(limit, self.send::<M>(&request))
            .await
            .map_err(|_| ClientError::TimedOut(limit))?
    }

    async fn send<M: Method>(&mut self, request: &Request) -> Result<M::Response, ClientError> {
        self.last_id += 1;
        let id = self.last_id;
        self.socket
            .send(Message::text(rpc::request(id, request)))
            .await
            .map_err(|_| ClientError::Closed)?;
        loop {
            let text = self.receive().await?;
            let message: Incoming<'_> = serde_json::from_str(&text)?;
            if message.id == Some(id) {
                return match message.error {
                    Some(error) => Err(ClientError::Request(RequestError {
                        kind: error.data.map_or(ErrorKind::Unknown, |data| data.kind),
                        message: error.message,
                    })),
                    None => Ok(serde_json::from_str(message.result.map_or("null", RawValue::get))?),
                };
            }
            self.keep(&message);
        }
    }

    /// Waits for the next notification, without a timeout.
    pub async fn notification(&mut self) -> Result<Notification, ClientError> {
        loop {
            if let Some(notification) = self.notifications.pop_front() {
                return Ok(notification);
            }
            let text = self.receive().await?;
            self.keep(&serde_json::from_str(&text)?);
        }
    }

    /// Keeps a notification. Late responses and unknown notifications are skipped.
    fn keep(&mut self, message: &Incoming<'_>) {
        let (Some(method), Some(params)) = (&message.method, message.params) else {
            return;
        };
        if self.notifications.len() >= MAX_NOTIFICATIONS {
            self.notifications.clear();
            self.notifications.push_back(Notification::Resync(Empty {}));
        }
        self.notifications.extend(Notification::parse(method, params));
    }

    async fn receive(&mut self) -> Result<Utf8Bytes, ClientError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(text),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(ClientError::Closed),
                Some(Ok(_)) => {}
            }
        }
    }
}
