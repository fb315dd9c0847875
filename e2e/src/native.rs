//! The agents that are native programs, driven the way a user drives them.

mod settings;

use std::path::PathBuf;
use std::time::Duration;

use crate::fake_model::FakeModel;
use crate::sandbox::{Sandbox, shell_quoted};
use crate::tmux::Terminal;
use crate::waiting::{TIMEOUT, eventually};
use crate::{process, programs};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Native {
    Claude,
    Opencode,
    Copilot,
    Codex,
}

/// One of them running in a terminal.
pub struct NativeAgent {
    pub native: Native,
    pub terminal: Terminal,
}

impl Native {
    /// The command a user types.
    pub fn command(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Opencode => "opencode",
            Self::Copilot => "copilot",
            Self::Codex => "codex",
        }
    }

    /// What the companion should call it.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Claude => "Claude Code",
            Self::Opencode => "opencode",
            Self::Copilot => "Copilot CLI",
            Self::Codex => "Codex",
        }
    }

    fn program(self) -> PathBuf {
        programs::agent(match self {
            Self::Claude => "node_modules/@anthropic-ai/claude-code-linux-x64/claude",
            Self::Opencode => "node_modules/opencode-linux-x64/bin/opencode",
            Self::Copilot => "node_modules/@github/copilot-linux-x64/copilot",
            Self::Codex => "node_modules/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex",
        })
    }

    /// Whether it shows its prompt and nothing is running.
    fn is_idle(self, screen: &str) -> bool {
        match self {
            Self::Claude => screen.contains("manual mode on") && !screen.contains("esc to interrupt"),
            Self::Opencode => screen.contains("ctrl+p commands") && !screen.contains("esc interrupt"),
            Self::Copilot => screen.contains("/ commands") && !screen.contains("esc cancel"),
            Self::Codex => screen.contains("GPT-5.5") && !screen.contains("esc to interrupt"),
        }
    }

    /// A part of its own question whether it may change a file.
    fn question(self) -> &'static str {
        match self {
            Self::Claude | Self::Copilot => "Do you want to",
            Self::Opencode => "Permission required",
            Self::Codex => "Would you like to make the following edits?",
        }
    }
}

impl NativeAgent {
    /// Starts it in a plain terminal in the workspace, and waits for its prompt.
    pub fn start(sandbox: &Sandbox, native: Native, model: &FakeModel) -> Self {
        Self::launch(sandbox, native, model, native.command())
    }

    /// Starts it with this shell command, such as `alongside run claude`, and waits for its prompt.
    pub fn launch(sandbox: &Sandbox, native: Native, model: &FakeModel, line: &str) -> Self {
        native.write_settings(sandbox, model);
        sandbox.write_command(native.command(), &shell_quoted(&native.program()));
        let environment = native.variables(model);
        let terminal = Terminal::open(sandbox, native.command(), &sandbox.workspace(), &environment);
        let agent = Self { native, terminal };
        let arguments = native.arguments();
        agent.terminal.type_line(&format!("{line} {arguments}"));
        agent.wait_until_idle();
        agent
    }

    pub fn prompt(&self, text: &str) {
        self.terminal.type_line(text);
    }

    /// Waits until it is idle at its prompt.
    pub fn wait_until_idle(&self) -> String {
        self.terminal
            .wait_for("the prompt", TIMEOUT, |screen| self.native.is_idle(screen))
    }

    /// Waits for its own question whether it may change a file.
    pub fn wait_for_question(&self) -> String {
        self.terminal.wait_for_text(self.native.question(), TIMEOUT)
    }

    /// Waits for its own question, and decides there with this key.
    ///
    /// Claude Code ignores keys for a moment after the question appears, so that nothing is decided by accident. So
    /// the key is repeated, as a user would do.
    pub fn decide(&self, key: &str) {
        self.wait_for_question();
        let decided = eventually(TIMEOUT, || {
            self.terminal.press(key);
            eventually(Duration::from_secs(2), || {
                (!self.terminal.screen().contains(self.native.question())).then_some(())
            })
        });
        if decided.is_none() {
            self.terminal.fail(&format!("{key} did not answer the question"));
        }
    }

    /// Kills it without warning.
    pub fn kill(&self) {
        let processes = self.terminal.processes();
        for &pid in &processes {
            process::signal(pid, rustix::process::Signal::KILL);
        }
        let gone = eventually(Duration::from_secs(20), || {
            (!processes.iter().any(|&pid| process::is_alive(pid))).then_some(())
        });
        assert!(gone.is_some(), "{} survived being killed", self.native.command());
    }
}
