//! The companion with the real programs that use it, one module per topic.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod chat;
mod conformance;
mod context;
mod decisions;
mod diagnosis;
mod discovery;
mod faults;
mod hooks;
mod lifetimes;
mod restarts;
mod several_agents;
mod several_companions;
mod terminal;
mod tools;
mod transports;
mod typescript_sdk;
