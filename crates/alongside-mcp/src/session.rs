//! One session, and the table of all of them: plain state, without locks, tasks or callbacks to the outside.
//!
//! [`Table`] is what the registry guards. Its methods queue what a companion wants to know and give back the wakers of the
//! streams that have something to do, so that they are woken after the lock is released.

use std::collections::{HashMap, VecDeque};
use std::task::{Context, Poll, Waker};

use alongside_core::dialect::ClientInfo;
use bytes::Bytes;
use tokio::time::Instant;

use crate::callbacks::{Callbacks, Happening};
use crate::config::{Limits, Timing};
use crate::outbox::{Event, Outbox, Overflow};
use alongside_core::{Decision, SessionId};

/// How many ids of deleted sessions are remembered, so that a straggling request does not bring them back.
const REMEMBERED_DELETIONS: usize = 64;

/// One agent's session.
pub(crate) struct Session {
    pub(crate) client: Option<ClientInfo>,
    pub(crate) protocol: Option<&'static str>,
    pub(crate) outbox: Outbox,
    stream: Stream,
    last_used: Instant,
}

/// Whether a session listens.
enum Stream {
    Never,
    Open {
        /// Which stream it is; no two streams ever have the same number.
        number: u64,
        waker: Option<Waker>,
    },
    Gone,
}

/// All sessions.
pub(crate) struct Table {
    pub(crate) sessions: HashMap<SessionId, Session>,
    /// The latest context, as a message.
    context: Bytes,
    deleted: VecDeque<SessionId>,
    streams_opened: u64,
    closing: bool,
    limits: Limits,
    timing: Timing,
    callbacks: Callbacks,
}

/// Why a session cannot be had.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unavailable {
    /// There are too many, and all of them listen.
    Full,
    /// Its agent ended it.
    Deleted,
}

impl Session {
    fn new(client: Option<ClientInfo>, protocol: Option<&'static str>, epoch: &str) -> Self {
        Self {
            client,
            protocol,
            outbox: Outbox::new(epoch),
            stream: Stream::Never,
            last_used: Instant::now(),
        }
    }

    /// Whether a stream is open.
    pub(crate) fn listens(&self) -> bool {
        matches!(self.stream, Stream::Open { .. })
    }

    fn is_stream(&self, wanted: u64) -> bool {
        matches!(self.stream, Stream::Open { number, .. } if number == wanted)
    }

    fn take_waker(&mut self) -> Option<Waker> {
        match &mut self.stream {
            Stream::Open { waker, .. } => waker.take(),
            Stream::Never | Stream::Gone => None,
        }
    }

    /// When the session is to be dropped if nothing happens.
    fn deadline(&self, timing: &Timing) -> Option<Instant> {
        match self.stream {
            Stream::Open { .. } => None,
            Stream::Gone => Some(self.last_used + timing.stream_grace),
            Stream::Never => Some(self.last_used + timing.idle),
        }
    }
}

impl Table {
    pub(crate) fn new(context: Bytes, limits: Limits, timing: Timing, callbacks: Callbacks) -> Self {
        Self {
            sessions: HashMap::new(),
            context,
            deleted: VecDeque::new(),
            streams_opened: 0,
            closing: false,
            limits,
            timing,
            callbacks,
        }
    }

    /// Adds a session, at the cost of an idle one if there are too many.
    pub(crate) fn add(
        &mut self,
        id: &SessionId,
        client: Option<ClientInfo>,
        protocol: Option<&'static str>,
        epoch: &str,
    ) -> Result<(), Unavailable> {
        if self.sessions.len() >= self.limits.sessions {
            let idle = self.sessions.iter().filter(|(_, session)| !session.listens());
            let (longest, _) = idle
                .min_by_key(|(_, session)| session.last_used)
                .ok_or(Unavailable::Full)?;
            let longest = longest.clone();
            tracing::info!(session = %longest, "too many sessions; dropping the one idle longest");
            self.end(&longest);
        }
        self.callbacks.tell(Happening::Started {
            session: id.clone(),
            client: client.clone(),
        });
        self.sessions.insert(id.clone(), Session::new(client, protocol, epoch));
        Ok(())
    }

    /// Notes that a session is in use. `Ok(false)` if there is no such session.
    pub(crate) fn touch(&mut self, id: &SessionId) -> Result<bool, Unavailable> {
        if let Some(session) = self.sessions.get_mut(id) {
            session.last_used = Instant::now();
            return Ok(true);
        }
        if self.deleted.contains(id) {
            return Err(Unavailable::Deleted);
        }
        Ok(false)
    }

    /// Opens a stream in place of any other of the session; gives its number and the waker of the one that it replaces.
    pub(crate) fn open_stream(&mut self, id: &SessionId, last_event_id: Option<&str>) -> Option<(u64, Option<Waker>)> {
        let session = self.sessions.get_mut(id)?;
        let replaced = session.take_waker();
        if session.listens() {
            self.callbacks.tell(Happening::StreamClosed(id.clone()));
        }
        self.streams_opened += 1;
        session.stream = Stream::Open {
            number: self.streams_opened,
            waker: None,
        };
        session.outbox.reopen(last_event_id);
        session.outbox.set_context(self.context.clone());
        self.callbacks.tell(Happening::StreamOpened(id.clone()));
        Some((self.streams_opened, replaced))
    }

    /// What a stream has to write next; ready with `None` when it has to end.
    pub(crate) fn poll_stream(&mut self, id: &SessionId, number: u64, task: &Context<'_>) -> Poll<Option<Event>> {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_stream(number)) else {
            return Poll::Ready(None);
        };
        if let Some(event) = session.outbox.next_event(&self.limits) {
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

    /// Puts the context into the outbox of a stream once more.
    pub(crate) fn repeat_context(&mut self, id: &SessionId, number: u64) {
        if let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_stream(number)) {
            session.outbox.set_context(self.context.clone());
        }
    }

    /// A stream is gone. `false` if it had been replaced, or its session ended, before.
    pub(crate) fn close_stream(&mut self, id: &SessionId, number: u64) -> bool {
        let Some(session) = self.sessions.get_mut(id).filter(|session| session.is_stream(number)) else {
            return false;
        };
        session.stream = Stream::Gone;
        session.outbox.clear_context();
        session.last_used = Instant::now();
        self.callbacks.tell(Happening::StreamClosed(id.clone()));
        true
    }

    /// Ends a session; gives the stream to wake, if any. `None` if there is no such session.
    pub(crate) fn end(&mut self, id: &SessionId) -> Option<Vec<Waker>> {
        let mut session = self.sessions.remove(id)?;
        if session.listens() {
            self.callbacks.tell(Happening::StreamClosed(id.clone()));
        }
        self.callbacks.tell(Happening::Ended {
            session: id.clone(),
            undelivered: session.outbox.take_undelivered(),
        });
        Some(session.take_waker().into_iter().collect())
    }

    /// Remembers that an agent ended its session on purpose.
    pub(crate) fn remember_deletion(&mut self, id: SessionId) {
        if self.deleted.len() == REMEMBERED_DELETIONS {
            self.deleted.pop_front();
        }
        self.deleted.push_back(id);
    }

    /// Ends the sessions whose time has come and says when the next one's does.
    pub(crate) fn expire(&mut self, now: Instant) -> Option<Instant> {
        let timing = self.timing;
        let overdue: Vec<SessionId> = self
            .sessions
            .iter()
            .filter(|(_, session)| session.deadline(&timing).is_some_and(|deadline| deadline <= now))
            .map(|(id, _)| id.clone())
            .collect();
        for id in overdue {
            tracing::debug!(session = %id, "session dropped: the agent disconnected");
            // It has no stream, so there is nobody to wake.
            self.end(&id);
        }
        self.sessions
            .values()
            .filter_map(|session| session.deadline(&timing))
            .min()
    }

    /// Takes a new context for everybody who listens; gives the streams to wake.
    pub(crate) fn publish(&mut self, context: &Bytes) -> Vec<Waker> {
        self.context = context.clone();
        self.sessions
            .values_mut()
            .filter(|session| session.listens())
            .filter_map(|session| {
                session.outbox.set_context(context.clone());
                session.take_waker()
            })
            .collect()
    }

    /// Takes a decision for one session; gives the stream to wake, if any. `None` if there is no such session.
    pub(crate) fn notify(&mut self, id: &SessionId, notification: Decision) -> Option<Vec<Waker>> {
        let session = self.sessions.get_mut(id)?;
        if let Err(Overflow) = session.outbox.push(notification, &self.limits) {
            tracing::warn!(session = %id, "session dropped: too many undelivered decisions");
            return self.end(id);
        }
        Some(session.take_waker().into_iter().collect())
    }

    /// Lets every stream end as soon as it has nothing to write; gives the streams to wake.
    pub(crate) fn close(&mut self) -> Vec<Waker> {
        self.closing = true;
        self.sessions.values_mut().filter_map(Session::take_waker).collect()
    }
}
