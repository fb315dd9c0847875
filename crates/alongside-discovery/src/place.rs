//! Directories and names of discovery files, from the dialect table.

use std::path::PathBuf;

use alongside_core::dialect::{AgentKind, BaseDirectory, DIALECTS, Dialect, FileName, FileRule};

use crate::Environment;

const PROCESS_LOCK: &str = "alongside-";

/// The parts of a discovery file's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameParts {
    /// The PID, if the name has one. JavaScript has no upper limit here, so the type is wide.
    pub(crate) pid: Option<u64>,
}

pub(crate) fn rules() -> impl Iterator<Item = (AgentKind, &'static FileRule)> {
    DIALECTS
        .iter()
        .flat_map(|dialect| dialect.files.iter().map(|rule| (dialect.kind, rule)))
}

/// The parent of a rule's subdirectories.
pub(crate) fn base(environment: &Environment, rule: &FileRule) -> PathBuf {
    match rule.base {
        BaseDirectory::NodeTemporary => environment.node_temporary_directory(),
        BaseDirectory::QwenHome => environment.qwen_home(),
        BaseDirectory::ClaudeHome => environment.claude_home(),
        BaseDirectory::ClaudeDefault => environment.default_claude_home(),
        BaseDirectory::CopilotHome => environment.copilot_home(),
    }
}

pub(crate) fn directory(environment: &Environment, rule: &FileRule) -> PathBuf {
    let base = base(environment, rule);
    rule.directories.iter().fold(base, |path, name| path.join(name))
}

pub(crate) fn file_name(rule: &FileRule, pid: u64, port: u16) -> String {
    match rule.name {
        FileName::PrefixPidPort(prefix) => format!("{prefix}{pid}-{port}.json"),
        FileName::PortLock => format!("{port}.lock"),
        FileName::ProcessLock => format!("{PROCESS_LOCK}{pid}-{port}.lock"),
    }
}

/// The file name used by older companions: `<prefix><number>.json`, with a PID or a port.
pub(crate) fn legacy_file_name(dialect: &Dialect, number: &str) -> Option<String> {
    dialect.files.iter().find_map(|rule| match rule.name {
        FileName::PrefixPidPort(prefix) => Some(format!("{prefix}{number}.json")),
        FileName::PortLock | FileName::ProcessLock => None,
    })
}

/// Parses a file name as the rule's agent does; `None` if the agent would skip it.
pub(crate) fn parse_file_name(rule: &FileRule, name: &str) -> Option<NameParts> {
    match rule.name {
        FileName::PrefixPidPort(prefix) => {
            let (pid, port) = name.strip_prefix(prefix)?.strip_suffix(".json")?.split_once('-')?;
            number(port)?;
            Some(NameParts { pid: number(pid) }).filter(|parts| parts.pid.is_some())
        }
        FileName::PortLock => {
            number(name.strip_suffix(".lock")?)?;
            Some(NameParts { pid: None })
        }
        // Copilot CLI reads any name; these are ours.
        FileName::ProcessLock => {
            let (pid, port) = name
                .strip_prefix(PROCESS_LOCK)?
                .strip_suffix(".lock")?
                .split_once('-')?;
            number(port)?;
            Some(NameParts { pid: number(pid) }).filter(|parts| parts.pid.is_some())
        }
    }
}

/// One or more digits and nothing else: `^\d+$`.
pub(crate) fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().unwrap_or(u64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_names_round_trip_through_their_own_rule_only() {
        let environment = Environment::new("/home/ada", "/").with("CLAUDE_CONFIG_DIR", "/claude");
        for (_, rule) in rules() {
            let (name, place) = (file_name(rule, 12, 3456), directory(&environment, rule));
            let next_to_it = rules().filter(|(_, other)| directory(&environment, other) == place);
            let readers = next_to_it.filter(|(_, other)| parse_file_name(other, &name).is_some());
            assert_eq!(readers.count(), 1, "{name}");
            assert!(parse_file_name(rule, &name).is_some());
        }
    }

    #[test]
    fn similar_names_are_skipped() {
        let gemini = &Dialect::of(AgentKind::Gemini).files[0];
        let qwen = &Dialect::of(AgentKind::Qwen).files[0];
        for name in [
            "gemini-ide-server-1.json",
            "gemini-ide-server-a-1.json",
            "gemini-ide-server-1-2.json.tmp",
            "x",
        ] {
            assert_eq!(parse_file_name(gemini, name), None, "{name}");
        }
        for name in [".lock", "a.lock", "1.lock.tmp", "+1.lock"] {
            assert_eq!(parse_file_name(qwen, name), None, "{name}");
        }
    }
}
