//! Server-sent events, read from bytes that come in chunks of any size.
//!
//! The crate `eventsource-stream` is not used: it sets no limit on the size of an event, and it does not return an event that the
//! end of the stream has cut off, which the daemon's last one may be.

use std::collections::VecDeque;
use std::time::Duration;

/// One event with data. Comments, and events without data, are not reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The event's own `id`. See [`SseReader::last_event_id`] for the one to resume from.
    pub id: Option<String>,
    /// The `event` field; `None` means `message`.
    pub name: Option<String>,
    /// The `data` lines, joined by line feeds.
    pub data: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an event is longer than {0} bytes")]
pub struct EventTooLong(pub usize);

/// The reader. Lines end with a line feed, a carriage return, or both.
///
/// Complete events wait for [`SseReader::pop`]; there are never more than the last chunk brought, if each chunk is followed by
/// popping them all.
#[derive(Debug)]
pub struct SseReader {
    limit: usize,
    line: Vec<u8>,
    /// The last byte was a carriage return; a line feed now belongs to it.
    after_carriage_return: bool,
    at_start: bool,
    event: Unfinished,
    retry: Option<Duration>,
    ready: VecDeque<Ready>,
    /// The id that the next event without its own has.
    current_id: Option<String>,
    last_event_id: Option<String>,
}

#[derive(Debug, Default)]
struct Unfinished {
    id: Option<String>,
    name: Option<String>,
    data: Option<String>,
}

/// A complete event, and where to resume once it is popped.
#[derive(Debug)]
struct Ready {
    event: SseEvent,
    resume_from: Option<String>,
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
            current_id: None,
            last_event_id: None,
        }
    }

    /// Adds the next chunk. An event longer than the limit cannot be skipped: the stream is of no more use.
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

    /// The next complete event.
    pub fn pop(&mut self) -> Option<SseEvent> {
        let Ready { event, resume_from } = self.ready.pop_front()?;
        self.last_event_id = resume_from;
        Some(event)
    }

    /// What is left when the stream ends: an event without the empty line after it. It may be cut off.
    pub fn finish(mut self) -> Option<SseEvent> {
        self.end_line();
        self.end_event();
        self.ready.pop_back().map(|ready| ready.event)
    }

    /// The id to resume from: that of the last event that was popped, or an earlier one if it had none. The id of an event that has
    /// not come completely does not count, or resuming would skip that event.
    pub fn last_event_id(&self) -> Option<&str> {
        self.last_event_id.as_deref()
    }

    /// The delay before reconnecting that the server last asked for.
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
        if id.is_some() {
            self.current_id.clone_from(&id);
        }
        if let Some(data) = data.filter(|data| !data.is_empty()) {
            let name = name.filter(|name| !name.is_empty());
            self.ready.push_back(Ready {
                event: SseEvent { id, name, data },
                resume_from: self.current_id.clone(),
            });
        } else if id.is_some() {
            // An id alone only moves the place to resume from.
            match self.ready.back_mut() {
                Some(last) => last.resume_from = id,
                None => self.last_event_id = id,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERYTHING: &str = "\u{feff}retry: 3000\n\n: heartbeat\n\nid: 1\nevent: one\ndata: a\ndata:b\r\n\r\n\
        event: no data\n\ndata: é\r\rdata\n\n:comment\nid: 2\ndata: last: one\nretry: soon\nunknown: x\n\n\
        id: 3\n\nid: 4\ndata: unfinished";

    fn event(id: Option<&str>, name: Option<&str>, data: &str) -> SseEvent {
        SseEvent {
            id: id.map(str::to_owned),
            name: name.map(str::to_owned),
            data: data.to_owned(),
        }
    }

    /// Events with the id to resume from after each, and at the end.
    #[derive(Debug, PartialEq)]
    struct Read {
        events: Vec<(SseEvent, Option<String>)>,
        last_event_id: Option<String>,
        retry: Option<Duration>,
    }

    fn read(chunks: &[&[u8]]) -> Read {
        let mut reader = SseReader::new(1000);
        for chunk in chunks {
            reader.push(chunk).unwrap();
        }
        let mut events = Vec::new();
        while let Some(event) = reader.pop() {
            events.push((event, reader.last_event_id().map(str::to_owned)));
        }
        Read {
            events,
            last_event_id: reader.last_event_id().map(str::to_owned),
            retry: reader.retry(),
        }
    }

    #[test]
    fn every_field_and_line_end_is_read() {
        let read = read(&[EVERYTHING.as_bytes()]);
        let at = |id: &str| Some(id.to_owned());
        assert_eq!(
            read.events,
            [
                (event(Some("1"), Some("one"), "a\nb"), at("1")),
                (event(None, None, "é"), at("1")),
                (event(Some("2"), None, "last: one"), at("3")),
            ]
        );
        assert_eq!(read.retry, Some(Duration::from_secs(3)));
    }

    #[test]
    fn chunk_boundaries_do_not_matter() {
        let bytes = EVERYTHING.as_bytes();
        let whole = read(&[bytes]);
        for first in 0..=bytes.len() {
            for second in first..=bytes.len() {
                let chunks = [&bytes[..first], &bytes[first..second], &bytes[second..]];
                assert_eq!(read(&chunks), whole, "cut at {first} and {second}");
            }
        }
        let single: Vec<&[u8]> = bytes.chunks(1).collect();
        assert_eq!(read(&single), whole);
    }

    #[test]
    fn unfinished_event_does_not_move_the_place_to_resume_from() {
        let mut reader = SseReader::new(1000);
        reader.push(b"id: 1\ndata: whole\n\nid: 2\ndata: cu").unwrap();
        assert_eq!(reader.last_event_id(), None);
        assert_eq!(reader.pop(), Some(event(Some("1"), None, "whole")));
        assert_eq!(reader.pop(), None);
        assert_eq!(reader.last_event_id(), Some("1"));
        assert_eq!(read(&[EVERYTHING.as_bytes()]).last_event_id.as_deref(), Some("3"));
    }

    #[test]
    fn unfinished_event_is_returned_at_the_end_only() {
        let mut reader = SseReader::new(1000);
        reader.push(b"data: whole\n\nid: 7\ndata: {\"cut").unwrap();
        assert_eq!(reader.pop(), Some(event(None, None, "whole")));
        assert_eq!(reader.pop(), None);
        assert_eq!(reader.finish(), Some(event(Some("7"), None, "{\"cut")));
        assert_eq!(SseReader::new(10).finish(), None);
    }

    #[test]
    fn too_long_event_is_an_error() {
        for text in [
            "data: 12345678901234567890",
            "data: 1234567\ndata: 1234567\ndata: 123\n",
        ] {
            let mut reader = SseReader::new(20);
            let pushed = text.as_bytes().chunks(3).try_for_each(|chunk| reader.push(chunk));
            assert_eq!(pushed, Err(EventTooLong(20)), "{text}");
        }
    }
}
