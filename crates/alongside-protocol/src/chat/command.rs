//! What a front end can ask of an agent.

use alongside_core::SessionId;
use serde::{Deserialize, Serialize};

use super::{ContentBlock, PermissionDecision, SessionSummary};

/// The limit for the id of [`AgentCommand::Prompt`].
pub const MAX_PROMPT_ID_BYTES: usize = 64;

/// The outcome of most commands arrives as [`super::AgentEvent`]s.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentCommand {
    /// Sends a message. It is queued while a turn is running.
    Prompt {
        blocks: Vec<ContentBlock>,
        /// Chosen by the front end, at most [`MAX_PROMPT_ID_BYTES`] long. A prompt whose id was accepted before is not sent again;
        /// the response is the same.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Sends a message that the agent receives during the running turn, with its next step. If there is no next step, it is the next
    /// prompt. Without a turn, without [`super::Abilities::mid_turn`], or if it is too long for that, it is like
    /// [`AgentCommand::Prompt`].
    MidTurn {
        blocks: Vec<ContentBlock>,
        /// As in [`AgentCommand::Prompt`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
    },
    /// Removes a turn and everything after it from the conversation. Files stay as they are.
    Rewind {
        /// The number of turns that stay; a turn starts with a message, unless the agent received it during another turn.
        turn: usize,
    },
    /// Reads an attached image, to show it.
    ReadAttachment {
        /// [`ContentBlock::Attachment::name`].
        name: String,
    },
    /// Cancels the running turn.
    Cancel,
    /// Decides a permission request or answers a question.
    Answer {
        request_id: String,
        decision: PermissionDecision,
    },
    /// Removes a prompt from the queue.
    RemoveQueued {
        prompt_id: String,
    },
    SetModel {
        model_id: String,
    },
    SetMode {
        mode_id: String,
    },
    /// Lists the workspace's sessions, most recently used first.
    ListSessions {
        /// [`AgentReply::Sessions::next_cursor`] of the previous page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cursor: Option<String>,
    },
    /// Starts a new session in place of the current one.
    NewSession,
    /// Opens an old session, with its history, in place of the current one.
    LoadSession {
        session_id: SessionId,
    },
    /// Renames the current session.
    Rename {
        title: String,
    },
    /// Finds workspace files for a mention in a prompt: at most 100, best match first, without ignored files.
    FindFiles {
        /// Part of a path, or a pattern such as `src/**/*.rs`.
        pattern: String,
    },
}

/// The immediate response to an [`AgentCommand`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentReply {
    Done,
    /// The prompt was accepted as this turn.
    Prompt {
        prompt_id: String,
    },
    /// The request is no longer open, or the prompt has already started.
    TooLate,
    Sessions {
        sessions: Vec<SessionSummary>,
        /// Present if there is another page.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    },
    Files {
        /// Relative to the workspace.
        paths: Vec<String>,
    },
    Attachment {
        /// In base 64.
        data: String,
    },
}
