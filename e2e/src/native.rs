//! The agents that are native programs, driven the way a user drives them.

mod settings;

use std::fs;
use std::path::PathBuf;
use std::time::Duration;

use crate::fake_model::FakeModel;
use crate::proof::{AgentCapability, agent_proves};
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

    /// Puts it on the PATH, and writes the settings with which it starts offline, straight at its prompt.
    pub fn set_up(self, sandbox: &Sandbox, model: &FakeModel) {
        self.write_settings(sandbox, model);
        sandbox.write_command(self.command(), &shell_quoted(&self.program()));
        self.set_up_adapter(sandbox);
    }

    /// Puts the program on the PATH that connects it to the chat, if it does not do so itself.
    fn set_up_adapter(self, sandbox: &Sandbox) {
        match self {
            Self::Claude => {
                let program = shell_quoted(&self.program());
                let script = programs::agent("node_modules/@agentclientprotocol/claude-agent-acp/dist/index.js");
                let (node, script) = (shell_quoted(&programs::node()), shell_quoted(&script));
                let line = format!("env CLAUDE_CODE_EXECUTABLE={program} {node} {script}");
                sandbox.write_command("claude-agent-acp", &line);
            }
            Self::Codex => {
                let adapter = programs::agent("node_modules/@zed-industries/codex-acp-linux-x64/bin/codex-acp");
                sandbox.write_command("codex-acp", &shell_quoted(&adapter));
                // It looks for bubblewrap on the PATH, and Codex has one of its own.
                let bubblewrap = "vendor/x86_64-unknown-linux-musl/codex-resources/bwrap";
                sandbox.write_command("bwrap", &shell_quoted(&self.package().join(bubblewrap)));
            }
            Self::Opencode | Self::Copilot => {}
        }
    }

    /// Records for the README what the running test has proven.
    pub fn proves(self, capability: AgentCapability) {
        let text = fs::read_to_string(self.package().join("package.json")).expect("an agent has a package.json");
        let package: serde_json::Value = serde_json::from_str(&text).expect("package.json is JSON");
        let version = package["version"].as_str().expect("a package has a version");
        // Codex's packages for one platform have its name in the version.
        let version = version.split('-').next().unwrap_or(version);
        agent_proves(self.display_name(), version, capability);
    }

    fn package(self) -> PathBuf {
        programs::agent("node_modules").join(match self {
            Self::Claude => "@anthropic-ai/claude-code-linux-x64",
            Self::Opencode => "opencode-linux-x64",
            Self::Copilot => "@github/copilot-linux-x64",
            Self::Codex => "codex-linux-x64",
        })
    }

    fn program(self) -> PathBuf {
        let program = self.package().join(match self {
            Self::Claude => "claude",
            Self::Opencode => "bin/opencode",
            Self::Copilot => "copilot",
            Self::Codex => "vendor/x86_64-unknown-linux-musl/bin/codex",
        });
        assert!(
            program.is_file(),
            "{} is missing: run `cargo xtask agents` to download it",
            program.display()
        );
        program
    }

    /// Whether it shows its prompt and nothing is running.
    fn is_idle(self, screen: &str) -> bool {
        match self {
            Self::Claude => {
                let modes = ["manual mode on", "accept edits on"];
                modes.iter().any(|mode| screen.contains(mode)) && !screen.contains("esc to interrupt")
            }
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
        native.set_up(sandbox, model);
        Self::launch(sandbox, native, model, &native.start_line())
    }

    /// Starts it after [`Native::set_up`] with this shell command, such as `alongside run claude`, and waits for its
    /// prompt.
    pub fn launch(sandbox: &Sandbox, native: Native, model: &FakeModel, line: &str) -> Self {
        let environment = native.variables(model);
        let terminal = Terminal::open(sandbox, native.command(), &sandbox.workspace(), &environment);
        let agent = Self { native, terminal };
        agent.terminal.type_line(line);
        agent
            .terminal
            .wait_for("the first prompt", TIMEOUT * 2, |screen| native.is_idle(screen));
        agent
    }

    /// Sends a prompt.
    pub fn prompt(&self, text: &str) {
        self.terminal.submit(text);
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

    /// Stops what it is doing.
    pub fn interrupt(&self) {
        self.terminal.press("Escape");
        if self.native == Native::Opencode {
            // It wants the key twice in a short time, but both at once would be another key.
            self.terminal.wait_for_text("again to interrupt", TIMEOUT);
            self.terminal.press("Escape");
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
