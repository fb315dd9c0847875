//! Texts of any size: small ones are part of the record that names them, larger ones have files of their own, which no
//! compaction copies.

use std::collections::HashSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::disk::TEXTS_PREFIX;
use crate::sync::Syncer;

/// Longer texts have a file of their own.
pub const MAX_INLINE_BYTES: usize = 32 * 1024;

/// What a record has of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoredText {
    Inline(Arc<str>),
    File { name: String, length: u64, crc: u32 },
}

/// The folder `texts/`.
pub struct Texts {
    syncer: Arc<Syncer>,
    stored: AtomicU64,
}

impl Texts {
    pub(crate) fn new(syncer: Arc<Syncer>) -> Self {
        Self {
            syncer,
            stored: AtomicU64::new(0),
        }
    }

    /// Writes a large text. Do this before the record that names it is appended.
    pub fn store(&self, text: &Arc<str>) -> io::Result<StoredText> {
        if text.len() <= MAX_INLINE_BYTES {
            return Ok(StoredText::Inline(text.clone()));
        }
        let number = self.stored.fetch_add(1, Ordering::Relaxed);
        let name = format!("{}{number:x}", self.syncer.own_prefix);
        let file_name = format!("{TEXTS_PREFIX}{name}");
        let written = self
            .syncer
            .disk
            .create(&file_name)
            .and_then(|file| file.write_at(0, text.as_bytes()));
        if let Err(error) = written {
            // Now, not later: it takes space that is short.
            if self.syncer.disk.remove(&file_name).is_err() {
                self.syncer.text_unused(&name);
            }
            return Err(error);
        }
        self.syncer.text_stored(&name);
        Ok(StoredText::File {
            name,
            length: text.len() as u64,
            crc: crc32fast::hash(text.as_bytes()),
        })
    }

    /// Returns a text as it was stored, or an error.
    ///
    /// After a power loss, records that were not synced may name texts that are missing or incomplete.
    pub fn load(&self, stored: &StoredText) -> io::Result<Arc<str>> {
        let (name, length, crc) = match stored {
            StoredText::Inline(text) => return Ok(text.clone()),
            StoredText::File { name, length, crc } => (checked(name)?, *length, *crc),
        };
        let bytes = self.syncer.disk.read(&format!("{TEXTS_PREFIX}{name}"))?;
        if bytes.len() as u64 != length || crc32fast::hash(&bytes) != crc {
            return Err(damaged(name));
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged(name))?;
        Ok(text.into())
    }

    /// Removes a text that no record needs any more. Its file goes after the next sync of the logs, so that no synced
    /// record names a missing text. Do this after the record that says so was appended.
    pub fn remove(&self, stored: &StoredText) {
        if let StoredText::File { name, .. } = stored
            && checked(name).is_ok()
        {
            self.syncer.text_unused(name);
        }
    }

    /// Removes, after the next sync, every text that is neither named here nor stored since this process started.
    pub fn retain(&self, named: HashSet<String>) {
        self.syncer.retain_texts(named);
    }
}

/// Records may come from a damaged file: their names must not lead out of the folder.
fn checked(name: &str) -> io::Result<&str> {
    let valid = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b'-');
    valid.then_some(name).ok_or_else(|| damaged(name))
}

fn damaged(name: &str) -> io::Error {
    let text = format!("the saved text `{}` is damaged", name.escape_debug());
    io::Error::new(io::ErrorKind::InvalidData, text)
}
