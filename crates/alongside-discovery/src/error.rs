//! What can go wrong with discovery files, told so that a person can act on it.

use std::fmt;
use std::io;
use std::path::PathBuf;

use alongside_core::dialect::AgentKind;
use thiserror::Error;

/// Why a discovery file, or a part of it, could not be written.
#[derive(Debug, Error)]
pub enum DiscoveryError {
    /// A directory could not be made or opened.
    #[error("cannot use the directory {}: {source}; check that it can be created and is writable", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A directory of ours is not a real directory.
    #[error("{} is not a directory and may be a planted symlink; remove it", path.display())]
    NotADirectory {
        /// What should be a directory.
        path: PathBuf,
    },
    /// Somebody else made the directory first.
    #[error(
        "{} belongs to user {owner}, who could read or replace files in it; set TMPDIR to your own directory for both the editor and the agent, or start the agent with `alongside run`",
        path.display()
    )]
    ForeignDirectory {
        /// The directory.
        path: PathBuf,
        /// Its owner's user id.
        owner: u32,
    },
    /// The file could not be written.
    #[error("cannot write {}: {source}; check free space and directory permissions", path.display())]
    Write {
        /// The discovery file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file could not be removed.
    #[error("cannot remove {}: {source}; remove it by hand, or agents will try a dead port", path.display())]
    Remove {
        /// The discovery file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A workspace folder has the list's own separator in its name.
    #[error(
        "the folder {} was skipped: its path contains `{delimiter}`, which this agent uses as a separator; rename it or open it through a symlink",
        root.display()
    )]
    RootHasDelimiter {
        root: PathBuf,
        /// The separator.
        delimiter: char,
    },
    /// A workspace folder cannot be written in JSON.
    #[error(
        "the folder {} was skipped: its path is not valid UTF-8; rename it or open it through a symlink",
        root.display()
    )]
    RootNotUnicode { root: PathBuf },
    /// A workspace folder that would mean another place in each terminal.
    #[error("the folder `{}` was skipped: it is not an absolute path; use its full path", root.display())]
    RootNotAbsolute { root: PathBuf },
    /// Not one file could be written.
    #[error("no agent can find this companion: {}", list(problems))]
    NothingWritten {
        /// What went wrong, file by file.
        problems: Vec<AnnounceError>,
    },
}

/// Something that went wrong with one file while others were written.
#[derive(Debug)]
pub struct AnnounceError {
    /// The agent that the file is for.
    pub agent: AgentKind,
    /// The discovery file.
    pub path: PathBuf,
    /// What went wrong with it.
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
