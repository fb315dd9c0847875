//! One message per line, with a limit on its length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

/// A buffer that grew beyond this for one long line is not kept for the next.
const MAX_KEPT_CAPACITY: usize = 64 * 1024;

/// Reads lines. Dropping [`LineReader::next`] while it waits loses nothing.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    limit: usize,
    line: Vec<u8>,
    too_long: bool,
    /// The line was returned; the next call starts another.
    returned: bool,
}

/// A line without its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Line<'a> {
    Complete(&'a [u8]),
    /// The input ended in the middle of a line.
    Unterminated(&'a [u8]),
    /// The line was longer than the limit and has been skipped.
    TooLong,
}

impl<R: AsyncBufRead + Unpin> LineReader<R> {
    /// A reader for lines of up to `limit` bytes, including their end.
    pub fn new(input: R, limit: usize) -> Self {
        Self {
            input,
            limit,
            line: Vec::new(),
            too_long: false,
            returned: false,
        }
    }

    /// The next line; `None` at the end of the input.
    pub async fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        if std::mem::take(&mut self.returned) {
            self.line.clear();
            self.line.shrink_to(MAX_KEPT_CAPACITY);
            self.too_long = false;
        }
        loop {
            let bytes = self.input.fill_buf().await?;
            let at_end = bytes.is_empty();
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(bytes.len(), |end| end + 1);
            self.too_long |= self.line.len() + taken > self.limit;
            if self.too_long {
                self.line = Vec::new();
            } else {
                self.line.extend_from_slice(&bytes[..taken]);
            }
            self.input.consume(taken);
            if end.is_none() && !at_end {
                continue;
            }
            if at_end && self.line.is_empty() && !self.too_long {
                return Ok(None);
            }
            self.returned = true;
            if self.too_long {
                return Ok(Some(Line::TooLong));
            }
            return Ok(Some(match self.line.strip_suffix(b"\n") {
                Some(line) => Line::Complete(line.strip_suffix(b"\r").unwrap_or(line)),
                None => Line::Unterminated(&self.line),
            }));
        }
    }
}

/// Writes one line and flushes. Line breaks within are replaced: in JSON they can only be between tokens.
pub async fn write_line(output: &mut (impl AsyncWrite + Unpin), message: &str) -> io::Result<()> {
    let mut line = String::with_capacity(message.len() + 1);
    line.push_str(message);
    if message.contains(['\r', '\n']) {
        line = line.replace(['\r', '\n'], " ");
    }
    line.push('\n');
    output.write_all(line.as_bytes()).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(input: &[u8], limit: usize, chunk: usize) -> Vec<String> {
        let input = tokio::io::BufReader::with_capacity(chunk, input);
        let mut reader = LineReader::new(input, limit);
        let mut lines = Vec::new();
        while let Some(line) = reader.next().await.unwrap() {
            lines.push(match line {
                Line::Complete(line) => format!("{}$", String::from_utf8_lossy(line)),
                Line::Unterminated(line) => String::from_utf8_lossy(line).into_owned(),
                Line::TooLong => "too long".to_owned(),
            });
        }
        lines
    }

    #[tokio::test]
    async fn lines_end_with_or_without_a_carriage_return() {
        for chunk in 1..10 {
            assert_eq!(read(b"a\nb\r\n\nc", 9, chunk).await, ["a$", "b$", "$", "c"]);
            assert_eq!(read(b"", 9, chunk).await, Vec::<String>::new());
        }
    }

    #[tokio::test]
    async fn too_long_line_is_skipped() {
        for chunk in 1..10 {
            assert_eq!(read(b"1234\n123\nrest", 5, chunk).await, ["1234$", "123$", "rest"]);
            assert_eq!(read(b"123\n12345\n1\n", 5, chunk).await, ["123$", "too long", "1$"]);
            assert_eq!(read(b"123456", 5, chunk).await, ["too long"]);
        }
    }

    #[tokio::test]
    async fn waiting_can_be_given_up() {
        let (ours, mut theirs) = tokio::io::duplex(64);
        let mut reader = LineReader::new(tokio::io::BufReader::new(ours), 100);
        theirs.write_all(b"first half, ").await.unwrap();
        let waited = tokio::time::timeout(std::time::Duration::from_millis(10), reader.next()).await;
        assert!(waited.is_err());
        theirs.write_all(b"second half\n").await.unwrap();
        assert_eq!(
            reader.next().await.unwrap(),
            Some(Line::Complete(b"first half, second half"))
        );
    }

    #[tokio::test]
    async fn memory_of_a_long_line_is_released() {
        let input = [vec![b'x'; 1 << 20], b"\ny\n".to_vec()].concat();
        let mut reader = LineReader::new(&input[..], 2 << 20);
        reader.next().await.unwrap();
        reader.next().await.unwrap();
        assert!(reader.line.capacity() <= MAX_KEPT_CAPACITY);
    }

    #[tokio::test]
    async fn written_message_is_one_line() {
        let mut output = Vec::new();
        write_line(&mut output, "{\n\"a\": 1\r\n}").await.unwrap();
        write_line(&mut output, "{}").await.unwrap();
        assert_eq!(output, b"{ \"a\": 1  }\n{}\n");
    }
}
