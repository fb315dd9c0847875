//! Agents for alongside: those in a `qwen serve` daemon, and local ones that speak ACP.
//!
//! | module | for |
//! |---|---|
//! | [`daemon`] | a client of `qwen serve`: its routes, its sessions, and their events, in order and each once |
//! | [`acp`] | local agents: child processes that speak the Agent Client Protocol |
//! | [`conversation`] | what both have in common: messages, tool calls, permission requests |
//! | [`position`] | how far a reader has come, to continue there after a restart |
//! | [`settings`] | whether to use a daemon, and which |
//!
//! [`AgentManager`] is one conversation with one agent. It executes [`AgentCommand`]s and sends [`AgentEvent`]s. Each kind of agent
//! is an implementation of the trait in `connection.rs`, and the manager has at most one connection:
//!
//! ```text
//!                       AgentCommand                      AgentEvent
//!                            |                                ^
//!                            v                                |
//!                       AgentManager -------------------------+
//!                            |
//!                     AgentConnection
//!                        |        |
//!           DaemonConnection    AcpConnection
//!                |                    |
//!      DaemonSessionClient     JSON-RPC over stdio ---> ReviewGate ---> files
//!                |                    |
//!           qwen serve        qwen --acp, gemini --acp, ...
//! ```
//!
//! *Invariant:* a daemon is on this machine, or the connection is refused: see [`daemon::DaemonAddress`].
//! *Invariant:* an event contains no token, no address and no client id; errors and `Debug` contain no token.
//! *Invariant:* a reader gets every event once and in order, or is told to start over. With a daemon that holds across a restart of
//! the reader too: each event carries the [`Position`] to resume from.
//! *Invariant:* every queue is bounded: see [`EventReceiver`] for what happens when it is full.

pub mod acp;
mod attachments;
mod connection;
pub mod conversation;
pub mod daemon;
mod error;
mod events;
mod manager;
mod mention;
pub mod position;
pub mod settings;

pub use alongside_core::Secret;
pub use alongside_protocol::chat::{
    Abilities, AgentCommand, AgentEvent, AgentReply, ConnectedSession, DisconnectKind, Locality, NoticeLevel,
};
pub use connection::{AgentTarget, OpenSession};
pub use error::AgentError;
pub use events::EventReceiver;
pub use manager::AgentManager;
pub use position::Position;
