//! The commands with which scripts do what an editor's plugin does.

use std::path::PathBuf;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum Context {
    /// Mark files as open
    #[command(after_help = "Example:\n  alongside context open src/*.rs")]
    Open {
        /// Files to report
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Set the focused file, the cursor position and the selection
    #[command(after_help = "\
Lines and characters are 1-based; characters are UTF-16 code units, as in most editor protocols.

Example:
  alongside context focus src/main.rs --line 12 --character 5 --select 'fn main()'")]
    Focus {
        /// File to focus
        file: PathBuf,
        /// Cursor line; with `--select`, where the selected text begins
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
        line: Option<u32>,
        /// Cursor character within the line
        #[arg(long, value_name = "N", requires = "line", value_parser = clap::value_parser!(u32).range(1..))]
        character: Option<u32>,
        /// Selected text
        #[arg(long, value_name = "TEXT")]
        select: Option<String>,
    },
    /// Mark files as closed
    #[command(after_help = "Example:\n  alongside context close src/main.rs")]
    Close {
        /// Files to report
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
    /// Print exactly what agents see, and what is hidden from them
    #[command(after_help = "Example:\n  alongside context show --json")]
    Show,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Diff {
    /// List pending changes
    #[command(after_help = "Example:\n  alongside diff list --json | jq '.[].path'")]
    List,
    /// Show a change
    #[command(after_help = "Examples:\n  alongside diff show 1\n  alongside diff show src/main.rs")]
    Show {
        /// Review number or file path
        review: String,
    },
    /// Accept a change, as is or edited
    #[command(after_help = "\
Examples:
  alongside diff accept 1
  alongside diff accept src/main.rs --content-file /tmp/better.rs")]
    Accept {
        /// Review number or file path
        review: String,
        /// Accept this file's content instead of the current draft (`-` for stdin)
        #[arg(long, value_name = "F")]
        content_file: Option<PathBuf>,
        /// Also accept every other pending change from the same agent
        #[arg(long, conflicts_with = "content_file")]
        all_of_agent: bool,
        /// Accept an empty draft even though the agent will treat it as "not edited"
        #[arg(long)]
        even_if_empty: bool,
    },
    /// Replace the draft without accepting or rejecting it
    #[command(after_help = "Example:\n  alongside diff edit 1 --content-file /tmp/better.rs")]
    Edit {
        /// Review number or file path
        review: String,
        /// File with the new draft (`-` for stdin)
        #[arg(long, value_name = "F")]
        content_file: PathBuf,
    },
    /// Accept or reject one hunk, numbered as in `diff show`
    #[command(after_help = "Examples:\n  alongside diff hunk 1 2 reject\n  alongside diff hunk src/main.rs 0 accept")]
    Hunk {
        /// Review number or file path
        review: String,
        /// Hunk number
        hunk: u32,
        /// What to do with it; `keep` resolves a conflict in favor of the draft
        decision: HunkWord,
    },
    /// Reject a change
    #[command(
        after_help = "Examples:\n  alongside diff reject 1\n  alongside diff reject 1 --reason 'Keep the old name.'\n  alongside diff reject 1 --all-of-agent"
    )]
    Reject {
        /// Review number or file path
        review: String,
        /// Also reject every other pending change from the same agent
        #[arg(long, conflicts_with = "reason")]
        all_of_agent: bool,
        /// Why, for the agent to read; not every agent can receive a reason
        #[arg(long, value_name = "TEXT")]
        reason: Option<String>,
    },
}

/// What becomes of a hunk.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum HunkWord {
    Accept,
    Reject,
    Keep,
}
