//! How an agent talks to a companion: with our own client, or with the official SDK in Node.

use std::sync::Arc;
use std::time::Duration;

use alongside_core::dialect::ClientInfo;
use alongside_mcp::client::{Client, ClientError};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::node::NodeWire;
use crate::program::Endpoints;

/// How often an agent tries to open its next stream, as the SDK does, and the first delay. The SDK's is 1 s.
const ATTEMPTS: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(30);

/// What an agent calls its program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub(super) name: &'static str,
    pub(super) version: &'static str,
}

/// A message of an event stream, with the session whose stream it was.
pub(super) type Receive = Arc<dyn Fn(&str, &Value) + Send + Sync>;

/// Why a request has no result.
#[derive(Debug)]
#[expect(dead_code, reason = "shown with Debug")]
pub(super) enum Failure {
    /// The companion refused, with this sentence.
    Refused(String),
    Timeout(Duration),
    /// There was no response.
    Lost(String),
}

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        match error {
            ClientError::Rpc { message, .. } => Self::Refused(message),
            ClientError::Status { sentence, .. } => Self::Refused(sentence),
            ClientError::Timeout(limit) => Self::Timeout(limit),
            error => Self::Lost(error.to_string()),
        }
    }
}

pub(super) enum Wire {
    Own(OwnWire),
    Node(NodeWire),
}

impl Wire {
    /// Starts a session, in place of the previous one, and listens. Returns its id.
    pub(super) async fn start(&self, endpoints: &Endpoints) -> Result<String, Failure> {
        match self {
            Self::Own(wire) => wire.start(endpoints).await,
            Self::Node(wire) => wire.start(endpoints).await,
        }
    }

    /// Listens again in the same session, on a companion that may have been restarted.
    pub(super) async fn resume(&self, endpoints: &Endpoints, with_last_event: bool) -> Result<(), Failure> {
        match self {
            Self::Own(wire) => wire.resume(endpoints, with_last_event).await,
            Self::Node(wire) => wire.resume(),
        }
    }

    /// Loses the event stream.
    pub(super) async fn cut(&self) {
        match self {
            Self::Own(wire) => wire.cut(),
            Self::Node(wire) => wire.cut().await,
        }
    }

    pub(super) async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        match self {
            Self::Own(wire) => wire.call(tool, arguments).await,
            Self::Node(wire) => wire.call(tool, &arguments).await,
        }
    }

    /// Ends the session properly.
    pub(super) async fn leave(&self) {
        match self {
            Self::Own(wire) => wire.leave().await,
            Self::Node(wire) => wire.leave().await,
        }
    }

    /// Whether its event stream is open, as far as it knows.
    pub(super) fn is_listening(&self) -> bool {
        match self {
            Self::Own(wire) => wire.is_listening(),
            Self::Node(wire) => wire.is_listening(),
        }
    }
}

/// Our own client, which reconnects more quickly than the SDK.
pub(super) struct OwnWire {
    program: Program,
    receive: Receive,
    client: Mutex<Option<Client>>,
    stream: Mutex<Option<JoinHandle<()>>>,
    last_event: Arc<Mutex<Option<String>>>,
}

impl Drop for OwnWire {
    fn drop(&mut self) {
        self.cut();
    }
}

impl OwnWire {
    pub(super) fn new(program: Program, receive: Receive) -> Self {
        Self {
            program,
            receive,
            client: Mutex::default(),
            stream: Mutex::default(),
            last_event: Arc::default(),
        }
    }

    fn is_listening(&self) -> bool {
        let stream = self.stream.lock();
        stream.as_ref().is_some_and(|stream| !stream.is_finished())
    }

    fn cut(&self) {
        if let Some(stream) = self.stream.lock().take() {
            stream.abort();
        }
    }

    async fn start(&self, endpoints: &Endpoints) -> Result<String, Failure> {
        let client = Client::new("127.0.0.1", endpoints.port, endpoints.token())?;
        let me = ClientInfo {
            name: self.program.name.to_owned(),
            version: self.program.version.to_owned(),
        };
        client.initialize(&me).await?;
        self.cut();
        *self.last_event.lock() = None;
        *self.client.lock() = Some(client.clone());
        // The session is there, whether its stream is or not.
        let _ = self.listen(&client, false).await;
        Ok(client.session_id().unwrap_or_default())
    }

    async fn resume(&self, endpoints: &Endpoints, with_last_event: bool) -> Result<(), Failure> {
        let Some(session) = self.client.lock().as_ref().and_then(Client::session_id) else {
            return Err(Failure::Lost("no session".to_owned()));
        };
        let client = Client::new("127.0.0.1", endpoints.port, endpoints.token())?;
        client.resume(&session, None)?;
        *self.client.lock() = Some(client.clone());
        self.listen(&client, with_last_event).await
    }

    /// Opens the next stream, in several attempts.
    async fn listen(&self, client: &Client, with_last_event: bool) -> Result<(), Failure> {
        let last_event = self.last_event.lock().clone().filter(|_| with_last_event);
        let mut delay = FIRST_DELAY;
        let mut attempt = 1;
        let mut events = loop {
            match client.events(last_event.as_deref()).await {
                Ok(events) => break events,
                Err(error) if attempt >= ATTEMPTS => return Err(error.into()),
                Err(_) => tokio::time::sleep(delay).await,
            }
            delay = delay * 3 / 2;
            attempt += 1;
        };
        let (receive, last) = (self.receive.clone(), self.last_event.clone());
        let session = client.session_id().unwrap_or_default();
        let stream = tokio::spawn(async move {
            while let Ok(Some(message)) = events.next().await {
                *last.lock() = events.last_event_id().map(str::to_owned);
                receive(&session, &message);
            }
        });
        if let Some(previous) = self.stream.lock().replace(stream) {
            previous.abort();
        }
        Ok(())
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value, Failure> {
        let client = self.client.lock().clone();
        let client = client.ok_or_else(|| Failure::Lost("not connected".to_owned()))?;
        let params = json!({"name": tool, "arguments": arguments});
        Ok(client.request("tools/call", params).await?)
    }

    async fn leave(&self) {
        let client = self.client.lock().clone();
        if let Some(client) = client {
            // The next session starts either way.
            let _ = client.end().await;
        }
        self.cut();
    }
}
