//! The whole loop with a simulated agent, for users without one.
//!
//! The agent is an ordinary client of the agents' port, in the dialect of a real one. Its file is in a directory of its own, so that no
//! user's file is touched, and removed with it. Agents that only receive the context show that instead.

mod context;
mod page;
mod wire;

use std::path::PathBuf;

use alongside_discovery::Announcement;
use anyhow::{Context, Result};
use tempfile::TempDir;

pub use context::context_for;
pub(super) use page::DemoSlot;
use wire::Wire;

const BEFORE: &str = "# Shopping\n\n- bread\n- milk\n- apples\n";
const AFTER: &str = "# Shopping\n\n- rye bread\n- milk\n- apples\n- coffee, which you always forget\n";

/// The agent to simulate.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DemoAgent {
    /// Any MCP client.
    #[default]
    Simple,
    Gemini,
    Qwen,
    Claude,
    Copilot,
}

/// An agent that shows no changes to editors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ContextAgent {
    Opencode,
    Codex,
}

/// A simulated agent that has proposed a change and waits for the decision.
pub struct Demo {
    wire: Wire,
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
    pub async fn start(agent: DemoAgent, companion: &Announcement) -> Result<Self> {
        let (scratch, file) = tokio::task::spawn_blocking(sample).await??;
        let path = file
            .to_str()
            .context("the temporary directory's path is not valid UTF-8")?
            .to_owned();
        let mut wire = Wire::connect(agent, companion).await?;
        wire.propose(&path, AFTER).await?;
        Ok(Self {
            wire,
            path,
            file,
            _scratch: scratch,
        })
    }

    /// The sample file.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// Waits for the decision and does what an agent would.
    pub async fn finish(&mut self) -> Result<DemoEnd> {
        let decision = self.wire.decided(&self.path).await?;
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
        self.wire.end().await;
        Ok(DemoEnd { is_accepted, content })
    }

    /// Takes the proposal back.
    pub async fn withdraw(mut self) {
        self.wire.withdraw(&self.path).await;
        self.wire.end().await;
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
