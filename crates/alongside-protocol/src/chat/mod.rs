//! The chat: its state, and what front ends and the agent exchange through the companion.

mod command;
mod content;
mod event;
mod permission;
mod session;
mod tool;

pub use command::{AgentCommand, AgentReply};
pub use content::ContentBlock;
pub use event::{AgentEvent, DisconnectKind, NoticeLevel, TurnEnd};
pub use permission::{
    Answers, OptionKind, PermissionDecision, PermissionOption, PermissionRequest, Question, QuestionChoice,
};
pub use session::{
    Abilities, ConnectedSession, Locality, ModeInfo, ModelInfo, Models, Modes, PlanEntry, PreflightCell,
    SessionSummary, SlashCommand, TokenUsage,
};
pub use tool::{Location, ToolCall, ToolContent, ToolStatus};

use std::sync::Arc;

use alongside_core::draft::Hunk;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Everything about the chat as it is now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatState {
    /// The agents that can be chosen.
    pub agents: Vec<ChatAgent>,
    /// The chosen one, and how it is.
    #[serde(flatten)]
    pub changed: ChatChanged,
    /// Names the log: another one means that everything that was shown is to be forgotten.
    pub epoch: Arc<str>,
    /// The number of the last event.
    pub sequence: u64,
    /// The log, shorter than it happened: shown from the start it gives what there is now.
    pub events: Vec<Arc<Value>>,
}

/// An agent that can be chosen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatAgent {
    /// What it is chosen by.
    pub id: String,
    /// What people call it.
    pub name: String,
    /// How it is connected.
    pub kind: ChatAgentKind,
    /// Why it cannot be used as things are, in a sentence.
    pub problem: Option<String>,
}

/// How an agent is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatAgentKind {
    /// It is started by the companion.
    Child,
    /// It runs in a daemon.
    Daemon,
}

/// What a chat is like beside its events.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ChatChanged {
    /// The agent that was chosen.
    pub agent: Option<String>,
    /// How the connection is.
    pub phase: ChatPhase,
    /// What happens to files that a child wants to write.
    pub writes: ChatWrites,
}

/// How the connection with an agent is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatPhase {
    /// Nobody has asked for one.
    #[default]
    Idle,
    /// It is being made.
    Connecting,
    /// It is there.
    Connected,
    /// It is cut, and comes back by itself.
    Interrupted,
    /// It has ended, or could not be made.
    Over,
}

/// What happens to files that a child wants to write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ChatWrites {
    /// They are reviewed first.
    #[default]
    Review,
    /// They are written.
    Allow,
}

/// The agent to connect to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatConnect {
    /// Its id.
    pub agent: String,
}

/// Something to do for the agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatCommand {
    /// An `AgentCommand`.
    pub command: Value,
}

/// A person's choice about what a child writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatWritesChoice {
    /// The choice.
    pub writes: ChatWrites,
}

/// Something that happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChatEvent {
    /// The log that it belongs to.
    pub epoch: Arc<str>,
    /// Its number: one more than that of the event before.
    pub sequence: u64,
    /// An `AgentEvent`.
    pub event: Arc<Value>,
}

/// Two texts to compare.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Texts {
    /// What there was.
    pub base: Arc<str>,
    /// What there shall be.
    pub proposal: Arc<str>,
}

/// Where two texts differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hunks {
    /// The places.
    pub hunks: Vec<Hunk>,
}

#[cfg(test)]
mod tests;
