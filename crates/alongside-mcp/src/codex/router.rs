//! The router: forwards requests to the client that can handle them.
//!
//! Requests about our own workspace are answered at once. For others, every registered client is asked whether it can handle them,
//! and the first that says so gets the request. All methods are forwarded, and broadcasts are passed on, because the Codex extension
//! and the desktop app use the same socket for more than the context.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use alongside_wire::length_prefixed::read_frame;
use alongside_wire::outgoing::{Framing, OutgoingSender, outgoing};
use alongside_wire::pending::{ConnectionClosed, PendingCalls};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::AsyncRead;
use tokio::net::UnixStream;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{interval, sleep, timeout};

use super::answer::Answer;
use super::message::{self, Failure, INITIALIZE, kind};
use super::socket::OwnedSocket;
use super::{MAX_FRAME_BYTES, PEER_TIMEOUT, Provider};

const MAX_CONNECTIONS: usize = 64;
/// Fewer than connections, so that there is always room for Codex.
const MAX_CLIENTS: usize = 32;
/// Requests of one connection that have no response yet.
const MAX_REQUESTS: usize = 8;
/// The largest message before a client has registered: a request.
const MAX_REQUEST_BYTES: usize = 64 * 1024;
/// What a connection has not read. A message may be longer if nothing else is queued.
const MAX_QUEUED_BYTES: usize = 8 * 1024 * 1024;
/// How long a client may take to say whether it can handle a request.
const DISCOVERY_TIMEOUT: Duration = Duration::from_secs(1);
/// How long a forwarded request may take. Codex gives up after 5 s, and then does not see why.
const REQUEST_TIMEOUT: Duration = Duration::from_millis(4500);
/// How often to look whether the socket is still ours.
const CHECK_INTERVAL: Duration = Duration::from_secs(10);
/// When no connection can be accepted, for example for lack of file descriptors.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Routes until the socket is no longer ours.
pub(super) async fn serve(provider: &Provider, socket: &OwnedSocket) {
    tracing::debug!(path = %socket.path().display(), "listening for Codex");
    let router = Arc::new(Router {
        provider: provider.clone(),
        clients: Mutex::default(),
    });
    let mut connections = JoinSet::new();
    let mut check = interval(CHECK_INTERVAL);
    loop {
        while connections.try_join_next().is_some() {}
        tokio::select! {
            accepted = socket.accept() => match accepted {
                Ok(Some(stream)) if connections.len() < MAX_CONNECTIONS => {
                    connections.spawn(router.clone().serve_connection(stream));
                }
                // Closed at once.
                Ok(_) => {}
                Err(error) => {
                    tracing::debug!(%error, "cannot accept a connection of Codex");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
            _ = check.tick() => if !socket.is_in_place().await {
                tracing::debug!("another program removed Codex's socket");
                return;
            },
        }
    }
}

struct Router {
    provider: Provider,
    clients: Mutex<Clients>,
}

#[derive(Default)]
struct Clients {
    last: ClientNumber,
    registered: BTreeMap<ClientNumber, Peer>,
}

type ClientNumber = u64;

/// The other end of a connection.
#[derive(Clone)]
struct Peer {
    messages: OutgoingSender,
    pending: PendingCalls<Value>,
}

impl Peer {
    /// A peer that does not read is disconnected by its writer.
    fn send(&self, message: &Value) {
        let _ = self.messages.send(message.to_string());
    }

    async fn call(&self, message: impl FnOnce(&str) -> Value) -> Result<Value, ConnectionClosed> {
        let call = self.pending.start()?;
        self.send(&message(&call.id().to_string()));
        call.await
    }

    fn resolve(&self, response: Value) {
        if let Ok(id) = message::text(&response, "requestId").parse() {
            self.pending.resolve(id, response);
        }
    }
}

impl Router {
    async fn serve_connection(self: Arc<Self>, stream: UnixStream) {
        let (mut input, output) = stream.into_split();
        let (messages, queue) = outgoing(MAX_QUEUED_BYTES);
        let mut connection = Connection {
            router: self,
            peer: Peer {
                messages,
                pending: PendingCalls::new(),
            },
            number: None,
            routes: JoinSet::new(),
            permits: Arc::new(Semaphore::new(MAX_REQUESTS)),
        };
        let mut writing = std::pin::pin!(queue.write_to(output, Framing::LengthPrefixed));
        let ended = tokio::select! {
            ended = connection.read(&mut input) => ended,
            _ = &mut writing => return,
        };
        if let Err(error) = ended {
            tracing::debug!(%error, "closing a connection on Codex's socket");
        }
        // The queue ends with its last sender.
        drop(connection);
        let _ = timeout(PEER_TIMEOUT, writing).await;
    }

    /// The response to a request of `source`.
    async fn route(&self, source: Option<ClientNumber>, request: &Value) -> Value {
        let unhandled = match self.provider.answer(request) {
            Answer::Context(result) => return message::success(request, "alongside", &result),
            Answer::WrongVersion => Failure::VersionMismatch,
            Answer::NotOurs => Failure::NoClientFound,
        };
        let forwarding = async {
            let client = self.discover(source, request).await.ok_or(unhandled)?;
            let forward = |id: &str| {
                let mut forwarded = request.clone();
                forwarded["requestId"] = id.into();
                forwarded
            };
            client.call(forward).await.map_err(|_| Failure::ClientDisconnected)
        };
        match timeout(REQUEST_TIMEOUT, forwarding).await {
            Ok(Ok(mut response)) => {
                response["requestId"] = request["requestId"].clone();
                response
            }
            Ok(Err(failure)) => message::failure(request, failure),
            Err(_) => message::failure(request, Failure::RequestTimeout),
        }
    }

    /// The first client that can handle a request. All are asked at once, so that one that does not answer delays no other.
    async fn discover(&self, source: Option<ClientNumber>, request: &Value) -> Option<Peer> {
        let mut asking = JoinSet::new();
        for client in self.others(source) {
            let request = request.clone();
            asking.spawn(async move {
                let asked = client.call(|id| message::discovery_request(id, &request));
                let response = timeout(DISCOVERY_TIMEOUT, asked).await.ok()?.ok()?;
                message::can_handle(&response).then_some(client)
            });
        }
        while let Some(asked) = asking.join_next().await {
            if let Ok(Some(client)) = asked {
                return Some(client);
            }
        }
        None
    }

    fn others(&self, source: Option<ClientNumber>) -> Vec<Peer> {
        let clients = self.clients.lock();
        let others = clients.registered.iter().filter(|(number, _)| Some(**number) != source);
        others.map(|(_, client)| client.clone()).collect()
    }
}

struct Connection {
    router: Arc<Router>,
    peer: Peer,
    /// Once it has registered.
    number: Option<ClientNumber>,
    /// Requests being forwarded. The connection is read all the same: a client may have to answer others first.
    routes: JoinSet<()>,
    permits: Arc<Semaphore>,
}

impl Connection {
    async fn read(&mut self, input: &mut (impl AsyncRead + Unpin)) -> io::Result<()> {
        loop {
            let frame = if self.number.is_some() {
                read_frame(input, MAX_FRAME_BYTES).await?
            } else {
                timeout(PEER_TIMEOUT, read_frame(input, MAX_REQUEST_BYTES)).await??
            };
            let Some(frame) = frame else { return Ok(()) };
            let message = message::parse(&frame).ok_or(io::ErrorKind::InvalidData)?;
            self.handle(message);
            while self.routes.try_join_next().is_some() {}
        }
    }

    fn handle(&mut self, message: Value) {
        match message::text(&message, "type") {
            kind::REQUEST if message["method"] == INITIALIZE => {
                let response = self.register(&message);
                self.peer.send(&response);
            }
            kind::REQUEST => self.route(message),
            kind::RESPONSE | kind::DISCOVERY_RESPONSE => self.peer.resolve(message),
            kind::BROADCAST if self.number.is_some() => {
                for other in self.router.others(self.number) {
                    other.send(&message);
                }
            }
            kind::BROADCAST => {}
            _ => self.peer.send(&message::failure(&message, Failure::NoHandler)),
        }
    }

    fn register(&mut self, request: &Value) -> Value {
        if request["version"] != message::VERSION {
            return message::failure(request, Failure::VersionMismatch);
        }
        let mut clients = self.router.clients.lock();
        if self.number.is_some() || clients.registered.len() >= MAX_CLIENTS {
            return message::failure(request, Failure::NoHandler);
        }
        clients.last += 1;
        let number = clients.last;
        clients.registered.insert(number, self.peer.clone());
        self.number = Some(number);
        let client_id = format!("client-{number}");
        message::success(request, &client_id, &json!({ "clientId": client_id }))
    }

    fn route(&mut self, request: Value) {
        let Ok(permit) = self.permits.clone().try_acquire_owned() else {
            return self.peer.send(&message::failure(&request, Failure::RequestTimeout));
        };
        let (router, peer, source) = (self.router.clone(), self.peer.clone(), self.number);
        self.routes.spawn(async move {
            let response = router.route(source, &request).await;
            peer.send(&response);
            drop(permit);
        });
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.router.clients.lock().registered.remove(&number);
        }
        self.peer.pending.close();
    }
}
