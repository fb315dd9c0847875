//! What an agent writes to its hook's stdin.

use std::path::PathBuf;

use alongside_core::HookAgent;
use serde_json::{Map, Value};

/// One start of a hook, in the same form for every agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) agent: HookAgent,
    pub(super) event: Event,
    pub(super) session: String,
    pub(super) cwd: PathBuf,
    /// Absent if the agent does not report it.
    pub(super) mode: Option<String>,
    pub(super) tool: String,
    pub(super) input: Map<String, Value>,
}

/// Why the hook was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// Before a tool runs.
    Tool,
    /// In place of the agent's own question (Qwen Code).
    Permission,
    /// The user sent a prompt.
    Prompt,
    /// Something that is not reviewed.
    Other,
}

impl Call {
    /// The error is for the user.
    pub(super) fn parse(agent: HookAgent, stdin: &[u8]) -> Result<Self, String> {
        let value: Value = serde_json::from_slice(stdin).map_err(|error| format!("stdin is not JSON: {error}"))?;
        let Value::Object(object) = value else {
            return Err("stdin is not a JSON object".to_owned());
        };
        let names = Names::of(agent);
        let text = |name: &str| object.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        let cwd = PathBuf::from(text("cwd"));
        if !cwd.is_absolute() {
            return Err("`cwd` is not an absolute path".to_owned());
        }
        let event = match text("hook_event_name").as_str() {
            // Copilot CLI does not name the event.
            "" if agent == HookAgent::Copilot => Event::Tool,
            "PreToolUse" | "BeforeTool" | "tool.execute.before" => Event::Tool,
            "PermissionRequest" => Event::Permission,
            "UserPromptSubmit" | "BeforeAgent" => Event::Prompt,
            _ => Event::Other,
        };
        Ok(Self {
            agent,
            event,
            session: text(names.session),
            cwd,
            mode: Some(text("permission_mode")).filter(|mode| !mode.is_empty()),
            tool: text(names.tool),
            input: input(object.get(names.input))?,
        })
    }

    pub(super) fn is_mode(&self, mode: &str) -> bool {
        self.mode.as_deref() == Some(mode)
    }
}

/// The arguments of a tool call: an object, or JSON in a string.
fn input(value: Option<&Value>) -> Result<Map<String, Value>, String> {
    match value {
        None | Some(Value::Null) => Ok(Map::new()),
        Some(Value::Object(input)) => Ok(input.clone()),
        Some(Value::String(json)) => {
            serde_json::from_str(json).map_err(|error| format!("the tool's arguments are not an object: {error}"))
        }
        Some(_) => Err("the tool's arguments are not an object".to_owned()),
    }
}

struct Names {
    session: &'static str,
    tool: &'static str,
    input: &'static str,
}

impl Names {
    fn of(agent: HookAgent) -> Self {
        match agent {
            HookAgent::Copilot => Self {
                session: "sessionId",
                tool: "toolName",
                input: "toolArgs",
            },
            _ => Self {
                session: "session_id",
                tool: "tool_name",
                input: "tool_input",
            },
        }
    }
}
