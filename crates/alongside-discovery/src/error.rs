//! Errors of writing discovery files.

use std::fmt;
use std::io;
use std::path::PathBuf;

use alongside_core::dialect::AgentKind;
use thiserror::Error;

/// Why a discovery file, or part of it, could not be written.
#[derive(Debug, Error)]
pub enum DiscoveryError {
    #[error("cannot use the directory {}: {source}; check that it can be created and is writable", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error("{} is not a directory and may be a planted symlink; remove it", path.display())]
    NotADirectory { path: PathBuf },
    #[error(
        "{} belongs to user {owner}, who could read or replace files in it; set TMPDIR to your own directory for both the editor and the agent, or start the agent with `alongside run`",
        path.display()
    )]
    ForeignDirectory {
        path: PathBuf,
        /// User ID of the owner.
        owner: u32,
    },
    #[error("cannot write {}: {source}; check free space and directory permissions", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot remove {}: {source}; remove it by hand, or agents will try a dead port", path.display())]
    Remove { path: PathBuf, source: io::Error },
    #[error(
        "the folder {} was skipped: its path contains `{delimiter}`, which this agent uses as a separator; rename it or open it through a symlink",
        root.display()
    )]
    RootHasDelimiter { root: PathBuf, delimiter: char },
    #[error(
        "the folder {} was skipped: its path is not valid UTF-8; rename it or open it through a symlink",
        root.display()
    )]
    RootNotUnicode { root: PathBuf },
    #[error("the folder `{}` was skipped: it is not an absolute path; use its full path", root.display())]
    RootNotAbsolute { root: PathBuf },
    #[error("no agent can find this companion: {}", list(problems))]
    NothingWritten { problems: Vec<AnnounceError> },
}

/// A problem with one file that did not stop the others from being written.
#[derive(Debug)]
pub struct AnnounceError {
    pub agent: AgentKind,
    pub path: PathBuf,
    pub error: DiscoveryError,
}

impl fmt::Display for AnnounceError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(formatter)
    }
}

fn list(problems: &[AnnounceError]) -> String {
    let sentences: Vec<String> = problems.iter().map(ToString::to_string).collect();
    sentences.join("; ")
}
