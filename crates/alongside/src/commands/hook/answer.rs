//! What a hook prints, in each agent's form.
//!
//! An answer is one line of JSON in ASCII: Gemini CLI decodes it chunk by chunk and damages a character that two chunks share.

use std::fmt::Write;
use std::path::PathBuf;
use std::sync::Arc;

use alongside_core::HookAgent;
use serde_json::{Map, Value, json};

use super::call::Event;

/// The answer to a tool call, in the same form for every agent.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Answer {
    /// The agent does what it does without a hook.
    Nothing,
    Allow {
        /// The whole arguments, if they are others.
        input: Option<Map<String, Value>>,
        /// What the model must know.
        note: Option<String>,
    },
    /// With the reason for the model.
    Deny(String),
    /// The agent asks in its terminal, whatever its mode.
    Ask(String),
    /// The hook writes the accepted text, and denies the call with this sentence.
    Write {
        path: PathBuf,
        text: Arc<str>,
        sentence: String,
    },
}

impl Answer {
    /// What to print; empty for nothing.
    pub(super) fn encode(&self, agent: HookAgent, event: Event) -> String {
        let value = match agent {
            HookAgent::Qwen if event == Event::Permission => qwen_permission(self),
            HookAgent::Claude | HookAgent::Codex | HookAgent::Qwen => before_tool(agent, self),
            HookAgent::Gemini => gemini(self),
            HookAgent::Copilot => copilot(self),
            HookAgent::Opencode => Some(opencode(self)),
        };
        value.map(|value| ascii(&value)).unwrap_or_default()
    }
}

/// The answer to a prompt hook.
pub(super) fn encode_context(agent: HookAgent, context: &str) -> String {
    let event = match agent {
        HookAgent::Gemini => "BeforeAgent",
        _ => "UserPromptSubmit",
    };
    ascii(&json!({ "hookSpecificOutput": { "hookEventName": event, "additionalContext": context } }))
}

fn before_tool(agent: HookAgent, answer: &Answer) -> Option<Value> {
    let mut output = json!({ "hookEventName": "PreToolUse" });
    let (decision, reason) = match answer {
        Answer::Nothing => return None,
        Answer::Allow { input, note } => {
            if let Some(input) = input {
                output["updatedInput"] = json!(input);
            }
            if let Some(note) = note {
                output["additionalContext"] = json!(note);
            }
            ("allow", "The user accepted this change.")
        }
        Answer::Deny(reason) | Answer::Write { sentence: reason, .. } => ("deny", reason.as_str()),
        // Codex has no such answer, and what it does not understand it ignores.
        Answer::Ask(reason) if agent == HookAgent::Codex => ("deny", reason.as_str()),
        Answer::Ask(reason) => ("ask", reason.as_str()),
    };
    output["permissionDecision"] = json!(decision);
    output["permissionDecisionReason"] = json!(reason);
    Some(json!({ "hookSpecificOutput": output }))
}

fn qwen_permission(answer: &Answer) -> Option<Value> {
    let decision = match answer {
        // Without an answer, Qwen Code asks.
        Answer::Nothing | Answer::Ask(_) => return None,
        Answer::Allow { input: None, .. } => json!({ "behavior": "allow" }),
        Answer::Allow { input: Some(input), .. } => json!({ "behavior": "allow", "updatedInput": input }),
        Answer::Deny(reason) | Answer::Write { sentence: reason, .. } => {
            json!({ "behavior": "deny", "message": reason })
        }
    };
    Some(json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } }))
}

fn gemini(answer: &Answer) -> Option<Value> {
    Some(match answer {
        Answer::Nothing => return None,
        Answer::Allow { input: None, .. } => json!({ "decision": "allow" }),
        // Gemini CLI itself reports the new text to the model.
        Answer::Allow { input: Some(input), .. } => json!({
            "decision": "allow",
            "hookSpecificOutput": { "hookEventName": "BeforeTool", "tool_input": input },
        }),
        // Its terminal shows only the message. `ask` would block a run without a terminal forever.
        Answer::Deny(reason) | Answer::Ask(reason) | Answer::Write { sentence: reason, .. } => {
            json!({ "decision": "deny", "reason": reason, "systemMessage": reason })
        }
    })
}

fn copilot(answer: &Answer) -> Option<Value> {
    Some(match answer {
        Answer::Nothing => return None,
        Answer::Allow { input, note } => {
            let mut value = json!({ "permissionDecision": "allow" });
            if let Some(input) = input {
                value["modifiedArgs"] = json!(input);
            }
            if let Some(note) = note {
                value["additionalContext"] = json!(note);
            }
            value
        }
        Answer::Deny(reason) | Answer::Write { sentence: reason, .. } => {
            json!({ "permissionDecision": "deny", "permissionDecisionReason": reason })
        }
        Answer::Ask(reason) => json!({ "permissionDecision": "ask", "permissionDecisionReason": reason }),
    })
}

/// Our own plugin reads this.
fn opencode(answer: &Answer) -> Value {
    match answer {
        Answer::Nothing => json!({ "decision": "allow" }),
        Answer::Allow { input, note } => {
            let mut value = json!({ "decision": "allow" });
            if let Some(input) = input {
                value["tool_input"] = json!(input);
            }
            if let Some(note) = note {
                value["note"] = json!(note);
            }
            value
        }
        Answer::Deny(reason) | Answer::Ask(reason) | Answer::Write { sentence: reason, .. } => {
            json!({ "decision": "deny", "reason": reason })
        }
    }
}

fn ascii(value: &Value) -> String {
    let json = value.to_string();
    let mut escaped = String::with_capacity(json.len());
    for character in json.chars() {
        // Only strings have other characters, so an escape is valid wherever one occurs.
        if matches!(character, ' '..='~') {
            escaped.push(character);
        } else {
            for unit in character.encode_utf16(&mut [0; 2]) {
                let _ = write!(escaped, "\\u{unit:04x}");
            }
        }
    }
    escaped
}
