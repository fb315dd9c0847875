//! Which process an agent treats as the editor.

use serde::Serialize;

use super::{ProcessInfo, Processes};
use crate::{Environment, Platform, node_path};

const MAX_DEPTH: usize = 32;

/// Exact names only: not a login shell's `-zsh`, not `nu`, not `pwsh`.
const SHELLS: [&str; 8] = ["zsh", "bash", "sh", "tcsh", "csh", "ksh", "fish", "dash"];

/// The process that an agent treats as the editor.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct IdeProcess {
    pub pid: u32,
    /// Its command line; empty if not visible.
    pub command: String,
}

/// Finds the editor process as an agent started in our place would. `override_name` is the variable that can set it
/// directly.
pub fn ide_process(environment: &Environment, processes: &dyn Processes, override_name: Option<&str>) -> IdeProcess {
    let named = override_name
        .and_then(|name| environment.variable(name))
        .and_then(node_path::parse_integer)
        .and_then(|pid| u32::try_from(pid).ok())
        .filter(|pid| *pid > 0);
    let pid = match (named, environment.platform) {
        (Some(pid), _) => pid,
        (None, Platform::Windows) => walk_on_windows(processes, environment.pid),
        (None, Platform::Unix | Platform::MacOs) => walk_on_unix(processes, environment.pid),
    };
    let command = find_or_unknown(processes, pid).command;
    IdeProcess { pid, command }
}

/// Walks up to the first shell, then to its grandparent: in VS Code the shell's parent is a terminal host.
fn walk_on_unix(processes: &dyn Processes, own: u32) -> u32 {
    let mut current = own;
    for _ in 0..MAX_DEPTH {
        let process = find_or_unknown(processes, current);
        if SHELLS.contains(&name(&process.command)) {
            let grandparent = find_or_unknown(processes, process.parent).parent;
            return if grandparent > 1 { grandparent } else { process.parent };
        }
        if process.parent <= 1 {
            break;
        }
        current = process.parent;
    }
    current
}

/// The third-to-last ancestor, whatever it is; the last if there are fewer.
fn walk_on_windows(processes: &dyn Processes, own: u32) -> u32 {
    let mut ancestors = Vec::new();
    let mut current = processes.find(own);
    while let Some(process) = current.filter(|_| ancestors.len() < MAX_DEPTH) {
        ancestors.push(process.pid);
        current = Some(process.parent)
            .filter(|parent| *parent != 0)
            .and_then(|parent| processes.find(parent));
    }
    let index = if ancestors.len() >= 3 {
        ancestors.len() - 3
    } else {
        ancestors.len().saturating_sub(1)
    };
    ancestors.get(index).copied().unwrap_or(own)
}

/// An invisible process has no parent and no name, as if `ps` had failed.
fn find_or_unknown(processes: &dyn Processes, pid: u32) -> ProcessInfo {
    processes.find(pid).unwrap_or(ProcessInfo {
        pid,
        parent: 0,
        command: String::new(),
    })
}

/// The file name of the command's first word.
fn name(command: &str) -> &str {
    let program = command.split(' ').next().unwrap_or_default().trim_end_matches('/');
    program.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::ProcessTable;

    fn found(processes: &ProcessTable, platform: Platform) -> u32 {
        let environment = Environment {
            pid: 100,
            platform,
            ..Environment::new("/home/ada", "/")
        };
        ide_process(&environment, processes, Some("GEMINI_CLI_IDE_PID")).pid
    }

    fn line(commands: &[&str]) -> ProcessTable {
        // The last one is the agent, PID 100; its parent is 99 and so on, up to init.
        let first = 101 - u32::try_from(commands.len()).unwrap();
        let rows = (first..).zip(commands);
        rows.fold(ProcessTable::default().with(1, 0, "init"), |table, (pid, command)| {
            table.with(pid, if pid == first { 1 } else { pid - 1 }, command)
        })
    }

    #[test]
    fn editor_is_shells_grandparent() {
        let table = line(&["/usr/bin/code", "ptyHost", "/bin/bash", "node gemini"]);
        assert_eq!(found(&table, Platform::Unix), 97);
    }

    #[test]
    fn editor_is_shells_parent_below_init() {
        let table = line(&["nvim", "/usr/bin/fish", "node", "node gemini"]);
        assert_eq!(found(&table, Platform::Unix), 97);
    }

    #[test]
    fn editor_without_shell_is_topmost_ancestor() {
        let table = line(&["tmux", "-zsh", "nu", "node gemini"]);
        assert_eq!(found(&table, Platform::Unix), 97);
    }

    #[test]
    fn editor_without_visible_processes_is_self() {
        assert_eq!(found(&ProcessTable::default(), Platform::Unix), 100);
        assert_eq!(found(&ProcessTable::default(), Platform::Windows), 100);
    }

    #[test]
    fn walk_stops_after_32_levels() {
        let table = line(&["node"; 60]);
        assert_eq!(found(&table, Platform::Unix), 100 - 32);
    }

    #[test]
    fn editor_on_windows_is_third_from_root() {
        let table = ProcessTable::default()
            .with(10, 0, "explorer")
            .with(20, 10, "Code.exe")
            .with(30, 20, "Code.exe --type")
            .with(40, 30, "powershell")
            .with(100, 40, "node gemini");
        assert_eq!(found(&table, Platform::Windows), 30);
        let table = ProcessTable::default().with(90, 7, "cmd").with(100, 90, "node gemini");
        assert_eq!(found(&table, Platform::Windows), 90);
    }

    #[test]
    fn gemini_pid_variable_sets_the_editor() {
        let environment = Environment::new("/home/ada", "/").with("GEMINI_CLI_IDE_PID", "424242");
        let table = ProcessTable::default();
        assert_eq!(
            ide_process(&environment, &table, Some("GEMINI_CLI_IDE_PID")).pid,
            424_242
        );
        assert_ne!(ide_process(&environment, &table, None).pid, 424_242);
        let environment = environment.with("GEMINI_CLI_IDE_PID", "-1");
        assert_eq!(
            ide_process(&environment, &table, Some("GEMINI_CLI_IDE_PID")).pid,
            environment.pid
        );
    }
}
