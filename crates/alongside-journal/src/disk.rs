//! What the journal asks of a disk: a few calls, so that tests can put a disk of their own beneath it.
//!
//! A [`Disk`] is one directory with the folder `texts` in it. Names are relative to the directory, with `/` between folder
//! and file. Two things are never assumed: that a write is durable before [`DiskFile::sync`], and that a file's name is
//! durable before [`Disk::sync_folder`].

use std::io;
use std::path::PathBuf;

/// A folder whose entries are listed and synced together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Folder {
    /// The directory itself, with the logs.
    Root,
    /// `texts/`.
    Texts,
}

impl Folder {
    /// The folder that a name is in.
    pub fn of(name: &str) -> Self {
        if name.starts_with(TEXTS_PREFIX) {
            Self::Texts
        } else {
            Self::Root
        }
    }
}

pub(crate) const TEXTS_PREFIX: &str = "texts/";

pub trait Disk: Send + Sync + 'static {
    /// The names of the files in a folder, without the folder.
    fn names(&self, folder: Folder) -> io::Result<Vec<String>>;
    fn read(&self, name: &str) -> io::Result<Vec<u8>>;
    /// Creates an empty file that only its owner can read, in place of an existing one.
    fn create(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Opens an existing file for writing.
    fn open(&self, name: &str) -> io::Result<Box<dyn DiskFile>>;
    /// Renames a file in the same folder, atomically.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Makes the names in a folder durable.
    fn sync_folder(&self, folder: Folder) -> io::Result<()>;
    /// Where users find this file. Does no I/O.
    fn path(&self, name: &str) -> PathBuf;
}

pub trait DiskFile: Send + Sync {
    /// Writes everything; after an error, any prefix may be in the file.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()>;
    /// Overwrites everything between two offsets.
    fn write_zeros(&self, from: u64, to: u64) -> io::Result<()> {
        static ZEROS: [u8; 64 * 1024] = [0; 64 * 1024];
        let mut offset = from;
        while offset < to {
            let length = (to - offset).min(ZEROS.len() as u64);
            #[allow(clippy::cast_possible_truncation, reason = "at most the length of a slice")]
            self.write_at(offset, &ZEROS[..length as usize])?;
            offset += length;
        }
        Ok(())
    }
    /// Takes the space between two offsets behind the end of the file, which then reads as zeros.
    fn reserve(&self, from: u64, to: u64) -> io::Result<()> {
        self.write_zeros(from, to)
    }
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Makes the contents durable.
    fn sync(&self) -> io::Result<()>;
}
