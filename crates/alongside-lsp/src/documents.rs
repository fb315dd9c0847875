//! The files that an editor has open.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::text::{self, Encoding};
use crate::types::{Position, Range, TextDocumentContentChangeEvent};
use crate::{normalize, uri};

/// A larger file is not compared with its buffer.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;

/// How many changes may wait for an earlier one, and how long. After that it is not expected any longer.
const MAX_EARLY: usize = 64;
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The open files by URI.
#[derive(Default)]
pub(super) struct Documents(BTreeMap<String, Document>);

pub(super) struct Document {
    /// Absolute, as the editor spells it.
    pub(super) path: String,
    /// The same with symlinks resolved, for comparing.
    pub(super) real: PathBuf,
    pub(super) text: String,
    /// Counts the editor's changes.
    pub(super) version: i64,
    /// Changes that overtook earlier ones, by version.
    early: BTreeMap<i64, Vec<TextDocumentContentChangeEvent>>,
    early_since: Option<Instant>,
    on_disk: OnDisk,
}

/// The text of a file on disk.
enum OnDisk {
    Missing,
    Text(Arc<str>),
    /// Not compared: not UTF-8, or too large.
    Other,
}

impl Documents {
    /// Adds an opened file; `None` if the URI is not a file's.
    pub(super) fn open(&mut self, address: &str, version: i64, text: String) -> Option<&Document> {
        let path = uri::to_path(address)?;
        let document = Document {
            real: real(Path::new(&path)),
            on_disk: OnDisk::read(&path),
            path,
            text,
            version,
            early: BTreeMap::new(),
            early_since: None,
        };
        self.0.insert(address.to_owned(), document);
        self.0.get(address)
    }

    pub(super) fn get(&self, address: &str) -> Option<&Document> {
        self.0.get(address)
    }

    pub(super) fn get_mut(&mut self, address: &str) -> Option<&mut Document> {
        self.0.get_mut(address)
    }

    pub(super) fn close(&mut self, address: &str) -> Option<Document> {
        self.0.remove(address)
    }

    /// The URI of an open file in the editor's spelling.
    pub(super) fn address_of(&self, path: &str) -> Option<&str> {
        let exact = uri::of_path(path);
        if let Some((address, _)) = self.0.get_key_value(&exact) {
            return Some(address);
        }
        let real = real(Path::new(path));
        let mut all = self.0.iter();
        all.find(|(_, document)| document.real == real)
            .map(|(address, _)| address.as_str())
    }
}

impl Document {
    /// Applies changes and returns the byte offset after the last one.
    pub(super) fn change(
        &mut self,
        version: i64,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
    ) -> usize {
        self.version = version;
        changes
            .into_iter()
            .fold(0, |_, change| text::apply(&mut self.text, change, encoding))
    }

    /// The same for an editor whose changes may overtake each other. `None` if these are too early, or too late.
    pub(super) fn change_in_order(
        &mut self,
        version: i64,
        changes: Vec<TextDocumentContentChangeEvent>,
        encoding: Encoding,
        now: Instant,
    ) -> Option<usize> {
        if version <= self.version {
            return None;
        }
        self.early.insert(version, changes);
        let since = *self.early_since.get_or_insert(now);
        let is_hopeless = self.early.len() > MAX_EARLY || now - since > MAX_WAIT;
        let mut end = None;
        while let Some(next) = self.early.first_entry()
            && (is_hopeless || *next.key() == self.version + 1)
        {
            let (version, changes) = next.remove_entry();
            end = Some(self.change(version, changes, encoding));
        }
        if self.early.is_empty() {
            self.early_since = None;
        }
        end
    }

    /// The buffer was saved. The saved text also repairs errors of earlier changes.
    pub(super) fn saved(&mut self, saved: Option<String>) {
        if let Some(saved) = saved {
            self.text = saved;
            if let Some((last, _)) = std::mem::take(&mut self.early).pop_last() {
                self.version = last;
                self.early_since = None;
            }
        }
        self.on_disk = OnDisk::read(&self.path);
    }

    /// The text of the buffer if it differs from the file on disk.
    pub(super) fn unsaved(&self) -> Option<Arc<str>> {
        let model = match &self.on_disk {
            OnDisk::Missing => "",
            OnDisk::Text(text) => text,
            OnDisk::Other => return None,
        };
        let meant = normalize::denormalize(&self.text, model);
        (meant != model).then(|| meant.into())
    }

    /// The text between two positions.
    pub(super) fn between(&self, range: Range, encoding: Encoding) -> &str {
        let start = text::offset(&self.text, range.start, encoding);
        let end = text::offset(&self.text, range.end, encoding).max(start);
        &self.text[start..end]
    }

    /// A position as agents count: 1-based, in UTF-16 code units.
    pub(super) fn cursor(&self, position: Position, encoding: Encoding) -> (usize, usize) {
        let offset = text::offset(&self.text, position, encoding);
        let counted = text::position(&self.text, offset, Encoding::Utf16);
        (counted.line + 1, counted.character + 1)
    }
}

impl OnDisk {
    fn read(path: &str) -> Self {
        match fs::metadata(path) {
            Err(_) => Self::Missing,
            Ok(metadata) if !metadata.is_file() || metadata.len() > MAX_FILE_BYTES => Self::Other,
            Ok(_) => match fs::read_to_string(path) {
                Ok(text) => Self::Text(text.into()),
                Err(_) => Self::Other,
            },
        }
    }
}

/// A path with symlinks resolved, if it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    alongside_platform::path::real_or_same(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffer_is_unsaved_while_it_differs_from_the_file() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.txt");
        fs::write(&path, "\u{feff}one\r\ntwo").unwrap();
        let address = uri::of_path(path.to_str().unwrap());
        let mut documents = Documents::default();
        documents.open(&address, 1, "one\ntwo\n".to_owned()).unwrap();
        let document = documents.get_mut(&address).unwrap();
        assert_eq!(document.unsaved(), None, "as Kakoune shows it");
        let change = TextDocumentContentChangeEvent {
            range: None,
            text: "one\n2\n".to_owned(),
        };
        document.change(2, vec![change], Encoding::Utf8);
        assert_eq!(document.unsaved().as_deref(), Some("\u{feff}one\r\n2"));
        fs::write(&path, "\u{feff}one\r\n2\r\n").unwrap();
        document.saved(None);
        assert_eq!(document.unsaved(), None);
    }

    #[test]
    fn changes_that_overtake_each_other_are_applied_in_their_order() {
        let mut documents = Documents::default();
        documents.open("file:///a", 0, String::new()).unwrap();
        let document = documents.get_mut("file:///a").unwrap();
        let start = Instant::now();
        let mut typed = |version: i64, text: &str, now| {
            let character = usize::try_from(version).unwrap() - 1;
            let at = Position { line: 0, character };
            let change = TextDocumentContentChangeEvent {
                range: Some(Range { start: at, end: at }),
                text: text.to_owned(),
            };
            let end = document.change_in_order(version, vec![change], Encoding::Utf8, now);
            (end, document.text.clone())
        };
        assert_eq!(typed(2, "d", start), (None, String::new()));
        assert_eq!(typed(3, "i", start), (None, String::new()));
        assert_eq!(typed(1, "e", start), (Some(3), "edi".to_owned()));
        assert_eq!(typed(2, "d", start), (None, "edi".to_owned()), "it came twice");
        assert_eq!(typed(5, "e", start), (None, "edi".to_owned()));
        // The fourth never comes.
        let later = start + MAX_WAIT * 2;
        assert_eq!(typed(6, "d", later), (Some(5), "edied".to_owned()));
    }

    #[test]
    fn file_that_is_not_utf8_is_not_compared() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("latin.txt");
        fs::write(&path, b"caf\xe9\n").unwrap();
        let address = uri::of_path(path.to_str().unwrap());
        let mut documents = Documents::default();
        let document = documents.open(&address, 1, "café!\n".to_owned()).unwrap();
        assert_eq!(document.unsaved(), None);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_is_found_by_any_of_its_names() {
        let scratch = tempfile::tempdir().unwrap();
        let (real, link) = (scratch.path().join("real.txt"), scratch.path().join("link.txt"));
        fs::write(&real, "").unwrap();
        std::os::unix::fs::symlink(&real, &link).unwrap();
        let mut documents = Documents::default();
        let address = uri::of_path(link.to_str().unwrap());
        documents.open(&address, 1, String::new());
        assert_eq!(documents.address_of(real.to_str().unwrap()), Some(address.as_str()));
        assert_eq!(documents.address_of("/elsewhere"), None);
    }
}
