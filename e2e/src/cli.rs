//! The real agent CLIs, driven the way a user drives them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_testing::SUGGESTION;
use rustix::process::Signal;

use crate::companion::Outcome;
use crate::fake_model::FakeModel;
use crate::proof::{AgentCapability, agent_proves};
use crate::sandbox::{Sandbox, shell_quoted};
use crate::tmux::Terminal;
use crate::waiting::{TIMEOUT, eventually};
use crate::{companion, process, programs};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cli {
    Gemini,
    Qwen,
}

pub struct Launch {
    /// What is typed into the shell.
    pub line: String,
    pub directory: PathBuf,
    /// Additional environment variables for the shell.
    pub environment: Vec<(String, String)>,
}

/// An agent CLI running in a terminal.
pub struct Agent {
    cli: Cli,
    pub terminal: Terminal,
}

impl Cli {
    /// The command a user types, which also appears in file names.
    pub fn command(self) -> &'static str {
        match self {
            Self::Gemini => "gemini",
            Self::Qwen => "qwen",
        }
    }

    /// What the companion should call it.
    pub fn display_name(self) -> &'static str {
        match self {
            Self::Gemini => "Gemini CLI",
            Self::Qwen => "Qwen Code",
        }
    }

    /// Records what the running test has proven.
    pub fn proves(self, capability: AgentCapability) {
        let package = match self {
            Self::Gemini => "@google/gemini-cli/package.json",
            Self::Qwen => "@qwen-code/qwen-code/package.json",
        };
        let text = std::fs::read_to_string(programs::npm_package(package)).expect("the package is installed");
        let package: serde_json::Value = serde_json::from_str(&text).expect("package.json is JSON");
        let version = package["version"].as_str().expect("a package has a version");
        agent_proves(self.display_name(), version, capability);
    }

    /// An environment variable of this agent.
    pub fn variable(self, rest: &str) -> String {
        match self {
            Self::Gemini => format!("GEMINI_CLI_IDE_{rest}"),
            Self::Qwen => format!("QWEN_CODE_IDE_{rest}"),
        }
    }

    /// The directory of its discovery files.
    pub fn discovery_directory(self, sandbox: &Sandbox) -> PathBuf {
        match self {
            Self::Gemini => sandbox.path("tmp/gemini/ide"),
            Self::Qwen => sandbox.path("home/.qwen/ide"),
        }
    }

    /// The shell command that starts it in the mode that asks before it changes a file. By default, a model decides that in
    /// Qwen Code, and changes are never shown.
    pub(crate) fn start_line(self) -> String {
        self.start_line_in("default")
    }

    fn start_line_in(self, mode: &str) -> String {
        format!("{} --approval-mode {mode}", self.start_line_without_mode())
    }

    fn start_line_without_mode(self) -> String {
        let (script, arguments) = match self {
            // A fixed model: "auto" asks the model which model to use.
            Self::Gemini => ("@google/gemini-cli/bundle/gemini.js", " -m gemini-2.5-flash"),
            Self::Qwen => ("@qwen-code/qwen-code/cli-entry.js", ""),
        };
        let (node, script) = (
            shell_quoted(&programs::node()),
            shell_quoted(&programs::npm_package(script)),
        );
        format!("{node} {script}{arguments}")
    }

    /// The variables that point it to our fake model.
    pub fn model_variables(self, model: &FakeModel) -> Vec<(String, String)> {
        let variables: Vec<(&str, String)> = match self {
            Self::Gemini => vec![
                ("GEMINI_API_KEY", "fake".to_owned()),
                ("GOOGLE_GEMINI_BASE_URL", model.url()),
            ],
            Self::Qwen => vec![
                ("OPENAI_API_KEY", "fake".to_owned()),
                ("OPENAI_BASE_URL", format!("{}/v1", model.url())),
                ("OPENAI_MODEL", "fake-model".to_owned()),
            ],
        };
        variables
            .into_iter()
            .map(|(name, value)| (name.to_owned(), value))
            .collect()
    }
}

impl Launch {
    /// Typed into a plain terminal in the workspace, without any hint about the companion.
    pub fn plain(sandbox: &Sandbox, cli: Cli) -> Self {
        Self {
            line: cli.command().to_owned(),
            directory: sandbox.workspace(),
            // Tests often run in a container, where Gemini CLI would not use the loopback address: it expects the
            // editor outside. With this variable it stays on this machine.
            environment: vec![("SSH_CONNECTION".to_owned(), "x".to_owned())],
        }
    }

    /// The same in a mode in which the agent itself asks for nothing.
    #[must_use]
    pub fn without_questions(mut self, cli: Cli) -> Self {
        self.line = cli.start_line_in("yolo");
        self
    }

    /// The same in a mode in which the agent writes files without asking.
    #[must_use]
    pub fn writing_without_questions(mut self, cli: Cli) -> Self {
        let mode = match cli {
            Cli::Gemini => "yolo",
            // The one in which it starts by default.
            Cli::Qwen => "auto",
        };
        self.line = cli.start_line_in(mode);
        self
    }

    /// The same in another directory.
    #[must_use]
    pub fn in_directory(mut self, directory: &Path) -> Self {
        directory.clone_into(&mut self.directory);
        self
    }

    /// The same with another variable.
    #[must_use]
    pub fn with(mut self, name: &str, value: &str) -> Self {
        self.environment.push((name.to_owned(), value.to_owned()));
        self
    }

    /// The same through `alongside run`, which must set the required variables itself, and choose the mode that asks.
    #[must_use]
    pub fn through_alongside(mut self, sandbox: &Sandbox, cli: Cli) -> Self {
        sandbox.write_command(cli.command(), &cli.start_line_without_mode());
        self.line = format!("alongside run {}", self.line);
        self.environment.clear();
        self
    }

    /// The result of `alongside doctor` where this would start.
    pub fn doctor(&self, sandbox: &Sandbox) -> Outcome {
        let workspace = self.directory.to_string_lossy();
        let arguments = ["doctor", "--workspace", &workspace, "--json"];
        companion::alongside(sandbox, &self.directory, &arguments, &self.environment)
    }
}

impl Agent {
    /// Starts an agent in a plain terminal and waits for its prompt.
    pub fn start(sandbox: &Sandbox, cli: Cli, model: &FakeModel) -> Self {
        Self::launch(sandbox, cli, model, cli.command(), Launch::plain(sandbox, cli))
    }

    /// Starts an agent in a terminal called `name` and waits for its prompt.
    pub fn launch(sandbox: &Sandbox, cli: Cli, model: &FakeModel, name: &str, launch: Launch) -> Self {
        let line = launch.line.clone();
        let agent = Self::prepare(sandbox, cli, model, name, launch);
        agent.run(&line);
        agent
    }

    /// Opens a terminal in which an agent can be [started](Self::run) later.
    pub fn prepare(sandbox: &Sandbox, cli: Cli, model: &FakeModel, name: &str, launch: Launch) -> Self {
        let environment = [cli.model_variables(model), launch.environment].concat();
        let terminal = Terminal::open(sandbox, name, &launch.directory, &environment);
        Self { cli, terminal }
    }

    /// Starts the agent in its terminal, where none is running.
    pub fn run(&self, line: &str) {
        self.terminal.type_line(line);
        self.terminal.wait_for_text("Type your message", TIMEOUT * 2);
    }

    /// The response to `/ide status`.
    pub fn ide_status(&self) -> String {
        self.ask("/ide status")
    }

    /// Waits until the agent reports that it is connected.
    pub fn wait_until_connected(&self) -> String {
        let mut last = String::new();
        let connected = eventually(TIMEOUT, || {
            last = self.ide_status();
            last.contains("Connected to").then(|| last.clone())
        });
        connected.unwrap_or_else(|| self.terminal.fail("/ide status never showed Connected"))
    }

    /// Types `/ide enable`, which makes a disconnected agent look for a companion again.
    pub fn ide_enable(&self) -> String {
        self.ask("/ide enable")
    }

    /// Types a command whose response mentions the companion, and returns that response.
    ///
    /// An agent shows its prompt before it is ready: what is typed then is lost, or sent to the model. So the command
    /// is repeated, as a user would do.
    fn ask(&self, command: &str) -> String {
        let answer = eventually(TIMEOUT, || self.ask_once(command));
        answer.unwrap_or_else(|| self.terminal.fail(&format!("no answer to {command}")))
    }

    fn ask_once(&self, command: &str) -> Option<String> {
        const ANSWERS: [&str; 6] = [
            "Connected to",
            "Disconnected",
            "Connecting",
            "not supported",
            "Failed to connect",
            "disabled",
        ];
        // The previous response may still be on the screen: only text after the last echo of the command is relevant.
        let before = self.terminal.history().matches(command).count();
        self.terminal.type_line(command);
        let mut last = String::new();
        eventually(Duration::from_secs(4), || {
            let history = self.terminal.history();
            let echoes = history.matches(command).count();
            let (_, after) = history.rsplit_once(command).filter(|_| echoes > before)?;
            // Half of it may be on the screen: the same twice is all of it.
            let is_whole = std::mem::replace(&mut last, after.to_owned()) == after;
            let from_model = after.contains("OK.");
            let is_answer = from_model || ANSWERS.iter().any(|answer| after.contains(answer));
            (is_whole && is_answer).then(|| after.to_owned())
        })
        .filter(|answer| !answer.contains("OK."))
    }

    pub fn prompt(&self, text: &str) {
        self.terminal.submit(text);
    }

    /// Waits for the agent's own prompt whether it may change the file.
    pub fn wait_for_question(&self) -> String {
        self.terminal
            .wait_for("the question about the change", TIMEOUT, |screen| {
                screen.contains("Apply this change")
                    || screen.contains("Yes, allow once")
                    || screen.contains("Allow once")
            })
    }

    /// Waits until the agent is idle at its prompt.
    pub fn wait_until_idle(&self) -> String {
        // Some time after an answer, Qwen Code shows what could be asked next in its place.
        let suggestion = format!("> {SUGGESTION}");
        self.terminal.wait_for("the prompt", TIMEOUT, |screen| {
            let is_prompt = screen.contains("Type your message") || screen.contains(&suggestion);
            is_prompt && !screen.contains("llow once") && !screen.contains("esc to cancel")
        })
    }

    /// Quits it with `/quit`, and waits until it has exited.
    pub fn quit(&self) {
        self.terminal.type_line("/quit");
        let gone = eventually(TIMEOUT, || {
            let gone = eventually(Duration::from_secs(4), || {
                self.terminal.processes().is_empty().then_some(())
            });
            if gone.is_none() {
                // Enter while the command list is being drawn only selects from the list.
                self.terminal.press("Enter");
            }
            gone
        });
        if gone.is_none() {
            self.terminal.fail("/quit did not end it");
        }
    }

    /// Kills it without warning.
    pub fn kill(&self) {
        let processes = self.terminal.processes();
        for &pid in &processes {
            process::signal(pid, Signal::KILL);
        }
        let gone = eventually(TIMEOUT, || {
            (!processes.iter().any(|&pid| process::is_alive(pid))).then_some(())
        });
        assert!(gone.is_some(), "{} survived being killed", self.cli.command());
    }
}
