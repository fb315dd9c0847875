//! A discovery file as an agent sees it: arbitrary JSON.
//!
//! The agents validate almost nothing: a port may be a string, a key may be missing, a value may have any type. What
//! matters is how JavaScript treats it, which is what these accessors implement.

use std::fmt;
use std::fs::{self, File, Metadata};
use std::io::{self, Read};
use std::path::Path;

use serde_json::Value;

use crate::place;

/// More than any discovery file needs, and still cheap to read.
const MAX_FILE_BYTES: u64 = 1 << 20;

/// The JSON of a discovery file. It contains a token, so it is never printed or serialized.
#[derive(Clone)]
pub(crate) struct Document(Value);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum WorkspacePath {
    Missing,
    /// A string, possibly empty.
    Text(String),
    /// Any other type; both agents fail on it.
    Other,
}

impl fmt::Debug for Document {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Document(…)")
    }
}

impl Document {
    /// Reads a file; `None` unless it is a regular file of reasonable size containing JSON.
    pub(crate) fn read(path: &Path) -> Option<Self> {
        Self::try_read(path).ok()?
    }

    /// The same, with the reason for which an existing file cannot be read.
    pub(crate) fn try_read(path: &Path) -> io::Result<Option<Self>> {
        let text = try_read_text(path)?;
        Ok(text.and_then(|(_, text)| Self::parse(&text)))
    }

    /// Parses text as `JSON.parse` does.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok().map(Self)
    }

    /// Whether it is an object by JavaScript's `typeof`, and not `null`.
    pub(crate) fn is_object(&self) -> bool {
        self.0.is_object() || self.0.is_array()
    }

    /// Whether it is `null`, on which every property access throws.
    pub(crate) fn is_null(&self) -> bool {
        self.0.is_null()
    }

    /// The raw `port`, if it is truthy.
    pub(crate) fn port(&self) -> Option<&Value> {
        self.0.get("port").filter(|port| is_truthy(port))
    }

    /// The raw `port`, if present and not `null`.
    pub(crate) fn raw_port(&self) -> Option<&Value> {
        self.0.get("port").filter(|port| !port.is_null())
    }

    pub(crate) fn workspace_path(&self) -> WorkspacePath {
        match self.0.get("workspacePath") {
            None => WorkspacePath::Missing,
            Some(Value::String(text)) => WorkspacePath::Text(text.clone()),
            Some(_) => WorkspacePath::Other,
        }
    }

    /// Whether `workspacePath` is truthy.
    pub(crate) fn has_workspace_path(&self) -> bool {
        self.0.get("workspacePath").is_some_and(is_truthy)
    }

    /// `authToken`, if it is a string; it may be empty.
    pub(crate) fn token(&self) -> Option<&str> {
        self.0.get("authToken")?.as_str()
    }

    /// `ideInfo`, if it has both a name and a display name.
    pub(crate) fn ide_info(&self) -> Option<(String, String)> {
        let information = self.0.get("ideInfo")?;
        let text = |key: &str| {
            information
                .get(key)?
                .as_str()
                .filter(|text| !text.is_empty())
                .map(str::to_owned)
        };
        Some((text("name")?, text("displayName")?))
    }

    /// The raw `ppid`, if it is truthy.
    pub(crate) fn parent(&self) -> Option<&Value> {
        self.0.get("ppid").filter(|pid| is_truthy(pid))
    }

    /// `stdio`: a companion to start instead of connecting to a port.
    pub(crate) fn stdio(&self) -> Option<(String, Vec<String>)> {
        let stdio = self.0.get("stdio")?;
        let command = stdio.get("command")?.as_str()?.to_owned();
        Some((command, strings(stdio.get("args"))))
    }

    /// A string under one of our own keys.
    pub(crate) fn text(&self, key: &str) -> Option<&str> {
        self.0.get(key)?.as_str()
    }

    /// A number under one of our own keys.
    pub(crate) fn number(&self, key: &str) -> Option<u64> {
        self.0.get(key)?.as_u64()
    }
}

/// The metadata and text of a regular file.
pub(crate) fn read_text(path: &Path) -> Option<(Metadata, String)> {
    try_read_text(path).ok()?
}

/// `None` if there is no such file. Never blocks on a planted pipe or device.
fn try_read_text(path: &Path) -> io::Result<Option<(Metadata, String)>> {
    let read = || -> io::Result<_> {
        if !fs::metadata(path)?.is_file() {
            return Ok(None);
        }
        let file = File::open(path)?;
        let metadata = file.metadata()?;
        let mut bytes = Vec::new();
        file.take(MAX_FILE_BYTES).read_to_end(&mut bytes)?;
        // Node replaces invalid UTF-8 and continues.
        Ok(Some((metadata, String::from_utf8_lossy(&bytes).into_owned())))
    };
    match read() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        result => result,
    }
}

/// JavaScript's `String(value)`, for port values.
pub(crate) fn to_text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        // JavaScript has a single number type: 8080.0 is 8080.
        Value::Number(number) => match number.as_f64() {
            Some(float) if number.is_f64() => format!("{float}"),
            _ => number.to_string(),
        },
        other => other.to_string(),
    }
}

/// The PID that `process.kill` converts a value to; `None` where it throws.
pub(crate) fn to_pid(value: &Value) -> Option<u64> {
    place::number(&to_text(value))
}

/// The strings of a JSON array.
pub(crate) fn strings(value: Option<&Value>) -> Vec<String> {
    let items = value.and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    items.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn is_truthy(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(truth) => *truth,
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::String(text) => !text.is_empty(),
        Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(text: &str) -> Document {
        Document::parse(text).unwrap()
    }

    #[test]
    fn port_may_be_number_or_string() {
        for text in [r#"{"port":8080}"#, r#"{"port":"8080"}"#, r#"{"port":8080.0}"#] {
            assert_eq!(to_text(document(text).port().unwrap()), "8080");
        }
        for text in [r#"{"port":0}"#, r#"{"port":""}"#, r#"{"port":null}"#, "{}", "[]", "5"] {
            assert_eq!(document(text).port(), None);
        }
    }

    #[test]
    fn ide_info_needs_both_names() {
        let identity = |text: &str| document(text).ide_info();
        assert!(identity(r#"{"ideInfo":{"name":"a","displayName":"A"}}"#).is_some());
        assert_eq!(identity(r#"{"ideInfo":{"name":"a","displayName":""}}"#), None);
        assert_eq!(identity(r#"{"ideInfo":{"name":"a"}}"#), None);
        assert_eq!(identity(r#"{"ideInfo":"a"}"#), None);
    }

    #[test]
    fn directory_instead_of_file_is_not_read() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Document::read(directory.path()).is_none());
    }
}
