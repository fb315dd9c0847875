//! What survives the process: the chat's log, and where to resume in the agent's events.
//!
//! Each event is appended, by the writer thread, before it is broadcast, with the position after it in the agent's stream. So at
//! whatever moment the process ends, everything that was shown is in the file, and the rest is fetched again. The file is
//! rewritten, as short as the log, when it has grown to several times that.

use std::io;
use std::sync::Arc;

use super::deliveries::{Deliveries, Delivery};
use crate::writer::Writer;
use alongside_agent::Position;
use alongside_journal::{Directory, Log, OpenError};
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
    writer: Arc<Writer>,
    /// Locked by the writer's thread only.
    log: Arc<Mutex<Log>>,
    /// The length of the log after all queued writes, and after the last rewrite.
    bytes: usize,
    fresh_bytes: usize,
}

impl Journal {
    /// Reads the journal. Blocks; everything else is written by `writer`.
    pub(super) fn open(directory: &Directory, writer: Arc<Writer>) -> Result<(Self, JournalContents), OpenError> {
        let (log, recovered) = Log::open(directory, "chat")?;
        if let Some(damage) = &recovered.damage {
            tracing::error!("the chat: {damage}");
        }
        let journal = Self {
            writer,
            bytes: recovered.records.iter().map(Vec::len).sum(),
            fresh_bytes: 0,
            log: Arc::new(Mutex::new(log)),
        };
        Ok((journal, read(recovered.records)))
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
        let text = match text_of(line) {
            Ok(text) => text,
            Err(error) => return report(&error),
        };
        self.bytes += text.len();
        let log = Arc::clone(&self.log);
        let record = [text];
        self.writer.append(move || log.lock().append(&record));
    }

    pub(super) fn is_long(&self) -> bool {
        self.bytes > self.fresh_bytes * 2 + COMPACT_AFTER_BYTES
    }

    /// Replaces the log.
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
        let lines = match lines {
            Ok(lines) => lines,
            Err(error) => return report(&error),
        };
        self.bytes = lines.iter().map(Vec::len).sum();
        self.fresh_bytes = self.bytes;
        let log = Arc::clone(&self.log);
        self.writer.append(move || log.lock().compact(&lines));
    }
}

fn report(error: &io::Error) {
    tracing::error!(%error, "an event of the chat cannot be saved");
}

fn text_of(line: &Line) -> io::Result<Vec<u8>> {
    serde_json::to_vec(line).map_err(Into::into)
}

fn read(records: Vec<Vec<u8>>) -> JournalContents {
    let mut kept = JournalContents::default();
    for record in records {
        let line = match serde_json::from_slice::<Line>(&record) {
            Ok(line) => line,
            Err(error) => {
                tracing::error!(%error, "a record of the chat cannot be read");
                continue;
            }
        };
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
    use std::path::Path;

    use alongside_protocol::chat::NoticeLevel;
    use serde_json::json;

    use super::*;

    fn open(path: &Path) -> (Journal, JournalContents) {
        let directory = Directory::open(path).unwrap();
        Journal::open(&directory, Arc::new(Writer::start().unwrap())).unwrap()
    }

    fn event(number: u32) -> Arc<AgentEvent> {
        notice(number.to_string())
    }

    fn notice(message: String) -> Arc<AgentEvent> {
        let level = NoticeLevel::Information;
        Arc::new(AgentEvent::Notice { level, message })
    }

    #[test]
    fn written_events_are_read_back() {
        let scratch = tempfile::tempdir().unwrap();
        let (mut journal, kept) = open(scratch.path());
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
        assert_eq!(open(scratch.path()).1, whole);
    }

    #[test]
    fn grown_file_is_long_until_rewritten() {
        let scratch = tempfile::tempdir().unwrap();
        let (mut journal, _) = open(scratch.path());
        journal.rewrite(None, None, std::iter::empty(), std::iter::empty());
        let large = notice("x".repeat(COMPACT_AFTER_BYTES));
        assert!(!journal.is_long());
        journal.add(&large, None);
        assert!(journal.is_long());
        journal.rewrite(None, None, std::iter::empty(), std::iter::once(&large));
        assert!(!journal.is_long());
    }
}
