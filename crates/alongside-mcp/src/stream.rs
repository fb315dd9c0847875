//! The event stream: the response to a `GET`, pulled from the session's outbox when the connection can take more.
//!
//! It is not left to the HTTP library, which keeps two buffers of 8 KiB for each connection: most of what an idle session would cost.

use std::future::{Future, poll_fn};
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use alongside_core::SessionKey;
use alongside_loopback::Stream;
use bytes::{Buf, Bytes};
use tokio::io::{AsyncRead, AsyncWriteExt, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

use crate::config::Timing;
use crate::registry::Registry;

/// Chunks show whether a stream ended cleanly.
const HEAD: &str = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n\
    connection: close\r\ntransfer-encoding: chunked\r\n";
const LAST_CHUNK: &[u8] = b"0\r\n\r\n";

/// An SSE comment.
const KEEP_ALIVE: &[u8] = b": keep-alive\n\n";

/// Ends cleanly when the session ends, another stream replaces it or the port closes.
pub(crate) struct EventStream {
    registry: Arc<Registry>,
    session: SessionKey,
    number: u64,
    keep_alive_interval: Duration,
    keep_alive: Pin<Box<Sleep>>,
    context_repeat: Option<Pin<Box<Sleep>>>,
}

impl EventStream {
    /// `None` if the session has just ended.
    pub(crate) fn open(
        registry: Arc<Registry>,
        session: SessionKey,
        last_event_id: Option<&str>,
        timing: &Timing,
    ) -> Option<Self> {
        let number = registry.open_stream(&session, last_event_id)?;
        Some(Self {
            registry,
            session,
            number,
            keep_alive_interval: timing.keep_alive,
            keep_alive: Box::pin(sleep(timing.keep_alive)),
            context_repeat: Some(Box::pin(sleep(timing.context_repeat))),
        })
    }

    fn reset_keep_alive(&mut self) {
        let next = Instant::now() + self.keep_alive_interval;
        self.keep_alive.as_mut().reset(next);
    }
}

impl EventStream {
    /// Writes events until the stream ends. The error is that the agent disconnected, or reads nothing.
    pub(crate) async fn send(mut self, mut connection: Stream) -> io::Result<()> {
        let head = format!("{HEAD}date: {}\r\n\r\n", httpdate::fmt_http_date(SystemTime::now()));
        connection.write_all(head.as_bytes()).await?;
        while let Some(event) = self.next(&mut connection).await? {
            let size = format!("{:x}\r\n", event.len());
            let mut chunk = size.as_bytes().chain(event).chain(&b"\r\n"[..]);
            connection.write_all_buf(&mut chunk).await?;
        }
        connection.write_all(LAST_CHUNK).await?;
        connection.shutdown().await
    }

    async fn next(&mut self, connection: &mut Stream) -> io::Result<Option<Bytes>> {
        poll_fn(|task| {
            if let Poll::Ready(lost) = poll_lost(connection, task) {
                return Poll::Ready(Err(lost));
            }
            self.poll_event(task).map(Ok)
        })
        .await
    }

    fn poll_event(&mut self, task: &mut Context<'_>) -> Poll<Option<Bytes>> {
        loop {
            match self.registry.poll_stream(&self.session, self.number, task) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(event)) => match event.encode() {
                    Ok(bytes) => {
                        self.reset_keep_alive();
                        return Poll::Ready(Some(bytes));
                    }
                    // Strings always serialize. If not, losing one event is better than losing the stream.
                    Err(error) => tracing::error!(%error, "cannot serialize an event"),
                },
                Poll::Pending => {
                    let repeat = self.context_repeat.as_mut();
                    if repeat.is_some_and(|repeat| repeat.as_mut().poll(task).is_ready()) {
                        self.context_repeat = None;
                        self.registry.repeat(&self.session, self.number);
                        continue;
                    }
                    if self.keep_alive.as_mut().poll(task).is_ready() {
                        self.reset_keep_alive();
                        return Poll::Ready(Some(Bytes::from_static(KEEP_ALIVE)));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

/// Ready when the agent has disconnected. What it sends after the request is ignored.
fn poll_lost(connection: &mut Stream, task: &mut Context<'_>) -> Poll<io::Error> {
    let mut buffer = [0; 64];
    loop {
        let mut read = ReadBuf::new(&mut buffer);
        match ready!(Pin::new(&mut *connection).poll_read(task, &mut read)) {
            Ok(()) if read.filled().is_empty() => return Poll::Ready(io::ErrorKind::UnexpectedEof.into()),
            Ok(()) => {}
            Err(error) => return Poll::Ready(error),
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.registry.close_stream(&self.session, self.number);
    }
}
