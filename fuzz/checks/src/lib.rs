//! What must hold for any bytes that another program may send or leave behind.
//!
//! Each check takes the bytes of a corpus file, and panics if something does not hold. `cargo xtask fuzz` runs them with libFuzzer;
//! the test `corpora` runs them with the committed files.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::missing_panics_doc,
    reason = "test code"
)]

mod discovery;
mod journal;
mod merge;
mod settings;
mod wire;

pub use discovery::discovery_files;
pub use journal::journal_recovery;
pub use merge::hunk_merge;
pub use settings::settings;
pub use wire::{front_message, json_rpc_body, lsp_frame, sse_reader};

type Check = fn(&[u8]);

/// Every check with the name of its target and corpus.
pub const CHECKS: [(&str, Check); 8] = [
    ("json_rpc_body", json_rpc_body),
    ("front_message", front_message),
    ("lsp_frame", lsp_frame),
    ("sse_reader", sse_reader),
    ("journal_recovery", journal_recovery),
    ("discovery_files", discovery_files),
    ("settings", settings),
    ("hunk_merge", hunk_merge),
];
