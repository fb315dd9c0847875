//! Reading conversations, whatever their transport.
//!
//! The daemon and ACP agents describe a conversation in the same JSON: session updates, tool calls, permission requests. It is read here
//! once, and leniently: agents are ahead of their specification, and an unknown update is kept with its name instead of being dropped.

mod permission;
mod tool;
pub(crate) mod translator;
mod update;

pub use alongside_protocol::chat::{
    Answers, ContentBlock, ModeInfo, ModelInfo, Models, Modes, OptionKind, PermissionDecision, PermissionOption,
    PermissionRequest, PlanEntry, Question, QuestionChoice, SlashCommand, TokenUsage, ToolCall, ToolContent, TurnEnd,
};
pub use permission::{Vote, read_pending_interaction, read_permission_request};
pub use tool::{ToolCallPatch, ToolCards};
pub use translator::{Source, Translator};
pub use update::{SessionUpdate, read_models, read_modes};

use serde_json::Value;

/// A string field.
pub(crate) fn text_of<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}

/// A string field; empty if it is missing.
pub(crate) fn owned_text(value: &Value, name: &str) -> String {
    text_of(value, name).unwrap_or_default().to_owned()
}

/// The entries of a list field; empty if it is missing.
pub(crate) fn list_of<'a>(value: &'a Value, name: &str) -> &'a [Value] {
    value.get(name).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}
