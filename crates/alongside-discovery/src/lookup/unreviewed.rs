//! Why an agent, as it is set up, would change files without a review.
//!
//! An agent that shows no changes to editors needs a hook. A hook can be missing, point to a program that is gone, be turned off in the
//! agent's settings, or not be trusted yet.

use std::path::{Path, PathBuf};

use alongside_core::HookAgent;
use serde_json::Value;

use super::locks::{Advice, parse_json, read_json};
use crate::{Environment, Platform};

/// The first of these that applies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Unreviewed {
    /// The hook's program is gone, so the hook does nothing.
    Stale(PathBuf),
    /// This setting turns the hook off, or would.
    Off(&'static str),
    /// Codex runs a hook only if it was told to trust it.
    Untrusted,
    /// There is no hook, and without one it shows no changes.
    NoHook,
}

/// What is wrong for an agent started in `directory`; `None` if its changes are reviewed.
pub fn unreviewed(agent: HookAgent, environment: &Environment, directory: &Path) -> Option<Unreviewed> {
    if agent == HookAgent::Opencode {
        return plugin(environment);
    }
    let settings: Vec<Value> = settings_files(agent, environment, directory)
        .iter()
        .filter_map(|path| read_json(path))
        .collect();
    let hooks = settings.iter().map(|settings| &settings["hooks"]);
    let commands: Vec<&str> = hooks.flat_map(|hooks| commands(hooks, agent)).collect();
    let mut programs = commands.iter().filter_map(|command| program(command));
    if let Some(gone) = programs.find(|program| is_gone(program, environment)) {
        return Some(Unreviewed::Stale(gone));
    }
    if commands.is_empty() && shows_changes(agent, &settings) {
        return None;
    }
    // Nothing to turn on again: no hook can be installed there.
    if commands.is_empty() && environment.platform == Platform::Windows {
        return Some(Unreviewed::NoHook);
    }
    if let Some(setting) = settings.iter().find_map(|settings| turned_off(agent, settings)) {
        return Some(Unreviewed::Off(setting));
    }
    if commands.is_empty() {
        return Some(Unreviewed::NoHook);
    }
    let is_untrusted = agent == HookAgent::Codex && !settings.iter().all(|hooks| is_trusted(hooks, environment));
    is_untrusted.then_some(Unreviewed::Untrusted)
}

impl Unreviewed {
    /// What is wrong, and what works on this platform: hooks need a POSIX shell.
    pub fn advice(&self, agent: HookAgent, platform: Platform) -> Advice {
        let id = agent.id();
        let has_hooks = platform != Platform::Windows;
        match self {
            Self::Stale(program) => Advice::new(
                format!("its review hook starts {}, which does not exist", program.display()),
                if has_hooks {
                    format!("Run `alongside install {id}` again, or `alongside uninstall {id}`.")
                } else {
                    format!("Run `alongside uninstall {id}`. {}", instead_of_hook(agent))
                },
            ),
            Self::Off(setting) => Advice::new(
                format!("`{setting}` in its settings turns its review hook off"),
                if has_hooks {
                    format!("Remove that setting, and run `alongside install {id}`, to have every change reviewed.")
                } else {
                    instead_of_hook(agent)
                },
            ),
            Self::Untrusted => Advice::new(
                "its review hook is not trusted, and then it is not run",
                "Start Codex and choose to trust the hook where it shows \"Hooks need review\".",
            ),
            Self::NoHook if has_hooks => {
                let install = format!("Run `alongside install {id}` to have every change reviewed");
                let (message, otherwise) = without_hook(agent);
                let otherwise = otherwise.map(|start| format!(", or {start}")).unwrap_or_default();
                Advice::new(message, format!("{install}{otherwise}."))
            }
            Self::NoHook => Advice::new(without_hook(agent).0, instead_of_hook(agent)),
        }
    }
}

/// What to do where no hook can be installed.
fn instead_of_hook(agent: HookAgent) -> String {
    match without_hook(agent) {
        (_, Some(start)) => format!("To have every change reviewed, {start}."),
        (_, None) => format!(
            "On Windows its changes cannot be reviewed. In WSL they can: run `alongside` and `alongside install {}` there.",
            agent.id()
        ),
    }
}

/// Why an agent without a hook needs one, and how else to have its changes reviewed.
fn without_hook(agent: HookAgent) -> (&'static str, Option<&'static str>) {
    match agent {
        HookAgent::Claude => (
            "in its default permission mode, Claude Code writes files without showing the change",
            Some("start it with `alongside run claude` or `claude --permission-mode default`"),
        ),
        HookAgent::Qwen => (
            "in its default approval mode, Qwen Code writes files without showing the change",
            Some("start it with `alongside run qwen` or `qwen --approval-mode default`"),
        ),
        HookAgent::Gemini => (
            "in the approval mode of its settings, Gemini CLI writes files without showing the change",
            Some("start it with `gemini --approval-mode default`"),
        ),
        HookAgent::Codex => ("Codex shows its changes to no editor", None),
        HookAgent::Opencode => ("opencode writes files without showing the change", None),
        HookAgent::Copilot => ("Copilot CLI writes files without showing the change", None),
    }
}

/// Later ones take precedence.
fn settings_files(agent: HookAgent, environment: &Environment, directory: &Path) -> Vec<PathBuf> {
    match agent {
        HookAgent::Claude => vec![
            environment.claude_home().join("settings.json"),
            directory.join(".claude").join("settings.json"),
            directory.join(".claude").join("settings.local.json"),
        ],
        HookAgent::Codex => vec![environment.codex_home().join("hooks.json")],
        HookAgent::Copilot => vec![environment.copilot_home().join("settings.json")],
        HookAgent::Gemini => vec![
            environment.gemini_home().join("settings.json"),
            directory.join(".gemini").join("settings.json"),
        ],
        HookAgent::Qwen => vec![
            environment.qwen_home().join("settings.json"),
            directory.join(".qwen").join("settings.json"),
        ],
        HookAgent::Opencode => Vec::new(),
    }
}

/// Whether the agent proposes its changes to editors, or asks in the terminal, without a hook.
fn shows_changes(agent: HookAgent, settings: &[Value]) -> bool {
    let last = |pointer: &str| {
        let values = settings.iter().rev();
        let mut values = values.filter_map(|settings| settings.pointer(pointer)?.as_str());
        values.next()
    };
    match agent {
        HookAgent::Claude => matches!(last("/permissions/defaultMode"), Some("default" | "manual" | "plan")),
        HookAgent::Qwen => matches!(last("/tools/approvalMode"), Some("default" | "plan")),
        HookAgent::Gemini => last("/general/defaultApprovalMode") != Some("auto_edit"),
        HookAgent::Copilot => true,
        HookAgent::Codex | HookAgent::Opencode => false,
    }
}

fn turned_off(agent: HookAgent, settings: &Value) -> Option<&'static str> {
    match agent {
        HookAgent::Claude | HookAgent::Qwen => (settings["disableAllHooks"] == true).then_some("disableAllHooks"),
        HookAgent::Gemini if settings["hooksConfig"]["enabled"] == false => Some("hooksConfig.enabled"),
        HookAgent::Gemini => {
            let names = settings["hooksConfig"]["disabled"].as_array();
            let is_named = names.is_some_and(|names| names.iter().any(|name| name == "alongside"));
            is_named.then_some("hooksConfig.disabled")
        }
        HookAgent::Codex | HookAgent::Copilot | HookAgent::Opencode => None,
    }
}

/// The commands of our hooks.
fn commands(hooks: &Value, agent: HookAgent) -> Vec<&str> {
    let mut commands = Vec::new();
    collect(hooks, &mut commands);
    let ours = format!(" hook {}", agent.id());
    commands.retain(|command| command.contains(&ours));
    commands
}

/// All strings that a hook can run.
fn collect<'a>(value: &'a Value, commands: &mut Vec<&'a str>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| collect(value, commands)),
        Value::Object(fields) => {
            for (name, value) in fields {
                match value {
                    Value::String(command) if ["command", "bash"].contains(&name.as_str()) => commands.push(command),
                    value => collect(value, commands),
                }
            }
        }
        _ => {}
    }
}

/// The program that our hook in a settings file, or opencode's plugin, starts.
pub fn hook_program(agent: HookAgent, text: &str) -> Option<PathBuf> {
    if agent == HookAgent::Opencode {
        return plugin_program(text);
    }
    let settings = parse_json(text)?;
    let commands = commands(&settings["hooks"], agent);
    commands.into_iter().find_map(program)
}

/// The path in the first pair of single quotes: the installer quotes its program.
pub fn program(command: &str) -> Option<PathBuf> {
    // A quote in the path ends the pair and starts another one.
    const QUOTE: &str = "'\\''";
    let (_, mut rest) = command.split_once('\'')?;
    let mut path = String::new();
    loop {
        let end = rest.find('\'')?;
        path.push_str(&rest[..end]);
        match rest[end..].strip_prefix(QUOTE) {
            Some(more) => (path, rest) = (path + "'", more),
            None => break,
        }
    }
    Some(PathBuf::from(path)).filter(|path| path.is_absolute())
}

/// Whether Codex was told to trust our hook. It remembers that by the hook's position.
fn is_trusted(hooks: &Value, environment: &Environment) -> bool {
    let text = std::fs::read_to_string(environment.codex_home().join("config.toml")).unwrap_or_default();
    let Ok(settings) = text.parse::<toml::Table>() else {
        return false;
    };
    let known = settings.get("hooks").and_then(|hooks| hooks.get("state"));
    let known = known.and_then(toml::Value::as_table);
    let is_known = |group: usize, hook: usize| {
        let position = format!("hooks.json:pre_tool_use:{group}:{hook}");
        let is_meant =
            |(name, state): (&String, &toml::Value)| name.ends_with(&position) && state.get("trusted_hash").is_some();
        known.is_some_and(|known| known.iter().any(is_meant))
    };
    let groups = hooks["hooks"]["PreToolUse"].as_array().into_iter().flatten();
    groups.enumerate().all(|(group, entry)| {
        let own = entry["hooks"].as_array().into_iter().flatten().enumerate();
        let mut own = own.filter(|(_, hook)| !commands(hook, HookAgent::Codex).is_empty());
        own.all(|(hook, _)| is_known(group, hook))
    })
}

/// The plugin of opencode names its program in one line.
fn plugin(environment: &Environment) -> Option<Unreviewed> {
    let home = environment.home.clone().unwrap_or_default();
    let configuration = environment.variable("XDG_CONFIG_HOME").map(PathBuf::from);
    let configuration = configuration.unwrap_or_else(|| home.join(".config")).join("opencode");
    let files = ["plugin", "plugins"].map(|name| configuration.join(name).join("alongside.js"));
    let Some(text) = files.iter().find_map(|file| std::fs::read_to_string(file).ok()) else {
        return Some(Unreviewed::NoHook);
    };
    // A file without that line is the user's own.
    plugin_program(&text)
        .filter(|program| is_gone(program, environment))
        .map(Unreviewed::Stale)
}

/// Hooks look for a program that was moved on the PATH.
fn is_gone(program: &Path, environment: &Environment) -> bool {
    !program.is_file() && !environment.has_program("alongside")
}

fn plugin_program(text: &str) -> Option<PathBuf> {
    let program = text.lines().find_map(|line| line.strip_prefix("const installed = "))?;
    serde_json::from_str(program.trim_end_matches(';')).ok()
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::super::fixture::Fixture;
    use super::*;

    fn write(fixture: &Fixture, below: &str, text: &str) {
        let path = fixture.path(below);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn found(fixture: &Fixture, agent: HookAgent) -> Option<Unreviewed> {
        unreviewed(agent, &fixture.environment, &fixture.path("project"))
    }

    /// Settings with our hook, as it is installed.
    fn hook(fixture: &Fixture, agent: HookAgent) -> Value {
        let program = fixture.path("home/it's alongside");
        let quoted = format!("'{}'", program.to_str().unwrap().replace('\'', "'\\''"));
        let command = format!("[ -x {quoted} ] || exit 0; {quoted} hook {}", agent.id());
        let hook = json!({"type": "command", "command": command});
        json!({"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "mine"}]}, {"hooks": [hook]}]}})
    }

    const FILES: [(HookAgent, &str); 5] = [
        (HookAgent::Claude, "home/.claude/settings.json"),
        (HookAgent::Codex, "home/.codex/hooks.json"),
        (HookAgent::Copilot, "home/.copilot/settings.json"),
        (HookAgent::Gemini, "home/.gemini/settings.json"),
        (HookAgent::Qwen, "home/.qwen/settings.json"),
    ];

    #[test]
    fn agent_that_shows_no_changes_needs_a_hook() {
        let fixture = Fixture::new();
        for agent in HookAgent::ALL {
            let shows = matches!(agent, HookAgent::Copilot | HookAgent::Gemini);
            let expected = (!shows).then_some(Unreviewed::NoHook);
            assert_eq!(found(&fixture, agent), expected, "{agent:?}");
        }
        for (agent, settings, expected) in [
            (
                HookAgent::Claude,
                json!({"permissions": {"defaultMode": "default"}}),
                None,
            ),
            (
                HookAgent::Claude,
                json!({"permissions": {"defaultMode": "manual"}}),
                None,
            ),
            (HookAgent::Qwen, json!({"tools": {"approvalMode": "default"}}), None),
            (
                HookAgent::Qwen,
                json!({"tools": {"approvalMode": "yolo"}}),
                Some(Unreviewed::NoHook),
            ),
            (
                HookAgent::Gemini,
                json!({"general": {"defaultApprovalMode": "auto_edit"}}),
                Some(Unreviewed::NoHook),
            ),
        ] {
            let (_, file) = FILES.into_iter().find(|(known, _)| *known == agent).unwrap();
            write(&fixture, file, &settings.to_string());
            assert_eq!(found(&fixture, agent), expected, "{settings}");
        }
        // The project's settings take precedence.
        write(
            &fixture,
            "project/.gemini/settings.json",
            r#"{"general": {"defaultApprovalMode": "default"}}"#,
        );
        assert_eq!(found(&fixture, HookAgent::Gemini), None);
    }

    #[test]
    fn hook_whose_program_is_gone_reviews_nothing() {
        let mut fixture = Fixture::new();
        let program = fixture.path("home/it's alongside");
        write(&fixture, "home/.codex/config.toml", &trust("1:0"));
        let plugin = include_str!("../../../alongside-install/src/hooks/opencode.js");
        let plugin = plugin.replace("\"@PROGRAM@\"", &json!(program).to_string());
        write(&fixture, "home/.config/opencode/plugin/alongside.js", &plugin);
        for (agent, file) in FILES {
            write(&fixture, file, &hook(&fixture, agent).to_string());
        }
        for agent in HookAgent::ALL {
            assert_eq!(
                found(&fixture, agent),
                Some(Unreviewed::Stale(program.clone())),
                "{agent:?}"
            );
        }
        fs::write(&program, "").unwrap();
        #[cfg(unix)]
        fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
        for agent in HookAgent::ALL {
            assert_eq!(found(&fixture, agent), None, "{agent:?}");
        }
        // Moved to a directory on the PATH.
        fs::create_dir(fixture.path("bin")).unwrap();
        fs::rename(&program, fixture.path("bin/alongside")).unwrap();
        let path = fixture.path("bin").to_str().unwrap().to_owned();
        fixture.environment = fixture.environment.with("PATH", &path);
        for agent in HookAgent::ALL {
            assert_eq!(found(&fixture, agent), None, "{agent:?}");
        }
    }

    #[test]
    fn hook_that_is_turned_off_reviews_nothing() {
        let fixture = Fixture::new();
        write(&fixture, "home/it's alongside", "");
        for (agent, key, value, setting) in [
            (HookAgent::Claude, "disableAllHooks", json!(true), "disableAllHooks"),
            (HookAgent::Qwen, "disableAllHooks", json!(true), "disableAllHooks"),
            (
                HookAgent::Gemini,
                "hooksConfig",
                json!({"enabled": false}),
                "hooksConfig.enabled",
            ),
            (
                HookAgent::Gemini,
                "hooksConfig",
                json!({"disabled": ["other", "alongside"]}),
                "hooksConfig.disabled",
            ),
        ] {
            let (_, file) = FILES.into_iter().find(|(known, _)| *known == agent).unwrap();
            let mut settings = hook(&fixture, agent);
            settings[key] = value;
            write(&fixture, file, &settings.to_string());
            assert_eq!(found(&fixture, agent), Some(Unreviewed::Off(setting)));
        }
        // A hook would not help.
        write(&fixture, "home/.claude/settings.json", r#"{"disableAllHooks": true}"#);
        let expected = Some(Unreviewed::Off("disableAllHooks"));
        assert_eq!(found(&fixture, HookAgent::Claude), expected);
    }

    /// What Codex writes when the user trusts the hook at this position.
    fn trust(position: &str) -> String {
        format!("[hooks.state.\"/home/ada/.codex/hooks.json:pre_tool_use:{position}\"]\ntrusted_hash = \"sha256:0\"\n")
    }

    #[test]
    fn hook_that_codex_does_not_trust_reviews_nothing() {
        let fixture = Fixture::new();
        write(&fixture, "home/it's alongside", "");
        write(
            &fixture,
            "home/.codex/hooks.json",
            &hook(&fixture, HookAgent::Codex).to_string(),
        );
        assert_eq!(found(&fixture, HookAgent::Codex), Some(Unreviewed::Untrusted));
        // Another hook is trusted.
        write(&fixture, "home/.codex/config.toml", &trust("0:0"));
        assert_eq!(found(&fixture, HookAgent::Codex), Some(Unreviewed::Untrusted));
        write(&fixture, "home/.codex/config.toml", &trust("1:0"));
        assert_eq!(found(&fixture, HookAgent::Codex), None);
    }

    #[test]
    fn every_reason_has_a_next_step() {
        let reasons = [
            Unreviewed::Stale("/gone".into()),
            Unreviewed::Off("x"),
            Unreviewed::Untrusted,
            Unreviewed::NoHook,
        ];
        for (agent, reason) in HookAgent::ALL
            .into_iter()
            .flat_map(|agent| reasons.clone().map(|reason| (agent, reason)))
        {
            for platform in [Platform::Unix, Platform::Windows] {
                let advice = reason.advice(agent, platform);
                assert!(
                    advice.hint.ends_with('.') && !advice.message.ends_with('.'),
                    "{advice:?}"
                );
            }
        }
    }

    #[test]
    fn advice_on_windows_names_no_hook() {
        let mut fixture = Fixture::new();
        fixture.environment.platform = Platform::Windows;
        write(&fixture, "home/.claude/settings.json", r#"{"disableAllHooks": true}"#);
        assert_eq!(found(&fixture, HookAgent::Claude), Some(Unreviewed::NoHook));
        for (agent, works) in [
            (HookAgent::Claude, "`claude --permission-mode default`"),
            (HookAgent::Gemini, "`gemini --approval-mode default`"),
            (HookAgent::Qwen, "`qwen --approval-mode default`"),
        ] {
            for reason in [
                Unreviewed::Stale("/gone".into()),
                Unreviewed::Off("x"),
                Unreviewed::NoHook,
            ] {
                let hint = reason.advice(agent, Platform::Windows).hint;
                assert!(hint.contains(works) && !hint.contains("alongside install"), "{hint}");
            }
        }
        for agent in [HookAgent::Codex, HookAgent::Opencode] {
            let hint = Unreviewed::NoHook.advice(agent, Platform::Windows).hint;
            assert!(hint.contains("In WSL"), "{hint}");
        }
    }
}
