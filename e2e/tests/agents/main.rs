//! The companion with the agents that are native programs, one module per topic.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod alone;
