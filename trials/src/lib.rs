//! Long trials of the real program: `cargo xtask faults` and `cargo xtask load`.
//!
//! A trial starts `alongside` in a sandbox, acts as its agents and front ends, and compares what it promises with what it does.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test code"
)]

pub mod faults;
pub mod load;
pub mod program;
