//! Output: text for users, or one JSON value for scripts.
//!
//! Text is made printable here, because it contains names that others choose: folders, files, agents.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "this is where printing happens"
)]

use std::io::{IsTerminal, Write};

use alongside_front::client::ClientError;
use serde::Serialize;
use serde_json::json;

use crate::printable::printable;

#[derive(Clone, Copy, Debug)]
pub(crate) struct Output {
    pub(crate) json: bool,
}

impl Output {
    /// Prints the result of a command.
    pub(crate) fn answer(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        self.answer_in_colors(value, || printable(&text()));
    }

    /// Prints text that may have colors: the caller makes names from elsewhere printable.
    pub(crate) fn answer_in_colors(self, value: &impl Serialize, text: impl FnOnce() -> String) {
        if self.json {
            println!("{}", serde_json::to_string(value).unwrap_or_default());
        } else {
            print!("{}", text());
        }
        // A reader that closed the pipe has read enough.
        let _ = std::io::stdout().flush();
    }

    /// Prints an event, in text mode only.
    pub(crate) fn news(self, text: &str) {
        if !self.json {
            println!("{}", printable(text));
        }
    }

    /// Prints a note to stderr in JSON mode, where stdout has no place for it.
    pub(crate) fn remark(self, text: &str) {
        if self.json {
            eprintln!("alongside: {}", printable(text));
        }
    }

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
            eprintln!("alongside: {}", printable(&format!("{error:#}")));
        }
    }

    pub(crate) fn colors(self) -> bool {
        !self.json
            && std::io::stdout().is_terminal()
            && std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
    }
}
