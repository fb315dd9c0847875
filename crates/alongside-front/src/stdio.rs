//! The transport for editor plugins: one message per line.

use std::sync::Arc;

use futures_util::{sink, stream};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::connection;
use alongside_protocol::Backend;

const MAX_LINE_BYTES: u64 = 96 * 1024 * 1024;

/// Serves the plugin at the other end of two pipes until it closes its own.
pub async fn serve<B, R, W>(backend: Arc<B>, input: R, output: W)
where
    B: Backend,
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let incoming = stream::unfold(input, |mut input| async move {
        loop {
            match next_line(&mut input, MAX_LINE_BYTES).await? {
                line if line.trim().is_empty() => {}
                line => return Some((line, input)),
            }
        }
    });
    let outgoing = sink::unfold(output, |mut output, mut line: String| async move {
        line.push('\n');
        output.write_all(line.as_bytes()).await?;
        output.flush().await?;
        Ok::<_, std::io::Error>(output)
    });
    connection::serve(backend, incoming, outgoing).await;
}

/// The next line, or `None` at the end. A line that cannot be read or is too long also ends the connection: there is no way to tell
/// where the next message starts.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin), limit: u64) -> Option<String> {
    let mut line = Vec::new();
    let length = input.take(limit).read_until(b'\n', &mut line).await.ok()?;
    if length == 0 {
        return None;
    }
    if line.last() != Some(&b'\n') && u64::try_from(length).is_ok_and(|length| length >= limit) {
        tracing::error!("the plugin sent a line longer than {limit} bytes");
        return None;
    }
    // Not valid JSON either, so it gets the parse error.
    Some(String::from_utf8(line).unwrap_or_else(|_| "(not UTF-8)".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(mut input: &[u8], limit: u64) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, limit).await {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn too_long_line_ends_the_connection() {
        assert_eq!(lines(b"1234\n123\nrest", 5).await, ["1234\n", "123\n", "rest"]);
        assert_eq!(lines(b"123\n12345\n1\n", 5).await, ["123\n"]);
    }

    #[tokio::test]
    async fn invalid_utf8_does_not_end_the_connection() {
        assert_eq!(lines(b"\xff\nnext\n", 9).await, ["(not UTF-8)", "next\n"]);
    }
}
