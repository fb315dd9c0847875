//! What makes an agent without a hook show its changes when `alongside run` starts it.

use std::ffi::OsString;
use std::path::Path;

use alongside_core::HookAgent;
use alongside_discovery::lookup::locks::Advice;
use alongside_discovery::lookup::{Unreviewed, unreviewed};
use alongside_discovery::{Environment, Platform};
use alongside_install::settings_with_hook;

/// In these modes an agent shows its changes, or makes none.
const ASKING_MODES: [&str; 3] = ["default", "manual", "plan"];

#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Review {
    /// To be added before those of the user.
    pub(super) arguments: Vec<String>,
    /// That changes are not reviewed.
    pub(super) note: Option<Advice>,
}

/// For this command, with `program` as the hook's program.
pub(super) fn prepare(command: &[OsString], environment: &Environment, program: &Path) -> Review {
    let Some((agent, given)) = command.split_first() else {
        return Review::default();
    };
    let name = Path::new(agent).file_stem().and_then(|name| name.to_str());
    let Some(agent) = name.and_then(HookAgent::from_id) else {
        return Review::default();
    };
    let Some(reason) = unreviewed(agent, environment, &environment.working_directory) else {
        return Review::default();
    };
    let given: Vec<&str> = given
        .iter()
        .map(|argument| argument.to_str().unwrap_or_default())
        .collect();
    let has_hook = reason != Unreviewed::NoHook;
    let mode = match agent {
        HookAgent::Claude => value(&given, "--permission-mode"),
        HookAgent::Gemini | HookAgent::Qwen => value(&given, "--approval-mode"),
        HookAgent::Codex | HookAgent::Copilot | HookAgent::Opencode => None,
    };
    if mode.is_some_and(|mode| ASKING_MODES.contains(&mode)) {
        return Review::default();
    }
    match agent {
        // A subcommand takes no such option.
        HookAgent::Qwen if !has_hook && mode.is_none() && starts_a_session(&given) => Review {
            arguments: vec!["--approval-mode".to_owned(), "default".to_owned()],
            note: None,
        },
        // No hook can be run there. Without a terminal nobody could answer, and every change would be denied.
        HookAgent::Claude if environment.platform == Platform::Windows && mode.is_none() && asks(&given) => Review {
            arguments: vec!["--permission-mode".to_owned(), "default".to_owned()],
            note: None,
        },
        // Claude Code uses only the last of several.
        HookAgent::Claude
            if !has_hook && value(&given, "--settings").is_none() && environment.platform != Platform::Windows =>
        {
            Review {
                arguments: vec!["--settings".to_owned(), settings_with_hook(agent, program)],
                note: None,
            }
        }
        agent => Review {
            arguments: Vec::new(),
            note: Some(reason.advice(agent, environment.platform)),
        },
    }
}

/// The value of an option.
fn value<'a>(given: &[&'a str], option: &str) -> Option<&'a str> {
    given.iter().enumerate().find_map(|(index, argument)| {
        let rest = argument.strip_prefix(option)?;
        if rest.is_empty() {
            Some(given.get(index + 1).copied().unwrap_or_default())
        } else {
            rest.strip_prefix('=')
        }
    })
}

/// Whether Claude Code, in a mode that asks, can.
fn asks(given: &[&str]) -> bool {
    let cannot = ["-p", "--print", "--dangerously-skip-permissions"];
    !given.iter().any(|argument| cannot.contains(argument))
}

fn starts_a_session(given: &[&str]) -> bool {
    let is_yolo = given.iter().any(|argument| ["-y", "--yolo"].contains(argument));
    !is_yolo && given.first().is_none_or(|first| first.starts_with('-'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prepared(line: &str, environment: &Environment) -> Review {
        let command: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        prepare(&command, environment, Path::new("/opt/alongside"))
    }

    fn environment(home: &Path) -> Environment {
        Environment {
            platform: Platform::Unix,
            ..Environment::new(home, home)
        }
    }

    #[test]
    fn claude_gets_the_hook_on_its_command_line() {
        let home = tempfile::tempdir().unwrap();
        let environment = environment(home.path());
        for line in [
            "claude",
            "/usr/bin/claude --permission-mode acceptEdits",
            "claude -p hello",
        ] {
            let Review { arguments, note } = prepared(line, &environment);
            let [option, settings] = arguments.as_slice() else {
                panic!("{line}: {arguments:?}")
            };
            assert_eq!((option.as_str(), note), ("--settings", None));
            let settings: serde_json::Value = serde_json::from_str(settings).unwrap();
            let command = &settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"];
            assert!(
                command.as_str().unwrap().contains("'/opt/alongside' hook claude"),
                "{settings}"
            );
        }
        for line in [
            "claude --permission-mode default",
            "claude --permission-mode=plan",
            "bash",
            "gemini",
        ] {
            assert_eq!(prepared(line, &environment), Review::default(), "{line}");
        }
        let own = prepared("claude --settings mine.json", &environment);
        assert_eq!(own.arguments, Vec::<String>::new());
        assert!(own.note.unwrap().hint.contains("alongside install claude"));
        std::fs::create_dir(home.path().join(".claude")).unwrap();
        let settings = r#"{"permissions": {"defaultMode": "default"}}"#;
        std::fs::write(home.path().join(".claude/settings.json"), settings).unwrap();
        assert_eq!(prepared("claude", &environment), Review::default());
        std::fs::write(
            home.path().join(".claude/settings.json"),
            r#"{"disableAllHooks": true}"#,
        )
        .unwrap();
        let off = prepared("claude", &environment);
        assert_eq!(off.arguments, Vec::<String>::new(), "it would not be run");
        assert!(off.note.unwrap().message.contains("disableAllHooks"));
    }

    #[test]
    fn claude_is_started_in_the_mode_that_asks_on_windows() {
        let home = tempfile::tempdir().unwrap();
        let windows = Environment {
            platform: Platform::Windows,
            ..Environment::new(home.path(), home.path())
        };
        for line in ["claude", "claude --settings mine.json", "claude.cmd hello"] {
            let review = prepared(line, &windows);
            assert_eq!(review.arguments, ["--permission-mode", "default"], "{line}");
            assert_eq!(review.note, None);
        }
        assert_eq!(prepared("claude --permission-mode plan", &windows), Review::default());
        for line in [
            "claude -p hello",
            "claude --permission-mode acceptEdits",
            "claude --dangerously-skip-permissions",
        ] {
            let review = prepared(line, &windows);
            assert_eq!(review.arguments, Vec::<String>::new(), "{line}");
            let hint = review.note.unwrap().hint;
            assert!(!hint.contains("alongside install"), "{line}: {hint}");
        }
    }

    /// Difference 26: in its default mode, Qwen Code shows changes to no editor.
    #[test]
    fn qwen_is_started_in_the_mode_that_asks() {
        let home = tempfile::tempdir().unwrap();
        let environment = environment(home.path());
        for line in ["qwen", "qwen --model x"] {
            let review = prepared(line, &environment);
            assert_eq!(review.arguments, ["--approval-mode", "default"], "{line}");
            assert_eq!(review.note, None);
        }
        assert_eq!(
            prepared("qwen --approval-mode default", &environment),
            Review::default()
        );
        for line in ["qwen --yolo", "qwen --approval-mode=yolo", "qwen mcp list"] {
            let review = prepared(line, &environment);
            assert_eq!(review.arguments, Vec::<String>::new(), "{line}");
            assert!(review.note.is_some(), "{line}");
        }
    }

    #[test]
    fn agent_that_needs_an_installed_hook_is_noted() {
        let home = tempfile::tempdir().unwrap();
        for agent in ["codex", "opencode"] {
            let review = prepared(agent, &environment(home.path()));
            let hint = review.note.unwrap().hint;
            assert!(hint.contains(&format!("alongside install {agent}")), "{hint}");
        }
    }
}
