//! Session updates: `session/update` of an ACP agent, `session_update` of the daemon.

use serde_json::Value;

use super::{
    ContentBlock, ModeInfo, ModelInfo, Models, Modes, PlanEntry, SlashCommand, TokenUsage, ToolCallPatch, list_of,
    owned_text, text_of,
};

#[derive(Clone, Debug, PartialEq)]
pub enum SessionUpdate {
    /// A chunk of a user message.
    UserMessage(ContentBlock),
    /// A chunk of the agent's answer.
    AgentMessage {
        /// May be empty.
        content: ContentBlock,
        /// The message that it belongs to, if the agent tells.
        message_id: Option<String>,
        /// So far; usually with the last chunk.
        usage: Option<TokenUsage>,
    },
    AgentThought(ContentBlock),
    ToolCall(ToolCallPatch),
    /// The whole plan.
    Plan(Vec<PlanEntry>),
    /// In tokens.
    ContextUsage {
        used: u64,
        size: u64,
    },
    Commands {
        commands: Vec<SlashCommand>,
        /// The names of the agent's skills.
        skills: Vec<String>,
    },
    Mode(String),
    Title(String),
    /// The session's options changed: read the modes and models again.
    ConfigOptions(Value),
    /// Unknown or incomplete.
    Unknown {
        name: String,
        /// The whole update.
        data: Value,
    },
}

impl SessionUpdate {
    /// Reads an update, with or without its `{sessionId, update}` wrapper.
    pub fn read(data: &Value) -> Self {
        let update = data.get("update").filter(|update| update.is_object()).unwrap_or(data);
        let name = text_of(update, "sessionUpdate").unwrap_or_default();
        Self::read_known(name, update).unwrap_or_else(|| Self::Unknown {
            name: name.to_owned(),
            data: update.clone(),
        })
    }

    fn read_known(name: &str, update: &Value) -> Option<Self> {
        let content = || update.get("content").map(ContentBlock::from);
        Some(match name {
            "user_message_chunk" => Self::UserMessage(content()?),
            "agent_message_chunk" => Self::AgentMessage {
                content: content()?,
                message_id: text_of(update, "messageId").map(str::to_owned),
                usage: update
                    .get("_meta")
                    .and_then(|meta| meta.get("usage"))
                    .map(read_token_usage),
            },
            "agent_thought_chunk" => Self::AgentThought(content()?),
            "tool_call" | "tool_call_update" => Self::ToolCall(ToolCallPatch::read(update)?),
            "plan" => Self::Plan(update.get("entries")?.as_array()?.iter().map(read_plan_entry).collect()),
            "usage_update" => Self::ContextUsage {
                used: update.get("used")?.as_u64()?,
                size: update.get("size")?.as_u64()?,
            },
            "available_commands_update" => {
                let commands = update.get("availableCommands")?.as_array()?;
                let skills = update
                    .get("_meta")
                    .map_or(&[][..], |meta| list_of(meta, "availableSkills"));
                Self::Commands {
                    commands: commands.iter().filter_map(read_slash_command).collect(),
                    skills: skills.iter().filter_map(Value::as_str).map(str::to_owned).collect(),
                }
            }
            "current_mode_update" => {
                let mode = text_of(update, "currentModeId").or_else(|| text_of(update, "modeId"))?;
                Self::Mode(mode.to_owned())
            }
            "session_info_update" => Self::Title(text_of(update, "title")?.to_owned()),
            "config_option_update" => Self::ConfigOptions(update.get("configOptions")?.clone()),
            _ => return None,
        })
    }
}

fn read_plan_entry(value: &Value) -> PlanEntry {
    PlanEntry {
        content: owned_text(value, "content"),
        priority: owned_text(value, "priority"),
        status: owned_text(value, "status"),
    }
}

fn read_slash_command(value: &Value) -> Option<SlashCommand> {
    let hint = value.get("input").and_then(|input| text_of(input, "hint"));
    Some(SlashCommand {
        name: text_of(value, "name")?.to_owned(),
        description: owned_text(value, "description"),
        hint: hint.filter(|hint| !hint.is_empty()).map(str::to_owned),
    })
}

fn read_token_usage(value: &Value) -> TokenUsage {
    let number = |name: &str| value.get(name).and_then(Value::as_u64).unwrap_or_default();
    TokenUsage {
        input_tokens: number("inputTokens"),
        output_tokens: number("outputTokens"),
        total_tokens: number("totalTokens"),
        thought_tokens: number("thoughtTokens"),
        cached_read_tokens: number("cachedReadTokens"),
    }
}

/// Reads the models from a session's state; `None` if it has none.
///
/// Agents list them under `models`; newer ones as one of their `configOptions`.
pub fn read_models(state: &Value) -> Option<Models> {
    if let Some(models) = state.get("models").filter(|models| models.is_object()) {
        let model = |value: &Value| {
            let id = text_of(value, "modelId")?.to_owned();
            Some(ModelInfo {
                name: text_of(value, "name").unwrap_or(&id).to_owned(),
                description: text_of(value, "description").map(str::to_owned),
                context_limit: value.pointer("/_meta/contextLimit").and_then(Value::as_u64),
                id,
            })
        };
        return Some(Models {
            current: text_of(models, "currentModelId").map(str::to_owned),
            available: list_of(models, "availableModels").iter().filter_map(model).collect(),
        });
    }
    let option = config_option(state, "model")?;
    Some(Models {
        current: text_of(option, "currentValue").map(str::to_owned),
        available: choices(option)
            .map(|(id, name, description)| ModelInfo {
                id,
                name,
                description,
                context_limit: None,
            })
            .collect(),
    })
}

/// Reads the modes from a session's state; `None` if it has none.
pub fn read_modes(state: &Value) -> Option<Modes> {
    if let Some(modes) = state.get("modes").filter(|modes| modes.is_object()) {
        let mode = |value: &Value| {
            let id = text_of(value, "id")?.to_owned();
            Some(ModeInfo {
                name: text_of(value, "name").unwrap_or(&id).to_owned(),
                description: text_of(value, "description").map(str::to_owned),
                id,
            })
        };
        return Some(Modes {
            current: text_of(modes, "currentModeId").map(str::to_owned),
            available: list_of(modes, "availableModes").iter().filter_map(mode).collect(),
        });
    }
    let option = config_option(state, "mode")?;
    Some(Modes {
        current: text_of(option, "currentValue").map(str::to_owned),
        available: choices(option)
            .map(|(id, name, description)| ModeInfo { id, name, description })
            .collect(),
    })
}

fn config_option<'a>(state: &'a Value, category: &str) -> Option<&'a Value> {
    let options = list_of(state, "configOptions");
    options
        .iter()
        .find(|option| text_of(option, "category") == Some(category))
}

fn choices(option: &Value) -> impl Iterator<Item = (String, String, Option<String>)> {
    list_of(option, "options").iter().filter_map(|value| {
        let id = text_of(value, "value")?.to_owned();
        let name = text_of(value, "name").unwrap_or(&id).to_owned();
        let description = text_of(value, "description").filter(|text| !text.is_empty());
        Some((id, name, description.map(str::to_owned)))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn update_is_read_with_or_without_wrapper() {
        let flat = json!({"sessionUpdate": "agent_message_chunk", "content": {"type": "text", "text": "Hi"}});
        let expected = SessionUpdate::AgentMessage {
            content: "Hi".into(),
            message_id: None,
            usage: None,
        };
        assert_eq!(SessionUpdate::read(&flat), expected);
        assert_eq!(
            SessionUpdate::read(&json!({"sessionId": "s", "update": flat})),
            expected
        );
    }

    #[test]
    fn unknown_or_incomplete_update_keeps_its_name() {
        for (update, expected) in [
            (json!({"sessionUpdate": "hologram"}), "hologram"),
            (json!({"sessionUpdate": "agent_message_chunk"}), "agent_message_chunk"),
            (json!({"sessionUpdate": "usage_update", "used": "many"}), "usage_update"),
            (json!({}), ""),
            (json!(null), ""),
        ] {
            let read = SessionUpdate::read(&update);
            assert!(
                matches!(&read, SessionUpdate::Unknown { name, .. } if name == expected),
                "{update}: {read:?}"
            );
        }
    }

    #[test]
    fn models_and_modes_are_read_from_both_places() {
        let old = json!({
            "models": {"currentModelId": "a", "availableModels": [{"modelId": "a", "name": "A", "_meta": {"contextLimit": 9}}]},
            "modes": {"currentModeId": "auto", "availableModes": [{"id": "auto", "name": "Auto"}]},
        });
        let new = json!({"configOptions": [
            {"id": "m", "category": "model", "currentValue": "a", "options": [{"value": "a", "name": "A", "description": ""}]},
            {"id": "o", "category": "mode", "currentValue": "auto", "options": [{"value": "auto", "name": "Auto"}]},
        ]});
        assert_eq!(read_models(&old).unwrap().available[0].context_limit, Some(9));
        for state in [&old, &new] {
            let models = read_models(state).unwrap();
            assert_eq!(
                (models.current.as_deref(), models.available[0].name.as_str()),
                (Some("a"), "A")
            );
            let allowed = read_modes(state).unwrap();
            assert_eq!(
                (allowed.current.as_deref(), allowed.available[0].name.as_str()),
                (Some("auto"), "Auto")
            );
        }
        assert_eq!(read_models(&json!({})), None);
        assert_eq!(read_modes(&json!({"modes": null})), None);
    }
}
