//! The child process of a local agent.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::AsyncReadExt;
use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};

use super::ending::{Children, Group, Running, end};
use super::error::AcpError;

/// How long to wait for the exit status after stdout was closed.
const EXIT_STATUS_TIMEOUT: Duration = Duration::from_millis(500);

/// What is kept of stderr: this many lines, and this much of each. Everything else is read and dropped.
const MAX_STDERR_LINES: usize = 20;
const MAX_STDERR_LINE_BYTES: usize = 1024;
const MAX_STDERR_LINE_CHARS: usize = 300;

#[derive(Clone, PartialEq, Eq)]
pub struct AgentProcess {
    pub program: PathBuf,
    pub arguments: Vec<String>,
    /// Variables in addition to our own.
    pub environment: Vec<(String, String)>,
}

impl AgentProcess {
    pub fn new(program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
        }
    }
}

impl fmt::Debug for AgentProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values are often keys.
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("AgentProcess")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("environment", &names)
            .finish()
    }
}

pub(super) struct Pipes {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
}

/// A running agent. Dropping this stops it.
pub(super) struct ChildHandle {
    stop: Mutex<Option<oneshot::Sender<()>>>,
    stderr_tail: Arc<Mutex<StderrTail>>,
    status: watch::Receiver<Option<String>>,
    secrets: Vec<String>,
}

impl ChildHandle {
    pub(super) fn start(
        process: &AgentProcess,
        directory: &Path,
        children: &Children,
    ) -> Result<(Self, Pipes), AcpError> {
        let program = process.program.display().to_string();
        let start = |source| AcpError::Start {
            program: program.clone(),
            source,
        };
        let mut command = Command::new(alongside_platform::program(process.program.as_os_str()));
        command
            .args(&process.arguments)
            .envs(process.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        let mut group = Group::start(command).map_err(start)?;
        let broken = || start(std::io::ErrorKind::BrokenPipe.into());
        let (input, output, stderr) = group.pipes();
        let input = input.ok_or_else(broken)?;
        let output = output.ok_or_else(broken)?;
        let stderr_tail = Arc::<Mutex<StderrTail>>::default();
        if let Some(stderr) = stderr {
            tokio::spawn(read_stderr(stderr, Arc::clone(&stderr_tail)));
        }
        let (ended, status) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(keep(group, stopped, ended, children.add()));
        let handle = Self {
            stop: Mutex::new(Some(stop)),
            stderr_tail,
            status,
            secrets: secrets(&process.environment),
        };
        Ok((handle, Pipes { input, output }))
    }

    /// Stops the agent, without waiting. The caller closes its stdin.
    pub(super) fn stop(&self) {
        drop(self.stop.lock().take());
    }

    /// Why the agent has exited, as far as known.
    pub(super) async fn exit_error(&self) -> AcpError {
        // Stdout is closed a moment before the process exits.
        let mut status = self.status.clone();
        let known = tokio::time::timeout(EXIT_STATUS_TIMEOUT, status.wait_for(Option::is_some)).await;
        let known = known.ok().and_then(Result::ok).and_then(|status| status.clone());
        let tail = self.stderr_tail.lock().last();
        AcpError::Exited {
            status: known.unwrap_or_else(|| "it closed its stdout".to_owned()),
            stderr_tail: tail.map(|mut line| {
                for secret in &self.secrets {
                    line = line.replace(secret, "…");
                }
                line
            }),
        }
    }
}

/// The values that must not be repeated, whatever an agent prints.
fn secrets(own: &[(String, String)]) -> Vec<String> {
    let inherited =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let is_secret = |name: &str| {
        ["KEY", "TOKEN", "SECRET", "PASSWORD"]
            .iter()
            .any(|word| name.to_uppercase().contains(word))
    };
    let all = inherited.chain(own.iter().cloned());
    // Short values are not secrets, and replacing them would garble everything.
    all.filter(|(name, value)| is_secret(name) && value.len() >= 8)
        .map(|(_, value)| value)
        .collect()
}

async fn read_stderr(mut stderr: ChildStderr, tail: Arc<Mutex<StderrTail>>) {
    let mut buffer = vec![0; 4096];
    while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
        tail.lock().push(&buffer[..count]);
    }
}

/// The last lines of stderr. A line without an end takes no more room than any other.
#[derive(Debug, Default)]
struct StderrTail {
    lines: VecDeque<Vec<u8>>,
    /// The start of the current line.
    line: Vec<u8>,
}

impl StderrTail {
    fn push(&mut self, bytes: &[u8]) {
        let mut lines = bytes.split(|byte| *byte == b'\n');
        if let Some(rest) = lines.next() {
            self.extend_line(rest);
        }
        for next in lines {
            self.end_line();
            self.extend_line(next);
        }
    }

    fn extend_line(&mut self, bytes: &[u8]) {
        let room = MAX_STDERR_LINE_BYTES - self.line.len();
        self.line.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if line.trim_ascii().is_empty() {
            return;
        }
        if self.lines.len() == MAX_STDERR_LINES {
            self.lines.pop_front();
        }
        self.lines.push_back(line);
    }

    /// The last line that is not empty, for display.
    fn last(&self) -> Option<String> {
        let mut lines = std::iter::once(&self.line).chain(self.lines.iter().rev());
        lines.find_map(|line| {
            let text = String::from_utf8_lossy(line);
            let text = text.trim().chars().filter(|character| !character.is_control());
            let text: String = text.take(MAX_STDERR_LINE_CHARS).collect();
            Some(text).filter(|text| !text.is_empty())
        })
    }
}

/// Waits for a child to exit, or stops it, and ends what it leaves behind.
async fn keep(
    mut group: Group,
    stopped: oneshot::Receiver<()>,
    status: watch::Sender<Option<String>>,
    _running: Running,
) {
    tokio::select! {
        ended = group.exited() => {
            status.send_replace(Some(ended.map_or_else(|error| error.to_string(), |status| status.to_string())));
        }
        _ = stopped => end(&mut group).await,
    }
    group.end().await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn last_line_of_stderr_is_returned() {
        let mut tail = StderrTail::default();
        assert_eq!(tail.last(), None);
        tail.push(b"one\ntwo\x1b\r\n\n \n");
        assert_eq!(tail.last().as_deref(), Some("two"));
        tail.push(b"thr");
        tail.push(b"ee");
        assert_eq!(tail.last().as_deref(), Some("three"));
    }

    #[test]
    fn endless_stderr_takes_bounded_room() {
        let mut tail = StderrTail::default();
        for _ in 0..1000 {
            tail.push(&[b'x'; 4096]);
        }
        assert!(tail.line.len() <= MAX_STDERR_LINE_BYTES);
        assert_eq!(tail.last(), Some("x".repeat(MAX_STDERR_LINE_CHARS)));
        for _ in 0..1000 {
            tail.push(b"line\n");
        }
        assert!(tail.lines.len() <= MAX_STDERR_LINES);
    }
}
