//! Adds hooks and the editor's tools to a settings file and removes them. The file is JSON, with comments in some agents; everything else in it is preserved.

use std::path::Path;

use alongside_core::HookAgent;
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstArray, CstInputValue, CstNode, CstObject, CstRootNode};
use serde_json::{Map, Value};

use super::definition::{Hook, hooks as hooks_of, marker};
use super::tools::{self, Tools};

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Edited {
    /// Nothing to do.
    Already,
    Now(String),
    NotUnderstood(String),
}

pub(super) fn add(text: &str, agent: HookAgent, program: &Path, tools: Tools) -> Edited {
    let text = if text.trim().is_empty() { "{\n}\n" } else { text };
    let (root, settings) = match parse(text) {
        Ok(parsed) => parsed,
        Err(reason) => return Edited::NotUnderstood(reason),
    };
    if settings.get("hooks").is_some() && settings.object_value("hooks").is_none() {
        return Edited::NotUnderstood("its `hooks` is not an object".to_owned());
    }
    let hooks = settings.object_value_or_set("hooks");
    let mut is_changed = false;
    for Hook { event, entry } in hooks_of(agent, program) {
        if hooks.get(event).is_some() && hooks.array_value(event).is_none() {
            return Edited::NotUnderstood(format!("its `hooks.{event}` is not a list"));
        }
        let entries = hooks.array_value_or_set(event);
        let own: Vec<CstNode> = own_entries(&entries, agent);
        let expected = value(&entry);
        let is_as_wanted =
            |node: &CstNode| serde_json::from_str::<Value>(&node.to_string()).ok() == Some(expected.clone());
        if matches!(own.as_slice(), [only] if is_as_wanted(only)) {
            continue;
        }
        is_changed = true;
        for entry in own {
            remove_entry(entry, agent);
        }
        entries.append(entry);
    }
    if tools::are_supported(agent) {
        match tools::register(&settings, agent, program, tools) {
            Ok(is_new) => is_changed |= is_new,
            Err(reason) => return Edited::NotUnderstood(reason),
        }
    }
    if is_changed {
        Edited::Now(root.to_string())
    } else {
        Edited::Already
    }
}

pub(super) fn remove(text: &str, agent: HookAgent) -> Edited {
    if !text.contains(&marker(agent)) && !text.contains(tools::COMMAND) {
        return Edited::Already;
    }
    let (root, settings) = match parse(text) {
        Ok(parsed) => parsed,
        Err(reason) => return Edited::NotUnderstood(reason),
    };
    let has_removed_hooks = remove_hooks(&settings, agent);
    let has_removed_tools = tools::are_supported(agent) && tools::remove(&settings);
    if has_removed_hooks || has_removed_tools {
        Edited::Now(root.to_string())
    } else {
        Edited::Already
    }
}

/// Whether there were any.
fn remove_hooks(settings: &CstObject, agent: HookAgent) -> bool {
    let Some(hooks) = settings.object_value("hooks") else {
        return false;
    };
    let mut is_changed = false;
    for property in hooks.properties() {
        let Some(entries) = property.value().and_then(|value| value.as_array()) else {
            continue;
        };
        let own = own_entries(&entries, agent);
        if own.is_empty() {
            continue;
        }
        is_changed = true;
        for entry in own {
            remove_entry(entry, agent);
        }
        if entries.elements().is_empty() {
            property.remove();
        }
    }
    if is_changed
        && hooks.properties().is_empty()
        && let Some(property) = settings.get("hooks")
    {
        property.remove();
    }
    is_changed
}

/// Whether the settings turn all hooks off.
pub(super) fn is_disabled(text: &str, agent: HookAgent) -> bool {
    let Ok((_, settings)) = parse(text) else { return false };
    let (object, name, disabling) = match agent {
        HookAgent::Gemini => (settings.object_value("hooksConfig"), "enabled", false),
        _ => (Some(settings), "disableAllHooks", true),
    };
    let value = object.and_then(|object| object.get(name)?.value());
    value.is_some_and(|value| value.as_boolean_lit().is_some_and(|value| value.value() == disabling))
}

pub(super) fn parse(text: &str) -> Result<(CstRootNode, CstObject), String> {
    let root = CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| error.to_string())?;
    let settings = root.object_value().ok_or("it is not an object")?;
    Ok((root, settings))
}

fn own_entries(entries: &CstArray, agent: HookAgent) -> Vec<CstNode> {
    let mut own = entries.elements();
    own.retain(|entry| entry.to_string().contains(&marker(agent)));
    own
}

/// Removes an entry, or only our hook if the user has added others to it.
fn remove_entry(entry: CstNode, agent: HookAgent) {
    let inner = entry.as_object().and_then(|entry| entry.array_value("hooks"));
    let others = inner.filter(|inner| own_entries(inner, agent).len() < inner.elements().len());
    match others {
        Some(inner) => own_entries(&inner, agent).into_iter().for_each(CstNode::remove),
        None => entry.remove(),
    }
}

pub(super) fn value(input: &CstInputValue) -> Value {
    match input {
        CstInputValue::Null => Value::Null,
        CstInputValue::Bool(value) => Value::from(*value),
        CstInputValue::Number(number) => serde_json::from_str(number).unwrap_or_default(),
        CstInputValue::String(text) => Value::from(text.as_str()),
        CstInputValue::Array(items) => Value::Array(items.iter().map(value).collect()),
        CstInputValue::Object(properties) => {
            let properties = properties.iter().map(|(name, item)| (name.clone(), value(item)));
            Value::Object(properties.collect::<Map<String, Value>>())
        }
    }
}
