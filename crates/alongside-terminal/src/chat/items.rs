//! What a conversation consists of.

use alongside_protocol::chat::{ContentBlock, PermissionRequest, ToolCall};

/// The status of a tool call whose turn ended before it.
pub(crate) const STOPPED: &str = "stopped";

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Closed {
    Decided {
        option: Option<String>,
        own: bool,
    },
    /// The agent stopped before it had an answer.
    Expired,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Approval {
    pub(crate) request: PermissionRequest,
    /// Votes received and still needed, where one is not enough.
    pub(crate) votes: Option<(u64, u64)>,
    /// How it ended; `None` while it is open.
    pub(crate) closed: Option<Closed>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Information,
    Warning,
    Unsupported,
    Problem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "each item is behind an `Arc`")]
pub(crate) enum Item {
    User {
        prompt: Option<String>,
        text: String,
        others: Vec<ContentBlock>,
        own: bool,
        /// Whether the agent received it during a turn: it starts none.
        mid_turn: bool,
    },
    Answer {
        prompt: Option<String>,
        text: String,
    },
    Thinking {
        prompt: Option<String>,
        text: String,
    },
    Block(ContentBlock),
    Tool {
        call: ToolCall,
        approval: Option<Approval>,
    },
    Notice {
        level: Level,
        message: String,
    },
}

impl Item {
    pub(super) fn open_approval(&self) -> Option<&Approval> {
        match self {
            Self::Tool { approval, .. } => approval.as_ref().filter(|approval| approval.closed.is_none()),
            _ => None,
        }
    }

    pub(super) fn is_message(&self, id: Option<&str>) -> bool {
        matches!(self, Self::User { prompt, .. } if id.is_some() && prompt.as_deref() == id)
    }

    pub(super) fn starts_turn(&self) -> bool {
        matches!(self, Self::User { mid_turn: false, .. })
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct QueuedPrompt {
    pub(crate) id: String,
    pub(crate) text: String,
    /// Whether it was sent from a front end of this companion.
    pub(super) own: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Turn {
    pub(super) prompt: Option<String>,
    pub(crate) is_cancelling: bool,
}
