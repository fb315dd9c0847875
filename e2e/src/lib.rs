//! The harness of the end-to-end tests: real programs, a model that is not real.
//!
//! A test puts the companion and the real command lines into a [`Sandbox`], so that nothing of the person who runs the
//! tests is read or written. The command lines talk to a [`FakeModel`] that does what the prompt says and remembers every
//! request, and run in a [`Terminal`] (tmux), so that a test types what a person types and sees what a person sees.
//!
//! Everything here fails by panicking with what was on the screen: this is test code, and a panic is its report.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::missing_panics_doc)]

mod artifacts;
mod cli;
mod companion;
mod daemon;
mod fake_model;
mod process;
mod programs;
mod proof;
mod proxy;
mod sandbox;
mod scripted_daemon;
mod sdk;
mod tmux;
mod waiting;

pub use alongside_testing::Prompt;
pub use cli::{Agent, Cli, Launch};
pub use companion::{Companion, Outcome, Review};
pub use daemon::{CutProxy, MODEL_KEY, QwenDaemon};
pub use fake_model::FakeModel;
pub use programs::{alongside, editor, node, npm_package, plugin, typescript};
pub use proof::{Capability, proves, version};
pub use proxy::AuthorizingProxy;
pub use sandbox::Sandbox;
pub use scripted_daemon::ScriptedDaemon;
pub use sdk::{Sdk, SdkClient};
pub use tmux::Terminal;
pub use waiting::{PATIENCE, eventually, never_during};

/// Expands a function that takes a [`Cli`] into a test for each agent.
///
/// The function stays an ordinary one, so that it is formatted, linted and found like any other.
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
