//! Where discovery files lie and what they are called, from the dialect table.

use std::path::PathBuf;

use alongside_core::dialect::{AgentKind, BaseDirectory, DIALECTS, Dialect, FileName, FileRule};

use crate::Environment;

/// What the name of a discovery file says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NameParts {
    /// The process id, where the name has one. JavaScript has no upper limit here, so ours is generous.
    pub(crate) pid: Option<u64>,
}

/// The table's row for an agent.
pub(crate) fn dialect(kind: AgentKind) -> &'static Dialect {
    let [first, ..] = &DIALECTS;
    DIALECTS.iter().find(|dialect| dialect.kind == kind).unwrap_or(first)
}

/// Every rule of every dialect.
pub(crate) fn rules() -> impl Iterator<Item = (AgentKind, &'static FileRule)> {
    DIALECTS
        .iter()
        .flat_map(|dialect| dialect.files.iter().map(|rule| (dialect.kind, rule)))
}

/// The directory that a rule's sub-directories are in.
pub(crate) fn base(environment: &Environment, rule: &FileRule) -> PathBuf {
    match rule.base {
        BaseDirectory::NodeTemporary => environment.node_temporary_directory(),
        BaseDirectory::QwenHome => environment.qwen_home(),
    }
}

/// The directory that a rule's files are in.
pub(crate) fn directory(environment: &Environment, rule: &FileRule) -> PathBuf {
    let base = base(environment, rule);
    rule.directories.iter().fold(base, |path, name| path.join(name))
}

/// The name of a rule's file.
pub(crate) fn file_name(rule: &FileRule, pid: u64, port: u16) -> String {
    match rule.name {
        FileName::PrefixPidPort(prefix) => format!("{prefix}{pid}-{port}.json"),
        FileName::PortLock => format!("{port}.lock"),
    }
}

/// The name that older companions gave their files: `<prefix><number>.json`, with a process id or a port.
pub(crate) fn legacy_file_name(dialect: &Dialect, number: &str) -> Option<String> {
    dialect.files.iter().find_map(|rule| match rule.name {
        FileName::PrefixPidPort(prefix) => Some(format!("{prefix}{number}.json")),
        FileName::PortLock => None,
    })
}

/// Reads a file name as a rule's agent does; `None` if the agent would pass over it.
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
    fn every_name_we_give_is_read_back_by_its_rule_and_no_other() {
        for (_, rule) in rules() {
            let name = file_name(rule, 12, 3456);
            let readers = rules().filter(|(_, other)| parse_file_name(other, &name).is_some());
            assert_eq!(readers.count(), 1, "{name}");
            assert!(parse_file_name(rule, &name).is_some());
        }
    }

    #[test]
    fn names_that_only_look_alike_are_passed_over() {
        let gemini = &dialect(AgentKind::Gemini).files[0];
        let qwen = &dialect(AgentKind::Qwen).files[0];
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
