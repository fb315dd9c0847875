//! What the tests of several crates share. Only dev-dependencies refer to this crate.
//!
//! - [`agent`]: a local agent that speaks ACP and does what its prompts say.
//! - [`chat`]: a front end that shows the chat.
//! - [`FakeModel`]: a model that does what its prompts say, for the real agents.
//! - [`FakeDaemon`]: a `qwen serve` that does what the test wants, with every fault.
//! - [`Sandbox`]: directories and an environment for one test.
//! - [`Dice`]: numbers that look random and are the same for the same seed.
//! - [`http`]: the server of [`FakeModel`].
//!
//! Everything here fails by panicking: this is test code, and a panic is its report.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "test code"
)]

pub mod agent;
pub mod chat;
pub mod daemon;
mod dice;
pub mod http;
mod model;
mod sandbox;

pub use daemon::FakeDaemon;
pub use dice::Dice;
pub use model::{FakeModel, Prompt, SUGGESTION};
pub use sandbox::Sandbox;
