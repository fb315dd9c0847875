//! Output: text for users, or one JSON value for scripts.
//!
//! Text is made printable here, because it contains names that others choose: folders, files, agents. A closed stdout or stderr is not an
//! error: nothing here uses `println!`, which would panic.

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
    /// Prints the result of a command. Returns whether stdout is open.
    pub(crate) fn answer(self, value: &impl Serialize, text: impl FnOnce() -> String) -> bool {
        self.answer_in_colors(value, || printable(&text()))
    }

    /// Prints text that may have colors: the caller makes names from elsewhere printable. Returns whether stdout is open.
    pub(crate) fn answer_in_colors(self, value: &impl Serialize, text: impl FnOnce() -> String) -> bool {
        if self.json {
            to_stdout(&format!("{}\n", serde_json::to_string(value).unwrap_or_default()))
        } else {
            to_stdout(&text())
        }
    }

    /// Prints an event, in text mode only.
    pub(crate) fn news(self, text: &str) {
        if !self.json {
            to_stdout(&format!("{}\n", printable(text)));
        }
    }

    /// Prints a note to stderr in JSON mode, where stdout has no place for it.
    pub(crate) fn remark(self, text: &str) {
        if self.json {
            to_stderr(&format!("alongside: {}\n", printable(text)));
        }
    }

    pub(crate) fn error(self, error: &anyhow::Error) {
        if self.json {
            let kind = match error.downcast_ref::<ClientError>() {
                Some(ClientError::Rejected(error)) => error.kind.as_str(),
                _ => "failed",
            };
            let value = json!({ "error": { "kind": kind, "message": format!("{error:#}") } });
            to_stdout(&format!("{value}\n"));
        } else {
            to_stderr(&format!("alongside: {}\n", printable(&format!("{error:#}"))));
        }
    }

    pub(crate) fn colors(self) -> bool {
        !self.json && std::io::stdout().is_terminal() && allows_colors()
    }
}

pub(crate) fn stderr_has_colors() -> bool {
    std::io::stderr().is_terminal() && allows_colors()
}

fn allows_colors() -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
}

/// Returns whether stdout is open. A reader that closed the pipe has read enough.
pub(crate) fn to_stdout(text: &str) -> bool {
    let mut stdout = std::io::stdout();
    stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()).is_ok()
}

pub(crate) fn to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
