//! An MCP client over a WebSocket, as Claude Code and opencode are.

use std::collections::VecDeque;
use std::time::Duration;

use alongside_core::Secret;
use alongside_core::dialect::ClientInfo;
use alongside_wire::rpc::{self, Message};
use futures_util::{SinkExt, StreamExt};
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::client::IntoClientRequest;
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{self, Message as Frame};

use super::{ClientError, InitializeResult, unsendable};
use crate::protocol::PROTOCOL_VERSIONS;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);

/// Notifications that are kept while a request waits. The oldest are dropped.
const MAX_HELD: usize = 64;

/// A connection.
#[derive(Debug)]
pub struct SocketClient {
    socket: WebSocketStream<TcpStream>,
    next_request: u64,
    held: VecDeque<Value>,
}

impl SocketClient {
    /// Connects as Claude Code does, which offers the subprotocol `mcp`, or without one as opencode does.
    pub async fn connect(port: u16, token: Option<&Secret>, subprotocol: Option<&str>) -> Result<Self, ClientError> {
        let connecting = Self::open(port, token, subprotocol);
        let connected = timeout(CONNECT_TIMEOUT, connecting).await;
        connected.map_err(|_| ClientError::Timeout(CONNECT_TIMEOUT))?
    }

    async fn open(port: u16, token: Option<&Secret>, subprotocol: Option<&str>) -> Result<Self, ClientError> {
        let address = format!("127.0.0.1:{port}");
        let stream = TcpStream::connect(&address).await;
        let stream = stream.map_err(|source| ClientError::Refused {
            address: address.clone(),
            source,
        })?;
        let mut request = format!("ws://{address}/").into_client_request().map_err(lost)?;
        let value =
            |text: &str| HeaderValue::from_str(text).map_err(|_| ClientError::Unsendable("the token".to_owned()));
        let headers = request.headers_mut();
        if let Some(token) = token {
            headers.insert("x-claude-code-ide-authorization", value(token.reveal())?);
        }
        if let Some(subprotocol) = subprotocol {
            headers.insert("sec-websocket-protocol", value(subprotocol)?);
        }
        let (socket, _) = tokio_tungstenite::client_async(request, stream).await.map_err(lost)?;
        Ok(Self {
            socket,
            next_request: 0,
            held: VecDeque::new(),
        })
    }

    pub async fn initialize(&mut self, client: &ClientInfo) -> Result<InitializeResult, ClientError> {
        let params = json!({"protocolVersion": PROTOCOL_VERSIONS[0], "capabilities": {}, "clientInfo": client});
        let result = self.request("initialize", params).await?;
        let result = serde_json::from_value(result)
            .map_err(|error| ClientError::NotMcp(format!("invalid response to initialize: {error}")))?;
        self.notify("notifications/initialized", &json!({})).await?;
        Ok(result)
    }

    /// Sends a request and waits for its result, however long that takes.
    pub async fn request(&mut self, method: &str, params: Value) -> Result<Value, ClientError> {
        let id = self.next_request;
        self.next_request += 1;
        self.send(rpc::request(id, method, Some(&params)).map_err(unsendable)?)
            .await?;
        loop {
            let text = self.read().await?;
            match Message::parse(&text) {
                Ok(Message::Response(response)) if response.number() == Some(id) => {
                    let result = response.result.map_err(|error| ClientError::Rpc {
                        code: error.code,
                        message: error.message.into_owned(),
                    })?;
                    return serde_json::from_str(result.get())
                        .map_err(|_| ClientError::NotMcp(format!("non-JSON response to {method}")));
                }
                Ok(Message::Response(_)) => {}
                _ => self.hold(&text),
            }
        }
    }

    pub async fn notify(&mut self, method: &str, params: &Value) -> Result<(), ClientError> {
        let message = json!({"jsonrpc": "2.0", "method": method, "params": params});
        self.send(message.to_string()).await
    }

    /// The next notification.
    pub async fn next(&mut self) -> Result<Value, ClientError> {
        loop {
            if let Some(held) = self.held.pop_front() {
                return Ok(held);
            }
            let text = self.read().await?;
            self.hold(&text);
        }
    }

    /// Says goodbye.
    pub async fn end(mut self) {
        let _ = self.socket.close(None).await;
    }

    fn hold(&mut self, text: &str) {
        if let Ok(message) = serde_json::from_str::<Value>(text)
            && message.get("method").is_some()
        {
            if self.held.len() == MAX_HELD {
                self.held.pop_front();
            }
            self.held.push_back(message);
        }
    }

    async fn send(&mut self, message: String) -> Result<(), ClientError> {
        self.socket.send(Frame::text(message)).await.map_err(lost)
    }

    async fn read(&mut self) -> Result<String, ClientError> {
        loop {
            match self.socket.next().await {
                Some(Ok(Frame::Text(text))) => return Ok(text.as_str().to_owned()),
                Some(Ok(Frame::Close(_))) | None => return Err(lost(tungstenite::Error::ConnectionClosed)),
                Some(Ok(_)) => {}
                Some(Err(error)) => return Err(lost(error)),
            }
        }
    }
}

/// What a failed handshake or a lost connection means.
fn lost(error: tungstenite::Error) -> ClientError {
    match error {
        tungstenite::Error::Http(response) => {
            let status = response.status().as_u16();
            let body = response.into_body().unwrap_or_default();
            let sentence = String::from_utf8_lossy(&body).trim().to_owned();
            match status {
                401 => ClientError::Unauthorized { sentence },
                403 => ClientError::Forbidden { sentence },
                status => ClientError::Status { status, sentence },
            }
        }
        error => ClientError::Disconnected(error.to_string()),
    }
}
