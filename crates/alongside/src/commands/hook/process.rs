//! The process that started the hook: when it exits, nothing waits for the answer.

use std::future::pending;

use alongside_companion::process_ended;
use alongside_discovery::process::{Processes, SystemProcesses};
use futures_util::future::{BoxFuture, select_all};

/// Waits until the agent exits.
pub(super) async fn agent_ended() {
    let ended: Vec<BoxFuture<'static, ()>> = agent_processes()
        .into_iter()
        .map(|pid| -> BoxFuture<'static, ()> { Box::pin(process_ended(pid)) })
        .collect();
    if ended.is_empty() {
        return pending().await;
    }
    select_all(ended).await;
}

/// The parent; its parent too if it is only the shell that the hook's command runs in, because it outlives an agent that is killed.
fn agent_processes() -> Vec<u32> {
    let processes = SystemProcesses::default();
    let parent = |pid: u32| processes.find(pid).map(|process| process.parent);
    let mut pids = Vec::new();
    if let Some(first) = parent(std::process::id()).filter(|pid| *pid > 1) {
        pids.push(first);
        let is_shell = processes.find(first).is_some_and(|process| is_shell(&process.command));
        pids.extend(parent(first).filter(|pid| is_shell && *pid > 1));
    }
    // Claude Code reports itself.
    let claude = std::env::var("CLAUDE_PID").ok();
    let claude = claude.and_then(|pid| pid.parse::<u32>().ok());
    pids.extend(claude.filter(|pid| *pid > 1));
    pids
}

/// Whether a process runs a command that was passed to a shell.
fn is_shell(command: &str) -> bool {
    let mut words = command.split_whitespace();
    let program = words.next().unwrap_or_default();
    let name = program.rsplit('/').next().unwrap_or_default().trim_start_matches('-');
    matches!(name, "sh" | "bash" | "dash" | "ash" | "zsh" | "ksh" | "busybox") && words.any(|word| word == "-c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shell_of_a_command_is_recognized() {
        for command in ["/bin/sh -c x", "bash -c 'a b'", "/usr/bin/dash -c true"] {
            assert!(is_shell(command), "{command}");
        }
        for command in ["-bash", "bash", "node /usr/bin/gemini -c", "zsh -l"] {
            assert!(!is_shell(command), "{command}");
        }
    }
}
