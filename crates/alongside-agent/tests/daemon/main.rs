//! Daemons: the scripted one for every fault, and what a real one has said.
//!
//! One program, so that the daemon that does what a test says is built once.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a test that cannot go on should panic, and may say why"
)]

mod client;
mod conversation;
mod fake;
mod recorded;
mod resume;
mod stream;
mod tls;
