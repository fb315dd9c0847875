//! Reads server-sent events from bytes that come in any pieces.
//!
//! The daemon says everything in the data of an event, so its name and id are kept only for whoever wants to look. What
//! matters here is that a piece of an event is never taken for an event: a connection may be cut anywhere.

use std::collections::VecDeque;
use std::time::Duration;

/// One event with data. Comments, and events without data, are not reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The `id` of this event, if it has its own.
    pub id: Option<String>,
    /// The `event` field; `None` means `message`.
    pub name: Option<String>,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

/// An event was longer than the reader allows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub struct EventTooLong(pub usize);

/// The reader. Lines end with a line feed, a carriage return, or both.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    line: Vec<u8>,
    /// The last byte was a carriage return, so a line feed now belongs to it.
    after_carriage_return: bool,
    at_start: bool,
    event: Unfinished,
    retry: Option<Duration>,
    ready: VecDeque<SseEvent>,
}

#[derive(Debug, Default)]
struct Unfinished {
    id: Option<String>,
    name: Option<String>,
    data: Option<String>,
}

impl SseReader {
    /// A reader for events of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_carriage_return: false,
            at_start: true,
            event: Unfinished::default(),
            retry: None,
            ready: VecDeque::new(),
        }
    }

    /// Takes the next bytes.
    pub fn push(&mut self, mut bytes: &[u8]) -> Result<(), EventTooLong> {
        while let Some(&first) = bytes.first() {
            if std::mem::take(&mut self.after_carriage_return) && first == b'\n' {
                bytes = &bytes[1..];
                continue;
            }
            let end = bytes.iter().position(|byte| matches!(byte, b'\n' | b'\r'));
            let part = &bytes[..end.unwrap_or(bytes.len())];
            if self.line.len() + self.event.data.as_ref().map_or(0, String::len) + part.len() > self.limit {
                return Err(EventTooLong(self.limit));
            }
            self.line.extend_from_slice(part);
            let Some(end) = end else { return Ok(()) };
            self.after_carriage_return = bytes[end] == b'\r';
            bytes = &bytes[end + 1..];
            self.end_line();
        }
        Ok(())
    }

    /// The next event that is complete.
    pub fn pop(&mut self) -> Option<SseEvent> {
        self.ready.pop_front()
    }

    /// What is left when the bytes end: an event without the empty line that would have ended it. It may be cut.
    pub fn finish(mut self) -> Option<SseEvent> {
        self.end_line();
        self.end_event();
        self.ready.pop_back()
    }

    /// How long the server last asked to wait before coming back.
    pub fn retry(&self) -> Option<Duration> {
        self.retry
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        let mut line = String::from_utf8_lossy(&line);
        if std::mem::take(&mut self.at_start)
            && let Some(rest) = line.strip_prefix('\u{feff}')
        {
            line = rest.to_owned().into();
        }
        if line.is_empty() {
            self.end_event();
            return;
        }
        let (field, value) = line.split_once(':').unwrap_or((&line, ""));
        let value = value.strip_prefix(' ').unwrap_or(value);
        match field {
            "event" => self.event.name = Some(value.to_owned()),
            "data" => match &mut self.event.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.event.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.event.id = Some(value.to_owned()),
            "retry" => self.retry = value.parse().ok().map(Duration::from_millis).or(self.retry),
            // Comments have an empty field name.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let Unfinished { id, name, data } = std::mem::take(&mut self.event);
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let name = name.filter(|name| !name.is_empty());
            self.ready.push_back(SseEvent { id, name, data });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &str = "\u{feff}retry: 3000\n\n: heartbeat\n\nid: 1\nevent: one\ndata: a\ndata:b\r\n\r\n\
        event: no data\n\ndata: é\r\r:comment\nid: 2\ndata: last: one\nretry: soon\n\n";

    fn event(id: Option<&str>, name: Option<&str>, data: &str) -> SseEvent {
        SseEvent {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            data: data.to_owned(),
        }
    }

    fn read(pieces: &[&[u8]]) -> (Vec<SseEvent>, Option<Duration>) {
        let mut reader = SseReader::new(1000);
        let mut events = Vec::new();
        for piece in pieces {
            reader.push(piece).unwrap();
            events.extend(std::iter::from_fn(|| reader.pop()));
        }
        (events, reader.retry())
    }

    #[test]
    fn names_ids_data_and_the_time_to_wait_are_read() {
        let (events, retry) = read(&[EVERYTHING.as_bytes()]);
        assert_eq!(
            events,
            [
                event(Some("1"), Some("one"), "a\nb"),
                event(None, None, "é"),
                event(Some("2"), None, "last: one"),
            ]
        );
        assert_eq!(retry, Some(Duration::from_secs(3)));
    }

    #[test]
    fn it_does_not_matter_where_the_bytes_are_cut() {
        let bytes = EVERYTHING.as_bytes();
        let whole = read(&[bytes]);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let pieces = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(read(&pieces), whole, "cut at {first} and {second}");
            }
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), whole);
    }

    #[test]
    fn an_event_without_its_end_is_only_given_when_the_bytes_end() {
        let mut reader = SseReader::new(1000);
        reader.push(b"data: whole\n\nid: 7\ndata: {\"cut").unwrap();
        assert_eq!(reader.pop(), Some(event(None, None, "whole")));
        assert_eq!(reader.pop(), None);
        assert_eq!(reader.finish(), Some(event(Some("7"), None, "{\"cut")));
        assert_eq!(SseReader::new(10).finish(), None);
    }

    #[test]
    fn an_event_that_is_too_long_is_refused() {
        for text in [
            "data: 12345678901234567890",
            "data: 1234567\ndata: 1234567\ndata: 123\n",
        ] {
            let mut reader = SseReader::new(20);
            let pushed = text.as_bytes().chunks(3).try_for_each(|piece| reader.push(piece));
            assert_eq!(pushed, Err(EventTooLong(20)), "{text}");
        }
    }
}
