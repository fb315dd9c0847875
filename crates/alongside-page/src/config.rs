//! Configuration of the page's port.

use std::time::Duration;

use alongside_core::Secret;

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// `None` lets the system choose a port.
    pub port: Option<u16>,
    /// The secret that every logged-in page knows; `None` generates one. With the port and the secret of a previous server,
    /// open pages reconnect without a login.
    pub session: Option<Secret>,
    pub limits: Limits,
    pub timing: Timing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Logged-in pages; one more is refused, with a message to close another.
    pub pages: usize,
    /// Connections that are not logged in, such as those that load the page's files; one more closes the oldest.
    pub unauthenticated: usize,
    /// Unused login links; one more invalidates the oldest.
    pub login_links: usize,
    /// Size of a request's head; at least 8 KiB.
    pub header_bytes: usize,
    /// Size of a message from a page.
    pub message_bytes: usize,
    /// Messages queued for a slow page; then the sender waits.
    pub queued_messages: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            pages: 32,
            // A browser loads the files of one page over up to six connections, and keeps them.
            unauthenticated: 64,
            login_links: 16,
            header_bytes: 16 * 1024,
            // A proposal may have 32 MiB, and JSON escapes make it longer.
            message_bytes: 96 * 1024 * 1024,
            queued_messages: 16,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a login link is valid.
    pub login_link: Duration,
    /// How long a connection may last without a login: long enough to load the page's files over a slow tunnel.
    pub login: Duration,
    /// How long a client may take to send a request's head, including the idle time before it.
    pub header_read: Duration,
    /// Interval of WebSocket pings.
    pub ping: Duration,
    /// How long a page may send nothing, not even a pong.
    pub idle: Duration,
    /// How long a page may take to receive one message, and how long a client may read nothing.
    pub write: Duration,
    /// How long [`PageServer::shutdown`](crate::PageServer::shutdown) waits for pages to disconnect.
    pub shutdown: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            login_link: Duration::from_mins(10),
            login: Duration::from_secs(30),
            header_read: Duration::from_mins(1),
            ping: Duration::from_secs(20),
            idle: Duration::from_secs(65),
            write: Duration::from_secs(30),
            shutdown: Duration::from_secs(2),
        }
    }
}
