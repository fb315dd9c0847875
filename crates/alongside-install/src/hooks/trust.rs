//! What Codex remembers about the hooks that the user trusts. It writes that into its own settings, by the hook's position.

use std::path::Path;

use alongside_core::HookAgent;
use serde_json::Value;
use toml::Table;

use super::definition::marker;

/// Events in the hooks' file and in Codex' settings.
const EVENTS: [(&str, &str); 2] = [
    ("PreToolUse", "pre_tool_use"),
    ("UserPromptSubmit", "user_prompt_submit"),
];

/// The settings without what they have about our hooks, which are in the file at `path` with this text. `None` if there is nothing, or if
/// it is not as Codex writes it.
pub(super) fn forget(settings: &str, path: &Path, hooks: &str) -> Option<String> {
    let before: Table = settings.parse().ok()?;
    let names = names(path, hooks);
    let mut expected = before.clone();
    let state = expected.get_mut("hooks")?.get_mut("state")?.as_table_mut()?;
    state.retain(|name, _| names.iter().all(|own| own != name));
    let is_empty = state.is_empty();
    let mut text = settings.to_owned();
    for name in &names {
        text = without_table(&text, &format!("[hooks.state.\"{name}\"]"));
    }
    if is_empty {
        text = without_table(&text, "[hooks.state]");
        let hooks = expected.get_mut("hooks")?.as_table_mut()?;
        hooks.remove("state");
        if hooks.is_empty() {
            expected.remove("hooks");
        }
    }
    let is_right = text.parse::<Table>().ok()? == expected;
    (is_right && text != settings).then_some(text)
}

/// What Codex calls our hooks.
fn names(path: &Path, hooks: &str) -> Vec<String> {
    let hooks: Value = serde_json::from_str(hooks).unwrap_or_default();
    let mut names = Vec::new();
    for (event, own) in EVENTS {
        let groups = hooks["hooks"][event].as_array().into_iter().flatten().enumerate();
        for (group, entry) in groups {
            let entries = entry["hooks"].as_array().into_iter().flatten().enumerate();
            let ours = entries.filter(|(_, hook)| hook.to_string().contains(&marker(HookAgent::Codex)));
            names.extend(ours.map(|(hook, _)| format!("{}:{own}:{group}:{hook}", path.display())));
        }
    }
    names
}

/// A text without a table: from its header, and the empty line before it, to the next header.
fn without_table(text: &str, header: &str) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let Some(mut start) = lines.iter().position(|line| line.trim() == header) else {
        return text.to_owned();
    };
    let rest = &lines[start + 1..];
    let length = rest.iter().position(|line| line.trim_start().starts_with('['));
    let end = length.map_or(lines.len(), |length| start + 1 + length);
    // The empty line before the next header stays.
    if end == lines.len() && start > 0 && lines[start - 1].trim().is_empty() {
        start -= 1;
    }
    [&lines[..start], &lines[end..]].concat().concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: &str = "model = \"x\"\n\n[tui]\na = 1\n";
    /// As Codex 0.166.0 writes it.
    const TRUSTED: &str = "\n[hooks.state]\n\n[hooks.state.\"/home/ada/.codex/hooks.json:pre_tool_use:1:0\"]\ntrusted_hash = \"sha256:0\"\n\n[hooks.state.\"/home/ada/.codex/hooks.json:user_prompt_submit:0:0\"]\ntrusted_hash = \"sha256:1\"\n";
    const HOOKS: &str = r#"{"hooks": {
        "PreToolUse": [{"hooks": [{"command": "mine"}]}, {"hooks": [{"command": "'/opt/alongside' hook codex"}]}],
        "UserPromptSubmit": [{"hooks": [{"command": "'/opt/alongside' hook codex"}]}]
    }}"#;

    fn forgotten(settings: &str) -> Option<String> {
        forget(settings, Path::new("/home/ada/.codex/hooks.json"), HOOKS)
    }

    #[test]
    fn trust_of_our_hooks_is_forgotten_without_a_trace() {
        assert_eq!(forgotten(&format!("{BEFORE}{TRUSTED}")).as_deref(), Some(BEFORE));
        assert_eq!(forgotten(BEFORE), None);
        assert_eq!(forgotten("not TOML ["), None);
    }

    #[test]
    fn everything_else_stays() {
        let other = "[hooks.state.\"/home/ada/.codex/hooks.json:pre_tool_use:0:0\"]\ntrusted_hash = \"sha256:2\"\n";
        let settings = format!("{BEFORE}{TRUSTED}\n{other}\n[last]\nb = 2\n");
        let expected = format!("{BEFORE}\n[hooks.state]\n\n{other}\n[last]\nb = 2\n");
        assert_eq!(forgotten(&settings), Some(expected));
        // Not as Codex writes it.
        let inline = "[hooks]\nstate = {\"/home/ada/.codex/hooks.json:pre_tool_use:1:0\" = {trusted_hash = \"x\"}}\n";
        assert_eq!(forgotten(inline), None);
    }
}
