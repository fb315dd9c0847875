//! The program as a person or a script runs it, with an agent made of our own MCP client.
//!
//! Everything happens in a scratch home, and nothing but this program is needed. The real command lines are in `e2e`.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test fails by panicking"
)]

mod agents;
mod bridge;
mod chat;
mod context;
mod decisions;
mod discovery;
mod install;
mod lsp;
mod restart;
mod sandbox;
mod shutdown;
mod tidy;
mod who_is_found;
mod words;
