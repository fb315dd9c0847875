//! The framing of the language server protocol: messages behind headers with their length.

use std::io;

use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

/// The longest header line.
const MAX_HEADER_BYTES: u64 = 4096;

/// How much is allocated for a message before its bytes have come.
const MAX_TRUSTED_BYTES: usize = 64 * 1024;

/// Reads the next message of up to `limit` bytes; `None` at the end of the input. After an error nothing more can be read, because
/// where the next message starts is unknown. Not safe to drop while it waits.
pub async fn read_frame(input: &mut (impl AsyncBufRead + Unpin), limit: usize) -> io::Result<Option<Vec<u8>>> {
    let invalid = |reason: String| io::Error::new(io::ErrorKind::InvalidData, reason);
    let mut length = None;
    let mut is_first = true;
    loop {
        let mut line = Vec::new();
        let count = (&mut *input)
            .take(MAX_HEADER_BYTES)
            .read_until(b'\n', &mut line)
            .await?;
        if count == 0 && is_first {
            return Ok(None);
        }
        if line.last() != Some(&b'\n') {
            return Err(invalid("unterminated header".to_owned()));
        }
        is_first = false;
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        if line.is_empty() {
            break;
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(invalid(format!("`{line}` is not a header; is this an LSP client?")));
        };
        if name.eq_ignore_ascii_case("Content-Length") {
            let value = value.trim();
            let parsed: usize = value
                .parse()
                .map_err(|_| invalid(format!("invalid Content-Length `{value}`")))?;
            length = Some(parsed);
        }
    }
    let length = length.ok_or_else(|| invalid("missing Content-Length".to_owned()))?;
    if length > limit {
        return Err(invalid(format!(
            "message too large: {length} bytes; the limit is {limit}"
        )));
    }
    let mut body = Vec::with_capacity(length.min(MAX_TRUSTED_BYTES));
    input.take(length as u64).read_to_end(&mut body).await?;
    if body.len() < length {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(Some(body))
}

/// Writes one message and flushes.
pub async fn write_frame(output: &mut (impl AsyncWrite + Unpin), message: &str) -> io::Result<()> {
    let header = format!("Content-Length: {}\r\n\r\n", message.len());
    output.write_all(header.as_bytes()).await?;
    output.write_all(message.as_bytes()).await?;
    output.flush().await
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(mut input: &[u8]) -> (Vec<String>, bool) {
        let mut bodies = Vec::new();
        loop {
            match read_frame(&mut input, 100).await {
                Ok(Some(body)) => bodies.push(String::from_utf8_lossy(&body).into_owned()),
                end => return (bodies, end.is_ok()),
            }
        }
    }

    #[tokio::test]
    async fn header_names_ignore_case_and_other_headers() {
        let input = "Content-Length: 2\r\n\r\n{}content-length:4\r\nContent-Type: x\r\n\r\n\"ü\"";
        assert_eq!(
            read(input.as_bytes()).await,
            (vec!["{}".to_owned(), "\"ü\"".to_owned()], true)
        );
    }

    #[tokio::test]
    async fn unknown_length_ends_the_input() {
        for input in [
            "hello\n",
            "Content-Length: many\r\n\r\n{}",
            "Content-Type: x\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n{}",
            "Content-Length: 101\r\n\r\n{}",
            "Content-Length: 20\r\n\r\n{}",
            "Content-Length: 2",
        ] {
            assert_eq!(read(input.as_bytes()).await, (vec![], false), "{input}");
        }
    }

    #[tokio::test]
    async fn length_is_in_bytes() {
        let mut output = Vec::new();
        write_frame(&mut output, "\"ü\"").await.unwrap();
        assert_eq!(output, "Content-Length: 4\r\n\r\n\"ü\"".as_bytes());
    }
}
