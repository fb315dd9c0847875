//! The agents' port: starts the listener, the session expiry and the callbacks, and shuts them down in order.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::SessionKey;
use alongside_core::dialect::Transport;
use alongside_loopback::{
    ConnectionLimits, Guard, HttpLimits, Listener, OriginPolicy, Policy, Seat, Stream, serve_http,
};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use crate::bodies::Bodies;
use crate::callbacks;
use crate::companion::{Companion, random_hexadecimal};
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::hub::AgentHub;
use crate::registry::Registry;
use crate::socket;

/// `host.docker.internal` is this machine as seen from a container.
const HOSTS: &[&str] = &["127.0.0.1", "localhost", "[::1]", "host.docker.internal"];

/// The agents' port. Dropping it drops all connections; [`shutdown`](Self::shutdown) closes them cleanly.
pub struct Server {
    listener: alongside_loopback::Server,
    socket: Option<SocketServer>,
    shutdown_timeout: Duration,
    reconnect_timeout: Duration,
    registry: Arc<Registry>,
    /// Session expiry and callbacks; aborted on drop.
    _tasks: JoinSet<()>,
}

/// The socket or named pipe, if there is one.
struct SocketServer {
    listener: alongside_loopback::Server,
    file: SocketFile,
}

/// Removed when dropped. A named pipe is not a file, and ends with its last instance.
struct SocketFile(std::path::PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        if cfg!(unix) {
            let _ = std::fs::remove_file(&self.0);
        }
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Server");
        debug.field("port", &self.port()).finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on 127.0.0.1. Agents can connect as soon as this returns.
    pub async fn bind<C: Companion>(config: Config, companion: Arc<C>) -> io::Result<Self> {
        let listener = Listener::bind(config.port).await?;
        let policy = Policy {
            hosts: HOSTS,
            origin: OriginPolicy::Refuse,
            token: Some(config.token),
        };
        let guard = Guard::new(policy.clone(), listener.port());
        let (limits, timing) = (config.limits, config.timing);
        let (callbacks, queue) = callbacks::channel(limits.queued_events);
        let epoch = match config.epoch {
            Some(epoch) => epoch,
            None => random_hexadecimal::<4>().map_err(io::Error::other)?.into(),
        };
        let registry = Arc::new(Registry::new(
            config.initial_context.as_ref(),
            epoch,
            limits,
            timing,
            callbacks,
        ));
        let mut tasks = JoinSet::new();
        tasks.spawn({
            let registry = registry.clone();
            async move { registry.expire().await }
        });
        tasks.spawn(queue.deliver(companion.clone()));
        let connections = ConnectionLimits {
            write_timeout: timing.write,
            ..ConnectionLimits::with_authenticated(limits.connections)
        };
        let start = |listener, guard, transport| {
            let (companion, registry) = (companion.clone(), registry.clone());
            alongside_loopback::Server::start(listener, connections, |closing| {
                let endpoint = Arc::new(Endpoint {
                    companion,
                    registry,
                    transport,
                    guard,
                    bodies: Bodies::new(&limits, &timing),
                    limits,
                    closing,
                    timing,
                });
                move |stream, seat| serve(stream, seat, endpoint.clone())
            })
        };
        let socket = match config.socket {
            Some(path) => {
                let policy = Policy {
                    hosts: &["localhost"],
                    ..policy
                };
                let guard = Guard::for_socket(policy);
                let file = SocketFile(path);
                match Listener::bind_socket(&file.0) {
                    Ok(listener) => Some(SocketServer {
                        listener: start(listener, guard, Transport::Socket),
                        file,
                    }),
                    Err(error) => {
                        tracing::warn!(%error, path = %file.0.display(), "cannot listen on a socket; Copilot CLI cannot connect");
                        None
                    }
                }
            }
            None => None,
        };
        let listener = start(listener, guard, Transport::Http);
        Ok(Self {
            listener,
            socket,
            shutdown_timeout: timing.shutdown,
            reconnect_timeout: timing.reconnect,
            registry,
            _tasks: tasks,
        })
    }

    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// The socket that agents can connect to as well.
    pub fn socket(&self) -> Option<&std::path::Path> {
        self.socket.as_ref().map(|socket| socket.file.0.as_path())
    }

    /// The handle for sending to agents.
    pub fn agents(&self) -> AgentHub {
        AgentHub(self.registry.clone())
    }

    /// Gives agents between two streams time to come back for their decisions, and the same for the sessions in `expected`, which
    /// a previous companion had. Call it after the last decision and before [`shutdown`](Self::shutdown).
    pub async fn drain(&self, expected: &[SessionKey]) {
        let drained = self.registry.drained(expected);
        if tokio::time::timeout(self.reconnect_timeout, drained).await.is_err() {
            tracing::debug!("some agents did not reconnect before shutdown");
        }
    }

    /// Stops listening, and lets every stream write its queued events and end cleanly.
    ///
    /// Sessions are not ended: an agent whose stream ended cleanly reconnects to the same port about a second later, and a
    /// companion that listens there by then resumes its session.
    pub async fn shutdown(self) {
        self.registry.close();
        if let Some(socket) = self.socket {
            socket.listener.shutdown(self.shutdown_timeout).await;
        }
        if !self.listener.shutdown(self.shutdown_timeout).await {
            tracing::debug!("some agents did not receive everything before shutdown");
        }
        // A companion that hangs must not keep the process from exiting.
        let _ = tokio::time::timeout(self.shutdown_timeout, self.registry.caught_up()).await;
    }
}

/// Serves HTTP until the connection ends or becomes an event stream or a WebSocket, then that.
async fn serve<C: Companion>(stream: Stream, seat: Seat, endpoint: Arc<Endpoint<C>>) {
    let limits = HttpLimits {
        header_bytes: endpoint.limits.header_bytes,
        header_timeout: endpoint.timing.header_read,
    };
    let upgrade = Mutex::new(None);
    // All are boxed because they are large, and most connections are event streams, which need none of them.
    let http = serve_http(stream, limits, &endpoint.closing, |request| {
        Box::pin(endpoint.respond(&seat, request, &upgrade))
    });
    if let Some((stream, events)) = Box::pin(http).await {
        if let Err(error) = events.send(stream).await {
            tracing::debug!(%error, "lost an event stream");
        }
        return;
    }
    if let Some(upgrade) = upgrade.into_inner() {
        Box::pin(socket::run(upgrade, &endpoint)).await;
    }
}
