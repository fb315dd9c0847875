//! The files that an editor has open, as far as it tells.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::text::{self, ContentChange, Encoding, Position, Range};
use super::{habits, uri};

/// A file larger than this is not compared with its buffer.
const LARGEST_FILE: u64 = 64 * 1024 * 1024;

/// The open files by their address.
#[derive(Default)]
pub(super) struct Documents(BTreeMap<String, Document>);

/// One open file.
pub(super) struct Document {
    /// Its absolute path, as the editor says it.
    pub(super) path: String,
    /// The same with links followed, for comparing.
    pub(super) real: PathBuf,
    /// What the buffer holds.
    pub(super) text: String,
    /// The editor's count of its changes.
    pub(super) version: i64,
    on_disk: OnDisk,
}

/// What a file holds on disk.
enum OnDisk {
    Missing,
    Text(Arc<str>),
    /// Something that is not compared: another encoding, or too much of it.
    Other,
}

impl Documents {
    /// Remembers an opened file; `None` for what is no file.
    pub(super) fn open(&mut self, address: &str, version: i64, text: String) -> Option<&Document> {
        let path = uri::to_path(address)?;
        let document = Document {
            real: real(Path::new(&path)),
            on_disk: OnDisk::read(&path),
            path,
            text,
            version,
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

    /// The address under which the editor has a file open, by whatever name.
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
    /// Carries changes out; gives the byte behind the last one.
    pub(super) fn change(&mut self, version: i64, changes: Vec<ContentChange>, encoding: Encoding) -> usize {
        self.version = version;
        changes
            .into_iter()
            .fold(0, |_, change| text::apply(&mut self.text, change, encoding))
    }

    /// The buffer was written to disk. With the saved text, what went wrong with the changes before is healed.
    pub(super) fn saved(&mut self, saved: Option<String>) {
        if let Some(saved) = saved {
            self.text = saved;
        }
        self.on_disk = OnDisk::read(&self.path);
    }

    /// What the buffer holds, if it is not what is on disk.
    pub(super) fn unsaved(&self) -> Option<Arc<str>> {
        let model = match &self.on_disk {
            OnDisk::Missing => "",
            OnDisk::Text(text) => text,
            OnDisk::Other => return None,
        };
        let meant = habits::meant(&self.text, model);
        (meant != model).then(|| meant.into())
    }

    /// The text between two positions.
    pub(super) fn between(&self, range: Range, encoding: Encoding) -> &str {
        let start = text::offset(&self.text, range.start, encoding);
        let end = text::offset(&self.text, range.end, encoding).max(start);
        &self.text[start..end]
    }

    /// A position as agents count: from 1, in UTF-16 code units.
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
            Ok(metadata) if !metadata.is_file() || metadata.len() > LARGEST_FILE => Self::Other,
            Ok(_) => match fs::read_to_string(path) {
                Ok(text) => Self::Text(text.into()),
                Err(_) => Self::Other,
            },
        }
    }
}

/// A path with links followed, as far as it exists.
pub(super) fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_is_unsaved_only_while_it_holds_something_else_than_the_file() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("a.txt");
        fs::write(&path, "\u{feff}one\r\ntwo").unwrap();
        let address = uri::of_path(path.to_str().unwrap());
        let mut documents = Documents::default();
        documents.open(&address, 1, "one\ntwo\n".to_owned()).unwrap();
        let document = documents.get_mut(&address).unwrap();
        assert_eq!(document.unsaved(), None, "as Kakoune shows it");
        let change = ContentChange {
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
    fn a_file_in_another_encoding_is_left_alone() {
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
