//! The companion with the agents that are native programs, one module per agent.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod acp;
mod alone;
mod claude;
mod codex;
mod copilot;
mod editor;
mod hooks;
mod opencode;
mod proposal;
mod scene;
mod several;
