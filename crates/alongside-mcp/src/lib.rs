//! The agents' port: a small MCP server for agents that look for a companion.
//!
//! Gemini CLI and Qwen Code connect to `http://127.0.0.1:<port>/mcp`. A `POST` carries one JSON-RPC message and gets a plain JSON
//! response. A `GET` opens the event stream, on which an agent receives the context and the decisions about its changes. A
//! `DELETE` ends the session. Claude Code and opencode open a WebSocket at `/`, which carries all of that. Which tools and
//! notifications a client gets is in the tables of `alongside_core::dialect`. The companion implements [`Companion`] to receive
//! session events and to run the tools, and sends to agents through [`AgentHub`].
//!
//! ```no_run
//! use std::path::Path;
//! use std::sync::Arc;
//! use alongside_core::{DeliveryId, Secret, SessionEnd, SessionKey, context::IdeContext, diagnostics::FileDiagnostics, dialect::ClientInfo};
//! use alongside_mcp::{Companion, Config, DiffOutcome, Server};
//!
//! struct Quiet;
//!
//! impl Companion for Quiet {
//!     async fn session_started(&self, _: &SessionKey, _: Option<&ClientInfo>) {}
//!     fn known_client(&self, _: &SessionKey) -> Option<ClientInfo> { None }
//!     fn stream_opened(&self, _: &SessionKey) {}
//!     fn stream_closed(&self, _: &SessionKey) {}
//!     fn settled(&self, _: &SessionKey, _: &[DeliveryId]) {}
//!     fn session_ended(&self, _: &SessionKey, _: &SessionEnd) {}
//!     async fn open_diff(&self, _: &SessionKey, _: Arc<str>, _: Arc<str>) -> Result<DiffOutcome, String> {
//!         Err("No reviewer is available.".to_owned())
//!     }
//!     fn diagnostics(&self, _: Option<&Path>) -> Vec<FileDiagnostics> { Vec::new() }
//!     async fn close_diff(&self, _: &SessionKey, _: &str) -> Result<Option<Arc<str>>, String> { Ok(None) }
//! }
//!
//! # async fn run() -> std::io::Result<()> {
//! let server = Server::bind(Config::new(Secret::from_bytes([7; 32])), Arc::new(Quiet)).await?;
//! server.agents().publish_context(&IdeContext::default());
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Which file does what
//!
//! `server` starts and stops the port, `endpoint` turns HTTP into messages and `socket` a WebSocket, `protocol` responds to them,
//! `tools` has the tools, `tabs` the calls that wait for a decision, `selection` the notifications about the selection. `session` and `registry` hold the sessions, `outbox` the events that a session has not received yet,
//! `stream` is the body of a `GET`, and `callbacks` reports to the companion. [`client`] is the other side of the wire, for
//! `doctor`, `demo`, the stdio relay and the tests. [`codex`] serves the context to Codex CLI, which asks for it on a socket of its
//! own. [`tool_server`] is an ordinary MCP server, for what
//! models ask for. Listening and the guard are in `alongside-loopback`.
//!
//! # Invariants
//!
//! *A producer never waits.* [`AgentHub::publish_context`] and [`AgentHub::notify`] take one short lock and never call back.
//! *No lock of this crate is held while a [`Companion`] is called.* *Memory is bounded for each session*: one slot for the
//! context, in which the latest wins, and a queue of decisions with a limit. *A context is serialized once*, however many
//! sessions receive it.

mod bodies;
mod callbacks;
pub mod client;
pub mod codex;
mod companion;
mod config;
mod endpoint;
mod file_url;
mod hub;
mod outbox;
mod protocol;
mod registry;
mod selection;
mod server;
mod session;
mod socket;
mod stream;
mod tabs;
pub mod tool_server;
mod tools;

pub use companion::{Companion, DiffOutcome, Outgoing};
pub use config::{Config, Limits, Timing};
pub use hub::{AgentHub, Mention, MentionError};
pub use protocol::PROTOCOL_VERSIONS;
pub use server::Server;
