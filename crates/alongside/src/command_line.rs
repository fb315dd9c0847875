//! The command-line interface.

mod scripting;

use std::ffi::OsString;
use std::path::PathBuf;

use alongside_core::HookAgent;
use clap::{Args, Parser, Subcommand};

use crate::output::Output;
pub(crate) use scripting::{Context, Diff, HunkWord};

/// Put any terminal coding agent alongside any editor
///
/// With no command, starts the companion for the current directory. Agents started in any terminal inside it find it, some of them after `/ide`; they see what you have open, and you review the changes they propose.
#[derive(Debug, Parser)]
#[command(
    name = "alongside",
    version,
    after_help = "\
Examples:
  alongside                          start the companion for this directory
  alongside context focus main.rs    tell agents what you are looking at
  alongside review                   review changes in this terminal
  alongside diff list                list pending changes
  alongside chat -p 'Hello'          ask an agent a question
  alongside doctor                   check that agents can connect
  alongside demo                     try the whole loop without an agent"
)]
pub(crate) struct CommandLine {
    #[command(flatten)]
    pub(crate) common: Common,
    #[command(subcommand)]
    pub(crate) command: Option<Command>,
}

impl CommandLine {
    /// Whether this process becomes a companion that runs for as long as an editor or a terminal.
    pub(crate) fn is_companion(&self) -> bool {
        matches!(
            self.command,
            None | Some(Command::Serve(_) | Command::Bridge(_) | Command::Lsp(_) | Command::Run(_))
        )
    }
}

/// What every command takes.
#[derive(Debug, Args)]
pub(crate) struct Common {
    /// Workspace folder; may be repeated [default: the current directory]
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) workspace: Vec<PathBuf>,
    /// Print a single JSON value to stdout and nothing else
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Log to stderr
    #[arg(long, short, global = true)]
    pub(crate) verbose: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start the companion and run until stopped
    Serve(Serve),
    /// Run as an editor's companion over stdio (started by editor plugins)
    Bridge(Bridge),
    /// Run as a language server, for editors such as Helix, Kakoune and Kate
    Lsp(Lsp),
    /// Set or show the editor context that agents see
    #[command(subcommand)]
    Context(Context),
    /// Review the changes that agents propose, in this terminal
    Review(Review),
    /// List, show and decide changes with commands
    #[command(subcommand)]
    Diff(Diff),
    /// Show running companions with their agents and reviews
    #[command(after_help = "\
With --line, prints one short line about this directory's companion, or nothing if none is running; for a status bar or a shell prompt.

Examples:
  alongside status --json | jq '.companions[].agents'
  tmux set -g status-right '#(cd #{pane_current_path} && alongside status --line)'")]
    Status {
        /// Print one line about this directory's companion
        #[arg(long)]
        line: bool,
    },
    /// Print a one-time link to the review page
    ///
    /// With --open, starts the browser with a private file that redirects to another such link, because other users can read a program's arguments. Some sandboxed browsers cannot read that file; then open the printed link.
    #[command(after_help = "Examples:\n  alongside page\n  alongside page --open")]
    Page {
        /// Open the page in the browser
        #[arg(long)]
        open: bool,
    },
    /// Chat with an agent here or in the browser, or ask one question
    Chat(Chat),
    /// Stop this directory's companion
    #[command(after_help = "Examples:\n  alongside stop\n  alongside stop --all")]
    Stop(Stop),
    /// Check whether agents can connect from here, and why not
    #[command(after_help = "\
Searches for a companion exactly as each agent does, from this directory and with this environment, then connects to it. Exits with 0 only if gemini and qwen, and each other supported agent that is installed, can connect.

Example:
  alongside doctor && gemini")]
    Doctor,
    /// Try the whole review loop with a simulated agent
    #[command(after_help = "\
Works without any agent installed. Starts a companion if none is running for this directory. With --agent, the simulated agent connects in the same way as that one; those that show no changes to editors show the context that they receive.

Examples:
  alongside demo        then, in another terminal: alongside diff accept 1
  alongside demo --agent claude")]
    Demo(Demo),
    /// Put the editor's selection into an agent's prompt
    #[command(after_help = "\
Without a selection, names the active file. Nothing is submitted: you still press Enter in the agent. Works with Claude Code, opencode and Copilot CLI. Without --session, goes to the agent that you used last.

Examples:
  alongside send-selection
  alongside send-selection --session \"$(alongside status --json | jq -r '.companions[0].agents[0].session')\"")]
    SendSelection {
        /// Session of the agent, as `alongside status --json` shows it
        #[arg(long, value_name = "ID")]
        session: Option<String>,
    },
    /// Start an agent here, connected to this directory's companion
    #[command(after_help = "\
Sets the environment variables that point the agent at the right companion, and removes those that keep it from connecting. Claude Code and Qwen Code would not show their changes in the mode in which they start, so without a hook and unless you choose a mode, Claude Code is given the hook for this session, and Qwen Code is started in its default mode. If no companion is running for this directory, starts one for as long as the agent runs. Signals and the exit code are passed through.

Examples:
  alongside run gemini
  alongside run claude --permission-mode default
  alongside run qwen --model qwen3-coder-plus")]
    Run(Run),
    /// Show which editor this terminal belongs to, and which editor each agent detects
    #[command(after_help = "Examples:\n  alongside detect\n  alongside detect --json | jq -r .found.editor")]
    Detect,
    /// Install the plugin for an editor, or the hook for an agent
    Install(Install),
    /// Remove what `install` installed, and nothing else
    Uninstall(Uninstall),
    /// Print a script that completes alongside's commands and options in your shell
    #[command(after_help = "\
The packages for Debian and Homebrew install these scripts already. In PowerShell, put the output into your $PROFILE.

Examples:
  alongside completions bash > ~/.local/share/bash-completion/completions/alongside
  alongside completions zsh > \"${fpath[1]}/_alongside\"
  alongside completions fish > ~/.config/fish/completions/alongside.fish
  alongside completions powershell >> $PROFILE")]
    Completions {
        /// Your shell
        #[arg(value_enum, value_name = "SHELL")]
        shell: clap_complete::Shell,
    },
    /// Print the manual page, or write the pages of all commands
    #[command(after_help = "\
Examples:
  alongside man | man -l -
  alongside man --out ~/.local/share/man/man1")]
    Man {
        /// Directory for the pages of all commands; it is created if it does not exist
        #[arg(long, value_name = "DIR")]
        out: Option<PathBuf>,
    },
    /// Review the change that an agent's hook reports on stdin (started by agents)
    #[command(after_help = "\
Agents start this command; you do not normally run it yourself. `alongside install <agent>` sets it up. It reads the agent's tool call from stdin, opens a review for each file in this workspace's companion, waits for your decisions, and prints them in the agent's own form. See docs/HOOKS.md.

Exit codes:
  0  answered, or nothing to review
  2  failed; the agent does not make the change

Example:
  alongside hook claude < call.json")]
    Hook {
        /// Agent whose hook it is: claude, codex, copilot, gemini, opencode or qwen
        #[arg(value_name = "AGENT", value_parser = hook_agent)]
        agent: HookAgent,
    },
    /// Relay MCP over stdio, for agents that launch their companion as a command
    #[command(after_help = "\
Relays to the workspace's running companion. With --tools, serves tools for the model instead: getDiagnostics, getOpenFiles, getSelection and openFile. Agents start this command; you do not normally run it yourself. Agents pass on few environment variables, so a non-default state directory (XDG_STATE_HOME) is not found this way.

Example:
  export GEMINI_CLI_IDE_SERVER_STDIO_COMMAND=alongside
  export GEMINI_CLI_IDE_SERVER_STDIO_ARGS='[\"mcp-stdio\"]'

Tools, for Gemini CLI or Qwen Code:
  alongside install gemini --tools")]
    McpStdio {
        /// Serve tools that the model may call, such as getDiagnostics
        #[arg(long)]
        tools: bool,
    },
}

#[derive(Debug, Default, Args)]
#[command(after_help = "\
In a terminal, shows the reviewer (see `alongside review`) until you quit, which stops the companion; with --plain, prints what happens. With --json, prints one line once the companion is ready:
  {\"port\":41234,\"pid\":4711,\"workspace\":[\"/home/me/project\"],\"files\":[\"…\"]}

Examples:
  alongside serve
  alongside serve --plain
  alongside serve --workspace backend --workspace frontend
  alongside serve --name neovim --display-name Neovim --pid $NVIM_PID --json")]
pub(crate) struct Serve {
    /// Short lowercase editor name, as reported to agents
    #[arg(long, value_name = "ID")]
    pub(crate) name: Option<String>,
    /// Editor name, as displayed by agents
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// PID of the editor; the companion exits when it does
    #[arg(long, value_name = "N")]
    pub(crate) pid: Option<u32>,
    /// Open the review page in the browser
    #[arg(long)]
    pub(crate) open: bool,
    /// Print what happens instead of showing the reviewer
    #[arg(long)]
    pub(crate) plain: bool,
}

#[derive(Debug, Args)]
#[command(
    after_help = "\
Editor plugins start this command; you do not normally run it yourself. It speaks the front-end protocol, one message per line, and exits when stdin closes or the editor exits. With --check, it starts a plugin instead, acts as its companion, and reports what the plugin does not implement yet.

Examples:
  alongside bridge --name neovim --display-name Neovim --pid 4711 --workspace /home/me/project
  alongside bridge --check -- lua my_plugin.lua",
    override_usage = "\
alongside bridge [OPTIONS] --name <ID> --pid <N>
       alongside bridge [OPTIONS] --check -- <COMMAND>..."
)]
pub(crate) struct Bridge {
    /// Short lowercase editor name, as reported to agents (required, except with --check)
    #[arg(long, value_name = "ID", required_unless_present = "check")]
    pub(crate) name: Option<String>,
    /// Editor name, as displayed by agents
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// PID of the editor; the companion exits when it does (required, except with --check)
    #[arg(long, value_name = "N", required_unless_present = "check")]
    pub(crate) pid: Option<u32>,
    /// Check a plugin: start COMMAND and test its side of the protocol
    #[arg(long, requires = "command", conflicts_with_all = ["name", "display_name", "pid"])]
    pub(crate) check: bool,
    /// Plugin command to check, with its arguments
    #[arg(last = true, requires = "check", value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Editors start this command; you do not normally run it yourself. `alongside install` sets it up for helix, kakoune and kate; see docs/EDITORS.md for other editors. It is a language server without a language: it reports open files and selections to agents, shows proposed changes as hints, and offers code actions to accept or reject them. Workspace folders, PID and editor name come from the editor; options given here override them. It exits when the editor disconnects.

Examples:
  alongside lsp
  alongside lsp --name zed --display-name Zed
  alongside lsp --workspace /home/me/project")]
pub(crate) struct Lsp {
    /// Short lowercase editor name, as reported to agents
    #[arg(long, value_name = "ID")]
    pub(crate) name: Option<String>,
    /// Editor name, as displayed by agents
    #[arg(long, value_name = "TEXT")]
    pub(crate) display_name: Option<String>,
    /// How a proposed change appears
    #[arg(long, value_enum, value_name = "HOW", default_value_t = OpenChange::Auto)]
    pub(crate) open: OpenChange,
    /// Accepted for editors that always pass it; stdio is the only transport
    #[arg(long)]
    pub(crate) stdio: bool,
}

/// How a proposed change appears, in the words of every editor's setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum OpenChange {
    /// As a message: a language server does not know whether you are typing
    Auto,
    /// As a message
    Notify,
    /// As a diff, without the focus if the editor supports that
    View,
    /// As a diff, with the focus
    Focus,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Shows pending changes as they arrive, side by side or unified, hunk by hunk. Press ? for the keys. Reconnects when the companion is restarted. Respects NO_COLOR, COLORTERM, COLORFGBG, VISUAL and EDITOR; `terminal.*` in your settings has the rest.

Examples:
  alongside review
  alongside review --workspace ~/project
  alongside review --also ~/other-project
  tmux split-window -h alongside review")]
pub(crate) struct Review {
    /// Also attach the companion of this directory; may be repeated
    #[arg(long, value_name = "DIR")]
    pub(crate) also: Vec<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct Demo {
    /// The agent to simulate
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<AgentWord>,
}

/// An agent that can be simulated.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum AgentWord {
    Gemini,
    Qwen,
    Claude,
    Copilot,
    Opencode,
    Codex,
}

#[derive(Debug, Args)]
#[command(after_help = "\
Without -p, shows the chat in this terminal; with --page, or without a terminal, prints a one-time link to the chat page. With -p, sends PROMPT to the agent connected to this directory's companion, continuing the current conversation if there is one, and streams the answer. If no companion is running, starts a temporary one. Ctrl-C cancels the answer.

Whatever the agent asks for, a permission, an answer or the review of a change, is shown at the terminal with its diff and its options, and you type a number. Without a terminal, permissions are denied and questions declined unless --yes allows them, and a change waits for another front end, or is rejected if there is none.

Exit codes:
  0  answered
  1  failed: no agent, no connection, or a model error; the message says whether the agent received the prompt
  2  usage error
  3  cancelled, refused by the agent, or stdout was closed

Examples:
  alongside chat
  alongside chat --page --open
  alongside chat -p 'What does src/main.rs do?'
  git diff | alongside chat -p - --agent gemini > review.md
  alongside chat -p 'Fix the typo in README.md' --yes --json | jq -r .answer")]
pub(crate) struct Chat {
    /// Prompt to send (`-` for stdin)
    #[arg(long, short, value_name = "PROMPT")]
    pub(crate) prompt: Option<String>,
    /// Agent to use: qwen, gemini, daemon, or one from your settings [default: the connected agent, or the first available]
    #[arg(long, value_name = "ID", requires = "prompt")]
    pub(crate) agent: Option<String>,
    /// Allow everything the agent asks for and accept its changes
    #[arg(long, visible_alias = "allow", requires = "prompt")]
    pub(crate) yes: bool,
    /// Print a link to the chat page instead of showing the chat here
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) page: bool,
    /// Open the page in the browser
    #[arg(long, conflicts_with = "prompt")]
    pub(crate) open: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Stop {
    /// Stop all of your companions
    #[arg(long)]
    pub(crate) all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct Run {
    /// Agent command and its arguments
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
Without a name, lists the editors found on this machine and what would be done for each. If Gemini CLI or Qwen Code is installed, its settings are changed so that it connects to editors automatically, unless you have already set that option. With an agent, sets up `alongside hook`, so that the agent asks you before it changes a file, whatever its mode. With --tools, its model can also ask your editor for diagnostics, open files and the selection, and open a file in it. Nothing you wrote is lost: a file is backed up next to the original before it is changed, and unknown files are left alone.

Examples:
  alongside install
  alongside install neovim
  alongside install claude codex
  alongside install gemini --tools
  alongside install emacs --dry-run
  alongside install --yes
  alongside install --status --json")]
#[expect(clippy::struct_excessive_bools, reason = "each is a flag of the command line")]
pub(crate) struct Install {
    /// Editors, such as neovim, vim, emacs, helix, kakoune, kate, vscode or cursor, and agents: claude, codex, copilot, gemini, opencode or qwen
    #[arg(value_name = "NAME", conflicts_with = "yes")]
    pub(crate) names: Vec<String>,
    /// Install for every editor found
    #[arg(long, short)]
    pub(crate) yes: bool,
    /// Show what would change without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Register the editor's tools for the agent's model too (gemini, qwen)
    #[arg(long, requires = "names")]
    pub(crate) tools: bool,
    /// Show what is installed
    #[arg(long, conflicts_with_all = ["yes", "dry_run", "tools"])]
    pub(crate) status: bool,
}

#[derive(Debug, Args)]
#[command(after_help = "\
With --all, undoes everything that `alongside install` did: run it before you remove the program.

Examples:
  alongside uninstall neovim
  alongside uninstall claude
  alongside uninstall emacs --dry-run
  alongside uninstall --all")]
pub(crate) struct Uninstall {
    /// Editors and agents to uninstall from
    #[arg(value_name = "NAME", required_unless_present = "all", conflicts_with = "all")]
    pub(crate) names: Vec<String>,
    /// Uninstall from every editor and agent that `alongside install` changed
    #[arg(long)]
    pub(crate) all: bool,
    /// Show what would change without changing anything
    #[arg(long)]
    pub(crate) dry_run: bool,
}

fn hook_agent(id: &str) -> Result<HookAgent, String> {
    HookAgent::from_id(id).ok_or_else(|| {
        let known = HookAgent::ALL.map(HookAgent::id);
        format!("expected one of {}", known.join(", "))
    })
}

impl Common {
    pub(crate) fn output(&self) -> Output {
        Output { json: self.json }
    }

    /// The absolute path of the directory that a command applies to.
    pub(crate) fn directory(&self) -> PathBuf {
        let typed = self.workspace.first().cloned().unwrap_or_else(|| PathBuf::from("."));
        alongside_platform::path::real(&typed)
            .or_else(|_| std::path::absolute(&typed))
            .unwrap_or(typed)
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn command_line_is_consistent() {
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
            // clap wraps paragraphs to the terminal width.
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
    fn agent_arguments_are_not_parsed() {
        let line = CommandLine::try_parse_from(["alongside", "run", "qwen", "--json", "-v"]).unwrap();
        assert!(!line.common.json);
        assert!(matches!(line.command, Some(Command::Run(run)) if run.command.len() == 3));
    }
}
