//! The event stream: the body of a `GET`, pulled from the session's outbox when the connection can take more.

use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use alongside_core::SessionKey;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::time::{Instant, Sleep, sleep};

use crate::config::Timing;
use crate::registry::Registry;

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

impl Body for EventStream {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        task: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Self::Data>, Self::Error>>> {
        loop {
            match self.registry.poll_stream(&self.session, self.number, task) {
                Poll::Ready(None) => return Poll::Ready(None),
                Poll::Ready(Some(event)) => match event.encode() {
                    Ok(bytes) => {
                        self.reset_keep_alive();
                        return Poll::Ready(Some(Ok(Frame::data(bytes))));
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
                        return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(KEEP_ALIVE)))));
                    }
                    return Poll::Pending;
                }
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.registry.close_stream(&self.session, self.number);
    }
}
