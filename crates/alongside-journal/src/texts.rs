//! Texts of any size: small ones are part of the record that names them, larger ones have files of their own, which no
//! compaction copies. A large text that is nearly the same as another one is stored as its changes.

use std::collections::HashSet;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use crate::disk::TEXTS_PREFIX;
use crate::sync::Syncer;

/// Longer texts have a file of their own.
pub const MAX_INLINE_BYTES: usize = 32 * 1024;

/// Longer changes to a text have a file, too. Compactions copy what is in records.
const MAX_CHANGES_BYTES: usize = 256 * 1024;
/// The same for the part of a text that its changes may be.
const CHANGES_PART: usize = 8;

/// What a record has of a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum StoredText {
    Inline(Arc<str>),
    File {
        name: String,
        length: u64,
        crc: u32,
    },
    /// Another text with changes, from top to bottom.
    Changed {
        from: Box<StoredText>,
        changes: Arc<[StoredChange]>,
    },
}

/// Bytes of a text and what replaces them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredChange {
    range: Range<usize>,
    text: Box<str>,
}

impl StoredChange {
    /// About how many bytes it has in a record.
    fn size(&self) -> usize {
        self.text.len() + 64
    }
}

impl StoredText {
    /// The file that it needs, in the folder of texts.
    pub fn file_name(&self) -> Option<&str> {
        match self {
            Self::Inline(_) => None,
            Self::File { name, .. } => Some(name),
            Self::Changed { from, .. } => from.file_name(),
        }
    }
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

    /// The same for a text that is stored already but for these changes, from top to bottom: the ranges are bytes of `from`.
    pub fn store_changed<'a>(
        &self,
        text: &Arc<str>,
        from: &StoredText,
        changes: impl Iterator<Item = (Range<usize>, &'a str)>,
    ) -> io::Result<StoredText> {
        let (StoredText::File { .. }, false) = (from, text.len() <= MAX_INLINE_BYTES) else {
            return self.store(text);
        };
        let most = (text.len() / CHANGES_PART).clamp(MAX_INLINE_BYTES, MAX_CHANGES_BYTES);
        let (mut stored, mut size) = (Vec::new(), 0);
        for (range, text) in changes {
            let text = text.into();
            let change = StoredChange { range, text };
            size += change.size();
            stored.push(change);
            if size > most {
                break;
            }
        }
        if size > most {
            return self.store(text);
        }
        Ok(StoredText::Changed {
            from: Box::new(from.clone()),
            changes: stored.into(),
        })
    }

    /// Returns a text as it was stored, or an error.
    ///
    /// After a power loss, records that were not synced may name texts that are missing or incomplete.
    pub fn load(&self, stored: &StoredText) -> io::Result<Arc<str>> {
        let (name, length, crc) = match stored {
            StoredText::Inline(text) => return Ok(text.clone()),
            StoredText::File { name, length, crc } => (checked(name)?, *length, *crc),
            StoredText::Changed { from, changes } => {
                // Never written, but a damaged record could go on and on.
                if matches!(**from, StoredText::Changed { .. }) {
                    return Err(invalid_changes());
                }
                return apply(&self.load(from)?, changes);
            }
        };
        let bytes = self.syncer.disk.read(&format!("{TEXTS_PREFIX}{name}"))?;
        if bytes.len() as u64 != length || crc32fast::hash(&bytes) != crc {
            return Err(damaged(name));
        }
        let text = String::from_utf8(bytes).map_err(|_| damaged(name))?;
        Ok(text.into())
    }

    /// Removes a text's file, which no record needs any more: after the next sync of the logs, so that no synced
    /// record names a missing text. Do this after the record that says so was appended.
    pub fn remove(&self, file_name: &str) {
        if checked(file_name).is_ok() {
            self.syncer.text_unused(file_name);
        }
    }

    /// Removes, after the next sync, every text that is neither named here nor stored since this process started.
    pub fn retain(&self, named: HashSet<String>) {
        self.syncer.retain_texts(named);
    }
}

fn apply(from: &str, changes: &[StoredChange]) -> io::Result<Arc<str>> {
    let added: usize = changes.iter().map(|change| change.text.len()).sum();
    let mut text = String::with_capacity(from.len() + added);
    let mut done = 0;
    for change in changes {
        text.push_str(from.get(done..change.range.start).ok_or_else(invalid_changes)?);
        text.push_str(&change.text);
        // Also refuses a range that ends before it starts.
        from.get(change.range.clone()).ok_or_else(invalid_changes)?;
        done = change.range.end;
    }
    text.push_str(from.get(done..).ok_or_else(invalid_changes)?);
    Ok(text.into())
}

fn invalid_changes() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "the saved changes do not fit their text")
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
