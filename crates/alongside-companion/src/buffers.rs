//! What editors hold and have not saved.
//!
//! A person who has unsaved changes sees those, not the file on disk; so a proposal is compared with them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

/// More unsaved text than this is not kept: then the file on disk counts.
const MOST_BYTES: usize = 64 * 1024 * 1024;

/// Unsaved texts by the real path of their file.
#[derive(Default)]
pub(super) struct Buffers(Mutex<BTreeMap<PathBuf, Arc<str>>>);

impl Buffers {
    /// Remembers or, without a text, forgets what an editor holds.
    pub(super) fn set(&self, path: &str, text: Option<Arc<str>>) {
        let mut buffers = self.0.lock();
        let path = real(Path::new(path));
        let others: usize = buffers
            .iter()
            .filter(|(other, _)| **other != path)
            .map(|(_, text)| text.len())
            .sum();
        match text {
            Some(text) if others + text.len() <= MOST_BYTES => {
                buffers.insert(path, text);
            }
            _ => {
                buffers.remove(&path);
            }
        }
    }

    /// What an editor holds of a file, if it is not what is on disk.
    pub(super) fn get(&self, path: &Path) -> Option<Arc<str>> {
        let buffers = self.0.lock();
        if buffers.is_empty() {
            return None;
        }
        buffers.get(&real(path)).cloned()
    }
}

fn real(path: &Path) -> PathBuf {
    path.canonicalize().unwrap_or_else(|_| path.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unsaved_text_is_found_by_any_name_of_its_file_until_it_is_saved() {
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
    fn too_much_unsaved_text_is_not_kept() {
        let buffers = Buffers::default();
        buffers.set("/a", Some("x".repeat(MOST_BYTES).into()));
        buffers.set("/b", Some("y".into()));
        assert!(buffers.get(Path::new("/a")).is_some() && buffers.get(Path::new("/b")).is_none());
    }
}
