//! Why something was not installed or removed.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

#[derive(Debug, Error)]
pub enum InstallError {
    #[error("{0}")]
    Manual(String),
    #[error("this build of alongside does not include the plugin for {0}")]
    NoPlugin(&'static str),
    #[error("cannot find your home directory; set HOME")]
    NoHome,
    #[error("{0} does not run on Windows; if you use WSL, run `alongside install` inside it")]
    NotOnWindows(&'static str),
    #[error(
        "cannot find {editor}: `{command}` is not on your PATH or in the usual locations; install the shell command from within {editor} and try again"
    )]
    NoExecutable {
        editor: &'static str,
        command: &'static str,
    },
    #[error("{} is a symlink that alongside did not create, and was left alone; remove the link first", path.display())]
    Linked { path: PathBuf },
    #[error("{} is not valid UTF-8 and was left alone", path.display())]
    NotText { path: PathBuf },
    #[error(
        "{} has unmatched alongside markers (`>>> alongside` and `<<< alongside`) and was left alone; remove the rest of the block by hand",
        path.display()
    )]
    TornBlock { path: PathBuf },
    #[error("{} was left alone: {reason}", path.display())]
    Configuration { path: PathBuf, reason: String },
    #[error("{} was just changed by another program and was left alone; try again", path.display())]
    ChangedMeanwhile { path: PathBuf },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{command}` failed: {output}")]
    Command {
        /// The command as the user would type it.
        command: String,
        output: String,
    },
}
