//! What the binary may choose about the port: where it listens, who may come, how much and how long.

use std::sync::Arc;
use std::time::Duration;

use alongside_core::Secret;

/// How the port is set up.
#[derive(Clone, Debug)]
pub struct Config {
    /// The port to listen on; `None` lets the system choose one.
    pub port: Option<u16>,
    /// The secret that every request must carry.
    pub token: Secret,
    /// How much of everything.
    pub limits: Limits,
    /// How long for everything.
    pub timing: Timing,
    /// The `params` of the `ide/contextUpdate` that is sent until the first [`Agents::publish_context`](crate::Agents::publish_context).
    pub initial_context: Arc<str>,
}

impl Config {
    /// A port of the system's choice, with the usual limits and an empty context.
    pub fn new(token: Secret) -> Self {
        Self {
            port: None,
            token,
            limits: Limits::default(),
            timing: Timing::default(),
            initial_context: Arc::from("{}"),
        }
    }
}

/// How much an agent may send, and how much is kept for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at a time. When full, the one without a stream that was idle longest makes room.
    pub sessions: usize,
    /// Connections at a time; one more is told so and closed.
    pub connections: usize,
    /// Bytes of a request's head. Not below 8 KiB.
    pub header_bytes: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Messages in one JSON-RPC batch.
    pub batch: usize,
    /// Decisions that wait for a session's stream; one more ends the session.
    pub pending_decisions: usize,
    /// Bytes of decisions that wait. A single decision is always taken, however long.
    pub pending_bytes: usize,
    /// Decisions that were written and are kept in case the agent did not get them; beyond it the oldest is forgotten.
    pub unacknowledged_decisions: usize,
    /// Bytes of such decisions. The latest is always kept.
    pub unacknowledged_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        const MEBIBYTE: usize = 1024 * 1024;
        Self {
            sessions: 64,
            connections: 256,
            header_bytes: 16 * 1024,
            body_bytes: 32 * MEBIBYTE,
            batch: 100,
            pending_decisions: 256,
            pending_bytes: 64 * MEBIBYTE,
            unacknowledged_decisions: 64,
            unacknowledged_bytes: 8 * MEBIBYTE,
        }
    }
}

/// How long things may take, and how often they happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// When the context is sent a second time after a stream opened. Command lines throw the first one away if it comes
    /// before they have read the list of tools.
    pub context_repeat: Duration,
    /// How often a quiet stream carries a comment. Command lines give up after 300 s without a byte.
    pub keep_alive: Duration,
    /// How long a session outlives its stream, counted from the end of the stream or from its last request since.
    pub stream_grace: Duration,
    /// How long a session that never opened a stream lives without requests.
    pub idle: Duration,
    /// How long a connection may take to send a request's head, waiting between two requests included.
    pub header_read: Duration,
    /// How long a request's body may pause.
    pub body_pause: Duration,
    /// How long [`Server::drain`](crate::Server::drain) waits for agents between two streams. CLIs come back after 1 s.
    pub reconnect: Duration,
    /// How long [`Server::shutdown`](crate::Server::shutdown) waits for agents to take what is pending.
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
            reconnect: Duration::from_secs(2),
            shutdown: Duration::from_secs(2),
        }
    }
}
