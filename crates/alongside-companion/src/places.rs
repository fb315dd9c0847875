//! Where the companion keeps its own files.
//!
//! Everything is below the state directory, not the runtime directory: some of a user's terminals lack the latter, and a
//! command there would not find a running companion.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use etcetera::{BaseStrategy, choose_base_strategy};

#[derive(Clone, Debug)]
pub struct Places {
    pub configuration: PathBuf,
    pub state: PathBuf,
}

impl Places {
    pub fn of_user() -> Result<Self> {
        let variable = if cfg!(windows) { "USERPROFILE" } else { "HOME" };
        let strategy =
            choose_base_strategy().with_context(|| format!("cannot find your home directory; set {variable}"))?;
        // On Windows the data directory is part of a roaming profile, which is copied to other machines. Ports, locks and tokens
        // belong to this one.
        let state = strategy.state_dir().unwrap_or_else(|| strategy.cache_dir());
        Ok(Self {
            configuration: strategy.config_dir().join("alongside"),
            state: state.join("alongside"),
        })
    }

    /// The records of running companions.
    pub fn companions(&self) -> PathBuf {
        self.state.join("companions")
    }

    /// The user's choices about the chat.
    pub fn chat(&self) -> PathBuf {
        self.state.join("chat")
    }

    /// Drafts that editors open as files.
    pub fn drafts(&self) -> PathBuf {
        self.state.join("drafts")
    }

    /// Files that redirect a browser to a login link.
    pub fn links(&self) -> PathBuf {
        self.state.join("links")
    }

    /// The previous texts of files that an agent changed without a decision.
    pub fn unreviewed(&self) -> PathBuf {
        self.state.join("unreviewed")
    }

    /// The sockets of running companions.
    pub fn sockets(&self) -> PathBuf {
        self.state.join("sockets")
    }

    pub fn settings(&self) -> PathBuf {
        self.configuration.join("config.toml")
    }
}

/// Creates a directory that only this user can enter.
pub fn private_directory(path: &Path) -> io::Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Writes a file atomically that only this user can read.
pub fn write_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    private_directory(directory)?;
    // A temporary file is created with mode 0600.
    let mut file = tempfile::Builder::new().prefix(".new-").tempfile_in(directory)?;
    file.write_all(content)?;
    alongside_platform::persist(file, path)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn written_files_are_readable_by_this_user_only() {
        use std::os::unix::fs::PermissionsExt;

        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("one/two/file.json");
        write_private(&file, b"first").unwrap();
        write_private(&file, b"second").unwrap();
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&file), mode(file.parent().unwrap())), (0o600, 0o700));
        assert_eq!(fs::read(&file).unwrap(), b"second");
        assert_eq!(
            fs::read_dir(file.parent().unwrap()).unwrap().count(),
            1,
            "no temporary file is left"
        );
    }
}
