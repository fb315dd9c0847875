//! The reviewer next to the agent, in a pane of tmux.

use std::io::{BufRead, IsTerminal, Write};
use std::path::Path;
use std::process::Command;

use alongside_companion::places::Places;
use alongside_companion::settings::{RunSplit, Settings};

/// What the reviewer needs to find the same companion and settings, and the user's choices: a new pane has the variables of the tmux server.
const VARIABLES: &[&str] = &[
    "HOME",
    "XDG_STATE_HOME",
    "XDG_CONFIG_HOME",
    "PATH",
    "COLORTERM",
    "COLORFGBG",
    "NO_COLOR",
    "VISUAL",
    "EDITOR",
];

/// A pane that was opened.
pub(super) struct Pane(String);

impl Pane {
    pub(super) fn close(self) {
        // The user may have closed it.
        let _ = Command::new("tmux").args(["kill-pane", "-t", &self.0]).output();
    }
}

/// Opens the reviewer next to this terminal, or asks whether to, as `run.split` says. Nothing that fails here keeps the agent from starting.
pub(super) fn offer(directory: &Path) -> Option<Pane> {
    let is_in_tmux =
        std::env::var_os("TMUX").is_some_and(|value| !value.is_empty()) && std::env::var_os("TMUX_PANE").is_some();
    if !is_in_tmux || !std::io::stdin().is_terminal() || !std::io::stdout().is_terminal() {
        return None;
    }
    let settings = Settings::load(&Places::of_user().ok()?.settings(), &[]).ok()?;
    let opens = match settings.run_split {
        RunSplit::Never => false,
        _ if has_reviewer() => false,
        RunSplit::Always => true,
        RunSplit::Ask => ask(),
    };
    opens.then(|| open(directory)).flatten()
}

/// Whether another pane of this window has a reviewer.
fn has_reviewer() -> bool {
    let panes = Command::new("tmux")
        .args(["list-panes", "-F", "#{pane_start_command}"])
        .output();
    panes.is_ok_and(|panes| String::from_utf8_lossy(&panes.stdout).contains(" review --workspace "))
}

fn ask() -> bool {
    let mut stdout = std::io::stdout();
    let question = "Open the reviewer next to the agent? [Y/n]  (`run.split` in your settings answers this) ";
    if stdout
        .write_all(question.as_bytes())
        .and_then(|()| stdout.flush())
        .is_err()
    {
        return false;
    }
    let mut answer = String::new();
    // Nothing more than the line: the rest is for the agent.
    let read = std::io::stdin().lock().read_line(&mut answer);
    read.is_ok_and(|length| length > 0) && !answer.trim_start().to_lowercase().starts_with('n')
}

fn open(directory: &Path) -> Option<Pane> {
    let program = std::env::current_exe().ok()?;
    let pane = std::env::var("TMUX_PANE").ok()?;
    let mut split = Command::new("tmux");
    split.args(["split-window", "-h", "-d", "-P", "-F", "#{pane_id}", "-t", &pane]);
    for name in VARIABLES {
        if let Ok(value) = std::env::var(name) {
            split.arg("-e").arg(format!("{name}={value}"));
        }
    }
    let split = split
        .arg("--")
        .arg(program)
        .args(["review", "--workspace"])
        .arg(directory)
        .output()
        .ok()?;
    let id = String::from_utf8(split.stdout).ok()?.trim().to_owned();
    (split.status.success() && !id.is_empty()).then_some(Pane(id))
}
