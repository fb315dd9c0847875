//! The daemon client against the fake daemon with every fault, and against recordings of a real one.

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
