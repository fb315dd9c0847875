//! A file of the workspace, found once and then opened without following symlinks.
//!
//! A review takes as long as the user does, and an agent can replace any part of the path by a symlink in the meantime. So
//! symlinks are resolved when the path is checked. Reading and writing start at the workspace, which is kept open, and refuse
//! every symlink that has appeared since.

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Component, Path, PathBuf};

use alongside_platform::Platform;
use alongside_platform::path::is_in;

/// A path in the workspace. The file need not exist.
#[derive(Debug)]
pub(super) struct WorkspaceFile {
    /// As the agent wrote it.
    pub(super) path: PathBuf,
    /// With symlinks resolved.
    pub(super) real: PathBuf,
    /// Kept open, so that another directory in its place is not written to.
    #[cfg(unix)]
    workspace: std::os::fd::OwnedFd,
    #[cfg(unix)]
    relative: PathBuf,
    #[cfg(not(unix))]
    root: PathBuf,
}

/// What a path leads to.
#[derive(Debug)]
pub(super) enum Content {
    Missing,
    TooLarge,
    /// A pipe, a socket or a device.
    NotAFile,
    Bytes(Vec<u8>),
}

impl WorkspaceFile {
    /// `None` if the path is relative, or leads out of the workspace.
    #[cfg_attr(
        not(unix),
        expect(clippy::unnecessary_wraps, reason = "other systems open the workspace here")
    )]
    pub(super) fn find(workspace: &Path, path: PathBuf) -> io::Result<Option<Self>> {
        let root = alongside_platform::path::real_or_same(workspace);
        let Some(real) = real_path(&path).filter(|real| is_in(Platform::current(), &root, real)) else {
            return Ok(None);
        };
        #[cfg(unix)]
        return Ok(Some(Self {
            workspace: File::open(&root)?.into(),
            relative: real.strip_prefix(&root).unwrap_or(&real).to_owned(),
            path,
            real,
        }));
        #[cfg(not(unix))]
        return Ok(Some(Self { path, real, root }));
    }

    pub(super) fn read(&self, max_bytes: u64) -> io::Result<Content> {
        let file = match self.open(Access::Read) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Content::Missing),
            Err(error) => return Err(error),
        };
        let metadata = file.metadata()?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Ok(Content::NotAFile);
        }
        if metadata.len() > max_bytes {
            return Ok(Content::TooLarge);
        }
        let mut bytes = Vec::new();
        // Some files are longer than they say, or grow.
        file.take(max_bytes + 1).read_to_end(&mut bytes)?;
        if bytes.len() as u64 > max_bytes {
            return Ok(Content::TooLarge);
        }
        Ok(Content::Bytes(bytes))
    }

    /// Writes in place, so that permissions, symlinks and watchers stay as they are. Creates missing directories.
    pub(super) fn write(&self, text: &str) -> io::Result<()> {
        let mut file = self.open(Access::Write)?;
        if !file.metadata()?.is_file() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a file"));
        }
        file.set_len(0)?;
        file.write_all(text.as_bytes())
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Access {
    Read,
    Write,
}

/// The file that a path leads to, or will lead to once it is created.
fn real_path(path: &Path) -> Option<PathBuf> {
    if !path.is_absolute() || path.components().any(|part| part == Component::ParentDir) {
        return None;
    }
    // The file may not exist yet: the existing part of its path decides.
    let mut existing = path;
    loop {
        match (alongside_platform::path::real(existing), existing.parent()) {
            (Ok(real), _) => {
                let missing = path.strip_prefix(existing).ok()?;
                // Joining nothing would add a slash, which a file must not have.
                let is_whole = missing.as_os_str().is_empty();
                return Some(if is_whole { real } else { real.join(missing) });
            }
            // Writing through a dangling symlink would create its target, wherever that is.
            (Err(_), Some(parent)) if existing.symlink_metadata().is_err() => existing = parent,
            (Err(_), _) => return None,
        }
    }
}

/// Whether a path could not be opened because it is no longer what was checked.
#[cfg(unix)]
pub(super) fn has_changed(error: &io::Error) -> bool {
    use rustix::io::Errno;

    matches!(Errno::from_io_error(error), Some(Errno::LOOP | Errno::NOTDIR))
}

#[cfg(not(unix))]
pub(super) fn has_changed(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::PermissionDenied && error.get_ref().is_some()
}

#[cfg(unix)]
impl WorkspaceFile {
    fn open(&self, access: Access) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags, openat};

        // Opening a pipe must not wait for its other end.
        let file_flags = OFlags::NOFOLLOW | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
        let file_flags = match access {
            Access::Read => file_flags | OFlags::RDONLY,
            Access::Write => file_flags | OFlags::WRONLY | OFlags::CREATE,
        };
        self.at_parent(access, |at, name| {
            Ok(openat(at, name, file_flags, Mode::from_raw_mode(0o666))?.into())
        })
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        use rustix::fs::{AtFlags, unlinkat};

        self.at_parent(Access::Read, |at, name| Ok(unlinkat(at, name, AtFlags::empty())?))
    }

    /// Opens the directory of the file, and calls `then` with it and the file's name.
    fn at_parent<T>(
        &self,
        access: Access,
        then: impl FnOnce(std::os::fd::BorrowedFd<'_>, &std::ffi::OsStr) -> io::Result<T>,
    ) -> io::Result<T> {
        use std::os::fd::{AsFd, OwnedFd};

        use rustix::fs::{Mode, OFlags, mkdirat, openat};
        use rustix::io::Errno;

        // Searching a directory does not need permission to list it.
        #[cfg(target_os = "linux")]
        const SEARCH: OFlags = OFlags::PATH;
        #[cfg(not(target_os = "linux"))]
        const SEARCH: OFlags = OFlags::RDONLY;
        let directory_flags = SEARCH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let mut parent: Option<OwnedFd> = None;
        let mut names = self.relative.iter().peekable();
        while let Some(name) = names.next() {
            let at = parent.as_ref().map_or(self.workspace.as_fd(), AsFd::as_fd);
            if names.peek().is_none() {
                return then(at, name);
            }
            let directory = match openat(at, name, directory_flags, Mode::empty()) {
                Err(Errno::NOENT) if access == Access::Write => {
                    match mkdirat(at, name, Mode::from_raw_mode(0o777)) {
                        Ok(()) | Err(Errno::EXIST) => {}
                        Err(error) => return Err(error.into()),
                    }
                    openat(at, name, directory_flags, Mode::empty())
                }
                opened => opened,
            };
            parent = Some(directory?);
        }
        Err(io::ErrorKind::IsADirectory.into())
    }
}

/// Checks again right before opening: there is no portable way to open a path without following symlinks.
#[cfg(not(unix))]
impl WorkspaceFile {
    fn check(&self) -> io::Result<()> {
        if real_path(&self.path).as_ref() != Some(&self.real) || !is_in(Platform::current(), &self.root, &self.real) {
            let changed = "the path leads elsewhere now";
            return Err(io::Error::new(io::ErrorKind::PermissionDenied, changed));
        }
        Ok(())
    }

    pub(super) fn remove(&self) -> io::Result<()> {
        self.check()?;
        std::fs::remove_file(&self.real)
    }

    fn open(&self, access: Access) -> io::Result<File> {
        self.check()?;
        match access {
            Access::Read => File::open(&self.real),
            Access::Write => {
                if let Some(directory) = self.real.parent() {
                    std::fs::create_dir_all(directory)?;
                }
                let mut options = File::options();
                options.write(true).create(true).truncate(false).open(&self.real)
            }
        }
    }
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn file_longer_than_it_claims_is_too_large() {
        let maps = WorkspaceFile::find(Path::new("/proc/self"), "/proc/self/maps".into());
        let read = maps.unwrap().unwrap().read(10).unwrap();
        assert!(matches!(read, Content::TooLarge), "{read:?}");
    }
}
