//! The connection to an editor: JSON-RPC messages with `Content-Length` headers over stdio.

use std::collections::VecDeque;
use std::time::Duration;

use alongside_wire::content_length::read_frame;
use alongside_wire::outgoing::{Framing, QueueEnd, outgoing};
use alongside_wire::rpc::{RequestId, RpcError};
use alongside_wire::sender::RpcSender;
use futures_util::stream::{self, BoxStream, StreamExt};
use serde::Serialize;
use tokio::io::{AsyncBufRead, AsyncWrite};
use tokio::task::JoinHandle;

use crate::types::{MessageType, ShowMessageParams};

const MAX_MESSAGE_BYTES: usize = 96 * 1024 * 1024;

/// What may be queued for an editor that does not read. Beyond it the connection is closed.
const MAX_QUEUED_BYTES: usize = 64 * 1024 * 1024;

const FLUSH_TIMEOUT: Duration = Duration::from_secs(2);

pub struct Connection {
    /// Messages that were read and have to be handled again.
    held: VecDeque<Vec<u8>>,
    frames: BoxStream<'static, Vec<u8>>,
    pub(crate) sender: RpcSender,
    writer: JoinHandle<QueueEnd>,
}

impl Connection {
    pub fn new<R, W>(input: R, output: W) -> Self
    where
        R: AsyncBufRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        let frames = stream::unfold(input, |mut input| async move {
            match read_frame(&mut input, MAX_MESSAGE_BYTES).await {
                Ok(frame) => Some((frame?, input)),
                Err(error) => {
                    tracing::error!(%error, "cannot find the editor's next message");
                    None
                }
            }
        });
        let (messages, queue) = outgoing(MAX_QUEUED_BYTES);
        Self {
            held: VecDeque::new(),
            frames: frames.boxed(),
            sender: RpcSender::new(messages),
            writer: tokio::spawn(queue.write_to(output, Framing::ContentLength)),
        }
    }

    /// The next message; `None` when the editor has closed the connection, does not read, or sent something without a valid header.
    pub(crate) async fn next(&mut self) -> Option<Vec<u8>> {
        if self.writer.is_finished() {
            return None;
        }
        if let Some(frame) = self.held.pop_front() {
            return Some(frame);
        }
        tokio::select! {
            frame = self.frames.next() => frame,
            end = &mut self.writer => {
                tracing::error!(?end, "the editor has stopped reading");
                None
            }
        }
    }

    /// Makes these the next messages.
    pub(crate) fn hold(&mut self, frames: VecDeque<Vec<u8>>) {
        self.held = frames;
    }

    pub(crate) fn show_error(&self, message: &str) {
        let params = ShowMessageParams {
            kind: MessageType::Error,
            message,
            actions: Vec::new(),
        };
        log_unsent(self.sender.notify("window/showMessage", &params));
    }

    pub(crate) fn respond(&self, id: &RequestId, result: &impl Serialize) {
        log_unsent(self.sender.respond(id, Ok(result)));
    }

    pub(crate) fn refuse(&self, id: &RequestId, error: &RpcError) {
        log_unsent(self.sender.respond(id, Err::<(), _>(error.clone())));
    }

    pub(crate) fn send_text(&self, message: String) {
        log_unsent(self.sender.send_text(message));
    }

    /// Waits until everything queued has reached the editor, but not for one that does not read.
    pub(crate) async fn close(self) {
        let Self { sender, writer, .. } = self;
        drop(sender);
        if !writer.is_finished() {
            let _ = tokio::time::timeout(FLUSH_TIMEOUT, writer).await;
        }
    }
}

/// An unsent message means that the editor is gone or does not read; [`Connection::next`] ends the session then.
pub(crate) fn log_unsent<T>(sent: Result<T, alongside_wire::outgoing::SendError>) -> Option<T> {
    sent.inspect_err(|error| tracing::debug!(%error, "a message to the editor was not sent"))
        .ok()
}

#[cfg(test)]
mod tests {
    use serde_json::value::RawValue;
    use tokio::io::AsyncReadExt;

    use super::*;

    async fn count(input: &'static [u8]) -> usize {
        let mut connection = Connection::new(input, tokio::io::sink());
        let mut count = 0;
        while connection.next().await.is_some() {
            count += 1;
        }
        count
    }

    #[tokio::test]
    async fn message_without_a_valid_length_closes_the_connection() {
        assert_eq!(count(b"Content-Length: 2\r\n\r\n{}content-length:2\r\n\r\n[]").await, 2);
        for input in [
            "hello\n",
            "Content-Length: many\r\n\r\n{}",
            "Content-Length: 99999999999\r\n\r\n{}",
        ] {
            assert_eq!(count(input.as_bytes()).await, 0, "{input}");
        }
    }

    #[tokio::test]
    async fn last_response_is_written_before_the_end() {
        let (ours, mut theirs) = tokio::io::duplex(1024);
        let connection = Connection::new(tokio::io::empty(), ours);
        connection.respond(&RequestId::from(RawValue::TRUE), &"ü");
        connection.close().await;
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        assert_eq!(
            text,
            "Content-Length: 41\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":true,\"result\":\"ü\"}"
        );
    }

    #[tokio::test]
    async fn editor_that_does_not_read_is_disconnected() {
        let (ours, _theirs) = tokio::io::duplex(64);
        let (_keep_open, input) = tokio::io::duplex(64);
        let mut connection = Connection::new(tokio::io::BufReader::new(input), ours);
        let text = "x".repeat(MAX_QUEUED_BYTES / 4);
        for _ in 0..6 {
            connection.send_text(text.clone());
        }
        assert_eq!(connection.next().await, None);
        connection.close().await;
    }
}
