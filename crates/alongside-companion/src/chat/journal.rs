//! What survives the process: the chat's log, and where to resume in the agent's events.
//!
//! Each event is appended as a line, by the writer thread, before it is broadcast, with the position after it in the agent's stream. So at whatever moment the
//! process ends, everything that was shown is in the file, and the rest is fetched again. A truncated last line is ignored. The file is
//! rewritten, as short as the log, when it has grown to several times that.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::deliveries::{Deliveries, Delivery};
use crate::places::write_private;
use crate::writer::Writer;
use alongside_agent::Position;
use alongside_protocol::chat::AgentEvent;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

/// How much longer than the log the file may grow.
const COMPACT_AFTER_BYTES: usize = 4 * 1024 * 1024;

#[derive(Debug, Default, Serialize, Deserialize)]
struct Line {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    position: Option<Position>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    event: Option<Arc<AgentEvent>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivery: Option<Delivery>,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct JournalContents {
    pub(super) agent: Option<String>,
    pub(super) position: Option<Position>,
    pub(super) events: Vec<Arc<AgentEvent>>,
    pub(super) deliveries: Deliveries,
}

pub(super) struct Journal {
    path: PathBuf,
    writer: Arc<Writer>,
    /// Open after the first rewrite, until a write fails. Locked by the writer's thread only.
    file: Arc<Mutex<Option<File>>>,
    /// The length of the file after all queued writes, and after the last rewrite; `None` before the first one.
    bytes: Option<usize>,
    fresh_bytes: usize,
}

impl Journal {
    /// Reads the journal. Blocks; everything else is written by `writer`.
    pub(super) fn open(path: PathBuf, writer: Arc<Writer>) -> (Self, JournalContents) {
        let kept = read(&path);
        let journal = Self {
            path,
            writer,
            file: Arc::default(),
            bytes: None,
            fresh_bytes: 0,
        };
        (journal, kept)
    }

    /// Appends an event, with the position in the stream after it.
    pub(super) fn add(&mut self, event: &Arc<AgentEvent>, position: Option<&Position>) {
        self.append(&Line {
            position: position.cloned(),
            event: Some(Arc::clone(event)),
            ..Line::default()
        });
    }

    pub(super) fn add_delivery(&mut self, delivery: &Delivery) {
        self.append(&Line {
            delivery: Some(delivery.clone()),
            ..Line::default()
        });
    }

    fn append(&mut self, line: &Line) {
        let Some(bytes) = &mut self.bytes else { return };
        let text = match text_of(line) {
            Ok(text) => text,
            Err(error) => return report(&error),
        };
        *bytes += text.len();
        let file = Arc::clone(&self.file);
        self.writer.append(move || {
            let mut file = file.lock();
            let written = file.as_mut().map_or(Ok(()), |file| file.write_all(&text));
            if let Err(error) = written {
                report(&error);
                *file = None;
            }
        });
    }

    pub(super) fn is_long(&self) -> bool {
        self.bytes
            .is_some_and(|bytes| bytes > self.fresh_bytes * 2 + COMPACT_AFTER_BYTES)
    }

    /// Rewrites the file atomically.
    pub(super) fn rewrite<'a>(
        &mut self,
        agent: Option<&str>,
        position: Option<&Position>,
        deliveries: impl Iterator<Item = &'a Delivery>,
        events: impl Iterator<Item = &'a Arc<AgentEvent>>,
    ) {
        let first = Line {
            agent: agent.map(str::to_owned),
            position: position.cloned(),
            ..Line::default()
        };
        let deliveries = deliveries.map(|delivery| Line {
            delivery: Some(delivery.clone()),
            ..Line::default()
        });
        let lines = std::iter::once(first).chain(deliveries).chain(events.map(|event| Line {
            event: Some(Arc::clone(event)),
            ..Line::default()
        }));
        let lines: io::Result<Vec<_>> = lines.map(|line| text_of(&line)).collect();
        let text = match lines {
            Ok(lines) => lines.concat(),
            Err(error) => return report(&error),
        };
        self.bytes = Some(text.len());
        self.fresh_bytes = text.len();
        let (path, file) = (self.path.clone(), Arc::clone(&self.file));
        self.writer.append(move || {
            let opened = write_private(&path, &text).and_then(|()| File::options().append(true).open(&path));
            *file.lock() = opened.inspect_err(report).ok();
        });
    }
}

fn report(error: &io::Error) {
    tracing::error!(%error, "cannot write the chat journal; the chat would not survive a crash");
}

fn text_of(line: &Line) -> io::Result<Vec<u8>> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    Ok(text)
}

/// Reads up to the first incomplete line.
fn read(path: &Path) -> JournalContents {
    let mut kept = JournalContents::default();
    let text = fs::read(path).unwrap_or_default();
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        let whole = line
            .strip_suffix(b"\n")
            .and_then(|line| serde_json::from_slice::<Line>(line).ok());
        let Some(line) = whole else { break };
        kept.agent = line.agent.or(kept.agent);
        kept.position = line.position.or(kept.position);
        kept.events.extend(line.event);
        if let Some(delivery) = line.delivery {
            kept.deliveries.set(delivery);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use alongside_protocol::chat::NoticeLevel;
    use serde_json::json;

    use super::*;

    fn open(path: &Path) -> (Journal, JournalContents) {
        Journal::open(path.to_owned(), Arc::new(Writer::start().unwrap()))
    }

    fn event(number: u32) -> Arc<AgentEvent> {
        notice(number.to_string())
    }

    fn notice(message: String) -> Arc<AgentEvent> {
        let level = NoticeLevel::Information;
        Arc::new(AgentEvent::Notice { level, message })
    }

    #[test]
    fn written_events_are_read_back_without_a_truncated_line() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("chat/log.jsonl");
        let (mut journal, kept) = open(&path);
        assert_eq!(kept, JournalContents::default());
        journal.rewrite(Some("qwen"), None, std::iter::empty(), std::iter::once(&event(1)));
        let position: Position = serde_json::from_value(json!({"sessionId": "s"})).unwrap();
        journal.add(&event(2), Some(&position));
        journal.add(&event(3), None);
        drop(journal);
        let whole = JournalContents {
            agent: Some("qwen".to_owned()),
            position: Some(position),
            events: vec![event(1), event(2), event(3)],
            deliveries: Deliveries::default(),
        };
        assert_eq!(open(&path).1, whole);
        let text = fs::read(&path).unwrap();
        let two_lines = text
            .split_inclusive(|byte| *byte == b'\n')
            .take(3)
            .map(<[u8]>::len)
            .sum::<usize>();
        for length in two_lines..text.len() {
            fs::write(&path, &text[..length]).unwrap();
            assert_eq!(open(&path).1.events.len(), 2, "cut at {length}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn file_is_private() {
        use std::os::unix::fs::PermissionsExt;

        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("log.jsonl");
        let (mut journal, _) = open(&path);
        journal.rewrite(None, None, std::iter::empty(), std::iter::empty());
        journal.add(&event(1), None);
        drop(journal);
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }

    #[test]
    fn grown_file_is_long_until_rewritten() {
        let scratch = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(&scratch.path().join("log.jsonl"));
        journal.rewrite(None, None, std::iter::empty(), std::iter::empty());
        let large = notice("x".repeat(COMPACT_AFTER_BYTES));
        assert!(!journal.is_long());
        journal.add(&large, None);
        assert!(journal.is_long());
        journal.rewrite(None, None, std::iter::empty(), std::iter::once(&large));
        assert!(!journal.is_long());
    }
}
