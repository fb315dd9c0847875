//! The whole loop with a simulated agent, for users without one.
//!
//! The agent is an ordinary client of the agents' port. Its file is in a directory of its own, so that no user's file is touched, and
//! removed with it.

use std::path::PathBuf;
use std::time::Duration;

use alongside_core::dialect::ClientInfo;
use alongside_core::{ReviewId, Secret};
use alongside_mcp::client::{Client, Events};
use alongside_protocol::{ErrorKind, RequestError, ReviewRef};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::task::JoinHandle;

use super::Companion;

const BEFORE: &str = "# Shopping\n\n- bread\n- milk\n- apples\n";
const AFTER: &str = "# Shopping\n\n- rye bread\n- milk\n- apples\n- coffee, which you always forget\n";

/// How long a stop waits for it.
const END_TIMEOUT: Duration = Duration::from_secs(1);

/// A simulated agent that has proposed a change and waits for the decision.
pub struct Demo {
    client: Client,
    events: Events,
    path: String,
    file: PathBuf,
    // Removed when dropped.
    _scratch: TempDir,
}

/// How a demo ended.
#[derive(Debug)]
pub struct DemoEnd {
    pub is_accepted: bool,
    /// The file at the end.
    pub content: String,
}

impl Demo {
    /// Creates the sample file, and proposes a change to it.
    pub async fn start(port: u16, token: &Secret) -> Result<Self> {
        let (scratch, file) = tokio::task::spawn_blocking(sample).await??;
        let path = file
            .to_str()
            .context("the temporary directory's path is not valid UTF-8")?
            .to_owned();
        let client = Client::connect("127.0.0.1", port, token.reveal()).await?;
        let me = ClientInfo {
            name: "demo-agent".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
        };
        client.initialize(&me).await?;
        let demo = Self {
            events: client.events(None).await?,
            client,
            path,
            file,
            _scratch: scratch,
        };
        let answer = demo
            .call("openDiff", json!({ "filePath": demo.path, "newContent": AFTER }))
            .await?;
        if answer["isError"] == json!(true) {
            let reason = answer["content"][0]["text"].as_str().unwrap_or_default();
            bail!("the companion refused the proposal: {reason}");
        }
        Ok(demo)
    }

    /// The sample file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for the decision and does what an agent would.
    pub async fn finish(&mut self) -> Result<DemoEnd> {
        let decision = self.decided().await?;
        let file = self.file.clone();
        let is_accepted = decision.is_some();
        let content = tokio::task::spawn_blocking(move || {
            if let Some(content) = &decision {
                std::fs::write(&file, content)?;
            }
            std::fs::read_to_string(&file)
        });
        let content = content
            .await?
            .with_context(|| format!("cannot write {}", self.file.display()))?;
        let _ = self.client.end().await;
        Ok(DemoEnd { is_accepted, content })
    }

    /// Takes the proposal back.
    pub async fn withdraw(self) {
        let _ = self.call("closeDiff", json!({ "filePath": self.path })).await;
        let _ = self.client.end().await;
    }

    async fn call(&self, tool: &str, arguments: Value) -> Result<Value> {
        let call = json!({ "name": tool, "arguments": arguments });
        Ok(self.client.request("tools/call", call).await?)
    }

    /// The accepted text, or `None` for a rejection.
    async fn decided(&mut self) -> Result<Option<String>> {
        loop {
            let Some(event) = self.events.next().await? else {
                bail!("the companion stopped before you accepted or rejected the change")
            };
            if event["params"]["filePath"] != json!(self.path) {
                continue;
            }
            match event["method"].as_str() {
                Some("ide/diffAccepted") => {
                    return Ok(Some(event["params"]["content"].as_str().unwrap_or_default().to_owned()));
                }
                Some("ide/diffRejected") => return Ok(None),
                _ => {}
            }
        }
    }
}

/// The sample file in a new directory. Blocks.
fn sample() -> Result<(TempDir, PathBuf)> {
    let scratch = tempfile::Builder::new().prefix("alongside-demo-").tempdir();
    let scratch = scratch.context("cannot create a directory for the sample file")?;
    let file = scratch.path().join("shopping.md");
    std::fs::write(&file, BEFORE).with_context(|| format!("cannot write {}", file.display()))?;
    Ok((scratch, file))
}

/// The demo that a front end started. At most one runs at a time.
#[derive(Default)]
pub(super) struct DemoSlot(tokio::sync::Mutex<Option<RunningDemo>>);

struct RunningDemo {
    review: ReviewId,
    task: JoinHandle<()>,
}

impl DemoSlot {
    /// Waits for the demo's end: its change has been decided, or the agents' port was closed.
    pub(super) async fn end(&self) {
        if let Some(demo) = self.0.lock().await.take() {
            let _ = tokio::time::timeout(END_TIMEOUT, demo.task).await;
        }
    }
}

impl Companion {
    /// Opens the sample review, or returns the one that is open.
    pub(super) async fn start_demo(&self) -> Result<ReviewRef, RequestError> {
        let failed = |error: anyhow::Error| {
            let message = format!("cannot start the demo: {error:#}");
            RequestError::new(ErrorKind::Failed, message)
        };
        let mut running = self.demo.0.lock().await;
        if let Some(demo) = running.as_ref().filter(|demo| !demo.task.is_finished())
            && self.review(demo.review).is_ok()
        {
            return Ok(ReviewRef { review: demo.review });
        }
        let (port, token) = self
            .agents_endpoint
            .get()
            .context("the agents' port is not open yet")
            .map_err(failed)?;
        let mut demo = Demo::start(*port, token).await.map_err(failed)?;
        let review = self.reviews().into_iter().find(|review| *review.path == *demo.path);
        let review = review.context("the change was decided already").map_err(failed)?.id;
        let task = tokio::spawn(async move {
            if let Err(error) = demo.finish().await {
                tracing::debug!(%error, "the demo ended early");
            }
        });
        *running = Some(RunningDemo { review, task });
        Ok(ReviewRef { review })
    }
}
