//! A small MCP client over streamable HTTP, for `doctor`, `demo`, the stdio relay and tests.
//!
//! ```no_run
//! # async fn run() -> Result<(), alongside_mcp::client::ClientError> {
//! use alongside_core::dialect::ClientInfo;
//! use alongside_mcp::client::Client;
//!
//! let client = Client::connect("127.0.0.1", 41234, "the token").await?;
//! let me = ClientInfo { name: "doctor".to_owned(), version: "1".to_owned() };
//! let server = client.initialize(&me).await?;
//! println!("{} {}", server.server_info.name, server.protocol_version);
//! let mut events = client.events(None).await?;
//! while let Some(message) = events.next().await? {
//!     println!("{message}");
//! }
//! # Ok(())
//! # }
//! ```

mod endpoint;
mod error;
mod events;
mod socket;
pub mod stdio;
#[cfg(unix)]
mod unix;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alongside_core::dialect::ClientInfo;
use alongside_wire::rpc::{self, Message};
use hyper::Method;
use hyper::header::{ACCEPT, HeaderName, HeaderValue};
use parking_lot::Mutex;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::protocol::PROTOCOL_VERSIONS;
use endpoint::Endpoint;
pub use error::ClientError;
pub use events::Events;
pub use socket::SocketClient;
#[cfg(unix)]
pub use unix::UnixClient;

/// How long a request may take, unless changed with [`Client::timeout`].
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

/// The longest message that is read.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

const SESSION_ID: HeaderName = HeaderName::from_static("mcp-session-id");
const PROTOCOL_VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const LAST_EVENT_ID: HeaderName = HeaderName::from_static("last-event-id");

/// A client of one server, in at most one session. Clones share the session.
#[derive(Clone)]
pub struct Client {
    shared: Arc<Shared>,
    timeout: Duration,
}

struct Shared {
    endpoint: Endpoint,
    session: Mutex<Session>,
    next_request: AtomicU64,
}

/// What `initialize` returned, sent with every later request.
#[derive(Clone, Default)]
struct Session {
    id: Option<HeaderValue>,
    version: Option<HeaderValue>,
}

/// The result of `initialize`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct InitializeResult {
    /// The version of MCP that the session uses.
    pub protocol_version: String,
    pub server_info: ServerInfo,
    pub capabilities: Value,
}

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct ServerInfo {
    pub name: String,
    #[serde(default)]
    pub version: String,
}

impl fmt::Debug for Client {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let session = self.session_id();
        formatter
            .debug_struct("Client")
            .field("session", &session)
            .finish_non_exhaustive()
    }
}

impl Client {
    /// A client that connects when it sends its first request.
    pub fn new(host: &str, port: u16, token: &str) -> Result<Self, ClientError> {
        Ok(Self {
            shared: Arc::new(Shared {
                endpoint: Endpoint::new(host, port, token)?,
                session: Mutex::default(),
                next_request: AtomicU64::new(1),
            }),
            timeout: DEFAULT_TIMEOUT,
        })
    }

    pub async fn connect(host: &str, port: u16, token: &str) -> Result<Self, ClientError> {
        let client = Self::new(host, port, token)?;
        client.within(client.shared.endpoint.warm_up()).await?;
        Ok(client)
    }

    /// The same client with another limit on how long a request may take. Streams have none.
    #[must_use]
    pub fn timeout(self, timeout: Duration) -> Self {
        Self { timeout, ..self }
    }

    /// Continues a session that another client, or this program before a restart, has started.
    pub fn resume(&self, session: &str, protocol_version: Option<&str>) -> Result<(), ClientError> {
        let value = |text: &str| {
            HeaderValue::from_str(text).map_err(|_| ClientError::Unsendable("the session id or version".to_owned()))
        };
        *self.shared.session.lock() = Session {
            id: Some(value(session)?),
            version: protocol_version.map(value).transpose()?,
        };
        Ok(())
    }

    /// The id of the session, once there is one.
    pub fn session_id(&self) -> Option<String> {
        let session = self.shared.session.lock();
        session.id.as_ref().and_then(|id| id.to_str().ok()).map(str::to_owned)
    }

    /// Starts a session.
    pub async fn initialize(&self, client: &ClientInfo) -> Result<InitializeResult, ClientError> {
        let params = json!({"protocolVersion": PROTOCOL_VERSIONS[0], "capabilities": {}, "clientInfo": client});
        let result = self.request("initialize", params).await?;
        let result = serde_json::from_value(result)
            .map_err(|error| ClientError::NotMcp(format!("invalid response to initialize: {error}")))?;
        self.notify("notifications/initialized", Value::Null).await?;
        Ok(result)
    }

    /// Sends a request and waits for its result. `params` may be null for none.
    pub async fn request(&self, method: &str, params: Value) -> Result<Value, ClientError> {
        let id = self.shared.next_request.fetch_add(1, Ordering::Relaxed);
        let not_mcp = |what: &str| ClientError::NotMcp(format!("{what} to {method}"));
        let request = rpc::request(id, method, Some(&params).filter(|params| !params.is_null()));
        let response = self.post_raw(request.map_err(unsendable)?).await?;
        let response = response.ok_or_else(|| not_mcp("no response"))?;
        match Message::parse(&response) {
            Ok(Message::Response(response)) => {
                let is_ours = response.number() == Some(id);
                match response.result {
                    Err(error) => Err(ClientError::Rpc {
                        code: error.code,
                        message: error.message.into_owned(),
                    }),
                    Ok(result) if is_ours => {
                        serde_json::from_str(result.get()).map_err(|_| not_mcp("non-JSON response"))
                    }
                    Ok(_) => Err(not_mcp("response with the wrong id")),
                }
            }
            Ok(_) => Err(not_mcp("response without a result")),
            Err(_) => Err(not_mcp("non-JSON response")),
        }
    }

    /// Sends a notification. `params` may be null for none.
    pub async fn notify(&self, method: &str, params: Value) -> Result<(), ClientError> {
        let notification = rpc::notification(method, Some(&params).filter(|params| !params.is_null()));
        self.post_raw(notification.map_err(unsendable)?).await.map(drop)
    }

    /// Sends a message as it is and returns the response as it comes; `None` if the message was only accepted.
    pub async fn post_raw(&self, message: String) -> Result<Option<String>, ClientError> {
        self.within(self.post(message)).await
    }

    async fn post(&self, message: String) -> Result<Option<String>, ClientError> {
        let mut request = self.shared.endpoint.request(Method::POST, message)?;
        request
            .headers_mut()
            .insert(ACCEPT, HeaderValue::from_static("application/json, text/event-stream"));
        self.add_session(&mut request);
        let response = self.shared.endpoint.send(request).await?;
        let session = response.headers().get(SESSION_ID).cloned();
        let response = events::read_response(response).await?;
        if session.is_some() {
            self.remember_session(session, response.as_deref());
        }
        Ok(response)
    }

    /// Opens the event stream, from the event after `last_event_id`.
    pub async fn events(&self, last_event_id: Option<&str>) -> Result<Events, ClientError> {
        self.within(async {
            let mut request = self.shared.endpoint.request(Method::GET, String::new())?;
            let headers = request.headers_mut();
            headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream"));
            if let Some(id) = last_event_id {
                let id = HeaderValue::from_str(id).map_err(|_| ClientError::Unsendable("the event id".to_owned()))?;
                headers.insert(LAST_EVENT_ID, id);
            }
            self.add_session(&mut request);
            let response = self.shared.endpoint.send(request).await?;
            Events::new(response, last_event_id)
        })
        .await
    }

    /// Ends the session, if there is one.
    pub async fn end(&self) -> Result<(), ClientError> {
        if self.session_id().is_none() {
            return Ok(());
        }
        self.within(async {
            let mut request = self.shared.endpoint.request(Method::DELETE, String::new())?;
            self.add_session(&mut request);
            self.shared.endpoint.send(request).await?;
            *self.shared.session.lock() = Session::default();
            Ok(())
        })
        .await
    }

    fn add_session<B>(&self, request: &mut hyper::Request<B>) {
        let Session { id, version } = self.shared.session.lock().clone();
        let values = [(SESSION_ID, id), (PROTOCOL_VERSION, version)];
        for (name, value) in values {
            if let Some(value) = value {
                request.headers_mut().insert(name, value);
            }
        }
    }

    fn remember_session(&self, id: Option<HeaderValue>, reply: Option<&str>) {
        let version = reply
            .and_then(|reply| serde_json::from_str::<Value>(reply).ok())
            .and_then(|reply| HeaderValue::from_str(reply["result"]["protocolVersion"].as_str()?).ok());
        let mut session = self.shared.session.lock();
        session.id = id;
        if version.is_some() {
            session.version = version;
        }
    }

    async fn within<T>(&self, work: impl Future<Output = Result<T, ClientError>>) -> Result<T, ClientError> {
        match tokio::time::timeout(self.timeout, work).await {
            Ok(result) => result,
            Err(_) => Err(ClientError::Timeout(self.timeout)),
        }
    }
}

fn unsendable(error: impl std::fmt::Display) -> ClientError {
    ClientError::Unsendable(error.to_string())
}
