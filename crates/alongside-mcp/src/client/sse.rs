//! Reads server-sent events from bytes that come in any pieces.

use std::collections::VecDeque;

/// One event with data. Comments, and events without data, are not reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SseEvent {
    /// The `event` field; `None` means `message`.
    pub name: Option<String>,
    /// The `data` lines, joined by line feeds.
    pub data: String,
    /// The last `id` up to here, of this event or of an earlier one.
    pub id: Option<String>,
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
    name: Option<String>,
    data: Option<String>,
    id: Option<String>,
    ready: VecDeque<SseEvent>,
}

impl SseReader {
    /// A reader for events of up to `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self {
            limit,
            line: Vec::new(),
            after_carriage_return: false,
            at_start: true,
            name: None,
            data: None,
            id: None,
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
            if self.line.len() + self.data.as_ref().map_or(0, String::len) + part.len() > self.limit {
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

    /// The last `id` of all events so far.
    pub fn last_event_id(&self) -> Option<&str> {
        self.id.as_deref()
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
            "event" => self.name = Some(value.to_owned()),
            "data" => match &mut self.data {
                Some(data) => {
                    data.push('\n');
                    data.push_str(value);
                }
                None => self.data = Some(value.to_owned()),
            },
            "id" if !value.contains('\0') => self.id = Some(value.to_owned()),
            // Comments have an empty field name. `retry` concerns only those who come back as fast as told.
            _ => {}
        }
    }

    fn end_event(&mut self) {
        let name = self.name.take().filter(|name| !name.is_empty());
        if let Some(data) = self.data.take().filter(|data| !data.is_empty()) {
            self.ready.push_back(SseEvent {
                name,
                data,
                id: self.id.clone(),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> Vec<SseEvent> {
        let mut reader = SseReader::new(1000);
        for piece in pieces {
            reader.push(piece).unwrap();
        }
        std::iter::from_fn(|| reader.pop()).collect()
    }

    fn event(name: Option<&str>, data: &str, id: Option<&str>) -> SseEvent {
        SseEvent {
            name: name.map(str::to_owned),
            data: data.to_owned(),
            id: id.map(str::to_owned),
        }
    }

    const EVERYTHING: &str = "\u{feff}: hello\n\nid: 1\r\ndata: {\"a\":\r\ndata:  1}\r\n\r\nevent: other\rdata:é\r\rretry: 5\ndata\n\n\
                              id: 2\n\ndata: last: one\nunknown: x\n\ndata: unfinished";

    #[test]
    fn every_kind_of_line_is_read() {
        assert_eq!(
            read(&[EVERYTHING.as_bytes()]),
            [
                event(None, "{\"a\":\n 1}", Some("1")),
                event(Some("other"), "é", Some("1")),
                event(None, "last: one", Some("2")),
            ]
        );
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
