//! What can be typed.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, Parser, Subcommand};

use crate::output::Output;

/// Puts any terminal coding agent alongside any editor.
///
/// Without a command it starts the companion for this directory. From then on `gemini` and `qwen`, started in any
/// terminal inside it, connect by themselves, know what is open, and wait for your decision on every change.
#[derive(Debug, Parser)]
#[command(
    name = "alongside",
    version,
    after_help = "\
Examples:
  alongside                          start the companion for this directory
  alongside context focus main.rs    tell agents what you are looking at
  alongside diff list                see which changes wait
  alongside chat -p 'Hello'          ask an agent something
  alongside doctor                   see whether gemini and qwen would connect
  alongside demo                     see the whole loop without an agent"
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// A folder of the workspace [default: the current directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Vec<PathBuf>,
    /// Print one JSON value on standard output, and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log what happens, on standard error
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the companion and serve until it is stopped
    Serve(Serve),
    /// Be the companion of an editor whose plugin speaks on standard input and output
    Bridge(Bridge),
    /// Be the companion of an editor that speaks the language server protocol, such as Helix or Kakoune
    Lsp(Lsp),
    /// Tell agents what is open, or see what they see
    #[command(subcommand)]
    Context(Context),
    /// See the changes that agents propose, and decide
    #[command(subcommand)]
    Diff(Diff),
    /// Show the companions that run, with their agents and reviews
    #[command(after_help = "Example:\n  alongside status --json | jq '.companions[].agents'")]
    Status,
    /// Print a link to the review page, good for one use
    #[command(after_help = "Examples:\n  alongside page\n  alongside page --open")]
    Page {
        /// Open it in the browser
        #[arg(long)]
        open: bool,
    },
    /// Talk with an agent: a link to the chat on the page, or one question in the terminal
    Chat(Chat),
    /// End the companion of this directory
    #[command(after_help = "Examples:\n  alongside stop\n  alongside stop --all")]
    Stop(Stop),
    /// Find out whether gemini and qwen would connect from here, and if not, why
    #[command(after_help = "\
Looks for a companion exactly as each command line does, from this directory and with this environment, and then really \
connects. The exit code is 0 only if both would connect.

Example:
  alongside doctor && gemini")]
    Doctor,
    /// Let a pretend agent propose a change, to see the whole loop
    #[command(after_help = "\
Needs neither of the command lines. Starts a companion if none serves this directory.

Example:
  alongside demo        and then, in another terminal: alongside diff accept 1")]
    Demo,
    /// Start an agent in this terminal, connected to this directory's companion
    #[command(after_help = "\
Sets the variables by which agents tell several companions apart. Starts a companion for as long as the agent runs if \
none serves this directory. Signals and the exit code are passed on.

Examples:
  alongside run gemini
  alongside run qwen --approval-mode default")]
    Run(Run),
    /// Find out which editor this terminal belongs to, and what each agent takes it for
    #[command(after_help = "Examples:\n  alongside detect\n  alongside detect --json | jq -r .found.editor")]
    Detect,
    /// Install the plugin for an editor
    Install(Install),
    /// Remove what `install` has installed, and nothing else
    Uninstall(Uninstall),
    /// Speak MCP on standard input and output, for agents that start their companion as a program
    #[command(after_help = "\
Relays to the running companion of the workspace. Not for typing: agents start it. They pass on few variables, so a state \
directory other than the usual one (XDG_STATE_HOME) is not found this way.

Example:
  export GEMINI_CLI_IDE_SERVER_STDIO_COMMAND=alongside
  export GEMINI_CLI_IDE_SERVER_STDIO_ARGS='[\"mcp-stdio\"]'")]
    McpStdio,
}

#[derive(Debug, Default, Args)]
#[command(after_help = "\
With --json one line is printed when the companion is ready:
  {\"port\":41234,\"pid\":4711,\"workspace\":[\"/home/me/project\"],\"files\":[\"…\"]}

Examples:
  alongside serve
  alongside serve --workspace backend --workspace frontend
  alongside serve --name neovim --display-name Neovim --pid $NVIM_PID --json")]
pub(crate) struct Serve {
    /// A short lowercase name for the editor, as agents are given it
    #[arg(long, value_name = "ID")]
    pub(crate) name: Option<String>,
    /// The editor's name, as agents show it
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// The editor's process; the companion ends with it
    #[arg(long, value_name = "N")]
    pub(crate) pid: Option<u32>,
    /// Open the review page in the browser
    #[arg(long)]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Not for typing: editor plugins start it. It speaks the front-end protocol, one message a line, and ends when its standard \
input closes or the editor's process is gone. With --check it starts a plugin instead, plays the companion for it, and \
says what the plugin does not do yet.

Examples:
  alongside bridge --name neovim --display-name Neovim --pid 4711 --workspace /home/me/project
  alongside bridge --check -- lua my_plugin.lua")]
pub(crate) struct Bridge {
    /// A short lowercase name for the editor, as agents are given it
    #[arg(long, value_name = "ID", required_unless_present = "check")]
    pub(crate) name: Option<String>,
    /// The editor's name, as agents show it
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// The editor's process; the companion ends with it
    #[arg(long, value_name = "N", required_unless_present = "check")]
    pub(crate) pid: Option<u32>,
    /// Check a plugin: start COMMAND and speak with it
    #[arg(long, requires = "command", conflicts_with_all = ["name", "display_name", "pid"])]
    pub(crate) check: bool,
    /// The plugin to check, and its arguments
    #[arg(last = true, requires = "check", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Not for typing: editors start it. `alongside install helix` and `alongside install kakoune` tell them to; docs/EDITORS.md \
says how to tell others. It is a language server that knows no language: it tells agents what is open and selected, shows \
the changes that they propose as hints, and decides about them by code actions. The folders, the process and the name of \
the editor come from the editor itself; what is given here counts more. It ends with the conversation.

Examples:
  alongside lsp
  alongside lsp --name zed --display-name Zed
  alongside lsp --workspace /home/me/project")]
pub(crate) struct Lsp {
    /// A short lowercase name for the editor, as agents are given it
    #[arg(long, value_name = "ID")]
    pub(crate) name: Option<String>,
    /// The editor's name, as agents show it
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// Speak on standard input and output, as it does anyway; for editors that always say so
    #[arg(long)]
    pub(crate) stdio: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Context {
    /// Say that files are open
    #[command(after_help = "Example:\n  alongside context open src/*.rs")]
    Open {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Say which file you are looking at, where the cursor is and what is selected
    #[command(after_help = "\
Lines and characters count from 1; characters are UTF-16 code units, as in most editors' protocols.

Example:
  alongside context focus src/main.rs --line 12 --character 5 --select 'fn main()'")]
    Focus {
        /// The file
        file: PathBuf,
        /// The line of the cursor
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        line: Option<u32>,
        /// The character of the cursor in its line
        #[arg(long, value_name = "N", requires = "line", value_parser = clap::value_parser!(u32).range(1..))]
        character: Option<u32>,
        /// The selected text
        #[arg(long, value_name = "TEXT")]
        select: Option<String>,
    },
    /// Say that files are closed
    #[command(after_help = "Example:\n  alongside context close src/main.rs")]
    Close {
        /// The files
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print exactly what agents see now, and what is kept from them
    #[command(after_help = "Example:\n  alongside context show --json")]
    Show,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Diff {
    /// List the changes that wait
    #[command(after_help = "Example:\n  alongside diff list --json | jq '.[].path'")]
    List,
    /// Show a change
    #[command(after_help = "Examples:\n  alongside diff show 1\n  alongside diff show src/main.rs")]
    Show {
        /// The number of the review, or the file
        review: String,
    },
    /// Accept a change, as it is or edited
    #[command(after_help = "\
Examples:
  alongside diff accept 1
  alongside diff accept src/main.rs --content-file /tmp/better.rs")]
    Accept {
        /// The number of the review, or the file
        review: String,
        /// Accept the content of this file in place of the proposal (`-` for standard input)
        #[arg(long, value_name = "F")]
        content_file: Option<PathBuf>,
        /// Accept every other change of the same agent too
        #[arg(long, conflicts_with = "content_file")]
        all_of_agent: bool,
        /// Accept an emptied text although the agent will take it as "nothing was edited"
        #[arg(long)]
        even_if_empty: bool,
    },
    /// Change the draft without deciding
    #[command(after_help = "Example:\n  alongside diff edit 1 --content-file /tmp/better.rs")]
    Edit {
        /// The number of the review, or the file
        review: String,
        /// The new draft (`-` for standard input)
        #[arg(long, value_name = "F")]
        content_file: PathBuf,
    },
    /// Accept or reject one hunk of a change, as `diff show` numbers them
    #[command(after_help = "Examples:\n  alongside diff hunk 1 2 reject\n  alongside diff hunk src/main.rs 0 accept")]
    Hunk {
        /// The number of the review, or the file
        review: String,
        /// The number of the hunk
        hunk: u32,
        /// What becomes of it; `keep` settles a conflict in favour of the draft
        decision: HunkWord,
    },
    /// Reject a change
    #[command(after_help = "Examples:\n  alongside diff reject 1\n  alongside diff reject 1 --all-of-agent")]
    Reject {
        /// The number of the review, or the file
        review: String,
        /// Reject every other change of the same agent too
        #[arg(long)]
        all_of_agent: bool,
    },
}

/// What becomes of a hunk.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum HunkWord {
    Accept,
    Reject,
    Keep,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without -p it prints a link to the chat on the page, good for one use. With -p it says PROMPT to the agent of this directory's \
companion, in the conversation that is going on if there is one, and prints the answer as it comes; without a companion it brings \
its own. Ctrl-C cancels the answer.

The agent may do nothing that it has to ask for, unless you say so: at the terminal, or with --yes. Changes of files wait for \
their review as always.

Exit codes:
  0  answered
  1  failed: no agent, no connection, an error of the model
  2  wrong usage
  3  cancelled, or refused by the agent

Examples:
  alongside chat --open
  alongside chat -p 'What does src/main.rs do?'
  git diff | alongside chat -p - --agent gemini > review.md
  alongside chat -p 'Fix the typo in README.md' --yes --json | jq -r .answer")]
pub(crate) struct Chat {
    /// What to say (`-` for standard input)
    #[arg(long, short, value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// The agent: qwen, gemini, daemon, or one of your settings [default: the one that is connected, or the first that can be]
    #[arg(long, value_name = "ID", requires = "prompt")]
    pub(crate) agent: Option<String>,
    /// Allow whatever the agent asks for, and accept its changes
    #[arg(long, visible_alias = "allow", requires = "prompt")]
    pub(crate) yes: bool,
    /// Open the page in the browser
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// End every companion of yours
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// The agent and its arguments
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without an editor it lists those that were found, with what would be done for each. Gemini CLI and Qwen Code, where they are \
there, are told in their settings to connect to editors by themselves, unless you have decided otherwise. Nothing that you \
wrote is lost: a file that is changed is kept beside itself under another name, and unknown files are left alone.

Examples:
  alongside install
  alongside install neovim
  alongside install emacs --dry-run
  alongside install --yes
  alongside install --status --json")]
pub(crate) struct Install {
    /// The editors, such as neovim, vim, emacs, helix, kakoune, vscode or cursor
    #[arg(value_name = "EDITOR", conflicts_with = "yes")]
    pub(crate) editors: Vec<String>,
    /// Install for every editor that was found
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Say what is installed
    #[arg(long, conflicts_with_all = ["yes", "dry_run"])]
    pub(crate) status: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "Examples:\n  alongside uninstall neovim\n  alongside uninstall emacs --dry-run")]
pub(crate) struct Uninstall {
    /// The editors
    #[arg(value_name = "EDITOR", required = true)]
    pub(crate) editors: Vec<String>,
    /// Show what would change, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl Common {
    pub(crate) fn output(&self) -> Output {
        Output { json: self.json }
    }

    /// The directory that a command is about, from the root on.
    pub(crate) fn directory(&self) -> PathBuf {
        let typed = self.workspace.first().cloned().unwrap_or_else(|| PathBuf::from("."));
        typed
            .canonicalize()
            .or_else(|_| std::path::absolute(&typed))
            .unwrap_or(typed)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        CommandLine::command().debug_assert();
    }

    #[test]
    fn every_command_has_help_with_an_example() {
        fn check(command: &clap::Command) {
            if command.has_subcommands() {
                return command
                    .get_subcommands()
                    .filter(|command| command.get_name() != "help")
                    .for_each(check);
            }
            let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
            assert!(help.contains("Example"), "`{}` has no example", command.get_name());
            // Paragraphs are wrapped for the terminal that they are shown in.
            let lines: Vec<&str> = help.lines().collect();
            for pair in lines.windows(2) {
                let is_text = |line: &str| !line.is_empty() && !line.starts_with(' ');
                let is_broken = is_text(pair[0]) && is_text(pair[1]) && !pair[0].ends_with(':');
                assert!(
                    !is_broken,
                    "`{}` breaks a line by hand: {}",
                    command.get_name(),
                    pair[0]
                );
            }
        }
        check(&CommandLine::command());
    }

    #[test]
    fn the_arguments_of_an_agent_are_not_ours() {
        let line = CommandLine::try_parse_from(["alongside", "run", "qwen", "--json", "-v"]).unwrap();
        assert!(!line.common.json);
        assert!(matches!(line.command, Some(Command::Run(run)) if run.command.len() == 3));
    }
}
