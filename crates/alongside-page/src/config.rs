//! What the binary may choose about the page's port: where it listens, how much and how long.

use std::time::Duration;

use alongside_core::Secret;

/// How the page is served.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// The port to listen on; `None` lets the system choose one.
    pub port: Option<u16>,
    /// The secret that every browser gets once it is logged in; `None` makes a new one. With the secret and the port of a
    /// server that has ended, open pages go on as if nothing had happened.
    pub session: Option<Secret>,
    /// How much of everything.
    pub limits: Limits,
    /// How long for everything.
    pub timing: Timing,
}

/// How much is kept and taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections at a time, those of pages included; one more is told so and closed.
    pub connections: usize,
    /// Pages that speak at a time; one more is refused.
    pub pages: usize,
    /// Login links that wait to be used; one more makes the oldest useless.
    pub login_links: usize,
    /// Bytes of a request's head. Not below 8 KiB.
    pub header_bytes: usize,
    /// Bytes of one message of a page.
    pub message_bytes: usize,
    /// Messages that wait for a slow page before whoever sends them has to wait, too.
    pub waiting_messages: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 128,
            pages: 32,
            login_links: 16,
            header_bytes: 16 * 1024,
            // A proposal may have 32 MiB and grows when it is written as JSON.
            message_bytes: 96 * 1024 * 1024,
            waiting_messages: 16,
        }
    }
}

/// How long things may take, and how often they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a login link waits to be used.
    pub login_link: Duration,
    /// How long a connection may take to send a request's head, waiting between two requests included.
    pub header_read: Duration,
    /// How often a page is asked whether it is still there.
    pub ping: Duration,
    /// How long a page may say nothing at all, not even that it is there.
    pub silence: Duration,
    /// How long a page may take to read one message.
    pub write: Duration,
    /// How long [`PageServer::shutdown`](crate::PageServer::shutdown) waits for pages to hang up.
    pub shutdown: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            login_link: Duration::from_mins(10),
            header_read: Duration::from_mins(1),
            ping: Duration::from_secs(20),
            silence: Duration::from_secs(65),
            write: Duration::from_secs(30),
            shutdown: Duration::from_secs(2),
        }
    }
}
