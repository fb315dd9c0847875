//! What can be asked of an agent, whichever way it is connected.

use serde::{Deserialize, Serialize};

use crate::acp::AcpError;
use crate::conversation::{ContentBlock, PermissionDecision};
use crate::daemon::{DaemonError, SessionSummary};

/// Something to do. The outcome of most comes as [`crate::AgentEvent`]s.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentCommand {
    /// Say something. A prompt while a turn is going on waits its turn.
    Prompt {
        /// What.
        blocks: Vec<ContentBlock>,
    },
    /// Cancel the turn that is going on.
    Cancel,
    /// Answer an approval or a question.
    Answer {
        /// Which.
        request_id: String,
        /// What.
        decision: PermissionDecision,
    },
    /// Take a prompt out of the queue.
    RemoveQueued {
        /// Which.
        prompt_id: String,
    },
    /// Use another model.
    SetModel {
        /// Which.
        model_id: String,
    },
    /// Put another mode in force.
    SetMode {
        /// Which.
        mode_id: String,
    },
    /// List the sessions of the directory, those that were used last first.
    ListSessions {
        /// Where the page before has ended: [`AgentReply::Sessions`] says it.
        #[serde(default)]
        cursor: Option<String>,
    },
    /// Begin a new session in place of this one.
    NewSession,
    /// Open an old session, with its history, in place of this one.
    LoadSession {
        /// Which.
        session_id: String,
    },
    /// Give this session a name.
    Rename {
        /// Which.
        title: String,
    },
    /// Find files of the workspace, for a mention in a prompt. There are at most 100, the best first; ignored ones are not among them.
    FindFiles {
        /// A part of a path as somebody types it, or a pattern such as `src/**/*.rs`.
        pattern: String,
    },
}

/// What comes back at once.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentReply {
    /// It was done.
    Done,
    /// The prompt was accepted as this turn.
    Prompt {
        /// The turn.
        prompt_id: String,
    },
    /// There was nothing to do any more: the approval was answered, the prompt has begun.
    TooLate,
    /// The sessions.
    Sessions {
        /// A page of them.
        sessions: Vec<SessionSummary>,
        /// What to ask for the next page with, if there is one.
        #[serde(skip_serializing_if = "Option::is_none")]
        next_cursor: Option<String>,
    },
    /// Files.
    Files {
        /// Their paths, from the directory of the workspace.
        paths: Vec<String>,
    },
}

/// Why something was not done.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// There is no session.
    #[error("not connected to an agent")]
    NotConnected,
    /// The approval is not open.
    #[error("this request is no longer open")]
    NoSuchRequest,
    /// A prompt without anything in it.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// The pattern is none.
    #[error("invalid file pattern: {0}")]
    Pattern(String),
    /// The agent cannot do this.
    #[error("this agent cannot {0}")]
    Unsupported(&'static str),
    /// The daemon did not do it.
    #[error(transparent)]
    Daemon(#[from] DaemonError),
    /// The child did not do it.
    #[error(transparent)]
    Acp(#[from] AcpError),
}

impl AgentError {
    /// What a person can do about it, if anything.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::Daemon(error) => error.hint().map(str::to_owned),
            Self::Acp(error) => error.hint(),
            _ => None,
        }
    }
}
