//! Sessions and the table of all sessions: plain state, without locks, tasks or callbacks.
//!
//! The registry guards the [`SessionTable`]. Its methods queue events for the companion and return the wakers of the streams
//! that have something to write, so that they are woken after the lock is released.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use alongside_core::dialect::{ClientDialect, ClientInfo, ContextForm, Transport};
use alongside_core::{SessionEnd, SessionKey};
use bytes::Bytes;
use tokio::time::Instant;

use crate::callbacks::{Callbacks, SessionEvent};
use crate::companion::Outgoing;
use crate::config::{Limits, Timing};
use crate::hub::MentionError;
use crate::outbox::{ChangedFile, Event, Outbox};
use crate::selection::ContextMessages;
use crate::tabs::Tabs;

/// Ids of deleted sessions are kept, so that a late request does not resume one.
const MAX_DELETED_SESSIONS: usize = 64;

const SOCKET_GRACE: Duration = Duration::from_secs(5);

pub(crate) struct Session {
    pub(crate) dialect: &'static ClientDialect,
    pub(crate) outbox: Outbox,
    /// The calls that wait for a decision.
    pub(crate) tabs: Tabs,
    stream: Stream,
    last_used: Instant,
}

enum Stream {
    Never,
    Open {
        /// Unique among all streams.
        number: u64,
        waker: Option<Waker>,
    },
    Closed,
}

pub(crate) struct SessionTable {
    /// In boxes: a map has room for twice as many entries as it has.
    pub(crate) sessions: HashMap<SessionKey, Box<Session>>,
    /// How many requests of a session are being read or carried out. One of them may be the first since a restart, so the session
    /// need not be in the table yet.
    requests: HashMap<SessionKey, usize>,
    /// The latest context, as JSON-RPC messages.
    context: ContextMessages,
    /// Names the journal in event ids.
    epoch: Arc<str>,
    deleted: VecDeque<SessionKey>,
    streams_opened: u64,
    closing: bool,
    limits: Limits,
    timing: Timing,
    callbacks: Callbacks,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SessionError {
    /// The limit is reached, and all sessions have a stream.
    Full,
    /// The agent ended it.
    Deleted,
}

/// Who ended a session.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EndedBy {
    Agent,
    Us,
}

impl Session {
    fn new(dialect: &'static ClientDialect, outbox: Outbox) -> Self {
        Self {
            dialect,
            outbox,
            tabs: Tabs::default(),
            stream: Stream::Never,
            last_used: Instant::now(),
        }
    }

    pub(crate) fn is_listening(&self) -> bool {
        matches!(self.stream, Stream::Open { .. })
    }

    fn wants_diagnostics(&self) -> bool {
        self.is_listening() && self.dialect.gets_diagnostics
    }

    fn is_stream(&self, wanted: u64) -> bool {
        matches!(self.stream, Stream::Open { number, .. } if number == wanted)
    }

    fn take_waker(&mut self) -> Option<Waker> {
        match &mut self.stream {
            Stream::Open { waker, .. } => waker.take(),
            Stream::Never | Stream::Closed => None,
        }
    }

    /// When the session expires if nothing happens.
    fn deadline(&self, timing: &Timing) -> Option<Instant> {
        match self.stream {
            Stream::Open { .. } => None,
            // Copilot CLI opens its stream again within two seconds or never, and does not say goodbye.
            Stream::Closed if self.dialect.transport == Transport::Socket => {
                Some(self.last_used + timing.stream_grace.min(SOCKET_GRACE))
            }
            Stream::Closed => Some(self.last_used + timing.stream_grace),
            Stream::Never => Some(self.last_used + timing.idle),
        }
    }
}

impl SessionTable {
    pub(crate) fn new(
        context: ContextMessages,
        epoch: Arc<str>,
        limits: Limits,
        timing: Timing,
        callbacks: Callbacks,
    ) -> Self {
        Self {
            sessions: HashMap::new(),
            requests: HashMap::new(),
            context,
            epoch,
            deleted: VecDeque::new(),
            streams_opened: 0,
            closing: false,
            limits,
            timing,
            callbacks,
        }
    }

    pub(crate) fn context(&self) -> &ContextMessages {
        &self.context
    }

    /// Adds a session. At the limit, the session without a stream that was idle longest is dropped, and one that never had a stream
    /// before one that is between two.
    pub(crate) fn add(
        &mut self,
        id: &SessionKey,
        client: Option<ClientInfo>,
        dialect: &'static ClientDialect,
        outbox: &str,
    ) -> Result<(), SessionError> {
        if self.sessions.len() >= self.limits.sessions {
            let idle = self.sessions.iter().filter(|(_, session)| !session.is_listening());
            let (longest, _) = idle
                .min_by_key(|(_, session)| (matches!(session.stream, Stream::Closed), session.last_used))
                .ok_or(SessionError::Full)?;
            let longest = longest.clone();
            tracing::info!(session = %longest, "too many sessions; dropping the one idle longest");
            self.end(&longest, EndedBy::Us);
        }
        self.callbacks.report(SessionEvent::Started {
            session: id.clone(),
            client,
        });
        let mut outbox = Outbox::new(self.epoch.clone(), outbox);
        outbox.set_requesting(self.requests.contains_key(id));
        self.sessions
            .insert(id.clone(), Box::new(Session::new(dialect, outbox)));
        Ok(())
    }

    /// Marks a session as used. `Ok(false)` if it is unknown.
    pub(crate) fn touch(&mut self, id: &SessionKey) -> Result<bool, SessionError> {
        if let Some(session) = self.sessions.get_mut(id) {
            session.last_used = Instant::now();
            return Ok(true);
        }
        if self.deleted.contains(id) {
            return Err(SessionError::Deleted);
        }
        Ok(false)
    }

    /// Opens a stream, replacing the session's previous one; returns its number and the waker of the replaced stream.
    pub(crate) fn open_stream(&mut self, id: &SessionKey, last_event_id: Option<&str>) -> Option<(u64, Option<Waker>)> {
        let session = self.sessions.get_mut(id)?;
        let replaced = session.take_waker();
        if session.is_listening() {
            self.callbacks.report(SessionEvent::StreamClosed(id.clone()));
        }
        self.streams_opened += 1;
        session.stream = Stream::Open {
            number: self.streams_opened,
            waker: None,
        };
        let arrived = session.outbox.reopen(last_event_id);
        self.callbacks.settled(id, arrived);
        if let Some(context) = self.context.initial(session.dialect.context) {
            session.outbox.set_context(context.clone());
        }
        self.callbacks.report(SessionEvent::StreamOpened(id.clone()));
        Some((self.streams_opened, replaced))
    }

    /// The next event of a stream; ready with `None` when the stream has to end.
    pub(crate) fn poll_stream(&mut self, id: &SessionKey, number: u64, task: &Context<'_>) -> Poll<Option<Event>> {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_stream(number)) else {
            return Poll::Ready(None);
        };
        if let Some((event, forgotten)) = session.outbox.next_event(&self.limits) {
            self.callbacks.settled(id, forgotten);
            return Poll::Ready(Some(event));
        }
        if self.closing {
            return Poll::Ready(None);
        }
        if let Stream::Open { waker, .. } = &mut session.stream {
            *waker = Some(task.waker().clone());
        }
        Poll::Pending
    }

    /// Queues the context for a stream again, and decisions that its agent may have received.
    pub(crate) fn repeat(&mut self, id: &SessionKey, number: u64) {
        if let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_stream(number)) {
            if let Some(context) = self.context.initial(session.dialect.context) {
                session.outbox.set_context(context.clone());
            }
            session.outbox.end_hold();
        }
    }

    /// The head of a request arrived.
    pub(crate) fn begin_request(&mut self, id: &SessionKey) {
        *self.requests.entry(id.clone()).or_default() += 1;
        if let Some(session) = self.sessions.get_mut(id) {
            session.outbox.set_requesting(true);
        }
    }

    /// A request is carried out; returns the stream to wake, if any.
    pub(crate) fn end_request(&mut self, id: &SessionKey) -> Option<Waker> {
        let count = self.requests.get_mut(id)?;
        *count -= 1;
        if *count > 0 {
            return None;
        }
        self.requests.remove(id);
        let session = self.sessions.get_mut(id)?;
        session.outbox.set_requesting(false);
        session.outbox.has_event().then(|| session.take_waker())?
    }

    /// The agent closed a review of this path.
    pub(crate) fn acknowledge(&mut self, id: &SessionKey, file_path: &str) {
        if let Some(session) = self.sessions.get_mut(id) {
            let settled = session.outbox.acknowledge(file_path);
            self.callbacks.settled(id, settled);
        }
    }

    /// `false` if the stream was replaced, or its session ended, before.
    pub(crate) fn close_stream(&mut self, id: &SessionKey, number: u64) -> bool {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_stream(number)) else {
            return false;
        };
        session.stream = Stream::Closed;
        session.outbox.clear_state();
        session.last_used = Instant::now();
        self.callbacks.report(SessionEvent::StreamClosed(id.clone()));
        true
    }

    /// Ends a session; returns the stream to wake, if any. `None` if the session is unknown.
    pub(crate) fn end(&mut self, id: &SessionKey, by: EndedBy) -> Option<Vec<Waker>> {
        let mut session = self.sessions.remove(id)?;
        if session.is_listening() {
            self.callbacks.report(SessionEvent::StreamClosed(id.clone()));
        }
        let end = match by {
            EndedBy::Us => SessionEnd::Lost,
            EndedBy::Agent => SessionEnd::Deleted {
                unwritten: session.outbox.unwritten(),
            },
        };
        let session_id = id.clone();
        self.callbacks.report(SessionEvent::Ended {
            session: session_id,
            end,
        });
        Some(session.take_waker().into_iter().collect())
    }

    /// Keeps the id of a session that its agent deleted.
    pub(crate) fn remember_deletion(&mut self, id: SessionKey) {
        if self.deleted.len() == MAX_DELETED_SESSIONS {
            self.deleted.pop_front();
        }
        self.deleted.push_back(id);
    }

    /// Ends expired sessions; returns when the next one expires.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let timing = self.timing;
        let overdue: Vec<SessionKey> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.deadline(&timing).is_some_and(|deadline| deadline <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in overdue {
            tracing::debug!(session = %id, "session dropped: the agent disconnected");
            // Without a stream there is no waker.
            self.end(&id, EndedBy::Us);
        }
        self.sessions
            .values()
            .filter_map(|session| session.deadline(&timing))
            .min()
    }

    /// Queues a new context for every open stream, unless its agent has it already; returns the streams to wake.
    pub(crate) fn publish(&mut self, context: ContextMessages) -> Vec<Waker> {
        let previous = std::mem::replace(&mut self.context, context);
        let mut wakers = Vec::new();
        for session in self.sessions.values_mut().filter(|session| session.is_listening()) {
            if let Some(message) = self.context.update(&previous, session.dialect.context) {
                session.outbox.set_context(message.clone());
                wakers.extend(session.take_waker());
            }
        }
        wakers
    }

    pub(crate) fn wants_diagnostics(&self) -> bool {
        self.sessions.values().any(|session| session.wants_diagnostics())
    }

    /// Queues changed diagnostics for every open stream that wants them; returns the streams to wake.
    pub(crate) fn publish_diagnostics(&mut self, files: &[ChangedFile]) -> Vec<Waker> {
        let mut wakers = Vec::new();
        let sessions = self.sessions.values_mut();
        for session in sessions.filter(|session| session.wants_diagnostics()) {
            session.outbox.set_diagnostics(files);
            wakers.extend(session.take_waker());
        }
        wakers
    }

    /// Queues a mention for a session, or for the one used last; returns it, and the stream to wake, if any.
    pub(crate) fn mention(
        &mut self,
        wanted: Option<&SessionKey>,
        message: impl FnOnce(ContextForm) -> Option<Bytes>,
    ) -> Result<(SessionKey, Option<Waker>), MentionError> {
        let can_take = |session: &Session| session.is_listening() && session.dialect.context.has_mentions();
        let sessions = self.sessions.iter().filter(|(_, session)| can_take(session));
        let wanted_ones = sessions.filter(|(id, _)| wanted.is_none_or(|wanted| *id == wanted));
        let found = wanted_ones.max_by_key(|(_, session)| session.last_used);
        let error = wanted.map_or(MentionError::NoAgent, |_| MentionError::NotThisAgent);
        let id = found.map(|(id, _)| id.clone()).ok_or(error)?;
        let session = self.sessions.get_mut(&id).ok_or(error)?;
        let message = message(session.dialect.context).ok_or(error)?;
        session.outbox.push_mention(message).map_err(|_| MentionError::Full)?;
        let waker = session.take_waker();
        Ok((id, waker))
    }

    /// Queues a decision; returns the stream to wake, if any. `None` if the session is unknown.
    pub(crate) fn notify(&mut self, id: &SessionKey, decision: Outgoing) -> Option<Vec<Waker>> {
        let session = self.sessions.get_mut(id)?;
        let Ok(settled) = session.outbox.push(decision, &self.limits) else {
            tracing::warn!(session = %id, "session dropped: too many undelivered decisions");
            return self.end(id, EndedBy::Us);
        };
        self.callbacks.settled(id, settled.into_iter().collect());
        Some(session.take_waker().into_iter().collect())
    }

    /// Whether every session with undelivered decisions has a stream to receive them, and each of `expected` is back.
    pub(crate) fn is_drained(&self, expected: &[SessionKey]) -> bool {
        let is_back = |id| self.sessions.get(id).is_some_and(|session| session.is_listening());
        expected.iter().all(is_back)
            && self
                .sessions
                .values()
                .all(|session| session.is_listening() || session.outbox.undelivered() == 0)
    }

    /// Lets every stream end as soon as it has nothing to write; returns the streams to wake.
    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closing = true;
        self.sessions
            .values_mut()
            .filter_map(|session| session.take_waker())
            .collect()
    }
}
