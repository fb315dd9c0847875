//! The events of a session, in order and each once, whatever happens to the connection.
//!
//! The stream knows how far it has read: an event id and its epoch. When the connection is lost, even in the middle of an event, it
//! requests everything after that id. Duplicates are dropped, and gaps are requested again. When the daemon no longer has the missed
//! events (its ring has wrapped, or it was restarted), the session is loaded, and the reader starts over with its history.

mod opening;

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::time::Duration;

use alongside_wire::http::BodyChunks;
use alongside_wire::sse::SseReader;
use bytes::Bytes;
use tokio::time::Instant;

use super::backoff::Backoff;
use super::error::DaemonError;
use super::event::{DaemonEvent, EventKind};
use super::session::{Cursor, DaemonSessionClient};
use crate::conversation::TurnEnd;

/// The daemon's own client has the same limit.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The daemon sends something every 15 seconds. After this long, the connection counts as lost.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Events held until an earlier one arrives. More than this is a gap, not a change of order.
const MAX_OUT_OF_ORDER_EVENTS: usize = 4096;

#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    Event(Box<DaemonEvent>),
    /// The missed events are lost: forget all events so far, this history replaces them.
    Rebuilt {
        /// The daemon's code.
        reason: String,
        /// The conversation so far, compacted.
        history: Vec<DaemonEvent>,
    },
    /// The connection was lost. The stream reconnects automatically.
    Interrupted {
        reason: String,
        retry_in: Duration,
    },
    /// Connected, or reconnected.
    Connected,
}

/// Dropping [`EventStream::next`] loses nothing.
pub struct EventStream {
    session: DaemonSessionClient,
    /// Items to return, each with the cursor that applies once it is handled.
    ready: VecDeque<(StreamItem, Option<Cursor>)>,
    /// The cursor of the returned item. It applies when the reader comes for more.
    given: Option<Cursor>,
    /// How far events were received.
    position: Cursor,
    phase: Phase,
    backoff: Backoff,
    /// The daemon process that the session was live in.
    run: Option<String>,
    why_connect: &'static str,
    previous_stream: Option<String>,
}

enum Phase {
    Connect,
    Wait(Instant),
    Open(Box<Live>),
    /// The missed events are lost: load the session. The connection stays usable.
    Resync(Option<Box<Live>>, String),
    Ended,
}

struct Live {
    chunks: BodyChunks,
    reader: SseReader,
    epoch: Option<String>,
    /// Missed events are being replayed.
    replaying: bool,
    /// The ids are of another epoch than ours, and the daemon has not reported that yet.
    strange_epoch: bool,
    /// Out-of-order events.
    held: BTreeMap<u64, DaemonEvent>,
}

/// What to do after an event.
enum Step {
    GoOn,
    Resync(String),
    /// An event is missing: request it.
    Gap,
    End(String),
}

impl fmt::Debug for EventStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("EventStream")
            .field("position", &self.position)
            .finish_non_exhaustive()
    }
}

impl EventStream {
    pub(super) fn new(session: DaemonSessionClient) -> Self {
        session.begin_reading();
        Self {
            position: session.cursor(),
            session,
            ready: VecDeque::new(),
            given: None,
            phase: Phase::Connect,
            backoff: Backoff::default(),
            run: None,
            why_connect: "initial",
            previous_stream: None,
        }
    }

    /// The next item. The previous one counts as handled.
    ///
    /// `None` after the session has exited or was closed, and after an error. An error means that reconnecting does not help.
    pub async fn next(&mut self) -> Option<Result<StreamItem, DaemonError>> {
        self.commit();
        loop {
            if let Some((item, cursor)) = self.ready.pop_front() {
                self.given = cursor;
                return Some(Ok(item));
            }
            let result = match &mut self.phase {
                Phase::Ended => return None,
                Phase::Wait(until) => {
                    tokio::time::sleep_until(*until).await;
                    self.phase = Phase::Connect;
                    Ok(())
                }
                Phase::Connect => self.connect().await,
                Phase::Open(_) => {
                    self.read().await;
                    Ok(())
                }
                Phase::Resync(..) => self.resync().await,
            };
            if let Err(error) = result {
                self.end(&error.to_string());
                return Some(Err(error));
            }
        }
    }

    /// Marks the returned item as handled.
    pub fn commit(&mut self) {
        if let Some(cursor) = self.given.take() {
            self.session.set_cursor(cursor);
        }
    }

    /// The cursor once the returned item is handled.
    pub fn cursor(&self) -> Cursor {
        self.given.clone().unwrap_or_else(|| self.session.cursor())
    }

    async fn read(&mut self) {
        // A load may leave events that were received before it.
        self.take_events();
        if !self.ready.is_empty() {
            return;
        }
        let Phase::Open(live) = &mut self.phase else { return };
        let chunk = tokio::time::timeout(IDLE_TIMEOUT, live.chunks.next()).await;
        let (why_connect, why) = match chunk {
            Ok(Some(Ok(bytes))) => match self.take(&bytes) {
                Ok(()) => return,
                Err(why) => ("transport_error", why),
            },
            Ok(Some(Err(error))) => {
                tracing::debug!(%error, "the event stream failed");
                ("transport_error", "the connection was lost")
            }
            Ok(None) => {
                if self.take_rest() {
                    return;
                }
                ("stream_end", "the event stream ended")
            }
            Err(_) => ("transport_error", "the daemon stopped responding"),
        };
        self.why_connect = why_connect;
        self.interrupted(why, None);
    }

    fn take(&mut self, bytes: &Bytes) -> Result<(), &'static str> {
        let Phase::Open(live) = &mut self.phase else {
            return Ok(());
        };
        live.reader.push(bytes).map_err(|_| "an event was too long")?;
        self.take_events();
        Ok(())
    }

    fn take_events(&mut self) {
        while let Phase::Open(live) = &mut self.phase
            && let Some(event) = live.reader.pop()
        {
            match DaemonEvent::parse(&event.data) {
                Ok(event) => self.inspect(event),
                Err(error) => tracing::debug!(%error, "ignoring a malformed event"),
            }
        }
    }

    /// Handles the rest of a stream that was closed. `true` if that changed the phase.
    fn take_rest(&mut self) -> bool {
        let Phase::Open(live) = &mut self.phase else {
            return true;
        };
        let reader = std::mem::replace(&mut live.reader, SseReader::new(MAX_EVENT_BYTES));
        if let Some(event) = reader.finish()
            && let Ok(event) = DaemonEvent::parse(&event.data)
        {
            self.inspect(event);
        }
        !matches!(self.phase, Phase::Open(_))
    }

    fn inspect(&mut self, event: DaemonEvent) {
        match self.classify(event) {
            Step::GoOn => {}
            Step::Resync(reason) => {
                tracing::debug!(reason, "missed events cannot be recovered");
                if let Phase::Open(live) = std::mem::replace(&mut self.phase, Phase::Connect) {
                    self.phase = Phase::Resync(Some(live), reason);
                }
            }
            Step::Gap => {
                tracing::debug!(position = ?self.position, "an event is missing; requesting it");
                self.why_connect = "resume";
                self.phase = Phase::Connect;
            }
            Step::End(reason) => self.end(&reason),
        }
    }

    fn classify(&mut self, event: DaemonEvent) -> Step {
        let Phase::Open(live) = &mut self.phase else {
            return Step::GoOn;
        };
        let Some(id) = event.id else {
            match &event.kind {
                EventKind::StateResyncRequired { reason } => return Step::Resync(reason.clone()),
                EventKind::ReplayComplete { .. } => {
                    self.backoff.reset();
                    live.replaying = false;
                    // The daemon has sent everything: what is missing does not exist.
                    for (_, held) in std::mem::take(&mut live.held) {
                        if let step @ Step::End(_) = self.deliver(held) {
                            return step;
                        }
                    }
                }
                _ => {}
            }
            return self.deliver(event);
        };
        if live.strange_epoch {
            return Step::Resync("epoch_reset".to_owned());
        }
        match self.position.last_event_id {
            Some(last) if id <= last => return Step::GoOn,
            Some(last) if id > last + 1 => {
                if !live.replaying || live.held.len() >= MAX_OUT_OF_ORDER_EVENTS {
                    return Step::Gap;
                }
                live.held.insert(id, event);
                return Step::GoOn;
            }
            _ => {}
        }
        self.backoff.reset();
        let mut step = self.deliver(event);
        while matches!(step, Step::GoOn)
            && let Phase::Open(live) = &mut self.phase
            && let Some(next) = self
                .position
                .last_event_id
                .and_then(|last| live.held.remove(&(last + 1)))
        {
            step = self.deliver(next);
        }
        step
    }

    fn deliver(&mut self, event: DaemonEvent) -> Step {
        self.session.remember_turn_ends(turn_end(&event));
        let mut cursor = None;
        if event.id.is_some() {
            self.position.last_event_id = event.id;
            cursor = Some(self.position.clone());
        }
        let step = match &event.kind {
            EventKind::SessionDied { session_id, reason } | EventKind::SessionClosed { session_id, reason, .. }
                if session_id.as_ref() == Some(self.session.session_id()) =>
            {
                Step::End(reason.clone())
            }
            _ => Step::GoOn,
        };
        self.ready.push_back((StreamItem::Event(Box::new(event)), cursor));
        step
    }

    /// A request failed: schedule another attempt, unless that cannot help.
    fn failed(&mut self, error: DaemonError) -> Result<(), DaemonError> {
        let status = error.status().unwrap_or_default();
        if !error.is_transient() && status < 500 {
            return Err(error);
        }
        self.interrupted(&error.to_string(), error.retry_after());
        Ok(())
    }

    fn interrupted(&mut self, reason: &str, asked: Option<Duration>) {
        let retry_in = self.backoff.next(asked);
        tracing::debug!(reason, ?retry_in, "the event stream is interrupted");
        let reason = reason.to_owned();
        self.ready
            .push_back((StreamItem::Interrupted { reason, retry_in }, None));
        // After a failed load, reconnecting requests the same position again.
        self.phase = Phase::Wait(Instant::now() + retry_in);
    }

    fn end(&mut self, reason: &str) {
        self.phase = Phase::Ended;
        self.session.unsubscribe(reason);
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.session.unsubscribe("no reader for its events");
    }
}

fn turn_end(event: &DaemonEvent) -> Option<(String, TurnEnd)> {
    let prompt = event.prompt_id.clone()?;
    let end = match &event.kind {
        EventKind::TurnComplete { stop_reason } => TurnEnd::stopped(stop_reason.as_str()),
        EventKind::TurnError { message, code } => TurnEnd::Failed {
            message: message.clone(),
            code: code.as_ref().map(ToString::to_string),
        },
        _ => return None,
    };
    Some((prompt, end))
}
