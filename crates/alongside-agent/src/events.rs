//! The queue of events between an agent and whatever shows it.
//!
//! Sending never waits, because events are sent under the lock of a session, in order. Instead, reading from the agent waits: while the
//! queue is full, a connection reads nothing more ([`EventSender::ready`]) and the manager executes no commands. A local agent then
//! blocks on its full pipe, and a daemon closes the slow event stream, which resumes later where it stopped. Nothing is lost. The
//! events of one message, such as a loaded history, always fit.

use std::io;
use std::sync::Arc;

use alongside_protocol::chat::AgentEvent;
use tokio::sync::{mpsc, watch};

use crate::position::Position;

/// The queue is full with this many events.
pub(crate) const MAX_QUEUED_EVENTS: usize = 4096;

/// The queue is full with this many bytes, as JSON.
const MAX_QUEUED_BYTES: usize = 16 * 1024 * 1024;

struct Queued {
    event: AgentEvent,
    position: Option<Position>,
    bytes: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    events: usize,
    bytes: usize,
    /// There is no reader: everything sent is dropped.
    is_closed: bool,
}

impl Load {
    fn has_room(&self) -> bool {
        self.is_closed || (self.events < MAX_QUEUED_EVENTS && self.bytes < MAX_QUEUED_BYTES)
    }
}

#[derive(Clone, Debug)]
pub(crate) struct EventSender {
    events: mpsc::UnboundedSender<Queued>,
    load: Arc<watch::Sender<Load>>,
}

/// Where the events of an [`crate::AgentManager`] come from.
///
/// Keep reading while commands are executed: see the module's comment for what happens otherwise.
#[derive(Debug)]
pub struct EventReceiver {
    events: mpsc::UnboundedReceiver<Queued>,
    load: Arc<watch::Sender<Load>>,
    position: Option<Position>,
}

pub(crate) fn event_channel() -> (EventSender, EventReceiver) {
    let (sender, receiver) = mpsc::unbounded_channel();
    let load = Arc::new(watch::Sender::new(Load::default()));
    let receiver = EventReceiver {
        events: receiver,
        load: Arc::clone(&load),
        position: None,
    };
    (EventSender { events: sender, load }, receiver)
}

impl EventSender {
    pub(crate) fn send(&self, event: AgentEvent, position: Option<Position>) {
        let bytes = json_len(&event);
        self.load.send_modify(|load| {
            load.events += 1;
            load.bytes += bytes;
        });
        // Fails only without a reader.
        let _ = self.events.send(Queued { event, position, bytes });
    }

    /// Waits until the queue has room.
    pub(crate) async fn ready(&self) {
        // The error case is a dropped sender, and this is one.
        let _ = self.load.subscribe().wait_for(Load::has_room).await;
    }
}

impl EventReceiver {
    /// The next event; `None` when there will be none. Dropping the future loses nothing.
    pub async fn recv(&mut self) -> Option<AgentEvent> {
        let queued = self.events.recv().await?;
        Some(self.take(queued))
    }

    /// The next event, if one is queued.
    pub fn try_recv(&mut self) -> Option<AgentEvent> {
        let queued = self.events.try_recv().ok()?;
        Some(self.take(queued))
    }

    fn take(&mut self, queued: Queued) -> AgentEvent {
        self.load.send_modify(|load| {
            load.events -= 1;
            load.bytes -= queued.bytes;
        });
        self.position = queued.position;
        queued.event
    }

    /// The position after the most recently received event. `None` before the first event, and with a local agent.
    pub fn position(&self) -> Option<&Position> {
        self.position.as_ref()
    }
}

impl Drop for EventReceiver {
    fn drop(&mut self) {
        self.load.send_modify(|load| load.is_closed = true);
    }
}

/// The length as JSON, without building it.
pub(crate) fn json_len(event: &AgentEvent) -> usize {
    struct Count(usize);
    impl io::Write for Count {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0 += bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }
    let mut count = Count(0);
    // An event always serializes; if not, what was counted so far will do.
    let _ = serde_json::to_writer(&mut count, event);
    count.0
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    fn chunk(text: String) -> AgentEvent {
        AgentEvent::Suggestion { text }
    }

    #[test]
    fn full_queue_is_ready_again_after_reading() {
        let (sender, mut receiver) = event_channel();
        for _ in 0..MAX_QUEUED_EVENTS {
            assert!(sender.ready().now_or_never().is_some());
            sender.send(AgentEvent::Reconnected, None);
        }
        assert!(sender.ready().now_or_never().is_none());
        assert!(receiver.try_recv().is_some());
        assert!(sender.ready().now_or_never().is_some());
    }

    #[test]
    fn queue_is_full_after_a_few_large_events() {
        let (sender, mut receiver) = event_channel();
        let text = "x".repeat(MAX_QUEUED_BYTES / 2);
        sender.send(chunk(text.clone()), None);
        assert!(sender.ready().now_or_never().is_some());
        sender.send(chunk(text), None);
        assert!(sender.ready().now_or_never().is_none());
        assert!(receiver.try_recv().is_some());
        assert!(sender.ready().now_or_never().is_some());
    }

    #[tokio::test]
    async fn dropped_receiver_releases_waiting_senders() {
        let (sender, receiver) = event_channel();
        sender.send(chunk("x".repeat(MAX_QUEUED_BYTES)), None);
        let waiting = sender.ready();
        drop(receiver);
        waiting.await;
    }
}
