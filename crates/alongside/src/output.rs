//! What goes to standard output: words for people, or one JSON value for scripts.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is where printing happens"
)]

use std::io::{IsTerminal, Write};

use alongside_front::client::ClientError;
use serde::Serialize;
use serde_json::json;

/// How this run of the program speaks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// The answer of a command.
    pub(crate) fn answer(self, value: &impl Serialize, words: impl FnOnce() -> String) {
        if self.json {
            println!("{}", serde_json::to_string(value).unwrap_or_default());
        } else {
            print!("{}", words());
        }
        // A reader that has gone away has what it wanted.
        let _ = std::io::stdout().flush();
    }

    /// Something that happened, for people only.
    pub(crate) fn news(self, words: &str) {
        if !self.json {
            println!("{words}");
        }
    }

    /// Something that a script's standard output has no place for.
    pub(crate) fn remark(self, words: &str) {
        if self.json {
            eprintln!("alongside: {words}");
        }
    }

    /// Why a command failed.
    pub(crate) fn error(self, error: &anyhow::Error) {
        if self.json {
            let kind = match error.downcast_ref::<ClientError>() {
                Some(ClientError::Rejected(error)) => error.kind.as_str(),
                _ => "failed",
            };
            println!(
                "{}",
                json!({ "error": { "kind": kind, "message": format!("{error:#}") } })
            );
        } else {
            eprintln!("alongside: {error:#}");
        }
    }

    /// Whether colours are wanted.
    pub(crate) fn colours(self) -> bool {
        !self.json
            && std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}
