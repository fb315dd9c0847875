//! The companion with the real programs that use it, a module for each topic.
#![allow(missing_docs, clippy::expect_used, clippy::panic)]

mod carriers;
mod chat;
mod conformance;
mod context;
mod decisions;
mod diagnosis;
mod discovery;
mod lifetimes;
mod restarts;
mod several_agents;
mod several_companions;
mod typescript_sdk;
