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
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::guard::Guard;
use crate::keys::{Keys, random_token};
use crate::socket::{Conversations, Converse, Incoming, Outgoing};

/// What somebody who is one too many is told.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 503 Service Unavailable\r\n\
    content-type: text/plain\r\ncontent-length: 26\r\nconnection: close\r\n\r\n\
    Too many connections now.\n";

/// How long to wait when a connection cannot be accepted, as when there are too many open files.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// The page's port. Dropping it breaks all connections; [`shutdown`](Self::shutdown) ends them.
pub struct PageServer {
    links: LoginLinks,
    shutdown_time: Duration,
    closing: watch::Sender<bool>,
    listener: Listening,
}

/// Makes login links; for whoever prints them on demand.
#[derive(Clone)]
pub struct LoginLinks {
    port: u16,
    keys: Arc<Keys>,
}

/// The listening task, which ends with its owner.
struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl fmt::Debug for PageServer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("PageServer");
        debug.field("port", &self.port()).finish_non_exhaustive()
    }
}

impl fmt::Debug for LoginLinks {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("LoginLinks");
        debug.field("port", &self.port).finish_non_exhaustive()
    }
}

impl LoginLinks {
    /// A link that logs one browser in, once, within [`Timing::login_link`](crate::Timing::login_link).
    ///
    /// It is a secret: print it for the person, and never write it to a log. Fails if the system gives no random numbers.
    pub fn make(&self) -> io::Result<String> {
        let key = self.keys.new_link()?;
        Ok(format!("http://127.0.0.1:{}/login?key={}", self.port, key.reveal()))
    }
}

impl PageServer {
    /// Listens on 127.0.0.1. When this returns, the port answers.
    ///
    /// `converse` is called for each page that opens its WebSocket, with the page's messages and the way back to it; the
    /// conversation is over when either the page hangs up or the returned future ends.
    pub async fn bind<C, F>(config: Config, converse: C) -> io::Result<Self>
    where
        C: Fn(Incoming, Outgoing) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, config.port.unwrap_or(0))).await?;
        let port = listener.local_addr()?.port();
        let (closing, is_closing) = watch::channel(false);
        let (limits, timing) = (config.limits, config.timing);
        let session = config.session.clone().map_or_else(random_token, Ok)?;
        let keys = Arc::new(Keys::new(limits.login_links, timing.login_link, session));
        let converse: Arc<Converse> = Arc::new(move |incoming, outgoing| Box::pin(converse(incoming, outgoing)));
        let endpoint = Arc::new(Endpoint {
            config,
            guard: Guard::new(port),
            keys: keys.clone(),
            conversations: Conversations::new(converse),
            places: Arc::new(Semaphore::new(limits.pages)),
            closing: is_closing,
        });
        Ok(Self {
            links: LoginLinks { port, keys },
            shutdown_time: timing.shutdown,
            closing,
            listener: Listening(tokio::spawn(accept(listener, endpoint))),
        })
    }

    /// The page's port.
    pub fn port(&self) -> u16 {
        self.links.port
    }

    /// A new login link; see [`LoginLinks::make`].
    pub fn login_link(&self) -> io::Result<String> {
        self.links.make()
    }

    /// A handle that makes login links, and may outlive the server.
    pub fn login_links(&self) -> LoginLinks {
        self.links.clone()
    }

    /// Stops listening, tells every page that the companion ends, and waits a little for them to hang up.
    pub async fn shutdown(mut self) {
        // Nobody to tell means that the listener is gone already.
        let _ = self.closing.send(true);
        if tokio::time::timeout(self.shutdown_time, &mut self.listener.0)
            .await
            .is_err()
        {
            tracing::debug!("some pages did not disconnect in time");
        }
    }
}

/// Accepts connections until the port closes, then waits for those that are left.
async fn accept(listener: TcpListener, endpoint: Arc<Endpoint>) {
    let mut connections = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = connections.join_next() => continue,
            () = endpoint.closing() => break,
        };
        match accepted {
            Ok((stream, _)) if connections.len() >= endpoint.config.limits.connections => {
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
    endpoint.conversations.ended().await;
}

/// Serves one connection until either side ends it, or until it has become a WebSocket.
async fn serve(stream: TcpStream, endpoint: Arc<Endpoint>) {
    // Without this a small message may wait 40 ms for the acknowledgement of the one before.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "TCP_NODELAY could not be set");
    }
    let service = service_fn(|request| {
        let endpoint = endpoint.clone();
        async move { Ok::<_, Infallible>(endpoint.answer(request)) }
    });
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(endpoint.config.timing.header_read)
        .max_buf_size(endpoint.config.limits.header_bytes.max(8 * 1024))
        .serve_connection(TokioIo::new(stream), service)
        .with_upgrades();
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

#[cfg(test)]
mod tests {
    use super::*;

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
