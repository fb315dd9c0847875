//! The carrier for editor plugins: one message a line.

use std::sync::Arc;

use futures_util::{sink, stream};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};

use crate::connection;
use alongside_protocol::Desk;

/// How long a line may be.
const LONGEST_LINE: u64 = 96 * 1024 * 1024;

/// Speaks with the plugin at the other end of the two pipes until it closes its own.
pub async fn serve<D, R, W>(desk: Arc<D>, input: R, output: W)
where
    D: Desk,
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let incoming = stream::unfold(input, |mut input| async move {
        loop {
            match next_line(&mut input, LONGEST_LINE).await? {
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
    connection::serve(desk, incoming, outgoing).await;
}

/// The next line, or `None` at the end. A line that cannot be read or is too long is the end as well: what follows it
/// could be anything.
async fn next_line(input: &mut (impl AsyncBufRead + Unpin), longest: u64) -> Option<String> {
    let mut line = Vec::new();
    let length = input.take(longest).read_until(b'\n', &mut line).await.ok()?;
    if length == 0 {
        return None;
    }
    if line.last() != Some(&b'\n') && u64::try_from(length).is_ok_and(|length| length >= longest) {
        tracing::error!("the plugin sent a line longer than {longest} bytes");
        return None;
    }
    // Not guessed at: this is no JSON either, and is answered so.
    Some(String::from_utf8(line).unwrap_or_else(|_| "(not UTF-8)".to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(mut input: &[u8], longest: u64) -> Vec<String> {
        let mut lines = Vec::new();
        while let Some(line) = next_line(&mut input, longest).await {
            lines.push(line);
        }
        lines
    }

    #[tokio::test]
    async fn a_line_that_is_too_long_ends_the_conversation() {
        assert_eq!(lines(b"1234\n123\nrest", 5).await, ["1234\n", "123\n", "rest"]);
        assert_eq!(lines(b"123\n12345\n1\n", 5).await, ["123\n"]);
    }

    #[tokio::test]
    async fn what_is_not_utf8_does_not_end_it() {
        assert_eq!(lines(b"\xff\nnext\n", 9).await, ["(not UTF-8)", "next\n"]);
    }
}
