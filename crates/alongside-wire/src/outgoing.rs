//! The queue in front of a writer.
//!
//! A producer never waits: a program that writes without reading must not hold us up. The queue is bounded in bytes. If it
//! overflows, the other program has stopped reading; a message left out would leave it waiting, so the queue is closed instead:
//! nothing more is written, and [`QueueEnd::Overflow`] tells the owner to close the connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use tokio::io::AsyncWrite;
use tokio::sync::{Notify, mpsc};

use crate::lines::write_line;
use crate::{content_length, length_prefixed};

/// What a message costs in addition to its text.
const MESSAGE_OVERHEAD: usize = 64;

/// How messages are separated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    Lines,
    ContentLength,
    LengthPrefixed,
}

/// Accepts messages. Clones feed the same queue; when the last one is dropped, the writer ends after the last message.
#[derive(Clone, Debug)]
pub struct OutgoingSender {
    messages: mpsc::UnboundedSender<String>,
    shared: Arc<Shared>,
}

/// The other end, to be written out by [`OutgoingQueue::write_to`].
#[derive(Debug)]
pub struct OutgoingQueue {
    messages: mpsc::UnboundedReceiver<String>,
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    limit: usize,
    /// The size of everything that was accepted and is not written yet.
    queued: AtomicUsize,
    overflowed: AtomicBool,
    overflow: Notify,
}

/// A message was not accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SendError {
    #[error("the other program has stopped reading")]
    Overflow,
    #[error("the connection is closed")]
    Closed,
    #[error("the message cannot be serialized")]
    Unserializable,
}

/// Why a writer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueEnd {
    /// Every message is written, and there are no more senders.
    Done,
    /// The other program has closed its end.
    Closed,
    /// The other program has stopped reading.
    Overflow,
}

/// A queue for messages of together `limit` bytes. A single message may be longer if nothing else is queued.
pub fn outgoing(limit: usize) -> (OutgoingSender, OutgoingQueue) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared {
        limit,
        queued: AtomicUsize::new(0),
        overflowed: AtomicBool::new(false),
        overflow: Notify::new(),
    });
    let queue = OutgoingQueue {
        messages: receiver,
        shared: Arc::clone(&shared),
    };
    let sender = OutgoingSender {
        messages: sender,
        shared,
    };
    (sender, queue)
}

impl OutgoingSender {
    /// Queues a message. An overflow closes the queue.
    pub fn send(&self, message: String) -> Result<(), SendError> {
        let Shared {
            limit,
            queued,
            overflowed,
            overflow,
        } = &*self.shared;
        if overflowed.load(Ordering::Acquire) {
            return Err(SendError::Overflow);
        }
        let size = message.len() + MESSAGE_OVERHEAD;
        let before = queued.fetch_add(size, Ordering::AcqRel);
        if before > 0 && before + size > *limit {
            overflowed.store(true, Ordering::Release);
            overflow.notify_one();
            return Err(SendError::Overflow);
        }
        self.messages.send(message).map_err(|_| SendError::Closed)
    }
}

impl OutgoingQueue {
    /// Writes messages until there are no more, the other end is closed, or the queue overflows.
    pub async fn write_to(mut self, mut output: impl AsyncWrite + Unpin, framing: Framing) -> QueueEnd {
        let shared = Arc::clone(&self.shared);
        let write = async {
            while let Some(message) = self.messages.recv().await {
                let written = match framing {
                    Framing::Lines => write_line(&mut output, &message).await,
                    Framing::ContentLength => content_length::write_frame(&mut output, &message).await,
                    Framing::LengthPrefixed => length_prefixed::write_frame(&mut output, &message).await,
                };
                if written.is_err() {
                    return QueueEnd::Closed;
                }
                let size = message.len() + MESSAGE_OVERHEAD;
                self.shared.queued.fetch_sub(size, Ordering::AcqRel);
            }
            QueueEnd::Done
        };
        tokio::select! {
            biased;
            () = shared.overflow.notified() => QueueEnd::Overflow,
            end = write => end,
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::AsyncReadExt;

    use super::*;

    #[tokio::test]
    async fn last_message_is_written_before_the_end() {
        let (sender, queue) = outgoing(1000);
        let (ours, mut theirs) = tokio::io::duplex(1024);
        sender.send("{}".to_owned()).unwrap();
        sender.send("[]".to_owned()).unwrap();
        drop(sender);
        assert_eq!(queue.write_to(ours, Framing::ContentLength).await, QueueEnd::Done);
        let mut text = String::new();
        theirs.read_to_string(&mut text).await.unwrap();
        assert_eq!(text, "Content-Length: 2\r\n\r\n{}Content-Length: 2\r\n\r\n[]");
    }

    #[tokio::test]
    async fn overflow_closes_the_queue_of_a_program_that_does_not_read() {
        let (sender, queue) = outgoing(1000);
        let (ours, _theirs) = tokio::io::duplex(1);
        let writer = tokio::spawn(queue.write_to(ours, Framing::Lines));
        let mut accepted = 0;
        while sender.send("x".repeat(100)).is_ok() {
            accepted += 1;
        }
        assert_eq!(accepted, 1000 / (100 + MESSAGE_OVERHEAD));
        assert_eq!(writer.await.unwrap(), QueueEnd::Overflow);
        assert_eq!(sender.send(String::new()), Err(SendError::Overflow));
    }

    #[tokio::test]
    async fn long_message_is_accepted_if_nothing_else_is_queued() {
        let (sender, queue) = outgoing(10);
        sender.send("x".repeat(1000)).unwrap();
        drop(sender);
        let mut output = Vec::new();
        assert_eq!(queue.write_to(&mut output, Framing::Lines).await, QueueEnd::Done);
        assert_eq!(output.len(), 1001);
    }

    #[tokio::test]
    async fn written_messages_make_room() {
        let (sender, queue) = outgoing(200);
        let (ours, theirs) = tokio::io::duplex(16);
        tokio::spawn(queue.write_to(ours, Framing::Lines));
        let mut reader = crate::lines::LineReader::new(tokio::io::BufReader::new(theirs), 1000);
        for _ in 0..20 {
            sender.send("x".repeat(100)).unwrap();
            reader.next().await.unwrap().unwrap();
            // The line is read a moment before the writer has counted it as written.
            while sender.shared.queued.load(Ordering::Acquire) > 0 {
                tokio::task::yield_now().await;
            }
        }
    }

    #[tokio::test]
    async fn closed_output_ends_the_writer() {
        let (sender, queue) = outgoing(200);
        let (ours, theirs) = tokio::io::duplex(16);
        drop(theirs);
        sender.send("x".to_owned()).unwrap();
        assert_eq!(queue.write_to(ours, Framing::Lines).await, QueueEnd::Closed);
        assert_eq!(sender.send("x".to_owned()), Err(SendError::Closed));
    }
}
