//! The listener: accepts connections on the loopback interface, serves each in its own task, and closes in good order.

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};

use crate::agents::Agents;
use crate::callbacks;
use crate::companion::Companion;
use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::guard::Guard;
use crate::registry::Registry;
use alongside_core::{Decision, SessionId};

/// What somebody who is one too many is told.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: application/json\r\ncontent-length: 37\r\nconnection: close\r\n\r\n\
    {\"error\":\"Too many connections now.\"}";

/// How long to wait when a connection cannot be accepted, as when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The agents' port. Dropping it breaks all connections; [`shutdown`](Self::shutdown) ends them.
pub struct Server {
    port: u16,
    shutdown_time: Duration,
    registry: Arc<Registry>,
    closing: watch::Sender<bool>,
    listener: Task,
    /// Drops sessions whose agents have gone.
    _expiry: Task,
    /// Tells the companion what happened.
    _callbacks: Task,
}

/// The decisions that a session never got.
pub type Undelivered = (SessionId, Vec<Decision>);

/// A task that ends with its owner.
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Server")
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Listens on 127.0.0.1. When this returns, the port answers.
    pub async fn bind<C: Companion>(config: Config, companion: Arc<C>) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, config.port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        let (callbacks, queue) = callbacks::channel();
        let (closing, is_closing) = watch::channel(false);
        let registry = Arc::new(Registry::new(
            &config.initial_context,
            config.limits,
            config.timing,
            callbacks,
        ));
        let endpoint = Arc::new(Endpoint {
            companion: companion.clone(),
            registry: registry.clone(),
            guard: Guard::new(port, config.token),
            limits: config.limits,
            timing: config.timing,
            closing: is_closing,
        });
        let expiry = registry.clone();
        Ok(Self {
            port,
            shutdown_time: config.timing.shutdown,
            registry,
            closing,
            listener: Task(tokio::spawn(accept(listener, endpoint))),
            _expiry: Task(tokio::spawn(async move { expiry.expire().await })),
            _callbacks: Task(tokio::spawn(callbacks::deliver(companion, queue))),
        })
    }

    /// The port that agents come to.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The handle to speak to agents.
    pub fn agents(&self) -> Agents {
        Agents(self.registry.clone())
    }

    /// Stops listening, lets every stream write what is pending and end cleanly, and gives back what no agent took in time.
    ///
    /// Sessions are not ended: an agent whose stream ended cleanly comes back to the same port about a second later, and a
    /// companion that listens there again by then takes its session up.
    pub async fn shutdown(mut self) -> Vec<Undelivered> {
        self.registry.close();
        // Nobody to tell means that the listener is gone already.
        let _ = self.closing.send(true);
        if tokio::time::timeout(self.shutdown_time, &mut self.listener.0)
            .await
            .is_err()
        {
            tracing::debug!("some agents did not receive everything before shutdown");
            self.listener.0.abort();
            // Until the connections are really gone, they could still write what we are about to give back.
            let _ = (&mut self.listener.0).await;
        }
        // A companion that hangs must not hang us.
        let _ = tokio::time::timeout(self.shutdown_time, self.registry.settled()).await;
        self.registry.take_undelivered()
    }
}

/// Accepts connections until the port closes, then waits for those that are left.
async fn accept<C: Companion>(listener: TcpListener, endpoint: Arc<Endpoint<C>>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = endpoint.closing() => break,
        };
        match accepted {
            Ok((stream, _)) if connections.len() >= endpoint.limits.connections => {
                // It is new, so its buffer has room; if not, closing says enough.
                let _ = stream.try_write(TOO_MANY_CONNECTIONS);
            }
            Ok((stream, _)) => {
                connections.spawn(serve(stream, endpoint.clone()));
            }
            Err(error) => {
                tracing::warn!(%error, "cannot accept a connection");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Serves one connection until either side ends it.
async fn serve<C: Companion>(stream: TcpStream, endpoint: Arc<Endpoint<C>>) {
    send_at_once(&stream);
    let service = service_fn(|request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(endpoint.answer(request).await) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(endpoint.timing.header_read)
        .max_buf_size(endpoint.limits.header_bytes.max(8 * 1024))
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = endpoint.closing() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, "lost a connection");
    }
}

/// Without this a small reply may wait 40 ms for the client's acknowledgement of the one before.
fn send_at_once(stream: &TcpStream) {
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn accepted_connections_send_at_once() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (_client, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (stream, _) = accepted.unwrap();
        send_at_once(&stream);
        assert!(stream.nodelay().unwrap());
    }

    #[test]
    fn the_answer_to_one_too_many_announces_its_length() {
        let text = std::str::from_utf8(TOO_MANY_CONNECTIONS).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-length: {}\r\n", body.len())),
            "{}",
            body.len()
        );
    }
}
