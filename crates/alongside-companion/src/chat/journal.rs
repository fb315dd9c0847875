//! What of the chat outlives the process: the log, and where to go on.
//!
//! Each event is written before anybody is told of it, as a line behind the others, with the place in the agent's stream that comes after
//! it. So whatever the moment in which the process ends, what was shown is there, and what was not is asked for again. A line that
//! was cut off does not count. The file is written anew, as short as the log is, when it has grown to several times that.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_agent::Position;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::places::write_private;

/// The file may be so much longer than the log.
const SLACK: usize = 4 * 1024 * 1024;

/// One line.
#[derive(Debug, Default, Serialize, Deserialize)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<Arc<Value>>,
}

/// What was kept.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Kept {
    pub(super) agent: Option<String>,
    pub(super) position: Option<Position>,
    pub(super) events: Vec<Arc<Value>>,
}

/// The file.
pub(super) struct Journal {
    path: PathBuf,
    file: Option<File>,
    /// How long the file is, and how long it was when it was written anew.
    bytes: usize,
    fresh_bytes: usize,
}

impl Journal {
    /// The journal at a path, and what is in it.
    pub(super) fn open(path: PathBuf) -> (Self, Kept) {
        let kept = read(&path);
        let journal = Self {
            path,
            file: None,
            bytes: 0,
            fresh_bytes: 0,
        };
        (journal, kept)
    }

    /// Adds an event, and the place in the stream after it.
    pub(super) fn add(&mut self, event: &Arc<Value>, position: Option<&Position>) {
        let line = Line {
            agent: None,
            position: position.cloned(),
            event: Some(Arc::clone(event)),
        };
        let Some(file) = &mut self.file else { return };
        let written = text_of(&line).and_then(|text| {
            self.bytes += text.len();
            file.write_all(&text)
        });
        if let Err(error) = written {
            tracing::error!(%error, "cannot write the chat journal; the chat would not survive a crash");
            self.file = None;
        }
    }

    /// Whether the file is much longer than it has to be.
    pub(super) fn is_long(&self) -> bool {
        self.file.is_some() && self.bytes > self.fresh_bytes * 2 + SLACK
    }

    /// Writes everything anew, whole or not at all.
    pub(super) fn rewrite<'a>(
        &mut self,
        agent: Option<&str>,
        position: Option<&Position>,
        events: impl Iterator<Item = &'a Arc<Value>>,
    ) {
        let first = Line {
            agent: agent.map(str::to_owned),
            position: position.cloned(),
            event: None,
        };
        let lines = std::iter::once(first).chain(events.map(|event| Line {
            event: Some(Arc::clone(event)),
            ..Line::default()
        }));
        let opened = lines
            .map(|line| text_of(&line))
            .collect::<io::Result<Vec<_>>>()
            .and_then(|lines| {
                let text = lines.concat();
                self.bytes = text.len();
                self.fresh_bytes = text.len();
                write_private(&self.path, &text)?;
                File::options().append(true).open(&self.path)
            });
        match opened {
            Ok(file) => self.file = Some(file),
            Err(error) => {
                tracing::error!(%error, path = %self.path.display(), "cannot write the chat journal; the chat would not survive a crash");
                self.file = None;
            }
        }
    }
}

fn text_of(line: &Line) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// Reads up to the first line that is not whole.
fn read(path: &Path) -> Kept {
    let mut kept = Kept::default();
    let text = fs::read(path).unwrap_or_default();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let whole = line
            .strip_suffix(b"\n")
            .and_then(|line| serde_json::from_slice::<Line>(line).ok());
        let Some(line) = whole else { break };
        kept.agent = line.agent.or(kept.agent);
        kept.position = line.position.or(kept.position);
        kept.events.extend(line.event);
    }
    kept
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(number: u32) -> Arc<Value> {
        Arc::new(json!({"type": "notice", "message": number.to_string()}))
    }

    #[test]
    fn what_was_written_is_there_again_and_a_line_that_was_cut_off_is_not() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("chat/log.jsonl");
        let (mut journal, kept) = Journal::open(path.clone());
        assert_eq!(kept, Kept::default());
        journal.rewrite(Some("qwen"), None, std::iter::once(&event(1)));
        let position: Position = serde_json::from_value(json!({"sessionId": "s"})).unwrap();
        journal.add(&event(2), Some(&position));
        journal.add(&event(3), None);
        drop(journal);
        let whole = Kept {
            agent: Some("qwen".to_owned()),
            position: Some(position),
            events: vec![event(1), event(2), event(3)],
        };
        assert_eq!(Journal::open(path.clone()).1, whole);
        let text = fs::read(&path).unwrap();
        let two_lines = text
            .split_inclusive(|byte| *byte == b'\n')
            .take(3)
            .map(<[u8]>::len)
            .sum::<usize>();
        for length in two_lines..text.len() {
            fs::write(&path, &text[..length]).unwrap();
            assert_eq!(Journal::open(path.clone()).1.events.len(), 2, "cut at {length}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn it_is_for_this_user_only() {
        use std::os::unix::fs::PermissionsExt;

        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log.jsonl");
        let (mut journal, _) = Journal::open(path.clone());
        journal.rewrite(None, None, std::iter::empty());
        journal.add(&event(1), None);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_has_grown_is_known_as_such() {
        let scratch = tempfile::tempdir().unwrap();
        let (mut journal, _) = Journal::open(scratch.path().join("log.jsonl"));
        journal.rewrite(None, None, std::iter::empty());
        let large = Arc::new(json!({"type": "notice", "message": "x".repeat(SLACK)}));
        assert!(!journal.is_long());
        journal.add(&large, None);
        assert!(journal.is_long());
        journal.rewrite(None, None, std::iter::once(&large));
        assert!(!journal.is_long());
    }
}
