//! Agents for `alongside`: those that run in a daemon and those that run as a child.
//!
//! | module | what for |
//! |---|---|
//! | [`daemon`] | a client of `qwen serve`: its routes, its sessions, and their events, in order and each once |
//! | [`ide`] | a conversation with an agent in a daemon |
//! | [`acp`] | a conversation with an agent that is our child, over the Agent Client Protocol |
//! | [`conversation`] | what both of them say: messages, calls of tools, approvals |
//! | [`position`] | how far somebody has read, to go on from there after a restart |
//! | [`settings`] | whether to use a daemon, and which |
//!
//! [`AgentManager`] is one conversation, whichever way. It takes [`AgentCommand`]s and gives [`AgentEvent`]s:
//!
//! ```text
//!                       AgentCommand                      AgentEvent
//!                            |                                ^
//!                            v                                |
//!                       AgentManager -------------------------+
//!                        |        |
//!        DaemonIdeConnection    AcpConnection
//!                |                    |
//!      DaemonSessionClient     JSON-RPC over pipes ---> ReviewGate ---> files
//!                |                    |
//!           qwen serve        qwen --acp, gemini --acp, ...
//! ```
//!
//! *Invariant:* a daemon is on this machine or it is not talked to: see [`daemon::DaemonAddress`].
//! *Invariant:* an event carries no token, no address and no client id; errors and `Debug` carry no token.
//! *Invariant:* whoever shows a conversation sees every event once and in order, or is told to begin anew. With a daemon that holds
//! across a restart of ours too: each event brings the [`Position`] to go on from.

pub mod acp;
pub mod conversation;
pub mod daemon;
mod error;
pub mod ide;
mod manager;
mod mention;
pub mod position;
pub mod settings;

pub use alongside_core::Secret;
pub use alongside_protocol::chat::{
    Abilities, AgentCommand, AgentEvent, AgentReply, ConnectedSession, DisconnectKind, Locality, NoticeLevel,
};
pub use error::AgentError;
pub use manager::{AgentManager, AgentTarget};
pub use position::{EventReceiver, EventSender, Position, event_channel};
