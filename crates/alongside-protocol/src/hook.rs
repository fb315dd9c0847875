//! Reviews for hook processes: an agent starts `alongside hook` before it changes files, and does what that answers.

use std::sync::Arc;

use alongside_core::HookAgent;
use serde::{Deserialize, Serialize};

use crate::long_text;

/// One tool call of an agent, as changes to files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookReview {
    pub agent: HookAgent,
    /// The agent's own id of its session.
    pub session: String,
    /// Each file once.
    pub files: Vec<HookFile>,
    /// Other requests for the same change that follow an acceptance within a minute. They are accepted without a review, once.
    #[serde(default)]
    pub followed_by: Vec<HookFollower>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookFile {
    /// Absolute, with symlinks resolved.
    pub path: Arc<str>,
    /// The whole proposed text; absent if the file is to be deleted.
    #[serde(
        default,
        skip_serializing_if = "Option::is_none",
        deserialize_with = "long_text::optional"
    )]
    pub content: Option<Arc<str>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HookFollower {
    /// `hook/review` of the same session.
    Hook,
    /// `openDiff` of the same agent.
    Diff,
}

/// The decisions, in the order of the files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookReviewed {
    pub files: Vec<HookOutcome>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase")]
pub enum HookOutcome {
    Accepted {
        /// The text to write; absent if it is what was proposed.
        #[serde(
            default,
            skip_serializing_if = "Option::is_none",
            deserialize_with = "long_text::optional"
        )]
        content: Option<Arc<str>>,
    },
    Rejected {
        /// The user's reason, or why the change cannot be reviewed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reason: Option<Arc<str>>,
    },
}

/// An agent's session, as its hooks name it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HookSession {
    pub agent: HookAgent,
    pub session: String,
}
