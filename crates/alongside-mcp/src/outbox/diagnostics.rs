//! Diagnostics that changed, until they are written.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

/// Beyond these limits, a change is not sent. The agent can ask for the diagnostics at any time.
const MAX_FILES: usize = 1000;
const MAX_BYTES: usize = 16 * 1024 * 1024;

const HEAD: &[u8] = br#"{"jsonrpc":"2.0","method":"diagnostics_changed","params":{"uris":["#;
const TAIL: &[u8] = b"]}}";

/// The diagnostics of one file, serialized. All streams share the bytes.
#[derive(Clone, Debug)]
pub(crate) struct ChangedFile {
    pub(crate) path: Arc<str>,
    /// A JSON object.
    pub(crate) json: Bytes,
}

/// The latest of each file.
#[derive(Default)]
pub(crate) struct ChangedDiagnostics {
    files: BTreeMap<Arc<str>, Bytes>,
    bytes: usize,
}

impl ChangedDiagnostics {
    pub(super) fn insert(&mut self, file: &ChangedFile) {
        self.bytes -= self.files.remove(&file.path).map_or(0, |previous| previous.len());
        let bytes = self.bytes + file.json.len();
        if self.files.len() < MAX_FILES && bytes <= MAX_BYTES {
            self.bytes = bytes;
            self.files.insert(file.path.clone(), file.json.clone());
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// What has to be written.
    pub(super) fn take(&mut self) -> Option<Self> {
        (!self.is_empty()).then(|| std::mem::take(self))
    }

    /// The JSON-RPC message.
    pub(super) fn message(&self) -> Bytes {
        let mut message = BytesMut::with_capacity(HEAD.len() + self.bytes + self.files.len() + TAIL.len());
        message.put_slice(HEAD);
        for (index, file) in self.files.values().enumerate() {
            if index > 0 {
                message.put_u8(b',');
            }
            message.put_slice(file);
        }
        message.put_slice(TAIL);
        message.freeze()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn file(path: &str, json: &Value) -> ChangedFile {
        ChangedFile {
            path: path.into(),
            json: json.to_string().into(),
        }
    }

    fn uris(changed: &mut ChangedDiagnostics) -> Value {
        let message: Value = serde_json::from_slice(&changed.take().unwrap().message()).unwrap();
        assert_eq!(message["method"], "diagnostics_changed");
        message["params"]["uris"].clone()
    }

    #[test]
    fn latest_change_of_each_file_is_written_once() {
        let mut changed = ChangedDiagnostics::default();
        for (path, number) in [("/a", 1), ("/b", 2), ("/a", 3)] {
            changed.insert(&file(path, &json!(number)));
        }
        assert_eq!(uris(&mut changed), json!([3, 2]));
        assert!(changed.take().is_none());
    }

    #[test]
    fn unwritten_changes_of_diagnostics_are_limited() {
        let mut changed = ChangedDiagnostics::default();
        for number in 0..=MAX_FILES {
            changed.insert(&file(&format!("/{number}"), &json!(1)));
        }
        assert_eq!(changed.files.len(), MAX_FILES);
        let half = json!("x".repeat(MAX_BYTES / 2));
        for path in ["/0", "/1", "/0"] {
            changed.insert(&file(path, &half));
            assert!(changed.bytes <= MAX_BYTES);
        }
        let counted: usize = changed.files.values().map(Bytes::len).sum();
        assert_eq!(changed.bytes, counted);
    }
}
