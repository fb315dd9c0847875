//! Why something was not installed, told so that a person can act on it.

use std::io;
use std::path::PathBuf;

use thiserror::Error;

/// Why something was not installed or removed.
#[derive(Debug, Error)]
pub enum InstallError {
    /// The editor has no installer.
    #[error("{0}")]
    Manual(String),
    /// The plugin was not there when this program was built.
    #[error("this build of alongside does not include the plugin for {0}")]
    NoPlugin(&'static str),
    /// There is no place to install to.
    #[error("cannot find your home directory; set HOME")]
    NoHome,
    /// The editor does not run on this kind of machine.
    #[error("{0} does not run on Windows; if you use WSL, run `alongside install` inside it")]
    NotOnWindows(&'static str),
    /// The editor's own command is needed and was not found.
    #[error(
        "cannot find {editor}: `{command}` is not on your PATH or in the usual locations; install the shell command from within {editor} and try again"
    )]
    NoExecutable {
        editor: &'static str,
        command: &'static str,
    },
    /// The place is a link to somewhere else: somebody has set it up by hand.
    #[error("{} is a symlink that alongside did not create, and was left alone; remove the link first", path.display())]
    Linked {
        /// The link.
        path: PathBuf,
    },
    /// A configuration file is not text.
    #[error("{} is not valid UTF-8 and was left alone", path.display())]
    NotText { path: PathBuf },
    /// The marks of the block do not pair up.
    #[error(
        "{} has unmatched alongside markers (`>>> alongside` and `<<< alongside`) and was left alone; remove the rest of the block by hand",
        path.display()
    )]
    TornBlock { path: PathBuf },
    /// The configuration would not be valid with the block in it.
    #[error("{} was left alone: {reason}", path.display())]
    Configuration {
        path: PathBuf,
        /// What is in the way.
        reason: String,
    },
    /// Somebody changed a file between looking and writing.
    #[error("{} was just changed by another program and was left alone; try again", path.display())]
    ChangedMeanwhile { path: PathBuf },
    /// The file system said no.
    #[error("cannot write {}: {source}", path.display())]
    Write {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file system said no.
    #[error("cannot read {}: {source}", path.display())]
    Read {
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A command of the editor failed.
    #[error("`{command}` failed: {output}")]
    Command {
        /// The command as it would be typed.
        command: String,
        /// What it said.
        output: String,
    },
}
