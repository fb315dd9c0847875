//! The carrier for editor plugins: one message a line.

use std::sync::Arc;

use futures_util::{sink, stream};
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncWrite, AsyncWriteExt};

use crate::connection;
use crate::desk::Desk;

/// Speaks with the plugin at the other end of the two pipes until it closes its own.
pub async fn serve<D, R, W>(desk: Arc<D>, input: R, output: W)
where
    D: Desk,
    R: AsyncBufRead + Unpin,
    W: AsyncWrite + Unpin,
{
    let incoming = stream::unfold(input.lines(), |mut lines| async move {
        loop {
            // A line that cannot be read ends the conversation: what follows it could be anything.
            match lines.next_line().await.ok().flatten() {
                Some(line) if line.trim().is_empty() => {}
                line => return line.map(|line| (line, lines)),
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
