//! The tools that each agent offers its model.

use std::fmt::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use serde_json::{Value, json};

/// Whose tools a request has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tools {
    Gemini,
    Qwen,
    Claude,
    Opencode,
    Copilot,
    Codex,
}

/// A tool call of the model.
#[derive(Debug, PartialEq)]
pub(super) struct Call {
    pub(super) name: &'static str,
    /// A string for Codex's patches, which are not JSON.
    pub(super) input: Value,
}

impl Call {
    pub(super) fn new(name: &'static str, input: Value) -> Self {
        Self { name, input }
    }

    /// An id for the next call. Agents ignore a call with the id of an earlier one, even one of an earlier model.
    pub(super) fn next_id() -> String {
        static CALLS: AtomicU64 = AtomicU64::new(1);
        format!("call_{}", CALLS.fetch_add(1, Ordering::Relaxed))
    }
}

impl Tools {
    /// `None` if the request has no tools to change files with, such as one for a title.
    pub(super) fn of(request: &Value) -> Option<Self> {
        // Gemini CLI leaves its tools out of some requests that a test answers with a call.
        if request.get("contents").is_some() {
            return Some(Self::Gemini);
        }
        let tools: Vec<&str> = request["tools"].as_array()?.iter().filter_map(name).collect();
        let is_responses = request.get("input").is_some();
        match () {
            () if is_responses => tools.contains(&"apply_patch").then_some(Self::Codex),
            () if tools.contains(&"Write") => Some(Self::Claude),
            () if tools.contains(&"write") => Some(Self::Opencode),
            () if tools.contains(&"create") => Some(Self::Copilot),
            () => (!tools.is_empty()).then_some(Self::Qwen),
        }
    }

    pub(super) fn read(self, path: &str) -> Call {
        match self {
            Self::Gemini | Self::Qwen => Call::new("read_file", json!({"file_path": path})),
            Self::Claude => Call::new("Read", json!({"file_path": path})),
            Self::Opencode => Call::new("read", json!({"filePath": path})),
            Self::Copilot => Call::new("view", json!({"path": path})),
            Self::Codex => Call::new("exec_command", json!({"cmd": format!("cat {path}")})),
        }
    }

    /// Asks the editor; Codex and opencode have no such tool.
    pub(super) fn diagnostics(self, path: &str) -> Call {
        let uri = json!({"uri": format!("file://{path}")});
        match self {
            Self::Gemini => Call::new("mcp_alongside_getDiagnostics", json!({"path": path})),
            Self::Claude => Call::new("mcp__ide__getDiagnostics", uri),
            Self::Copilot => Call::new("ide-get_diagnostics", uri),
            Self::Qwen | Self::Codex | Self::Opencode => {
                Call::new("mcp__alongside__getDiagnostics", json!({"path": path}))
            }
        }
    }

    pub(super) fn write(self, path: &str, text: &str) -> Call {
        match self {
            Self::Gemini | Self::Qwen => Call::new("write_file", json!({"file_path": path, "content": text})),
            Self::Claude => Call::new("Write", json!({"file_path": path, "content": text})),
            Self::Opencode => Call::new("write", json!({"filePath": path, "content": text})),
            Self::Copilot => Call::new("create", json!({"path": path, "file_text": text})),
            Self::Codex => patch(&format!("*** Add File: {path}\n{}", marked('+', text))),
        }
    }

    pub(super) fn edit(self, path: &str, old: &str, new: &str) -> Call {
        match self {
            Self::Gemini | Self::Qwen => {
                let name = if self == Self::Gemini { "replace" } else { "edit" };
                let input = json!({"file_path": path, "instruction": "Edit.", "old_string": old, "new_string": new});
                Call::new(name, input)
            }
            Self::Claude => Call::new("Edit", json!({"file_path": path, "old_string": old, "new_string": new})),
            Self::Opencode => Call::new("edit", json!({"filePath": path, "oldString": old, "newString": new})),
            Self::Copilot => Call::new("edit", json!({"path": path, "old_str": old, "new_str": new})),
            Self::Codex => {
                let (old, new) = (marked('-', old), marked('+', new));
                patch(&format!("*** Update File: {path}\n@@\n{old}{new}"))
            }
        }
    }
}

fn name(tool: &Value) -> Option<&str> {
    tool["name"].as_str().or_else(|| tool["function"]["name"].as_str())
}

fn patch(changes: &str) -> Call {
    Call::new(
        "apply_patch",
        json!(format!("*** Begin Patch\n{changes}*** End Patch\n")),
    )
}

/// Whole lines, each with a mark in front.
fn marked(mark: char, text: &str) -> String {
    text.lines().fold(String::new(), |mut lines, line| {
        let _ = writeln!(lines, "{mark}{line}");
        lines
    })
}
