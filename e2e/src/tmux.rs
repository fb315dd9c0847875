//! A terminal for tests to type into and read from, on its own tmux server.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::sandbox::Sandbox;
use crate::waiting::eventually;
use crate::{artifacts, process};

/// Both agents treat an Enter right after typed text as part of a paste.
const PASTE_GAP: Duration = Duration::from_millis(400);

const HISTORY: [&str; 6] = ["capture-pane", "-p", "-S", "-3000", "-t", "s"];
const SHELL: [&str; 5] = ["display-message", "-p", "-t", "s", "#{pane_pid}"];

/// A terminal running a shell. Dropping it kills everything in it.
pub struct Terminal {
    name: String,
    socket: PathBuf,
}

impl Terminal {
    /// Opens a terminal with a plain shell that has no hint about the companion.
    pub fn open(sandbox: &Sandbox, name: &str, directory: &Path, environment: &[(String, String)]) -> Self {
        // Never reuse a name: a server that is shutting down still listens for a moment.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let terminal = Self {
            name: name.to_owned(),
            socket: sandbox.path(&format!("{number}.tmux")),
        };
        let mut command = terminal.tmux();
        command.args([
            "-f",
            "/dev/null",
            "new-session",
            "-d",
            "-s",
            "s",
            "-x",
            "160",
            "-y",
            "50",
            "-c",
        ]);
        command
            .arg(directory)
            .args(["env", "-i", "TERM=xterm-256color", "COLORTERM=truecolor", "PS1=shell$ "]);
        let variables = sandbox.environment().into_iter().chain(environment.iter().cloned());
        command.args(variables.map(|(name, value)| format!("{name}={value}")));
        command.args(["bash", "--norc", "--noprofile"]);
        run(&mut command);
        terminal.wait_for_text("shell$", Duration::from_secs(20));
        terminal
    }

    pub fn screen(&self) -> String {
        run(self.tmux().args(["capture-pane", "-p", "-t", "s"]))
    }

    /// The screen including scrollback.
    pub fn history(&self) -> String {
        run(self.tmux().args(HISTORY))
    }

    /// Types text, then presses Enter after a short pause, as a user does.
    pub fn type_line(&self, text: &str) {
        self.type_text(text);
        thread::sleep(PASTE_GAP);
        self.press("Enter");
    }

    /// Types a prompt for an agent. An Enter that arrives together with the text would be part of a paste, so the text is on the
    /// screen first.
    pub fn submit(&self, text: &str) {
        let head: String = text.chars().take(20).collect();
        let shown = || self.screen().matches(&head).count();
        let before = shown();
        self.type_text(text);
        // An earlier prompt with the same head may have scrolled away in the same moment.
        let _ = eventually(Duration::from_secs(10), || (shown() > before).then_some(()));
        self.type_line("");
    }

    pub fn type_text(&self, text: &str) {
        run(self.tmux().args(["send-keys", "-t", "s", "-l", text]));
    }

    /// Presses a key by its tmux name, such as `Escape`.
    pub fn press(&self, key: &str) {
        run(self.tmux().args(["send-keys", "-t", "s", key]));
    }

    /// Presses Escape alone: together with the next key it would be another one.
    pub fn escape(&self) {
        self.press("Escape");
        thread::sleep(PASTE_GAP);
    }

    /// Opens another pane to the right, with a shell command in it.
    pub fn split(&self, command: &str) -> Pane<'_> {
        let split = ["split-window", "-h", "-d", "-P", "-F", "#{pane_id}", "-t", "s", command];
        let id = run(self.tmux().args(split)).trim().to_owned();
        Pane { terminal: self, id }
    }

    /// What tmux tells the programs in it; a plain shell does not know.
    pub fn variables(&self) -> String {
        format!("TMUX={},0,0 TMUX_PANE=%0", self.socket.display())
    }

    /// The other pane of the window, once another program has opened it.
    pub fn other_pane(&self) -> Option<Pane<'_>> {
        let panes = run(self
            .tmux()
            .args(["list-panes", "-t", "s", "-F", "#{?pane_active,,#{pane_id}}"]));
        let id = panes.lines().find(|id| !id.is_empty())?.to_owned();
        Some(Pane { terminal: self, id })
    }

    /// Clears a shell's screen, so that a later wait does not match old text.
    pub fn clear(&self) {
        self.type_line("clear");
        self.wait_for("an empty screen", Duration::from_secs(20), |screen| {
            screen.trim() == "shell$"
        });
        run(self.tmux().args(["clear-history", "-t", "s"]));
    }

    /// Waits until the screen satisfies `wanted`, and returns that screen.
    pub fn wait_for(&self, what: &str, limit: Duration, wanted: impl Fn(&str) -> bool) -> String {
        eventually(limit, || Some(self.screen()).filter(|screen| wanted(screen)))
            .unwrap_or_else(|| self.fail(&format!("waited {} s for {what}", limit.as_secs())))
    }

    pub fn wait_for_text(&self, text: &str, limit: Duration) -> String {
        self.wait_for(&format!("{text:?}"), limit, |screen| screen.contains(text))
    }

    /// Fails the test, showing the screen.
    pub fn fail(&self, message: &str) -> ! {
        let mut report = format!("{message}; the terminal {} shows:\n", self.name);
        for line in self.screen().trim_end().lines() {
            let _ = writeln!(report, "  | {line}");
        }
        panic!("{report}")
    }

    /// The processes in the terminal, except the shell itself.
    pub fn processes(&self) -> Vec<u32> {
        process::descendants(self.shell())
    }

    /// Stops the programs in the terminal until [`Self::thaw`]. The shell then takes the terminal back, so nothing can
    /// be typed into them afterwards.
    pub fn freeze(&self) {
        for pid in self.processes() {
            process::signal(pid, rustix::process::Signal::STOP);
        }
    }

    /// Resumes the programs stopped by [`Self::freeze`].
    pub fn thaw(&self) {
        for pid in self.processes() {
            process::signal(pid, rustix::process::Signal::CONT);
        }
    }

    fn shell(&self) -> u32 {
        let pid = run(self.tmux().args(SHELL));
        pid.trim().parse().expect("tmux prints the PID of the shell")
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.env_remove("TMUX").arg("-S").arg(&self.socket);
        command
    }
}

/// Another pane of a terminal's window.
pub struct Pane<'a> {
    terminal: &'a Terminal,
    id: String,
}

impl Pane<'_> {
    pub fn screen(&self) -> String {
        run(self.terminal.tmux().args(["capture-pane", "-p", "-t", &self.id]))
    }

    pub fn type_text(&self, text: &str) {
        run(self.terminal.tmux().args(["send-keys", "-t", &self.id, "-l", text]));
    }

    /// Presses a key by its tmux name, such as `Escape`.
    pub fn press(&self, key: &str) {
        run(self.terminal.tmux().args(["send-keys", "-t", &self.id, key]));
    }

    /// Waits until the pane satisfies `wanted`, and returns what it shows.
    pub fn wait_for(&self, what: &str, limit: Duration, wanted: impl Fn(&str) -> bool) -> String {
        let found = eventually(limit, || Some(self.screen()).filter(|screen| wanted(screen)));
        found.unwrap_or_else(|| {
            panic!(
                "waited {} s for {what}; the pane shows:\n{}",
                limit.as_secs(),
                self.screen()
            )
        })
    }

    pub fn wait_for_text(&self, text: &str, limit: Duration) -> String {
        self.wait_for(&format!("{text:?}"), limit, |screen| screen.contains(text))
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // No panic here: it would hide the one that failed the test.
        let history = try_run(self.tmux().args(HISTORY));
        if let (true, Ok(history)) = (thread::panicking(), history) {
            artifacts::keep(&format!("{}.txt", self.name), &history);
        }
        // tmux sends only SIGHUP, and a failing test may leave a hanging agent behind. All processes have exited when
        // this returns, so that none writes into the sandbox while it is being removed.
        let shell = try_run(self.tmux().args(SHELL))
            .ok()
            .and_then(|pid| pid.trim().parse().ok());
        let mut processes: Vec<u32> = shell.into_iter().collect();
        processes.extend(shell.map(process::descendants).unwrap_or_default());
        for &pid in &processes {
            process::signal(pid, rustix::process::Signal::KILL);
        }
        let _ = try_run(self.tmux().arg("kill-server"));
        let is_gone = || (!processes.iter().any(|&pid| process::is_alive(pid))).then_some(());
        let _ = eventually(Duration::from_secs(10), is_gone);
    }
}

fn run(command: &mut Command) -> String {
    try_run(command).unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

fn try_run(command: &mut Command) -> Result<String, String> {
    let output = command.output().map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        Err(String::from_utf8_lossy(&output.stderr).into_owned())
    }
}
