//! A change that an agent proposed and a person decides.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::difference::ChangeSize;
use crate::session::SessionId;

/// The number by which people name a review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReviewId(pub u64);

impl fmt::Display for ReviewId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What a proposal is compared with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Base {
    /// The file does not exist yet.
    Missing,
    /// The text of the file, byte for byte: byte order mark, line endings and all.
    Text(Arc<str>),
}

impl Base {
    /// The text to compare with; empty for a file that does not exist.
    pub fn text(&self) -> &str {
        match self {
            Self::Missing => "",
            Self::Text(text) => text,
        }
    }
}

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    /// The path exactly as the agent wrote it. Agents recognise answers by this very string.
    pub path: Arc<str>,
    /// What the file holds now.
    pub base: Base,
    /// What it shall hold.
    pub text: Arc<str>,
    /// How much that changes.
    pub size: ChangeSize,
}

impl Proposal {
    /// A proposal to make `path`, which holds `base`, hold `text`. Comparing large texts takes a while.
    pub fn new(path: impl Into<Arc<str>>, base: Base, text: impl Into<Arc<str>>) -> Self {
        let text = text.into();
        let size = ChangeSize::between(base.text(), &text);
        Self {
            path: path.into(),
            base,
            text,
            size,
        }
    }
}

/// A proposal while it waits for its decision.
///
/// Its identity is (session, path, revision): the session that asked is the only one that is ever told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Its number.
    pub id: ReviewId,
    /// Who asked.
    pub session: SessionId,
    /// What people call who asked.
    pub agent: String,
    /// The path exactly as the agent wrote it.
    pub path: Arc<str>,
    /// Counts the proposals of one session for one path.
    pub revision: u32,
    /// What the file held when the proposal came.
    pub base: Base,
    /// What the agent proposed.
    pub proposal: Arc<str>,
    /// What would be accepted now: the proposal with the person's edits.
    pub draft: Arc<str>,
    /// How much accepting it now would change.
    pub size: ChangeSize,
    /// When the proposal came.
    pub opened_unix_milliseconds: u64,
}

impl Review {
    /// Whether a person has changed the proposal.
    pub fn is_edited(&self) -> bool {
        self.draft != self.proposal
    }
}

/// How a review ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Outcome {
    /// A person accepted it.
    Accepted,
    /// A person rejected it.
    Rejected,
    /// It was answered in the agent's own terminal.
    ClosedByAgent,
    /// The agent went away, so that nobody waits for an answer.
    Orphaned,
    /// The companion is shutting down.
    ShutDown,
}

impl fmt::Display for Outcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::ClosedByAgent => "answered in the agent's terminal",
            Self::Orphaned => "dropped, because its agent went away",
            Self::ShutDown => "rejected, because the companion was shutting down",
        })
    }
}

/// What the agent that asked is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Write this.
    Accepted {
        /// The path, byte for byte as the agent wrote it.
        path: Arc<str>,
        /// The final text.
        content: Arc<str>,
    },
    /// Write nothing.
    Rejected {
        /// The path, byte for byte as the agent wrote it.
        path: Arc<str>,
    },
}

impl Verdict {
    /// The path that it is about.
    pub fn path(&self) -> &Arc<str> {
        match self {
            Self::Accepted { path, .. } | Self::Rejected { path } => path,
        }
    }
}
