//! The page's port: serves each connection, and shuts down cleanly.

use std::fmt;
use std::future::ready;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::Secret;
use alongside_loopback::{
    Answer, ConnectionLimits, Guard, HttpLimits, Listener, OriginPolicy, Policy, Seat, Stream, random_secret,
    serve_http,
};
use parking_lot::Mutex;

use crate::config::Config;
use crate::endpoint::Endpoint;
use crate::link_file;
use crate::login::Logins;
use crate::socket::{Converse, Incoming, Outgoing, run};

/// The page's port. Dropping it drops all connections; [`shutdown`](Self::shutdown) closes them cleanly.
pub struct PageServer {
    listener: alongside_loopback::Server,
    links: LoginLinks,
    shutdown_timeout: Duration,
    _expiry: DropLinks,
}

/// Links are useless without the server, and so are their files.
struct DropLinks(Arc<Logins>);

impl Drop for DropLinks {
    fn drop(&mut self) {
        self.0.drop_all();
    }
}

/// What a page shows first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum View {
    #[default]
    Reviews,
    Chat,
}

/// Creates login links.
#[derive(Clone)]
pub struct LoginLinks {
    port: u16,
    logins: Arc<Logins>,
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
    /// A link that logs in one page, once, within [`Timing::login_link`](crate::Timing::login_link).
    ///
    /// It is a secret: print it for the user, and never log it or pass it to another program as an argument. Fails if the
    /// system has no random bytes.
    pub fn create(&self, view: View) -> io::Result<String> {
        Ok(self.url(&self.logins.new_link()?, view))
    }

    /// A file that redirects to such a link and that only this user can read; a browser may be started with its path.
    ///
    /// `directory` must be one that only this user can enter. The file is removed when the link is used or expires.
    pub async fn create_file(&self, directory: PathBuf, view: View) -> io::Result<PathBuf> {
        let (key, lifetime) = (self.logins.new_link()?, self.logins.link_lifetime());
        let url = self.url(&key, view);
        let write = move || {
            link_file::sweep(&directory, lifetime);
            link_file::write(&directory, &url)
        };
        let file = tokio::task::spawn_blocking(write).await.map_err(io::Error::other)??;
        let path = file.to_path_buf();
        self.logins.attach(&key, file);
        let logins = Arc::downgrade(&self.logins);
        tokio::spawn(async move {
            tokio::time::sleep(lifetime).await;
            if let Some(logins) = logins.upgrade() {
                logins.drop_expired();
            }
        });
        Ok(path)
    }

    /// The key is in the fragment, which browsers do not send.
    fn url(&self, key: &Secret, view: View) -> String {
        let view = match view {
            View::Reviews => "",
            View::Chat => "&view=chat",
        };
        format!("http://127.0.0.1:{}/#key={}{view}", self.port, key.reveal())
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
            // Pages authenticate on their WebSocket.
            token: None,
        };
        let (limits, timing) = (config.limits, config.timing);
        let session = config.session.clone().map_or_else(random_secret, Ok)?;
        let logins = Arc::new(Logins::new(limits.login_links, timing.login_link, session));
        let links = LoginLinks {
            port,
            logins: logins.clone(),
        };
        let expiry = DropLinks(logins.clone());
        let connections = ConnectionLimits {
            authenticated: limits.pages,
            unauthenticated: limits.unauthenticated,
            authentication_timeout: timing.login,
            write_timeout: timing.write,
        };
        let converse: Arc<Converse> = Arc::new(move |incoming, outgoing| Box::pin(converse(incoming, outgoing)));
        let listener = alongside_loopback::Server::start(listener, connections, |closing| {
            let endpoint = Arc::new(Endpoint {
                config,
                guard: Guard::new(policy, port),
                logins,
                closing,
            });
            move |stream, seat| serve(stream, seat, endpoint.clone(), converse.clone())
        });
        Ok(Self {
            listener,
            links,
            shutdown_timeout: timing.shutdown,
            _expiry: expiry,
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
async fn serve(stream: Stream, seat: Seat, endpoint: Arc<Endpoint>, converse: Arc<Converse>) {
    let limits = HttpLimits {
        header_bytes: endpoint.config.limits.header_bytes,
        header_timeout: endpoint.config.timing.header_read,
    };
    let upgrade = Mutex::new(None);
    serve_http(stream, limits, &endpoint.closing, |request| {
        ready(Answer::<_, ()>::Response(
            endpoint.respond(request, &mut upgrade.lock()),
        ))
    })
    .await;
    if let Some(upgrade) = upgrade.into_inner() {
        run(upgrade, &seat, &*converse, &endpoint).await;
    }
}
