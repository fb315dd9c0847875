//! The other end: what the commands use to speak with a running companion.

use std::collections::VecDeque;
use std::time::Duration;

use alongside_core::Secret;
use futures_util::{SinkExt, StreamExt};
use serde::de::DeserializeOwned;
use serde_json::Value;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::{self, Message};

use crate::{rpc, websocket};
use alongside_protocol::{Hello, Notification, Request, Welcome};

const CONNECT_TIME: Duration = Duration::from_secs(5);
const ANSWER_TIME: Duration = Duration::from_secs(30);
/// An agent that is started may take a minute for each of several steps.
const LONG_ANSWER_TIME: Duration = Duration::from_mins(5);

/// A conversation with a companion.
#[derive(Debug)]
pub struct Client {
    socket: WebSocketStream<TcpStream>,
    last_id: u64,
    notifications: VecDeque<Notification>,
}

/// Why a companion could not be asked, or what it refused.
#[derive(Debug, Error)]
pub enum ClientError {
    /// Nobody answers at the port.
    #[error("cannot reach the companion on port {port}: {source}")]
    Unreachable {
        /// Where it was expected.
        port: u16,
        /// What the system says.
        source: std::io::Error,
    },
    /// The handshake failed.
    #[error("the companion refused the connection: {0}")]
    Refused(Box<tungstenite::Error>),
    /// The conversation broke off.
    #[error("the companion closed the connection before responding")]
    HungUp,
    /// The companion answers, but not in time.
    #[error("the companion did not respond within {0:?}")]
    Late(Duration),
    /// The companion said no.
    #[error("{message}")]
    Said {
        /// The word for programs.
        kind: String,
        /// The sentence for people.
        message: String,
    },
    /// The answer is not what the protocol says.
    #[error("invalid response from the companion: {0}")]
    Nonsense(#[from] serde_json::Error),
}

impl Client {
    /// Connects to the companion whose people's port is `port` and says hello.
    pub async fn connect(port: u16, token: &Secret, name: &str, watch: bool) -> Result<(Self, Welcome), ClientError> {
        let hello = Hello {
            watch,
            ..Hello::new(name)
        };
        Self::connect_as(port, token, hello).await
    }

    /// Connects to the companion whose people's port is `port` as whoever `hello` says.
    pub async fn connect_as(port: u16, token: &Secret, hello: Hello) -> Result<(Self, Welcome), ClientError> {
        let connecting = Self::open(port, token);
        let mut client = tokio::time::timeout(CONNECT_TIME, connecting)
            .await
            .map_err(|_| ClientError::Late(CONNECT_TIME))??;
        let welcome = client.call(Request::Hello(hello)).await?;
        Ok((client, welcome))
    }

    async fn open(port: u16, token: &Secret) -> Result<Self, ClientError> {
        let stream = TcpStream::connect(("127.0.0.1", port))
            .await
            .map_err(|source| ClientError::Unreachable { port, source })?;
        let _ = stream.set_nodelay(true);
        let refused = |error| ClientError::Refused(Box::new(error));
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

    /// Asks and waits for the answer.
    pub async fn call<T: DeserializeOwned>(&mut self, request: Request) -> Result<T, ClientError> {
        let limit = if request.takes_its_time() {
            LONG_ANSWER_TIME
        } else {
            ANSWER_TIME
        };
        tokio::time::timeout(limit, self.ask(&request))
            .await
            .map_err(|_| ClientError::Late(limit))?
    }

    async fn ask<T: DeserializeOwned>(&mut self, request: &Request) -> Result<T, ClientError> {
        self.last_id += 1;
        let id = self.last_id;
        self.socket
            .send(Message::text(rpc::request(id, request)))
            .await
            .map_err(|_| ClientError::HungUp)?;
        loop {
            let mut message = self.receive().await?;
            if message.get("id").and_then(Value::as_u64) != Some(id) {
                self.notifications.extend(serde_json::from_value(message));
                continue;
            }
            if let Some(error) = message.get("error") {
                let word = |pointer| {
                    error
                        .pointer(pointer)
                        .and_then(Value::as_str)
                        .unwrap_or_default()
                        .to_owned()
                };
                return Err(ClientError::Said {
                    kind: word("/data/kind"),
                    message: word("/message"),
                });
            }
            return Ok(serde_json::from_value(message["result"].take())?);
        }
    }

    /// Waits for the next notification, without a limit.
    pub async fn notification(&mut self) -> Result<Notification, ClientError> {
        loop {
            if let Some(notification) = self.notifications.pop_front() {
                return Ok(notification);
            }
            let message = self.receive().await?;
            self.notifications.extend(serde_json::from_value(message));
        }
    }

    async fn receive(&mut self) -> Result<Value, ClientError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Message::Text(text))) => return Ok(serde_json::from_str(&text)?),
                Some(Ok(Message::Close(_)) | Err(_)) | None => return Err(ClientError::HungUp),
                Some(Ok(_)) => {}
            }
        }
    }
}
