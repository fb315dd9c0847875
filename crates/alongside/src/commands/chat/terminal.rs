//! Answers typed at the terminal.

use std::io::{BufRead, BufReader, IsTerminal};
use std::sync::mpsc;

use tokio::sync::mpsc::UnboundedReceiver;

/// Reads lines, but only while a question is open: what is typed at other times is not an answer.
pub(super) struct Terminal {
    requests: mpsc::Sender<()>,
    /// `None` at the end of the input. At most one line for each request.
    lines: UnboundedReceiver<Option<String>>,
    is_reading: bool,
}

enum Input {
    Stdin,
    /// The prompt came from stdin.
    Terminal(std::fs::File),
}

impl Terminal {
    /// `None` unless a question on stderr is seen at a terminal, and can be answered there.
    pub(super) fn open(prompt_is_stdin: bool) -> Option<Self> {
        if !std::io::stderr().is_terminal() {
            return None;
        }
        let input = if std::io::stdin().is_terminal() && !prompt_is_stdin {
            Input::Stdin
        } else {
            Input::Terminal(open_terminal()?)
        };
        let (requests, requested) = mpsc::channel();
        let (sender, lines) = tokio::sync::mpsc::unbounded_channel();
        // A thread of its own, because a read cannot be cancelled. It ends with the process.
        std::thread::spawn(move || {
            let mut input: Box<dyn BufRead> = match input {
                Input::Stdin => Box::new(std::io::stdin().lock()),
                Input::Terminal(file) => Box::new(BufReader::new(file)),
            };
            for () in requested {
                let mut line = String::new();
                let has_line = input.read_line(&mut line).is_ok_and(|length| length > 0);
                if sender.send(has_line.then_some(line)).is_err() {
                    return;
                }
            }
        });
        Some(Self {
            requests,
            lines,
            is_reading: false,
        })
    }

    /// Begins to read an answer. Call this before the question is shown.
    pub(super) fn begin(&mut self) {
        while self.lines.try_recv().is_ok() {
            self.is_reading = false;
        }
        discard_typed();
        if !std::mem::replace(&mut self.is_reading, true) {
            let _ = self.requests.send(());
        }
    }

    /// The line typed since [`Self::begin`]; `None` at the end of the input.
    pub(super) async fn line(&mut self) -> Option<String> {
        let line = self.lines.recv().await.flatten();
        self.is_reading = false;
        line
    }
}

#[cfg(unix)]
fn open_terminal() -> Option<std::fs::File> {
    std::fs::File::open("/dev/tty").ok()
}

#[cfg(not(unix))]
fn open_terminal() -> Option<std::fs::File> {
    None
}

#[cfg(unix)]
fn discard_typed() {
    // stderr is the terminal.
    let _ = rustix::termios::tcflush(std::io::stderr(), rustix::termios::QueueSelector::IFlush);
}

#[cfg(not(unix))]
fn discard_typed() {}
