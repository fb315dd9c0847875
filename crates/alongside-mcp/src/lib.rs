//! The agents' port: a small MCP server over streamable HTTP, made for the command lines that look for a companion.
//!
//! Agents come to `http://127.0.0.1:<port>/mcp`. A `POST` carries one JSON-RPC message and is answered with plain JSON; a
//! `GET` is the stream on which an agent hears what the person is looking at and how a review ended; a `DELETE` ends the
//! session. The binary implements [`Companion`] to be told what agents do and to carry out their two tools, and pushes
//! what agents should hear through [`Agents`].
//!
//! ```no_run
//! use std::sync::Arc;
//! use alongside_core::{SessionId, Token, Decision, dialect::ClientInfo};
//! use alongside_mcp::{Companion, Config, Server};
//!
//! struct Quiet;
//!
//! impl Companion for Quiet {
//!     fn session_started(&self, _: &SessionId, _: Option<&ClientInfo>) {}
//!     fn known_client(&self, _: &SessionId) -> Option<ClientInfo> { None }
//!     fn stream_opened(&self, _: &SessionId) {}
//!     fn stream_closed(&self, _: &SessionId) {}
//!     fn session_ended(&self, _: &SessionId, _: Vec<Decision>) {}
//!     async fn open_diff(&self, _: &SessionId, _: Arc<str>, _: Arc<str>) -> Result<(), String> {
//!         Err("Nobody is there to look at it.".to_owned())
//!     }
//!     fn close_diff(&self, _: &SessionId, _: &str) -> Option<Arc<str>> { None }
//! }
//!
//! # async fn run() -> std::io::Result<()> {
//! let server = Server::bind(Config::new(Token::from_bytes([7; 32])), Arc::new(Quiet)).await?;
//! server.agents().publish_context(r#"{"workspaceState":{"openFiles":[]}}"#);
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Which file does what
//!
//! `server` accepts connections, `guard` decides who may speak, `endpoint` turns HTTP into messages, `rpc` and `protocol`
//! answer them, `tools` has the two tools. `session` and `registry` know who is connected, `outbox` what each session has
//! yet to hear, `stream` is the body of a `GET`, and `callbacks` tells the binary. [`client`] is the other side of the
//! wire, for `doctor`, `demo`, the stdio relay and the tests.
//!
//! # Invariants
//!
//! *A producer never waits.* [`Agents::publish_context`] and [`Agents::notify`] take one short lock and never call back.
//! *No lock of this crate is held while a [`Companion`] is called.* *Memory is bounded for each session*: one slot for the
//! context, in which the latest wins, and a queue of decisions with a limit.

mod agents;
mod callbacks;
pub mod client;
mod companion;
mod config;
mod endpoint;
mod guard;
mod outbox;
mod protocol;
mod registry;
mod rpc;
mod server;
mod session;
mod stream;
mod tools;

pub use agents::{Agents, SessionStatus};
pub use companion::Companion;
pub use config::{Config, Limits, Timing};
pub use protocol::PROTOCOL_VERSIONS;
pub use server::{Server, Undelivered};
