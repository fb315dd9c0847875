//! The chat: its state, and what front ends and the agent exchange through the companion.

mod command;
mod content;
mod event;
mod permission;
mod session;
mod tool;
mod turns;

pub use command::{AgentCommand, AgentReply, MAX_PROMPT_ID_BYTES};
pub use content::{ContentBlock, is_image};
pub use event::{AgentEvent, DisconnectKind, EARLIER_MESSAGES_DROPPED, NoticeLevel, TurnEnd};
pub use permission::{
    Answers, OptionKind, PermissionDecision, PermissionOption, PermissionRequest, Question, QuestionChoice,
};
pub use session::{
    Abilities, ConnectedSession, Locality, ModeInfo, ModelInfo, Models, Modes, PlanEntry, PreflightCell,
    SessionSummary, SlashCommand, TokenUsage,
};
pub use tool::{Location, ToolCall, ToolContent, ToolStatus};
pub use turns::turn_starts;

use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// Everything about the chat.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatState {
    /// The available agents.
    pub agents: Vec<ChatAgent>,
    #[serde(flatten)]
    pub changed: ChatChanged,
    /// Names the log. With another epoch, everything that was shown is to be cleared.
    pub epoch: Arc<str>,
    /// The number of the last event.
    pub sequence: u64,
    /// The compacted log: shown from the start, it results in the current state.
    pub events: Vec<Arc<AgentEvent>>,
}

/// An available agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatAgent {
    pub id: String,
    pub name: String,
    pub kind: ChatAgentKind,
    /// Why it cannot be used now, as a sentence.
    pub problem: Option<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatAgentKind {
    /// Started by the companion.
    Child,
    Daemon,
}

/// The chat without its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatChanged {
    /// The id of the selected agent.
    pub agent: Option<String>,
    pub phase: ChatPhase,
    pub writes: ChatWrites,
}

/// The connection to the agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatPhase {
    /// Never connected.
    #[default]
    Idle,
    Connecting,
    Connected,
    /// Lost, and reconnecting automatically.
    Interrupted,
    /// Ended, or failed to connect.
    Ended,
}

/// What happens to files that a local agent wants to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatWrites {
    /// They are reviewed first.
    #[default]
    Review,
    /// They are written.
    Allow,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatConnect {
    /// The agent's id.
    pub agent: String,
    /// Refuse instead of replacing a connection that is in use.
    #[serde(default)]
    pub if_idle: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatCommand {
    pub command: AgentCommand,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatWritesChoice {
    pub writes: ChatWrites,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatEvent {
    /// The log that it belongs to.
    pub epoch: Arc<str>,
    /// One more than that of the previous event.
    pub sequence: u64,
    pub event: Arc<AgentEvent>,
}

#[cfg(test)]
mod tests;
