//! Unsaved texts in editors.
//!
//! The user sees unsaved changes, not the file on disk, so a proposal is compared with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// More unsaved text than this is not kept; the file on disk is used instead.
const MAX_BYTES: usize = 64 * 1024 * 1024;

/// Unsaved texts by the real path of their file. Both methods may look at the disk: call them in a blocking thread.
#[derive(Clone, Default)]
pub(super) struct Buffers(Arc<Mutex<BTreeMap<PathBuf, Arc<str>>>>);

impl Buffers {
    /// Sets the unsaved text of a file; without a text, the file is saved.
    pub(super) fn set(&self, path: &str, text: Option<Arc<str>>) {
        let path = real(Path::new(path));
        let mut buffers = self.0.lock();
        let others: usize = buffers
            .iter()
            .filter(|(other, _)| **other != path)
            .map(|(_, text)| text.len())
            .sum();
        match text {
            Some(text) if others + text.len() <= MAX_BYTES => {
                buffers.insert(path, text);
            }
            _ => {
                buffers.remove(&path);
            }
        }
    }

    /// The unsaved text of a file.
    pub(super) fn get(&self, path: &Path) -> Option<Arc<str>> {
        if self.0.lock().is_empty() {
            return None;
        }
        let path = real(path);
        self.0.lock().get(&path).cloned()
    }
}

fn real(path: &Path) -> PathBuf {
    alongside_platform::path::real_or_same(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unsaved_text_is_found_by_any_path_of_its_file() {
        let scratch = tempfile::tempdir().unwrap();
        let file = scratch.path().join("a.txt");
        std::fs::write(&file, "saved").unwrap();
        let dotted = scratch.path().join("./a.txt");
        let buffers = Buffers::default();
        buffers.set(file.to_str().unwrap(), Some("unsaved".into()));
        assert_eq!(buffers.get(&dotted).as_deref(), Some("unsaved"));
        buffers.set(dotted.to_str().unwrap(), None);
        assert_eq!(buffers.get(&file), None);
    }

    #[test]
    fn unsaved_text_is_limited() {
        let buffers = Buffers::default();
        buffers.set("/a", Some("x".repeat(MAX_BYTES).into()));
        buffers.set("/b", Some("y".into()));
        assert!(buffers.get(Path::new("/a")).is_some() && buffers.get(Path::new("/b")).is_none());
    }
}
