//! The program as users and scripts run it, with an agent made of our own MCP client.
//!
//! Everything happens in a scratch home and needs nothing but this program. The tests with the real CLIs are in `e2e`.

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
mod check;
mod connect_target;
mod context;
mod decisions;
mod discovery;
#[cfg(unix)]
mod hook;
mod hostile;
mod install;
mod lsp;
#[cfg(all(target_os = "linux", target_env = "gnu"))]
mod memory;
#[cfg(target_os = "linux")]
mod other_user;
mod output;
#[cfg(unix)]
mod page;
mod restart;
mod sandbox;
mod shutdown;
#[cfg(unix)]
mod terminal;
mod tidy;
