//! Parses a command line far enough to identify the program.

use super::DetectedIde;
use super::rules::{PROCESSES, ProcessMatch};

/// The program of a command line, lowercase and with `/` as the path separator.
struct Program {
    path: String,
    name: String,
    /// The macOS application bundle that contains it.
    bundle: Option<String>,
    command: String,
}

/// The editor that a process is, judging by its command line.
pub(super) fn editor(command: &str) -> Option<DetectedIde> {
    let program = Program::of(command);
    let fits = |mark: &ProcessMatch| program.has(*mark);
    let rule = PROCESSES.iter().find(|rule| rule.marks.iter().any(fits));
    rule.map(|rule| rule.ide)
}

/// What to call the editor that a process is. `None` for an interpreter or a shell, which says nothing about the program.
pub fn name_of_process(command: &str) -> Option<String> {
    if let Some(ide) = editor(command) {
        return Some(ide.display_name().to_owned());
    }
    let name = Program::of(command).name;
    let is_generic = ["java", "javaw", "node", "perl", "ruby"].contains(&name.as_str())
        || name.starts_with("python")
        || name.ends_with("sh");
    // The command line has it in the editor's own spelling.
    let start = command.to_lowercase().find(&name)?;
    let shown = command.get(start..start + name.len()).unwrap_or(&name).to_owned();
    (!name.is_empty() && !is_generic).then_some(shown)
}

impl Program {
    fn of(command: &str) -> Self {
        let command = command.trim().to_lowercase().replace('\\', "/");
        let path = path(&command).to_owned();
        let file = path.rsplit('/').next().unwrap_or_default();
        // A login shell's dash is not part of its name, and an editor can be started as a login shell too.
        let file = file.strip_prefix('-').unwrap_or(file);
        let endings = [".exe", ".cmd", ".bat", ".sh"];
        let name = endings
            .iter()
            .find_map(|ending| file.strip_suffix(ending))
            .unwrap_or(file);
        let bundle = bundle(&command).map(str::to_owned);
        Self {
            name: name.to_owned(),
            bundle,
            path,
            command,
        }
    }

    fn has(&self, mark: ProcessMatch) -> bool {
        match mark {
            ProcessMatch::Name(name) => self.name == name,
            ProcessMatch::Prefix(prefix) => self.name.starts_with(prefix),
            ProcessMatch::Bundle(bundle) => self.bundle.as_deref() == Some(bundle),
            ProcessMatch::Path(part) => self.path.contains(part),
            ProcessMatch::JavaArgument(argument) => {
                matches!(self.name.as_str(), "java" | "javaw") && self.command.contains(argument)
            }
        }
    }
}

/// The program's path: quoted, or up to `.exe`, or the first word.
///
/// Arguments are joined by spaces, so a path with spaces is recognized only where something marks its end.
fn path(command: &str) -> &str {
    if let Some(quoted) = command.strip_prefix('"') {
        return quoted.split('"').next().unwrap_or(quoted);
    }
    let is_drive = command.as_bytes().get(1) == Some(&b':');
    if let Some(end) = command.find(".exe").filter(|_| is_drive) {
        return &command[..end + ".exe".len()];
    }
    command.split(' ').next().unwrap_or_default()
}

/// `visual studio code` in `/applications/visual studio code.app/contents/macos/electron`.
///
/// Only the outermost bundle counts, since an application's helpers are bundles inside it; and only the program's, not
/// one in an argument.
fn bundle(command: &str) -> Option<&str> {
    let (before, after) = command.split_once(".app/contents/")?;
    let starts_with_the_path = before.starts_with('/') && !before.contains(" /") && !before.contains(" -");
    let name = before.rsplit('/').next()?;
    // `code - insiders` contains a dash itself.
    let is_insiders = name.ends_with("code - insiders") && before.starts_with('/');
    ((starts_with_the_path || is_insiders) && !after.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_process_rule_matches() {
        for rule in PROCESSES {
            for mark in rule.marks {
                let commands = match mark {
                    ProcessMatch::Name(name) => vec![
                        format!("/opt/some/bin/{name} --flag /a/file"),
                        format!("\"C:\\Program Files\\Some\\{name}.exe\" --type=x"),
                        format!("C:\\Program Files\\Some\\{name}.EXE"),
                    ],
                    ProcessMatch::Prefix(prefix) => vec![format!("{prefix}x11 -nw")],
                    ProcessMatch::Bundle(name) => vec![
                        format!("/Applications/{name}.app/Contents/MacOS/main"),
                        format!(
                            "/Users/ada/Applications/{name}.app/Contents/Frameworks/{name} Helper.app/Contents/MacOS/x"
                        ),
                    ],
                    ProcessMatch::Path(part) => vec![format!("/home/ada{part}bin/0/node /home/ada/server.js")],
                    ProcessMatch::JavaArgument(argument) => {
                        vec![format!("/opt/jbr/bin/java -Xmx2g -D{argument}2026.1 Main")]
                    }
                };
                for command in commands {
                    // The name of Insiders has spaces and a dash, which is recognized only on Windows.
                    if command.starts_with("/opt") && command.contains("code - insiders") {
                        continue;
                    }
                    assert_eq!(editor(&command), Some(rule.ide), "{command}");
                }
            }
        }
    }

    #[test]
    fn mention_of_editor_is_not_an_editor() {
        for command in [
            "/bin/bash -c nvim",
            "less /usr/share/vim/vimrc",
            "node /usr/lib/node_modules/gemini/index.js --editor code",
            "java -jar app.jar",
            "grep idea.paths.selector=IntelliJIdea",
            "open /Applications/Cursor.app/Contents/MacOS/Cursor",
            "vimdiffer",
            "emacsclient -n file",
            "tmux",
            "-zsh",
            "",
        ] {
            assert_eq!(editor(command), None, "{command}");
        }
    }
}
