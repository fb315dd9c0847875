//! The client side: how the commands talk to a running companion.

use std::collections::VecDeque;
use std::time::Duration;

use alongside_core::Secret;
use alongside_wire::rpc::{self, Message as RpcMessage};
use futures_util::{SinkExt, StreamExt};
use serde::Deserialize;
use thiserror::Error;
use tokio::net::TcpStream;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::{HeaderValue, header};
use tokio_tungstenite::tungstenite::{self, Message, Utf8Bytes};

use crate::websocket;
use alongside_protocol::{Empty, ErrorKind, Hello, Method, Notification, Request, RequestError, Welcome, requests};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(30);
/// Starting an agent may take a minute for each of several steps.
const LONG_RESPONSE_TIMEOUT: Duration = Duration::from_mins(5);

/// How many notifications are kept while a call waits for its response. When there are more, they are replaced by one
/// [`Notification::Resync`], as the companion does for a client that falls behind.
const MAX_HELD_NOTIFICATIONS: usize = 1024;

/// A connection to a companion.
#[derive(Debug)]
pub struct Client {
    socket: WebSocketStream<TcpStream>,
    last_id: u64,
    notifications: VecDeque<Notification>,
}

/// What a companion sends.
#[derive(Debug)]
pub enum Incoming {
    Notification(Notification),
    Response {
        /// What [`Client::post`] returned.
        id: u64,
        /// The response as JSON; see [`Request::parse_response`].
        result: Result<String, RequestError>,
    },
}

#[derive(Debug, Error)]
pub enum ClientError {
    #[error("cannot reach the companion on port {port}: {source}")]
    Unreachable { port: u16, source: std::io::Error },
    /// The handshake failed.
    #[error("the companion refused the connection: {0}")]
    Refused(Box<tungstenite::Error>),
    #[error("the companion closed the connection before responding")]
    Closed,
    #[error("the companion did not respond within {0:?}")]
    Timeout(Duration),
    /// The response is an error.
    #[error(transparent)]
    Rejected(#[from] RequestError),
    #[error("invalid response from the companion: {0}")]
    InvalidResponse(String),
}

impl Client {
    /// Connects to the companion whose front-end port is `port` and introduces itself.
    pub async fn connect(port: u16, token: &Secret, name: &str, watch: bool) -> Result<(Self, Welcome), ClientError> {
        let hello = Hello {
            watch,
            ..Hello::new(name)
        };
        Self::connect_as(port, token, hello).await
    }

    /// The same with any `hello`.
    pub async fn connect_as(port: u16, token: &Secret, hello: Hello) -> Result<(Self, Welcome), ClientError> {
        let connecting = Self::open(port, token);
        let mut client = tokio::time::timeout(CONNECT_TIMEOUT, connecting)
            .await
            .map_err(|_| ClientError::Timeout(CONNECT_TIMEOUT))??;
        let welcome = client.call::<requests::Hello>(hello).await?;
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

    pub async fn call<M: Method>(&mut self, params: M::Params) -> Result<M::Response, ClientError> {
        let request = M::request(params);
        if request.waits_for_the_user() {
            return self.send::<M>(&request).await;
        }
        let limit = if request.is_slow() {
            LONG_RESPONSE_TIMEOUT
        } else {
            RESPONSE_TIMEOUT
        };
        tokio::time::timeout(limit, self.send::<M>(&request))
            .await
            .map_err(|_| ClientError::Timeout(limit))?
    }

    async fn send<M: Method>(&mut self, request: &Request) -> Result<M::Response, ClientError> {
        let id = self.post(request).await?;
        loop {
            let text = self.receive().await?;
            match RpcMessage::parse(&text).map_err(invalid)? {
                RpcMessage::Response(response) if response.number() == Some(id) => {
                    return match response.result {
                        Ok(result) => serde_json::from_str(result.get()).map_err(invalid),
                        Err(error) => Err(refusal(error).into()),
                    };
                }
                message => self.hold(&message),
            }
        }
    }

    /// Sends a request without waiting; [`Client::incoming`] returns its response, with this id.
    pub async fn post(&mut self, request: &Request) -> Result<u64, ClientError> {
        self.last_id += 1;
        let text = rpc::write_call(Some(self.last_id), request).map_err(invalid)?;
        self.socket
            .send(Message::text(text))
            .await
            .map_err(|_| ClientError::Closed)?;
        Ok(self.last_id)
    }

    /// Waits for the next response or notification, without a limit. Nothing is lost if it is dropped while it waits.
    pub async fn incoming(&mut self) -> Result<Incoming, ClientError> {
        loop {
            if let Some(notification) = self.notifications.pop_front() {
                return Ok(Incoming::Notification(notification));
            }
            let text = self.receive().await?;
            match RpcMessage::parse(&text).map_err(invalid)? {
                RpcMessage::Response(response) => {
                    let Some(id) = response.number() else { continue };
                    let result = response.result.map(|result| result.get().to_owned()).map_err(refusal);
                    return Ok(Incoming::Response { id, result });
                }
                message => self.hold(&message),
            }
        }
    }

    /// Waits for the next notification, without a limit.
    pub async fn notification(&mut self) -> Result<Notification, ClientError> {
        loop {
            if let Some(notification) = self.notifications.pop_front() {
                return Ok(notification);
            }
            let text = self.receive().await?;
            self.hold(&RpcMessage::parse(&text).map_err(invalid)?);
        }
    }

    /// Keeps a notification for later. Unknown ones, and responses to calls that have timed out, are ignored.
    fn hold(&mut self, message: &RpcMessage<'_>) {
        let RpcMessage::Notification(notification) = message else {
            return;
        };
        let Ok(notification) = rpc::parse_call(&notification.method, notification.params) else {
            return;
        };
        hold(&mut self.notifications, notification);
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

fn hold(notifications: &mut VecDeque<Notification>, notification: Notification) {
    if notifications.len() >= MAX_HELD_NOTIFICATIONS {
        notifications.clear();
        notifications.push_back(Notification::Resync(Empty {}));
    }
    notifications.push_back(notification);
}

fn refusal(error: rpc::RpcError) -> RequestError {
    let kind = error.data.get("kind").map(ErrorKind::deserialize);
    RequestError {
        kind: kind.and_then(Result::ok).unwrap_or(ErrorKind::Unknown),
        message: error.message.into_owned(),
    }
}

fn invalid(error: impl std::fmt::Display) -> ClientError {
    ClientError::InvalidResponse(error.to_string())
}

#[cfg(test)]
mod tests {
    use alongside_core::context::IdeContext;

    use super::*;

    #[test]
    fn held_notifications_are_bounded() {
        let mut held = VecDeque::new();
        for _ in 0..MAX_HELD_NOTIFICATIONS {
            hold(&mut held, Notification::ContextChanged(IdeContext::default()));
        }
        assert_eq!(held.len(), MAX_HELD_NOTIFICATIONS);
        let last = Notification::ContextChanged(IdeContext::default());
        hold(&mut held, last.clone());
        assert_eq!(held, [Notification::Resync(Empty {}), last]);
    }
}
