//! What happens in a conversation with an agent.

use alongside_core::SessionId;
use serde::{Deserialize, Serialize};

use super::{
    ConnectedSession, ContentBlock, Models, Modes, PermissionRequest, PlanEntry, SlashCommand, TokenUsage, ToolCall,
};

/// The notice in place of the start of a conversation that is no longer available.
pub const EARLIER_MESSAGES_DROPPED: &str = "Earlier messages in this conversation are no longer available.";

/// *Invariant:* no event contains a token, an address or a client id.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentEvent {
    /// A session is open. It replaces the one shown before, unless it is [`ConnectedSession::resumed`].
    Connected(ConnectedSession),
    /// Clear the conversation with its turns, queue and permission requests: the history that follows, up to
    /// [`AgentEvent::HistoryEnd`], replaces it.
    HistoryStart {
        /// `loaded`, `ring_evicted`, `epoch_reset`, `session_reopened` and so on.
        reason: String,
    },
    HistoryEnd,
    /// Our own prompt was accepted. Sent once per prompt, before any other event of its turn.
    PromptAccepted {
        prompt_id: String,
        /// Only the text parts.
        text: String,
    },
    /// A message from another client, or from the history.
    UserMessage {
        prompt_id: Option<String>,
        content: ContentBlock,
    },
    /// A message that the agent received during the running turn. It leaves the queue.
    MidTurnMessage {
        /// The turn.
        prompt_id: Option<String>,
        /// The id of the message, under which it was accepted and queued.
        message_id: Option<String>,
        blocks: Vec<ContentBlock>,
        /// Whether the message is ours.
        own: bool,
    },
    /// The conversation was rewound: this turn and everything after it was removed. See [`super::turn_starts`].
    Rewound {
        /// The number of turns that stay.
        turn: usize,
    },
    TurnStarted {
        prompt_id: String,
    },
    AssistantChunk {
        prompt_id: Option<String>,
        content: ContentBlock,
    },
    ThinkingChunk {
        prompt_id: Option<String>,
        content: ContentBlock,
    },
    /// The whole tool call, each time that something about it changes.
    ToolCall {
        prompt_id: Option<String>,
        call: Box<ToolCall>,
    },
    /// The whole plan, each time that it changes.
    Plan {
        entries: Vec<PlanEntry>,
    },
    /// The user must decide a permission request or answer questions.
    ApprovalOpened {
        request: Box<PermissionRequest>,
    },
    /// The request needs more than one vote.
    ApprovalProgress {
        request_id: String,
        received: u64,
        needed: u64,
    },
    /// The request was decided by this or another client.
    ApprovalClosed {
        request_id: String,
        /// `None` if it was cancelled, or if the decision is unknown.
        option_id: Option<String>,
        /// Whether the decision was ours.
        own: bool,
    },
    /// A client asked to cancel the turn, which has not ended yet.
    CancelRequested {
        prompt_id: Option<String>,
    },
    TurnEnded {
        prompt_id: Option<String>,
        end: TurnEnd,
    },
    PromptQueued {
        prompt_id: String,
        text: String,
    },
    /// A queued prompt started or was removed.
    PromptUnqueued {
        prompt_id: String,
        removed: bool,
    },
    Models(Models),
    ModelChanged {
        model_id: String,
    },
    ModelChangeFailed {
        model_id: String,
        message: String,
    },
    Modes(Modes),
    ModeChanged {
        mode_id: String,
    },
    /// What may be typed after a slash.
    Commands {
        commands: Vec<SlashCommand>,
        skills: Vec<String>,
    },
    /// How full the context window is, in tokens.
    ContextUsage {
        used: u64,
        size: u64,
    },
    TokenUsage(TokenUsage),
    Title {
        title: String,
    },
    /// A suggested next prompt.
    Suggestion {
        text: String,
    },
    /// Something worth showing that has no event of its own.
    Notice {
        level: NoticeLevel,
        message: String,
    },
    /// The connection was lost. It is restored automatically, and no event is lost.
    Interrupted {
        reason: String,
        retry_in_milliseconds: u64,
    },
    Reconnected,
    /// The session ended for us. Only an [`AgentEvent::Connected`] can follow.
    Disconnected {
        kind: DisconnectKind,
        /// `kind` as a sentence.
        reason: String,
        /// A session that can be opened again with its history.
        reopen: Option<SessionId>,
    },
}

impl AgentEvent {
    /// The turn that the event belongs to.
    pub fn prompt_id(&self) -> Option<&str> {
        match self {
            Self::PromptAccepted { prompt_id, .. }
            | Self::TurnStarted { prompt_id }
            | Self::PromptQueued { prompt_id, .. }
            | Self::PromptUnqueued { prompt_id, .. } => Some(prompt_id),
            Self::UserMessage { prompt_id, .. }
            | Self::MidTurnMessage { prompt_id, .. }
            | Self::AssistantChunk { prompt_id, .. }
            | Self::ThinkingChunk { prompt_id, .. }
            | Self::ToolCall { prompt_id, .. }
            | Self::CancelRequested { prompt_id }
            | Self::TurnEnded { prompt_id, .. } => prompt_id.as_deref(),
            _ => None,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnEnd {
    Completed {
        /// `end_turn`, `max_tokens` and so on.
        stop_reason: String,
    },
    Cancelled {
        /// In the agent's spelling.
        stop_reason: String,
    },
    Failed {
        message: String,
        /// The agent's error code.
        code: Option<String>,
    },
}

impl TurnEnd {
    /// The end of a turn that the agent stopped for this reason.
    pub fn stopped(stop_reason: impl Into<String>) -> Self {
        let stop_reason = stop_reason.into();
        if matches!(stop_reason.as_str(), "cancelled" | "canceled") {
            Self::Cancelled { stop_reason }
        } else {
            Self::Completed { stop_reason }
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum NoticeLevel {
    Information,
    Warning,
    /// The agent sent something that cannot be shown.
    Unsupported,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum DisconnectKind {
    /// We disconnected.
    Requested,
    /// The agent crashed.
    Died,
    /// Another client closed the session.
    Closed,
    /// The agent requires a different token, or a login.
    Unauthorized,
    Failed,
}
