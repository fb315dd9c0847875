//! The events of a session, in order, each once, whatever happens to the connection.
//!
//! The stream keeps how far it has read: an id and the epoch that it counts in. When a connection is cut, even in the middle of
//! an event, it asks for everything after that id; what comes twice is dropped; what is missing although the daemon has sent
//! something later is asked for again. When the daemon cannot send what was missed (its ring has wrapped, or it has been
//! restarted) the session is loaded, and the reader is told to begin anew from the loaded history.

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

/// The longest event that is read; the daemon's own client has the same limit.
const MAX_EVENT_BYTES: usize = 16 * 1024 * 1024;

/// The daemon says something every 15 seconds. After this long its connection is taken for dead.
const IDLE_TIMEOUT: Duration = Duration::from_secs(45);

/// Events that wait for one before them. More than this cannot be a mere change of order.
const MAX_OUT_OF_ORDER_EVENTS: usize = 4096;

/// What a reader of events gets.
#[derive(Clone, Debug, PartialEq)]
pub enum StreamItem {
    /// The next event.
    Event(Box<DaemonEvent>),
    /// What was missed is lost as such: forget all events so far, this is what there is instead.
    Rebuilt {
        /// The daemon's word for why.
        reason: String,
        /// The conversation up to now, shorter than it happened.
        history: Vec<DaemonEvent>,
    },
    /// The connection is cut. The stream tries again by itself.
    Interrupted {
        /// What happened.
        reason: String,
        /// When it tries.
        retry_in: Duration,
    },
    /// The connection is up, for the first time or again.
    Connected,
}

/// The stream. Dropping it ends it; [`EventStream::next`] may be dropped and called again.
pub struct EventStream {
    session: DaemonSessionClient,
    /// What is ready to be given, and how far everything is handled once that is.
    ready: VecDeque<(StreamItem, Option<Cursor>)>,
    /// How far everything is handled when the reader comes for more.
    given: Option<Cursor>,
    /// How far events have been taken from the wire.
    position: Cursor,
    phase: Phase,
    backoff: Backoff,
    /// Which run of the daemon the session was live in.
    run: Option<String>,
    why_connect: &'static str,
    previous_stream: Option<String>,
}

enum Phase {
    Connect,
    Wait(Instant),
    Open(Box<Live>),
    /// The events that are missed cannot be had: the session is to be loaded. The connection stays good.
    Resync(Option<Box<Live>>, String),
    Ended,
}

/// An open connection.
struct Live {
    chunks: BodyChunks,
    reader: SseReader,
    epoch: Option<String>,
    /// What was missed is still being sent.
    replaying: bool,
    /// The ids count in another epoch than ours, and the daemon has not said so yet.
    strange_epoch: bool,
    /// Events that came before their turn.
    held: BTreeMap<u64, DaemonEvent>,
}

/// What to do after an event was looked at.
enum Step {
    GoOn,
    Resync(String),
    /// Something is missing: ask for it.
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

    /// The next thing. What was given before counts as handled now.
    ///
    /// `None` comes after the session has died or was closed, and after an error; an error is one that trying again
    /// does not mend.
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

    /// Says that what was given last is handled, without asking for more.
    pub fn commit(&mut self) {
        if let Some(cursor) = self.given.take() {
            self.session.set_cursor(cursor);
        }
    }

    /// How far everything is handled once the item that was given last is.
    pub fn cursor(&self) -> Cursor {
        self.given.clone().unwrap_or_else(|| self.session.cursor())
    }

    async fn read(&mut self) {
        // After a load there may be events left that came before it.
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

    /// Takes bytes from the wire.
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
                Ok(event) => self.look_at(event),
                Err(error) => tracing::debug!(%error, "ignoring a malformed event"),
            }
        }
    }

    /// Takes what is left when the events end in good order. `true` if there is something else to do now.
    fn take_rest(&mut self) -> bool {
        let Phase::Open(live) = &mut self.phase else {
            return true;
        };
        let reader = std::mem::replace(&mut live.reader, SseReader::new(MAX_EVENT_BYTES));
        if let Some(event) = reader.finish()
            && let Ok(event) = DaemonEvent::parse(&event.data)
        {
            self.look_at(event);
        }
        !matches!(self.phase, Phase::Open(_))
    }

    fn look_at(&mut self, event: DaemonEvent) {
        match self.judge(event) {
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

    fn judge(&mut self, event: DaemonEvent) -> Step {
        let Phase::Open(live) = &mut self.phase else {
            return Step::GoOn;
        };
        let Some(id) = event.id else {
            match &event.kind {
                EventKind::StateResyncRequired { reason } => return Step::Resync(reason.clone()),
                EventKind::ReplayComplete { .. } => {
                    self.backoff.reset();
                    live.replaying = false;
                    // The daemon has sent all it has: what is missing between does not exist.
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

    /// Puts an event in the queue for the reader.
    fn deliver(&mut self, event: DaemonEvent) -> Step {
        self.session.remember_turn_ends(turn_end(&event));
        let mut cursor = None;
        if event.id.is_some() {
            self.position.last_event_id = event.id;
            cursor = Some(self.position.clone());
        }
        let step = match &event.kind {
            EventKind::SessionDied { session_id, reason } | EventKind::SessionClosed { session_id, reason, .. }
                if session_id.as_deref() == Some(self.session.session_id().as_str()) =>
            {
                Step::End(reason.clone())
            }
            _ => Step::GoOn,
        };
        self.ready.push_back((StreamItem::Event(Box::new(event)), cursor));
        step
    }

    /// A request failed: wait and try again, unless that cannot help.
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
        // A load that failed is tried again by way of a connection, which asks for the same place again.
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

/// The end of a turn, if an event is one.
fn turn_end(event: &DaemonEvent) -> Option<(String, TurnEnd)> {
    let prompt = event.prompt_id.clone()?;
    let end = match &event.kind {
        EventKind::TurnComplete { stop_reason } => TurnEnd::Completed {
            stop_reason: stop_reason.clone(),
        },
        EventKind::TurnError { message, code } => TurnEnd::Failed {
            message: message.clone(),
            code: code.as_ref().map(ToString::to_string),
        },
        _ => return None,
    };
    Some((prompt, end))
}
