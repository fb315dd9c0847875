//! The transport for editor plugins: one message per line.

use std::sync::Arc;

use alongside_wire::lines::{Line, LineReader, write_line};
use futures_util::{sink, stream};
use tokio::io::{AsyncBufRead, AsyncWrite};

use crate::connection;
use alongside_protocol::Backend;

/// The longest line that is read. A longer one ends the connection.
const MAX_LINE_BYTES: usize = 96 * 1024 * 1024;

/// Serves the plugin at the other end of two pipes until it closes its own.
pub async fn serve<B, R, W>(backend: Arc<B>, input: R, output: W)
where
    B: Backend,
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let lines = LineReader::new(input, MAX_LINE_BYTES);
    let incoming = stream::unfold(lines, |mut lines| async move {
        let line = next_line(&mut lines).await?;
        Some((line, lines))
    });
    let outgoing = sink::unfold(output, |mut output, message: String| async move {
        write_line(&mut output, &message).await?;
        Ok::<_, std::io::Error>(output)
    });
    connection::serve(backend, incoming, outgoing).await;
}

/// The next line that is not blank, or `None` at the end.
async fn next_line(lines: &mut LineReader<impl AsyncBufRead + Unpin>) -> Option<String> {
    loop {
        match lines.next().await.ok()?? {
            Line::TooLong => {
                tracing::error!("the plugin sent a line longer than {MAX_LINE_BYTES} bytes");
                return None;
            }
            Line::Complete(line) | Line::Unterminated(line) if !line.trim_ascii().is_empty() => {
                // Invalid UTF-8 is not JSON either, and gets the same error.
                return Some(String::from_utf8(line.to_vec()).unwrap_or_else(|_| "(not UTF-8)".to_owned()));
            }
            Line::Complete(_) | Line::Unterminated(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(input: &[u8], limit: usize) -> Vec<String> {
        let mut reader = LineReader::new(input, limit);
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut reader).await {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn too_long_line_ends_the_connection() {
        assert_eq!(lines(b"1234\n123\nrest", 5).await, ["1234", "123", "rest"]);
        assert_eq!(lines(b"123\n12345\n1\n", 5).await, ["123"]);
    }

    #[tokio::test]
    async fn invalid_utf8_does_not_end_the_connection() {
        assert_eq!(lines(b"\xff\n \nnext\n", 9).await, ["(not UTF-8)", "next"]);
    }
}
