//! Whether an agent's settings have our review hook.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::Advice;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Hook {
    Missing,
    Installed,
    /// The program is gone.
    Stale(PathBuf),
}

impl Hook {
    /// Looks through all commands in the settings' `hooks`.
    pub(super) fn find(settings: &Value, agent: &str) -> Self {
        let mut commands = Vec::new();
        collect(&settings["hooks"], &mut commands);
        let ours = format!(" hook {agent}");
        let ours = commands.into_iter().filter(|command| command.contains(&ours));
        let mut found = Self::Missing;
        for command in ours {
            match program(command) {
                Some(program) if !program.is_file() => return Self::Stale(program.to_owned()),
                _ => found = Self::Installed,
            }
        }
        found
    }

    pub(super) fn stale(&self, agent: &str) -> Option<Advice> {
        let Self::Stale(program) = self else {
            return None;
        };
        Some(Advice::new(
            format!("its review hook starts {}, which does not exist", program.display()),
            format!("Run `alongside install {agent}` again, or `alongside uninstall {agent}`."),
        ))
    }
}

/// That changes are not reviewed without a hook; `otherwise` is another way, as the rest of a sentence.
pub(super) fn missing_hook(agent: &str, message: &str, otherwise: &str) -> Advice {
    let install = format!("Run `alongside install {agent}` to have every change reviewed");
    let hint = if otherwise.is_empty() {
        format!("{install}.")
    } else {
        format!("{install}, {otherwise}.")
    };
    Advice::new(message, hint)
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

/// The path in the first pair of single quotes: the installer quotes its program.
fn program(command: &str) -> Option<&Path> {
    let (_, rest) = command.split_once('\'')?;
    let (path, _) = rest.split_once('\'')?;
    Some(Path::new(path)).filter(|path| path.is_absolute())
}
