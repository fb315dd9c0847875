//! An agent as a child process.

use std::collections::VecDeque;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::sync::{oneshot, watch};

use super::error::AcpError;

/// How long an agent may take to end by itself when it is told that nobody talks to it any more.
const FAREWELL: Duration = Duration::from_secs(2);

/// How long the exit status of an agent is waited for whose output has ended.
const LAST_MOMENT: Duration = Duration::from_millis(500);

/// How many lines of its error output are kept.
const MOST_LINES: usize = 20;

/// How to start an agent.
#[derive(Clone, PartialEq, Eq)]
pub struct AgentProcess {
    /// The program.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// Variables beside those that we have ourselves.
    pub environment: Vec<(String, String)>,
}

impl AgentProcess {
    /// Any program that speaks ACP.
    pub fn new(program: impl Into<PathBuf>, arguments: &[&str]) -> Self {
        Self {
            program: program.into(),
            arguments: arguments.iter().map(|&argument| argument.to_owned()).collect(),
            environment: Vec::new(),
        }
    }

    /// Qwen Code.
    pub fn qwen() -> Self {
        Self::new("qwen", &["--acp"])
    }

    /// Gemini CLI. Older versions know the argument as `--experimental-acp`.
    pub fn gemini() -> Self {
        Self::new("gemini", &["--acp"])
    }
}

impl fmt::Debug for AgentProcess {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The values of variables are keys more often than not.
        let names: Vec<&str> = self.environment.iter().map(|(name, _)| name.as_str()).collect();
        formatter
            .debug_struct("AgentProcess")
            .field("program", &self.program)
            .field("arguments", &self.arguments)
            .field("environment", &names)
            .finish()
    }
}

/// The pipes of an agent that runs.
pub(super) struct Pipes {
    pub(super) input: ChildStdin,
    pub(super) output: ChildStdout,
}

/// Keeps an agent running. Dropping it ends the agent.
pub(super) struct Keeper {
    _stop: oneshot::Sender<()>,
    last_words: Arc<Mutex<VecDeque<String>>>,
    status: watch::Receiver<Option<String>>,
    secrets: Vec<String>,
}

impl Keeper {
    /// Starts an agent in a directory.
    pub(super) fn start(process: &AgentProcess, directory: &Path) -> Result<(Self, Pipes), AcpError> {
        let program = process.program.display().to_string();
        let start = |source| AcpError::Start {
            program: program.clone(),
            source,
        };
        let mut command = Command::new(&process.program);
        command
            .args(&process.arguments)
            .envs(process.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true);
        // Its own group: a Ctrl-C at our terminal is not meant for it, and what it starts can be ended with it.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(start)?;
        let broken = || start(std::io::ErrorKind::BrokenPipe.into());
        let input = child.stdin.take().ok_or_else(broken)?;
        let output = child.stdout.take().ok_or_else(broken)?;
        let last_words = Arc::<Mutex<VecDeque<String>>>::default();
        if let Some(stderr) = child.stderr.take() {
            tokio::spawn(listen(stderr, Arc::clone(&last_words)));
        }
        let (ended, status) = watch::channel(None);
        let (stop, stopped) = oneshot::channel();
        tokio::spawn(keep(child, stopped, ended));
        let keeper = Self {
            _stop: stop,
            last_words,
            status,
            secrets: secrets(&process.environment),
        };
        Ok((keeper, Pipes { input, output }))
    }

    /// How it ended, as far as it is known.
    pub(super) async fn ended(&self) -> AcpError {
        // Its output ends a moment before it does.
        let mut status = self.status.clone();
        let known = tokio::time::timeout(LAST_MOMENT, status.wait_for(Option::is_some)).await;
        let known = known.ok().and_then(Result::ok).and_then(|status| status.clone());
        let words = self.last_words.lock().back().cloned();
        AcpError::Ended {
            status: known.unwrap_or_else(|| "it closed its stdout".to_owned()),
            last_words: words.map(|mut words| {
                for secret in &self.secrets {
                    words = words.replace(secret, "…");
                }
                words
            }),
        }
    }
}

/// The values that must not be repeated, whatever an agent says at its end.
fn secrets(own: &[(String, String)]) -> Vec<String> {
    let inherited =
        std::env::vars_os().filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)));
    let is_secret = |name: &str| {
        ["KEY", "TOKEN", "SECRET", "PASSWORD"]
            .iter()
            .any(|word| name.to_uppercase().contains(word))
    };
    let all = inherited.chain(own.iter().cloned());
    // Short values are no secrets, and blotting them out would garble everything.
    all.filter(|(name, value)| is_secret(name) && value.len() >= 8)
        .map(|(_, value)| value)
        .collect()
}

async fn listen(stderr: ChildStderr, last_words: Arc<Mutex<VecDeque<String>>>) {
    let mut reader = BufReader::new(stderr);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).await.is_ok_and(|read| read > 0) {
        let text = String::from_utf8_lossy(&line);
        let text: String = text
            .trim()
            .chars()
            .filter(|character| !character.is_control())
            .take(300)
            .collect();
        line.clear();
        if !text.is_empty() {
            let mut lines = last_words.lock();
            if lines.len() == MOST_LINES {
                lines.pop_front();
            }
            lines.push_back(text);
        }
    }
}

/// Waits for the end of a child, or brings it about.
async fn keep(mut child: Child, stopped: oneshot::Receiver<()>, status: watch::Sender<Option<String>>) {
    let group = child.id();
    tokio::select! {
        ended = child.wait() => {
            status.send_replace(Some(ended.map_or_else(|error| error.to_string(), |status| status.to_string())));
        }
        _ = stopped => {
            // Its input is closed by now, which tells a polite program to go.
            if tokio::time::timeout(FAREWELL, child.wait()).await.is_err() {
                let _ = child.kill().await;
            }
        }
    }
    end_group(group);
}

/// Ends what a child has left behind. A wrapper script may be gone while the program it started is not.
#[cfg(unix)]
fn end_group(group: Option<u32>) {
    let group = group.and_then(|group| rustix::process::Pid::from_raw(i32::try_from(group).ok()?));
    if let Some(group) = group {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::TERM);
    }
}

#[cfg(not(unix))]
fn end_group(_group: Option<u32>) {}
