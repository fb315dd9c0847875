//! Configuration of the agents' port.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::Secret;
use alongside_core::context::IdeContext;
use alongside_loopback::ConnectionLimits;

#[derive(Clone, Debug)]
pub struct Config {
    /// `None` lets the system choose a port.
    pub port: Option<u16>,
    /// A socket to listen on as well, in a private directory. Unix only.
    pub socket: Option<PathBuf>,
    /// Every request must carry this token.
    pub token: Secret,
    pub limits: Limits,
    pub timing: Timing,
    /// The context until the first [`AgentHub::publish_context`](crate::AgentHub::publish_context); `None` sends `{}`.
    pub initial_context: Option<IdeContext>,
    /// Names the journal that deliveries are from: an event id with another name confirms nothing. `None` takes a random one.
    pub epoch: Option<Arc<str>>,
}

impl Config {
    pub fn new(token: Secret) -> Self {
        Self {
            port: None,
            socket: None,
            token,
            limits: Limits::default(),
            timing: Timing::default(),
            initial_context: None,
            epoch: None,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions. At the limit, the session that was idle longest is dropped: one that never had a stream if there is one, else one
    /// between two streams.
    pub sessions: usize,
    /// Connections of clients with the token; further ones get a 503 response.
    pub connections: usize,
    /// Size of a request's head; at least 8 KiB.
    pub header_bytes: usize,
    /// Size of a request's body.
    pub body_bytes: usize,
    /// Size of all bodies that are being read or processed. Further ones wait for [`Timing::body_pause`], then get a 503 response.
    /// Short bodies do not count.
    pub all_bodies_bytes: usize,
    /// Messages in one JSON-RPC batch.
    pub batch: usize,
    /// Pending decisions of a session; one more ends the session.
    pub pending_decisions: usize,
    /// Size of pending decisions. A single decision may be longer.
    pub pending_bytes: usize,
    /// Written decisions, kept in case the agent did not receive them; the oldest are dropped.
    pub unacknowledged_decisions: usize,
    /// Size of such decisions. The latest is always kept.
    pub unacknowledged_bytes: usize,
    /// Session events that the companion has not received yet; at the limit, requests wait.
    pub queued_events: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MEBIBYTE: usize = 1024 * 1024;
        Self {
            sessions: 256,
            connections: 640,
            header_bytes: 16 * 1024,
            body_bytes: 32 * MEBIBYTE,
            all_bodies_bytes: 128 * MEBIBYTE,
            batch: 100,
            pending_decisions: 256,
            pending_bytes: 64 * MEBIBYTE,
            unacknowledged_decisions: 64,
            unacknowledged_bytes: 8 * MEBIBYTE,
            queued_events: 1024,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Delay until the context is sent again on a new stream. Agents discard a context that arrives before they have
    /// listed the tools.
    pub context_repeat: Duration,
    /// Interval of comments on an idle stream. Agents disconnect after 300 s without a byte.
    pub keep_alive: Duration,
    /// How long a session outlives its stream, from the end of the stream or the last request after it.
    pub stream_grace: Duration,
    /// How long a session without requests lives if it never opened a stream.
    pub idle: Duration,
    /// How long a client may take to send a request's head, including the idle time before it.
    pub header_read: Duration,
    /// How long a request's body may stall.
    pub body_pause: Duration,
    /// How long a client may read nothing while there is something to write to it.
    pub write: Duration,
    /// How long [`Server::drain`](crate::Server::drain) waits for agents between two streams. They reconnect after 1 s.
    pub reconnect: Duration,
    /// How long [`Server::shutdown`](crate::Server::shutdown) waits for agents to receive pending events.
    pub shutdown: Duration,
}

impl Default for Timing {
    fn default() -> Self {
        Self {
            context_repeat: Duration::from_millis(700),
            keep_alive: Duration::from_secs(15),
            stream_grace: Duration::from_secs(30),
            idle: Duration::from_mins(10),
            header_read: Duration::from_mins(1),
            body_pause: Duration::from_secs(30),
            write: ConnectionLimits::WRITE_TIMEOUT,
            reconnect: Duration::from_secs(2),
            shutdown: Duration::from_secs(2),
        }
    }
}
