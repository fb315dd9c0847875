//! A directory that other users cannot tamper with, and atomic file replacement in it.
//!
//! `/tmp` is shared: another user may have created `/tmp/gemini` first, or planted a symlink there, to read the token
//! or to make us overwrite a file. So each directory under the base is opened without following symlinks, checked
//! through its handle, and only used through that handle: there is no gap between check and use.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::DiscoveryError;

/// An open directory that only our user can write to.
#[derive(Debug)]
pub(crate) struct PrivateDirectory {
    path: PathBuf,
    #[cfg(unix)]
    handle: rustix::fd::OwnedFd,
}

impl PrivateDirectory {
    /// Opens `base` and the directories under it, creating missing ones with mode 0700.
    ///
    /// The base may be a symlink or belong to another user (`/tmp` does); the directories under it may not.
    pub(crate) fn open(base: &Path, names: &[&str], uid: Option<u32>) -> Result<Self, DiscoveryError> {
        create_privately(base).map_err(|source| DiscoveryError::Directory {
            path: base.to_owned(),
            source,
        })?;
        let mut directory = Self::open_base(base)?;
        for name in names {
            directory = directory.open_child(name, uid)?;
        }
        Ok(directory)
    }

    /// Atomically writes a file that is private from the start: readers see either the old content or all of the new.
    /// `temporary` is its name until the rename, `modified` its mtime.
    pub(crate) fn replace(
        &self,
        name: &str,
        temporary: &str,
        contents: &str,
        modified: SystemTime,
    ) -> Result<(), DiscoveryError> {
        let result = self
            .write_new(temporary, contents, modified)
            .and_then(|()| self.rename(temporary, name));
        result.map_err(|source| {
            self.discard(temporary);
            DiscoveryError::Write {
                path: self.path.join(name),
                source,
            }
        })
    }

    fn write_new(&self, name: &str, contents: &str, modified: SystemTime) -> io::Result<()> {
        let mut file = match self.create_new(name) {
            // The name contains our PID, so an existing file is left over from a dead process, never another writer's.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                self.discard(name);
                self.create_new(name)?
            }
            result => result?,
        };
        file.write_all(contents.as_bytes())?;
        file.set_modified(modified)
    }
}

#[cfg(unix)]
impl PrivateDirectory {
    fn open_base(path: &Path) -> Result<Self, DiscoveryError> {
        let handle = rustix::fs::open(path, directory_flags(), rustix::fs::Mode::empty()).map_err(|source| {
            DiscoveryError::Directory {
                path: path.to_owned(),
                source: source.into(),
            }
        })?;
        Ok(Self {
            path: path.to_owned(),
            handle,
        })
    }

    fn open_child(&self, name: &str, uid: Option<u32>) -> Result<Self, DiscoveryError> {
        use rustix::fs::{Mode, OFlags};
        use rustix::io::Errno;

        let path = self.path.join(name);
        let open = || rustix::fs::openat(&self.handle, name, directory_flags() | OFlags::NOFOLLOW, Mode::empty());
        let opened = match open() {
            Err(Errno::NOENT) => match rustix::fs::mkdirat(&self.handle, name, Mode::RWXU) {
                // Another process may have created it first; it is then checked like any other directory.
                Ok(()) | Err(Errno::EXIST) => open(),
                Err(error) => Err(error),
            },
            result => result,
        };
        let handle = match opened {
            Ok(handle) => handle,
            Err(Errno::NOTDIR | Errno::LOOP) => return Err(DiscoveryError::NotADirectory { path }),
            Err(source) => {
                let source = source.into();
                return Err(DiscoveryError::Directory { path, source });
            }
        };
        match keep_others_out(&handle, uid) {
            Ok(None) => Ok(Self { path, handle }),
            Ok(Some(owner)) => Err(DiscoveryError::ForeignDirectory { path, owner }),
            Err(source) => Err(DiscoveryError::Directory { path, source }),
        }
    }

    fn create_new(&self, name: &str) -> io::Result<File> {
        use rustix::fs::{Mode, OFlags};

        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let handle = rustix::fs::openat(&self.handle, name, flags, Mode::RUSR | Mode::WUSR)?;
        Ok(File::from(handle))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        Ok(rustix::fs::renameat(&self.handle, from, &self.handle, to)?)
    }

    fn discard(&self, name: &str) {
        // A leftover temporary file is swept at the next start.
        let _ = rustix::fs::unlinkat(&self.handle, name, rustix::fs::AtFlags::empty());
    }
}

#[cfg(unix)]
fn directory_flags() -> rustix::fs::OFlags {
    rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECTORY | rustix::fs::OFlags::CLOEXEC
}

/// Removes write permission for other users; returns the owner if it is another user.
#[cfg(unix)]
fn keep_others_out(handle: &rustix::fd::OwnedFd, uid: Option<u32>) -> io::Result<Option<u32>> {
    use rustix::fs::Mode;

    let status = rustix::fs::fstat(handle)?;
    if uid.is_some_and(|uid| uid != status.st_uid) {
        return Ok(Some(status.st_uid));
    }
    let mode = Mode::from_raw_mode(status.st_mode);
    let others = Mode::WGRP | Mode::WOTH;
    if mode.intersects(others) {
        rustix::fs::fchmod(handle, mode - others)?;
    }
    Ok(None)
}

#[cfg(unix)]
fn create_privately(path: &Path) -> io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;

    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

// On Windows the system protects the user's profile. A temporary directory outside of it has the permissions of its drive, which are not
// changed here; `Environment::exposures` warns of that.
#[cfg(not(unix))]
impl PrivateDirectory {
    #[expect(clippy::unnecessary_wraps, reason = "other systems open it here")]
    fn open_base(path: &Path) -> Result<Self, DiscoveryError> {
        Ok(Self { path: path.to_owned() })
    }

    fn open_child(&self, name: &str, _uid: Option<u32>) -> Result<Self, DiscoveryError> {
        let path = self.path.join(name);
        match create_privately(&path) {
            Ok(()) => {}
            Err(source) => return Err(DiscoveryError::Directory { path, source }),
        }
        if std::fs::symlink_metadata(&path).is_ok_and(|metadata| metadata.is_symlink()) {
            return Err(DiscoveryError::NotADirectory { path });
        }
        Ok(Self { path })
    }

    fn create_new(&self, name: &str) -> io::Result<File> {
        File::create_new(self.path.join(name))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        alongside_platform::replace(&self.path.join(from), &self.path.join(to))
    }

    fn discard(&self, name: &str) {
        let _ = std::fs::remove_file(self.path.join(name));
    }
}

#[cfg(not(unix))]
fn create_privately(path: &Path) -> io::Result<()> {
    std::fs::create_dir_all(path)
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    fn own_uid() -> u32 {
        rustix::process::getuid().as_raw()
    }

    fn mode(path: &Path) -> u32 {
        fs::metadata(path).unwrap().permissions().mode() & 0o777
    }

    /// Difference 23: the specification does not mention modes; the file is 0600 and the directories are 0700.
    #[test]
    fn directories_and_files_are_private() {
        let base = tempfile::tempdir().unwrap();
        let directory = PrivateDirectory::open(base.path(), &["gemini", "ide"], Some(own_uid())).unwrap();
        directory
            .replace("file", ".temporary", "{}", SystemTime::now())
            .unwrap();
        assert_eq!(mode(&base.path().join("gemini")), 0o700);
        assert_eq!(mode(&base.path().join("gemini/ide")), 0o700);
        assert_eq!(mode(&base.path().join("gemini/ide/file")), 0o600);
        assert_eq!(fs::read_dir(base.path().join("gemini/ide")).unwrap().count(), 1);
    }

    #[test]
    fn group_writable_directory_is_tightened() {
        let base = tempfile::tempdir().unwrap();
        let directory = base.path().join("gemini");
        fs::create_dir(&directory).unwrap();
        fs::set_permissions(&directory, Permissions::from_mode(0o777)).unwrap();
        PrivateDirectory::open(base.path(), &["gemini"], Some(own_uid())).unwrap();
        assert_eq!(mode(&directory), 0o755);
    }

    #[test]
    fn planted_symlink_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let elsewhere = tempfile::tempdir().unwrap();
        symlink(elsewhere.path(), base.path().join("gemini")).unwrap();
        let error = PrivateDirectory::open(base.path(), &["gemini", "ide"], Some(own_uid())).unwrap_err();
        assert!(matches!(error, DiscoveryError::NotADirectory { .. }), "{error}");
        assert_eq!(fs::read_dir(elsewhere.path()).unwrap().count(), 0);
    }

    #[test]
    fn directory_of_another_user_is_refused() {
        let base = tempfile::tempdir().unwrap();
        fs::create_dir(base.path().join("gemini")).unwrap();
        let stranger = Some(own_uid() + 1);
        let error = PrivateDirectory::open(base.path(), &["gemini", "ide"], stranger).unwrap_err();
        assert!(matches!(error, DiscoveryError::ForeignDirectory { .. }), "{error}");
    }

    #[test]
    fn replace_is_atomic_and_follows_no_symlink() {
        let base = tempfile::tempdir().unwrap();
        let victim = base.path().join("victim");
        fs::write(&victim, "precious").unwrap();
        let directory = PrivateDirectory::open(base.path(), &["ide"], Some(own_uid())).unwrap();
        symlink(&victim, base.path().join("ide/file")).unwrap();
        symlink(&victim, base.path().join("ide/.temporary")).unwrap();
        directory
            .replace("file", ".temporary", "new", SystemTime::now())
            .unwrap();
        assert_eq!(fs::read_to_string(&victim).unwrap(), "precious");
        assert_eq!(fs::read_to_string(base.path().join("ide/file")).unwrap(), "new");
    }
}
