//! Harness for the end-to-end tests: real programs, a fake model.
//!
//! A test runs the companion and the real agents in a [`Sandbox`], so that nothing of the developer's own is read or
//! written. The agents use a [`FakeModel`] that does what the prompt says and records every request, and run in a
//! [`Terminal`] (tmux), so that a test types what a user types and sees what a user sees.
//!
//! All failures are panics that include the screen contents.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

mod artifacts;
mod cli;
mod code_server;
mod companion;
mod daemon;
mod fake_model;
pub mod mcp_agent;
mod native;
mod process;
mod programs;
mod proof;
mod proxy;
mod sandbox;
mod sdk;
mod tmux;
mod waiting;
pub mod wine;

pub use alongside_testing::{Prompt, SUGGESTION};
pub use cli::{Agent, Cli, Launch};
pub use code_server::CodeServer;
pub use companion::{Companion, Outcome, Review};
pub use daemon::{CutProxy, MODEL_KEY, QwenDaemon};
pub use fake_model::FakeModel;
pub use native::{Native, NativeAgent};
pub use process::kill;
pub use programs::{alongside, editor, node, npm_package, plugin, typescript};
pub use proof::{AgentCapability, Capability, agent_proves, proves, version, version_in};
pub use proxy::AuthorizingProxy;
pub use sandbox::Sandbox;
pub use sdk::{Sdk, SdkClient};
pub use tmux::Terminal;
pub use waiting::{TIMEOUT, eventually, never_during};
pub use wine::{PendingAnswer, Wine, WineProcess};

/// Expands a function that takes a [`Cli`] into one test per agent.
///
/// The function itself stays ordinary, so that it is formatted, linted and found like any other.
#[macro_export]
macro_rules! for_both_agents {
    ($name:ident) => {
        mod $name {
            #[test]
            fn gemini() {
                super::$name($crate::Cli::Gemini);
            }
            #[test]
            fn qwen() {
                super::$name($crate::Cli::Qwen);
            }
        }
    };
}
