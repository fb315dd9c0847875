//! The real command lines, driven as a person drives them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::process::Signal;

use crate::companion::Outcome;
use crate::fake_model::FakeModel;
use crate::sandbox::{Sandbox, shell_quoted};
use crate::tmux::Terminal;
use crate::waiting::{PATIENCE, eventually};
use crate::{companion, process, programs};

/// Which command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cli {
    /// Google's Gemini CLI.
    Gemini,
    /// Qwen Code.
    Qwen,
}

/// How an agent is started.
pub struct Launch {
    /// What is typed into the shell.
    pub line: String,
    /// The directory of the shell.
    pub directory: PathBuf,
    /// Further variables of the shell.
    pub environment: Vec<(String, String)>,
}

/// A command line that runs in a terminal.
pub struct Agent {
    cli: Cli,
    /// Where it runs.
    pub terminal: Terminal,
}

impl Cli {
    /// The command a person types, which also names its files.
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

    /// The start of the names of its variables.
    pub fn variable(self, rest: &str) -> String {
        match self {
            Self::Gemini => format!("GEMINI_CLI_IDE_{rest}"),
            Self::Qwen => format!("QWEN_CODE_IDE_{rest}"),
        }
    }

    /// The place of its discovery files.
    pub fn discovery_directory(self, sandbox: &Sandbox) -> PathBuf {
        match self {
            Self::Gemini => sandbox.path("tmp/gemini/ide"),
            Self::Qwen => sandbox.path("home/.qwen/ide"),
        }
    }

    /// The shell words that start it.
    pub(crate) fn start_line(self) -> String {
        let (script, arguments) = match self {
            // A named model: "auto" asks the model which model to use.
            Self::Gemini => ("@google/gemini-cli/bundle/gemini.js", "-m gemini-2.5-flash"),
            // The default is to let a model decide about permissions, and then no change is ever shown.
            Self::Qwen => ("@qwen-code/qwen-code/cli-entry.js", "--approval-mode default"),
        };
        let node = shell_quoted(&programs::node());
        format!("{node} {} {arguments}", shell_quoted(&programs::npm_package(script)))
    }

    /// The variables that make it use the model.
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
    /// Typed into a plain terminal in the workspace, without a hint about the companion.
    pub fn plain(sandbox: &Sandbox, cli: Cli) -> Self {
        Self {
            line: cli.command().to_owned(),
            directory: sandbox.workspace(),
            // Tests often run in a container, where Gemini CLI would not look at the loopback: it takes the editor to
            // be outside. This says that everything is in the same place.
            environment: vec![("SSH_CONNECTION".to_owned(), "x".to_owned())],
        }
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

    /// The same through `alongside run`, which has to set itself whatever is needed.
    #[must_use]
    pub fn through_alongside(mut self) -> Self {
        self.line = format!("alongside run {}", self.line);
        self.environment.clear();
        self
    }

    /// What `alongside doctor` says in the place where this would start.
    pub fn doctor(&self, sandbox: &Sandbox) -> Outcome {
        let workspace = self.directory.to_string_lossy();
        let arguments = ["doctor", "--workspace", &workspace, "--json"];
        companion::alongside(sandbox, &self.directory, &arguments, &self.environment)
    }
}

impl Agent {
    /// Starts a command line in a plain terminal and waits for its prompt.
    pub fn start(sandbox: &Sandbox, cli: Cli, model: &FakeModel) -> Self {
        Self::launch(sandbox, cli, model, cli.command(), Launch::plain(sandbox, cli))
    }

    /// Starts a command line in a terminal called `name` and waits for its prompt.
    pub fn launch(sandbox: &Sandbox, cli: Cli, model: &FakeModel, name: &str, launch: Launch) -> Self {
        let line = launch.line.clone();
        let agent = Self::prepare(sandbox, cli, model, name, launch);
        agent.run(&line);
        agent
    }

    /// Opens a terminal in which a command line can be [started](Self::run) later, when something else has been.
    pub fn prepare(sandbox: &Sandbox, cli: Cli, model: &FakeModel, name: &str, launch: Launch) -> Self {
        let environment = [cli.model_variables(model), launch.environment].concat();
        let terminal = Terminal::open(sandbox, name, &launch.directory, &environment);
        Self { cli, terminal }
    }

    /// Starts the command line in its terminal, where none runs.
    pub fn run(&self, line: &str) {
        self.terminal.type_line(line);
        self.terminal.wait_for_text("Type your message", PATIENCE * 2);
    }

    /// What `/ide status` says, once it says something.
    pub fn ide_status(&self) -> String {
        self.ask("/ide status")
    }

    /// Waits until the command line says that it is connected.
    pub fn wait_until_connected(&self) -> String {
        let mut last = String::new();
        let connected = eventually(PATIENCE, || {
            last = self.ide_status();
            last.contains("Connected to").then(|| last.clone())
        });
        connected.unwrap_or_else(|| self.terminal.fail("/ide status never said Connected"))
    }

    /// Types `/ide enable`, which makes a command line that has lost its companion look for one again.
    pub fn ide_enable(&self) -> String {
        self.ask("/ide enable")
    }

    /// Types a command that answers with a sentence about the companion, and gives what it printed.
    ///
    /// A command line shows its prompt before it is ready: what is typed then is lost, or taken for a question to the model.
    /// A person types it again, and so does this.
    fn ask(&self, command: &str) -> String {
        let answer = eventually(PATIENCE, || self.ask_once(command));
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
        // The last answer may still be on the screen: what counts is what comes after the last echo of the command.
        let before = self.terminal.history().matches(command).count();
        self.terminal.type_line(command);
        eventually(Duration::from_secs(4), || {
            let history = self.terminal.history();
            let echoes = history.matches(command).count();
            let (_, after) = history.rsplit_once(command).filter(|_| echoes > before)?;
            let from_model = after.contains("OK.");
            (from_model || ANSWERS.iter().any(|answer| after.contains(answer))).then(|| after.to_owned())
        })
        .filter(|answer| !answer.contains("OK."))
    }

    /// Types a prompt.
    pub fn prompt(&self, text: &str) {
        self.terminal.type_line(text);
    }

    /// Waits for the command line's own question whether it may change the file.
    pub fn wait_for_question(&self) -> String {
        self.terminal
            .wait_for("the question about the change", PATIENCE, |screen| {
                screen.contains("Apply this change")
                    || screen.contains("Yes, allow once")
                    || screen.contains("Allow once")
            })
    }

    /// Waits until the command line is at its prompt and asks nothing.
    pub fn wait_until_idle(&self) -> String {
        self.terminal.wait_for("the prompt", PATIENCE, |screen| {
            screen.contains("Type your message") && !screen.contains("llow once") && !screen.contains("esc to cancel")
        })
    }

    /// Ends it as a person does, and waits until it is gone.
    pub fn quit(&self) {
        self.terminal.type_line("/quit");
        let gone = eventually(PATIENCE, || {
            let gone = eventually(Duration::from_secs(4), || {
                self.terminal.processes().is_empty().then_some(())
            });
            if gone.is_none() {
                // An Enter that comes while the list of commands is drawn chooses from the list, and no more.
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
        let gone = eventually(PATIENCE, || {
            (!processes.iter().any(|&pid| process::is_alive(pid))).then_some(())
        });
        assert!(gone.is_some(), "{} survived being killed", self.cli.command());
    }
}
