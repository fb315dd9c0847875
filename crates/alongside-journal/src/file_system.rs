//! The real disk: a directory that only its owner can open, locked against a second user.

use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};

use crate::OpenError;
use crate::disk::{Disk, DiskFile, Folder};

/// A locked directory. The lock is the operating system's, so a killed process does not keep it.
#[derive(Debug)]
pub struct FileSystem {
    root: PathBuf,
    lock: File,
}

impl FileSystem {
    /// Creates the directory if necessary, and locks it.
    pub fn open(root: &Path) -> Result<Self, OpenError> {
        create_private(root)?;
        create_private(&root.join("texts"))?;
        let mut options = File::options();
        options.read(true).write(true).create(true).truncate(false);
        private(&mut options);
        let lock = options.open(root.join("lock"))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                root: root.to_owned(),
                lock,
            }),
            Err(TryLockError::WouldBlock) => Err(OpenError::InUse),
            Err(TryLockError::Error(error)) => Err(error.into()),
        }
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        // Closing alone is not enough while a process that is just being started holds a copy of the descriptor.
        let _ = self.lock.unlock();
    }
}

impl Disk for FileSystem {
    fn names(&self, folder: Folder) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(self.folder(folder))? {
            let entry = entry?;
            if let Ok(name) = entry.file_name().into_string()
                && entry.file_type()?.is_file()
            {
                names.push(name);
            }
        }
        Ok(names)
    }

    fn read(&self, name: &str) -> io::Result<Vec<u8>> {
        fs::read(self.path(name))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true);
        private(&mut options);
        Ok(Box::new(options.open(self.path(name))?))
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>> {
        Ok(Box::new(File::options().write(true).open(self.path(name))?))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        alongside_platform::replace(&self.path(from), &self.path(to))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path(name))
    }

    #[cfg(unix)]
    fn sync_folder(&self, folder: Folder) -> io::Result<()> {
        File::open(self.folder(folder))?.sync_all()
    }

    /// Windows cannot sync a directory; NTFS journals names by itself.
    #[cfg(not(unix))]
    fn sync_folder(&self, _: Folder) -> io::Result<()> {
        Ok(())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.root.join(name)
    }
}

impl FileSystem {
    fn folder(&self, folder: Folder) -> PathBuf {
        match folder {
            Folder::Root => self.root.clone(),
            Folder::Texts => self.root.join("texts"),
        }
    }
}

impl DiskFile for File {
    #[cfg(unix)]
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        std::os::unix::fs::FileExt::write_all_at(self, bytes, offset)
    }

    #[cfg(windows)]
    fn write_at(&self, mut offset: u64, mut bytes: &[u8]) -> io::Result<()> {
        while !bytes.is_empty() {
            let written = std::os::windows::fs::FileExt::seek_write(self, bytes, offset)?;
            if written == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            offset += written as u64;
            bytes = &bytes[written..];
        }
        Ok(())
    }

    /// Without writing the zeros, which would take longer than the rest of a start.
    #[cfg(target_os = "linux")]
    fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        use rustix::fs::{FallocateFlags, fallocate};
        use rustix::io::{Errno, retry_on_intr};

        let length = to.saturating_sub(from);
        match retry_on_intr(|| fallocate(self, FallocateFlags::empty(), from, length)) {
            // Not every file system can.
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => self.write_zeros(from, to),
            reserved => Ok(reserved?),
        }
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&self) -> io::Result<()> {
        self.sync_data()
    }
}

#[cfg(unix)]
fn create_private(directory: &Path) -> io::Result<()> {
    use std::os::unix::fs::{DirBuilderExt, PermissionsExt};

    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    if fs::metadata(directory)?.permissions().mode() & 0o077 != 0 {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o700))?;
    }
    Ok(())
}

#[cfg(not(unix))]
fn create_private(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)
}

#[cfg(unix)]
fn private(options: &mut fs::OpenOptions) {
    use std::os::unix::fs::OpenOptionsExt;

    options.mode(0o600);
}

#[cfg(not(unix))]
fn private(_: &mut fs::OpenOptions) {}
