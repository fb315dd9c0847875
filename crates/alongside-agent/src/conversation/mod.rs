//! What an agent and a person say to each other, whichever way it travels.
//!
//! The daemon and an ACP child describe a conversation in the same JSON: updates of a session, calls of tools, requests for
//! permission. These are read here, once, and leniently: agents are ahead of their specification, and an update
//! that is not understood is kept with its name instead of being dropped.

mod content;
mod permission;
mod tool;
mod update;

pub use content::ContentBlock;
pub use permission::{
    Answers, OptionKind, PermissionDecision, PermissionOption, PermissionRequest, Question, QuestionChoice, Vote,
};
pub use tool::{Location, ToolCall, ToolCallPatch, ToolCards, ToolContent, ToolStatus};
pub use update::{
    ModeInfo, ModelInfo, Models, Modes, PlanEntry, SessionUpdate, SlashCommand, TokenUsage, read_models, read_modes,
};

use serde::Serialize;
use serde_json::Value;

/// How a turn ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum TurnEnd {
    /// The agent has nothing more to say.
    Completed {
        /// `end_turn`, `cancelled`, `max_tokens` and so on.
        stop_reason: String,
    },
    /// The agent could not go on.
    Failed {
        /// What went wrong.
        message: String,
        /// The agent's code for it.
        code: Option<String>,
    },
}

/// A text field, if it is there and is a text.
pub(crate) fn text_of<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A text field as an owned text; empty if it is missing.
pub(crate) fn owned_text(value: &Value, name: &str) -> String {
    text_of(value, name).unwrap_or_default().to_owned()
}

/// The entries of a list field; none if it is missing.
pub(crate) fn list_of<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
