//! The whole loop with a simulated agent, for users without one.
//!
//! The agent is an ordinary client of the agents' port, in the dialect of a real one. Its file is in a directory of its own, so that no
//! user's file is touched, and removed with it. Agents that only receive the context show that instead.

mod context;
mod page;
mod sample;
mod wire;

use alongside_discovery::Announcement;
use anyhow::{Context, Result};

pub use context::context_for;
pub(super) use page::DemoSlot;
use sample::Sample;
use wire::Wire;

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
    sample: Sample,
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
        let sample = tokio::task::spawn_blocking(Sample::create).await??;
        let mut wire = Wire::connect(agent, companion).await?;
        wire.propose(sample.path(), AFTER).await?;
        Ok(Self { wire, sample })
    }

    /// The sample file.
    pub fn path(&self) -> &str {
        self.sample.path()
    }

    /// Waits for the decision and does what an agent would.
    pub async fn finish(&mut self) -> Result<DemoEnd> {
        let decision = self.wire.decided(self.sample.path()).await?;
        let file = self.path().to_owned();
        let is_accepted = decision.is_some();
        let content = tokio::task::spawn_blocking(move || {
            if let Some(content) = &decision {
                std::fs::write(&file, content)?;
            }
            std::fs::read_to_string(&file)
        });
        let content = content
            .await?
            .with_context(|| format!("cannot write {}", self.path()))?;
        self.wire.end().await;
        Ok(DemoEnd { is_accepted, content })
    }

    /// Takes the proposal back.
    pub async fn withdraw(mut self) {
        self.wire.withdraw(self.sample.path()).await;
        self.wire.end().await;
    }
}
