//! The program under check, and what it says.

use std::ffi::OsString;
use std::path::Path;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use alongside_agent::acp::Group;
use alongside_core::ReviewId;
use alongside_front::stdio;
use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::process::Command;
use tokio::sync::mpsc;

use super::PLUGIN_TIMEOUT;
use super::backend::CheckBackend;

/// Long enough to notice that it has exited.
const LOOK_TIMEOUT: Duration = Duration::from_millis(20);
/// How long to read on once its processes have ended.
const REST_TIMEOUT: Duration = Duration::from_secs(2);

/// The program under check.
pub(super) struct Plugin {
    /// With everything that it started: many plugins are started by a script.
    group: Option<Group>,
    pub(super) backend: Arc<CheckBackend>,
    /// What it sent, in order. A line that is not JSON is a string.
    pub(super) heard: Vec<Value>,
    incoming: mpsc::UnboundedReceiver<Value>,
    /// What it is told. Dropping this hangs up.
    outgoing: Option<mpsc::UnboundedSender<String>>,
    pub(super) refusals: RefusedRequests,
}

/// Sentences with which the plugin was refused something, whether it wanted an answer or not.
pub(super) type RefusedRequests = Arc<Mutex<Vec<String>>>;

impl Plugin {
    pub(super) fn start(command: &[OsString], folder: &Path) -> Result<Self> {
        let mut parts = command.iter();
        let name = parts.next().context("missing plugin command after `--`")?;
        let mut command = Command::new(alongside_platform::program(name));
        command
            .args(parts)
            .env("ALONGSIDE_CHECK", folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true);
        let mut group = Group::start(command).with_context(|| format!("cannot start `{}`", name.display()))?;
        let (stdin, stdout, _) = group.pipes();
        let (stdin, stdout) = stdin.zip(stdout).context("cannot open pipes to the plugin")?;
        let refusals = RefusedRequests::default();
        let backend = Arc::new(CheckBackend::new(folder, refusals.clone()));

        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (questions, answers) = tokio::io::split(ours);
        tokio::spawn(stdio::serve(backend.clone(), BufReader::new(questions), answers));
        let (answers, questions) = tokio::io::split(theirs);
        let (tell, told) = mpsc::unbounded_channel();
        let (hear, incoming) = mpsc::unbounded_channel();
        tokio::spawn(listen(BufReader::new(stdout), questions, hear));
        tokio::spawn(pass_on(BufReader::new(answers), tell.downgrade(), refusals.clone()));
        tokio::spawn(speak(stdin, told));
        Ok(Self {
            group: Some(group),
            backend,
            heard: Vec::new(),
            incoming,
            outgoing: Some(tell),
            refusals,
        })
    }

    /// Waits for a message; one that was heard before counts too.
    pub(super) async fn says(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Option<Value> {
        if let Some(heard) = self.heard.iter().find(|heard| is_wanted(heard)) {
            return Some(heard.clone());
        }
        tokio::time::timeout(PLUGIN_TIMEOUT, async {
            loop {
                let message = self.incoming.recv().await?;
                self.heard.push(message.clone());
                if is_wanted(&message) {
                    return Some(message);
                }
            }
        })
        .await
        .ok()
        .flatten()
    }

    /// Waits for a decision about one review.
    pub(super) async fn decides(&mut self, method: &str, review: ReviewId) -> Option<Value> {
        self.says(|message| message["method"] == method && message["params"]["review"] == review.0)
            .await
    }

    pub(super) fn tell(&self, line: &str) {
        if let Some(outgoing) = &self.outgoing {
            // Whether it still listens is asked later.
            let _ = outgoing.send(line.to_owned());
        }
    }

    /// The text that an acceptance means: its own, or that of the draft if the plugin sent the user's edits one by one. Call it once the
    /// plugin has ended: a message is seen here before the backend has handled it.
    pub(super) fn accepted_text(&self, accepted: &Value, review: ReviewId) -> Option<String> {
        let has_edited = self.heard.iter().any(|heard| {
            (heard["method"] == "review/change" || heard["method"] == "review/edit")
                && heard["params"]["review"] == review.0
        });
        let sent = accepted["params"]["content"].as_str().map(str::to_owned);
        sent.or_else(|| self.backend.accepted_draft().filter(|_| has_edited))
    }

    pub(super) async fn is_running(&mut self) -> bool {
        match &mut self.group {
            Some(group) => tokio::time::timeout(LOOK_TIMEOUT, group.exited()).await.is_err(),
            None => false,
        }
    }

    /// Closes its stdin and returns whether it exited. What it sends before that is still recorded.
    pub(super) async fn hang_up(&mut self) -> bool {
        let was_running = self.is_running().await;
        self.outgoing = None;
        let Some(mut group) = self.group.take() else {
            return false;
        };
        let ended = tokio::time::timeout(PLUGIN_TIMEOUT, group.exited()).await.is_ok();
        // What it started and left behind would keep the pipe open.
        group.end().await;
        let rest = async {
            while let Some(message) = self.incoming.recv().await {
                self.heard.push(message);
            }
        };
        // A process in a group of its own still has the pipe.
        let _ = tokio::time::timeout(REST_TIMEOUT, rest).await;
        was_running && ended
    }
}

/// Forwards the plugin's messages to the backend, and reports them.
async fn listen(
    plugin: impl AsyncBufReadExt + Unpin,
    mut backend: impl AsyncWrite + Unpin,
    hear: mpsc::UnboundedSender<Value>,
) {
    let mut lines = plugin.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message = serde_json::from_str(&line).unwrap_or_else(|_| Value::from(line.as_str()));
        let gone = hear.send(message).is_err();
        if gone || backend.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            break;
        }
    }
}

/// Passes what the backend says on to the plugin, and notes what is refused.
async fn pass_on(
    backend: impl AsyncBufReadExt + Unpin,
    tell: mpsc::WeakUnboundedSender<String>,
    refusals: RefusedRequests,
) {
    let mut lines = backend.lines();
    while let Ok(Some(line)) = lines.next_line().await {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        if let Some(sentence) = message["error"]["message"].as_str() {
            refusals.lock().push(sentence.to_owned());
        }
        let Some(tell) = tell.upgrade() else { break };
        if tell.send(line).is_err() {
            break;
        }
    }
}

async fn speak(mut plugin: impl AsyncWrite + Unpin, mut told: mpsc::UnboundedReceiver<String>) {
    while let Some(line) = told.recv().await {
        if plugin.write_all(format!("{line}\n").as_bytes()).await.is_err() {
            break;
        }
    }
}
