//! Random faults, and what must hold after each of them.
//!
//! Agents propose and close, front ends edit and decide, while a companion, a bridge, a local agent, a daemon, event streams
//! and the disk fail at random moments of a [plan](plan::Plan). After each fault, the ledger compares what was
//! acknowledged with what is there.

mod agent;
mod conversation;
pub mod disk;
mod hand;
mod inspection;
mod invariant;
mod ledger;
mod node;
pub mod plan;
mod reception;
mod round;
mod stage;
mod texts;
mod wire;

pub use invariant::Invariant;
pub use stage::{Options, Report, run};
