//! Reviews: changes that agents propose, and the decisions about them.

use std::sync::Arc;

use alongside_core::difference::ChangeSize;
use alongside_core::draft::{Hunk, HunkChange, HunkDecision, HunkId};
use alongside_core::{AgentIdentity, BaseKind, Review, ReviewId, ReviewOutcome, SessionKey, TextChange};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::long_text;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRef {
    pub review: ReviewId,
}

/// A rejection.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reject {
    pub review: ReviewId,
    /// For the agent. Ignored unless the review's `takesReason` is set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Arc<str>>,
}

impl From<ReviewId> for Reject {
    /// Without a reason.
    fn from(review: ReviewId) -> Self {
        Self { review, reason: None }
    }
}

/// A new draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    pub review: ReviewId,
    /// The whole text.
    #[serde(deserialize_with = "long_text::required")]
    pub content: Arc<str>,
}

/// A change to parts of the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    pub review: ReviewId,
    /// The version of the draft that the offsets are for.
    pub version: u64,
    /// In ascending order.
    pub changes: Vec<TextChange>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// Grows with every change to the draft.
    pub version: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DecideHunkParams {
    pub review: ReviewId,
    pub hunk: HunkId,
    pub decision: HunkAction,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkAction {
    /// Use the agent's text.
    Accept,
    /// Use the file's text.
    Reject,
    /// Keep the draft's text; this resolves a conflict.
    Keep,
}

impl From<HunkAction> for HunkDecision {
    fn from(action: HunkAction) -> Self {
        match action {
            HunkAction::Accept => Self::Accepted,
            HunkAction::Reject => Self::Rejected,
            HunkAction::Keep => Self::Kept,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accept {
    pub review: ReviewId,
    /// The whole final text; absent accepts the draft.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "long_text::optional"
    )]
    pub content: Option<Arc<str>>,
    /// Accept an empty text although the agent treats it as "not edited".
    #[serde(default)]
    pub even_if_empty: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewDecided {
    pub review: ReviewId,
    pub outcome: ReviewOutcome,
}

/// An agent's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionRef {
    pub session: SessionKey,
}

/// The result of deciding all reviews of one agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BulkDecision {
    pub decided: Vec<ReviewId>,
    pub refused: Vec<Undecided>,
}

/// A review that could not be decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Undecided {
    pub review: ReviewId,
    /// Why, as a sentence.
    pub message: String,
}

/// A review without its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewSummary {
    pub id: ReviewId,
    /// As the agent wrote it.
    pub path: Arc<str>,
    /// The agent's name.
    pub agent: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_version: Option<String>,
    pub session: SessionKey,
    /// Counts the proposals of this agent for this file.
    pub revision: u32,
    /// Counts the changes to the draft.
    pub version: u64,
    /// Whether the file does not exist yet.
    pub new_file: bool,
    /// Whether the draft differs from the proposal.
    pub edited: bool,
    /// How much accepting the draft would change.
    pub size: ChangeSize,
    /// How many hunks conflict with later changes to the file.
    pub conflicts: usize,
    /// Whether the reason for a rejection reaches the agent.
    pub takes_reason: bool,
    /// In milliseconds since the Unix epoch.
    pub opened: u64,
}

impl From<&Review> for ReviewSummary {
    fn from(review: &Review) -> Self {
        Self {
            id: review.id,
            path: review.path.clone(),
            agent: review.agent.name.clone(),
            agent_version: review.agent.version.clone(),
            session: review.session.clone(),
            revision: review.revision,
            version: review.version,
            new_file: review.base == BaseKind::Missing,
            edited: review.is_edited(),
            size: review.size(),
            conflicts: review.conflicts(),
            takes_reason: review.session.takes_reason(),
            opened: review.opened_unix_milliseconds,
        }
    }
}

impl ReviewSummary {
    pub fn agent_identity(&self) -> AgentIdentity {
        AgentIdentity {
            name: self.agent.clone(),
            version: self.agent_version.clone(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewTexts {
    #[serde(flatten)]
    pub summary: ReviewSummary,
    /// The file's text; absent if it does not exist or is not UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Arc<str>>,
    /// The agent's text.
    pub proposal: Arc<str>,
    /// What would be accepted now.
    pub draft: Arc<str>,
    pub hunks: Vec<Hunk>,
    /// Invisible changes, as sentences.
    pub notes: Vec<String>,
}

impl From<&Review> for ReviewTexts {
    fn from(review: &Review) -> Self {
        let (base, draft) = (review.draft().base(), review.text());
        Self {
            summary: review.into(),
            base: (review.base == BaseKind::Text).then(|| base.clone()),
            proposal: review.draft().proposal().clone(),
            draft: draft.clone(),
            hunks: review.draft().hunks().collect(),
            notes: review.notes().iter().map(ToString::to_string).collect(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewEdited {
    pub review: ReviewId,
    /// The version of the draft after the edit.
    pub version: u64,
    /// Relative to the previous version.
    pub changes: Vec<TextChange>,
    pub hunks: HunkChange,
    /// The id of the request that caused it, for the front end that sent that request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Value>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRebased {
    pub review: ReviewId,
    /// How many hunks must be resolved.
    pub conflicts: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewClosed {
    pub review: ReviewId,
    pub path: Arc<str>,
    pub outcome: ReviewOutcome,
}

/// Two texts to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    pub base: Arc<str>,
    pub proposal: Arc<str>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunks {
    pub hunks: Vec<Hunk>,
}
