//! The page's port: serves each connection, and shuts down cleanly.

use std::fmt;
use std::future::ready;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use alongside_loopback::{Guard, HttpLimits, Listener, OriginPolicy, Policy, random_secret, serve_http};
use parking_lot::Mutex;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::keys::Keys;
use crate::socket::{Converse, Incoming, Outgoing, run};

/// The page's port. Dropping it drops all connections; [`shutdown`](Self::shutdown) closes them cleanly.
pub struct PageServer {
    listener: alongside_loopback::Server,
    links: LoginLinks,
    shutdown_timeout: Duration,
}

/// Creates login links.
#[derive(Clone)]
pub struct LoginLinks {
    port: u16,
    keys: Arc<Keys>,
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
    /// A link that logs in one browser, once, within [`Timing::login_link`](crate::Timing::login_link).
    ///
    /// It is a secret: print it for the user, and never log it. Fails if the system has no random bytes.
    pub fn create(&self) -> io::Result<String> {
        let key = self.keys.new_link()?;
        Ok(format!("http://127.0.0.1:{}/login?key={}", self.port, key.reveal()))
    }
}

impl PageServer {
    /// Listens on 127.0.0.1. Browsers can connect as soon as this returns.
    ///
    /// `converse` is called for each page that opens its WebSocket, with its messages and a sink for messages to it. The
    /// conversation ends when the page disconnects or the returned future completes.
    pub async fn bind<C, F>(config: Config, converse: C) -> io::Result<Self>
    where
        C: Fn(Incoming, Outgoing) -> F + Send + Sync + 'static,
        F: Future<Output = ()> + Send + 'static,
    {
        let listener = Listener::bind(config.port).await?;
        let port = listener.port();
        let policy = Policy {
            hosts: &["127.0.0.1", "localhost"],
            origin: OriginPolicy::SameOrigin,
            // Browsers authenticate with a cookie.
            token: None,
        };
        let (limits, timing) = (config.limits, config.timing);
        let session = config.session.clone().map_or_else(random_secret, Ok)?;
        let keys = Arc::new(Keys::new(limits.login_links, timing.login_link, port, session));
        let links = LoginLinks {
            port,
            keys: keys.clone(),
        };
        let converse: Arc<Converse> = Arc::new(move |incoming, outgoing| Box::pin(converse(incoming, outgoing)));
        let listener = alongside_loopback::Server::start(listener, limits.connections, |closing| {
            let endpoint = Arc::new(Endpoint {
                config,
                guard: Guard::new(policy, port),
                keys,
                page_slots: Arc::new(Semaphore::new(limits.pages)),
                closing,
            });
            move |stream| serve(stream, endpoint.clone(), converse.clone())
        });
        Ok(Self {
            listener,
            links,
            shutdown_timeout: timing.shutdown,
        })
    }

    pub fn port(&self) -> u16 {
        self.listener.port()
    }

    /// May outlive the server.
    pub fn login_links(&self) -> LoginLinks {
        self.links.clone()
    }

    /// Stops listening, closes every WebSocket and waits for pages to disconnect.
    pub async fn shutdown(self) {
        if !self.listener.shutdown(self.shutdown_timeout).await {
            tracing::debug!("some pages did not disconnect in time");
        }
    }
}

/// Serves HTTP until the connection ends or becomes a WebSocket, then the WebSocket.
async fn serve(stream: TcpStream, endpoint: Arc<Endpoint>, converse: Arc<Converse>) {
    let limits = HttpLimits {
        header_bytes: endpoint.config.limits.header_bytes,
        header_timeout: endpoint.config.timing.header_read,
    };
    let upgrade = Mutex::new(None);
    serve_http(stream, limits, &endpoint.closing, |request| {
        ready(endpoint.respond(request, &mut upgrade.lock()))
    })
    .await;
    if let Some(upgrade) = upgrade.into_inner() {
        run(upgrade, &*converse, &endpoint.config, &endpoint.closing).await;
    }
}
