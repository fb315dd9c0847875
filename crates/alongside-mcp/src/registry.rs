//! The lock around all sessions, and the timer that drops the sessions of disconnected agents.
//!
//! Nothing is called while the lock is held: waking streams and serializing happen outside of it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use alongside_core::SessionId;
use alongside_core::context::IdeContext;
use alongside_core::dialect::ClientInfo;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::Serialize;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::callbacks::Callbacks;
use crate::companion::{Outgoing, random_hexadecimal, random_session};
use crate::config::{Limits, Timing};
use crate::outbox::Event;
use crate::session::{EndedBy, SessionError, SessionTable};

/// Sent before the first context is published.
const NO_CONTEXT: &[u8] = br#"{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{}}"#;

pub(crate) struct Registry {
    table: Mutex<SessionTable>,
    callbacks: Callbacks,
    /// Notified when a session may expire sooner than known.
    deadlines: Notify,
    /// Notified when a stream opens or a session no longer needs one.
    drained: Notify,
}

#[derive(Debug)]
pub(crate) enum StartError {
    Session(SessionError),
    /// The system has no random bytes.
    Random(getrandom::Error),
}

impl From<getrandom::Error> for StartError {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error)
    }
}

impl From<SessionError> for StartError {
    fn from(error: SessionError) -> Self {
        Self::Session(error)
    }
}

impl Registry {
    pub(crate) fn new(
        context: Option<&IdeContext>,
        epoch: Arc<str>,
        limits: Limits,
        timing: Timing,
        callbacks: Callbacks,
    ) -> Self {
        let context = context
            .and_then(context_message)
            .unwrap_or(Bytes::from_static(NO_CONTEXT));
        Self {
            table: Mutex::new(SessionTable::new(context, epoch, limits, timing, callbacks.clone())),
            callbacks,
            deadlines: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// Starts a session for an agent that sent `initialize`.
    pub(crate) fn start(&self, client: ClientInfo) -> Result<SessionId, StartError> {
        let id = random_session()?;
        let outbox = random_hexadecimal::<4>()?;
        self.table.lock().add(&id, Some(client), &outbox)?;
        self.deadlines.notify_one();
        Ok(id)
    }

    /// Marks a session as used. `Ok(false)` if it is unknown.
    pub(crate) fn touch(&self, id: &SessionId) -> Result<bool, SessionError> {
        self.table.lock().touch(id)
    }

    /// Resumes a session from before a restart, unless another request just did.
    pub(crate) fn resume(&self, id: &SessionId, client: Option<ClientInfo>) -> Result<(), StartError> {
        let outbox = random_hexadecimal::<4>()?;
        {
            let mut table = self.table.lock();
            if !table.touch(id)? {
                table.add(id, client, &outbox)?;
            }
        }
        self.deadlines.notify_one();
        Ok(())
    }

    pub(crate) fn client(&self, id: &SessionId) -> Option<ClientInfo> {
        self.table.lock().sessions.get(id)?.client.clone()
    }

    /// Ends a session that its agent deleted. `false` if it is unknown.
    pub(crate) fn delete(&self, id: &SessionId) -> bool {
        let mut table = self.table.lock();
        let Some(waker) = table.end(id, EndedBy::Agent) else {
            return false;
        };
        table.remember_deletion(id.clone());
        drop(table);
        self.drained.notify_one();
        wake(waker);
        true
    }

    /// Opens a stream, replacing the session's previous one.
    pub(crate) fn open_stream(&self, id: &SessionId, last_event_id: Option<&str>) -> Option<u64> {
        let (number, replaced) = self.table.lock().open_stream(id, last_event_id)?;
        self.drained.notify_one();
        wake(replaced);
        Some(number)
    }

    /// The next event of a stream; ready with `None` when the stream has to end.
    pub(crate) fn poll_stream(&self, id: &SessionId, number: u64, task: &Context<'_>) -> Poll<Option<Event>> {
        self.table.lock().poll_stream(id, number, task)
    }

    /// Queues the context for a stream again, and decisions that its agent may have received.
    pub(crate) fn repeat(&self, id: &SessionId, number: u64) {
        self.table.lock().repeat(id, number);
    }

    pub(crate) fn close_stream(&self, id: &SessionId, number: u64) {
        if self.table.lock().close_stream(id, number) {
            self.deadlines.notify_one();
        }
    }

    /// The agent asked to close a review of this path.
    pub(crate) fn acknowledge(&self, id: &SessionId, file_path: &str) {
        self.table.lock().acknowledge(id, file_path);
    }

    /// The head of a request arrived: what the agent may have is not repeated before the returned guard is dropped.
    pub(crate) fn begin_request(&self, id: SessionId) -> ActiveRequest<'_> {
        self.table.lock().begin_request(&id);
        ActiveRequest { registry: self, id }
    }

    /// The agent proposes this file: no decision about a previous proposal is written before the returned guard is dropped.
    pub(crate) fn begin_open<'a>(&'a self, id: &'a SessionId, file_path: &'a Arc<str>) -> Opening<'a> {
        if let Some(session) = self.table.lock().sessions.get_mut(id) {
            session.outbox.begin_open(file_path);
        }
        Opening {
            registry: self,
            id,
            file_path,
        }
    }

    /// The agent's proposal of this file is a review now.
    pub(crate) fn supersede(&self, id: &SessionId, file_path: &str) {
        if let Some(session) = self.table.lock().sessions.get_mut(id) {
            session.outbox.supersede(file_path);
        }
        self.drained.notify_one();
    }

    /// Waits until the companion has received all events so far.
    pub(crate) async fn caught_up(&self) {
        self.callbacks.caught_up().await;
    }

    /// Waits until every session with undelivered decisions has a stream, and each of `expected` is back. One caller at a time.
    pub(crate) async fn drained(&self, expected: &[SessionId]) {
        loop {
            // A resumed session may have decisions that the companion is about to send.
            self.caught_up().await;
            if self.table.lock().is_drained(expected) {
                return;
            }
            self.drained.notified().await;
        }
    }

    /// Waits until the companion has caught up far enough for another request.
    pub(crate) async fn ready(&self) {
        self.callbacks.ready().await;
    }

    /// Serializes a context and queues it for every open stream.
    pub(crate) fn publish(&self, context: &impl Serialize) {
        let Some(message) = context_message(context) else {
            return;
        };
        let wakers = self.table.lock().publish(&message);
        wake(wakers);
    }

    /// Queues a decision for one session. `false` if it is unknown.
    pub(crate) fn notify(&self, id: &SessionId, decision: Outgoing) -> bool {
        let Some(waker) = self.table.lock().notify(id, decision) else {
            return false;
        };
        wake(waker);
        true
    }

    /// Lets every stream end as soon as it has nothing to write.
    pub(crate) fn close(&self) {
        let wakers = self.table.lock().close();
        wake(wakers);
    }

    /// Drops sessions as they expire; never returns.
    pub(crate) async fn expire(&self) {
        loop {
            let next = self.table.lock().expire(Instant::now());
            self.drained.notify_one();
            let changed = self.deadlines.notified();
            match next {
                Some(deadline) => tokio::select! {
                    () = tokio::time::sleep_until(deadline) => {}
                    () = changed => {}
                },
                None => changed.await,
            }
        }
    }
}

/// A request that is being read or carried out.
pub(crate) struct ActiveRequest<'a> {
    registry: &'a Registry,
    id: SessionId,
}

impl Drop for ActiveRequest<'_> {
    fn drop(&mut self) {
        let waker = self.registry.table.lock().end_request(&self.id);
        wake(waker);
    }
}

/// A proposal that is being answered.
pub(crate) struct Opening<'a> {
    registry: &'a Registry,
    id: &'a SessionId,
    file_path: &'a Arc<str>,
}

impl Drop for Opening<'_> {
    fn drop(&mut self) {
        if let Some(session) = self.registry.table.lock().sessions.get_mut(self.id) {
            session.outbox.end_open(self.file_path);
        }
        self.registry.drained.notify_one();
    }
}

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

/// The JSON-RPC message for a context. Compact JSON has no line breaks, which would end the event.
fn context_message(context: &impl Serialize) -> Option<Bytes> {
    #[derive(Serialize)]
    struct Message<'a, C> {
        jsonrpc: &'static str,
        method: &'static str,
        params: &'a C,
    }

    let message = Message {
        jsonrpc: "2.0",
        method: "ide/contextUpdate",
        params: context,
    };
    match serde_json::to_vec(&message) {
        Ok(bytes) => Some(Bytes::from(bytes)),
        Err(error) => {
            tracing::error!(%error, "cannot serialize a context");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::task::Waker;

    use super::*;
    use crate::callbacks;

    /// Counts how often it is serialized.
    struct Counting(Cell<usize>);

    impl Serialize for Counting {
        fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
            self.0.set(self.0.get() + 1);
            serializer.collect_map([("selectedText", "one\ntwo")])
        }
    }

    #[test]
    fn context_is_serialized_once_for_all_streams() {
        let (callbacks, _queue) = callbacks::channel(100);
        let registry = Registry::new(None, "epoch".into(), Limits::default(), Timing::default(), callbacks);
        let client = || ClientInfo {
            name: "test".to_owned(),
            version: "1".to_owned(),
        };
        let streams: Vec<_> = (0..3)
            .map(|_| {
                let session = registry.start(client()).unwrap();
                let stream = registry.open_stream(&session, None).unwrap();
                (session, stream)
            })
            .collect();
        let context = Counting(Cell::new(0));
        registry.publish(&context);
        let task = Context::from_waker(Waker::noop());
        let messages: Vec<Bytes> = streams
            .iter()
            .map(
                |(session, stream)| match registry.poll_stream(session, *stream, &task) {
                    Poll::Ready(Some(event)) => event.context().unwrap().clone(),
                    _ => panic!("the context is not queued"),
                },
            )
            .collect();
        assert_eq!(context.0.get(), 1);
        assert!(messages.iter().all(|message| message.as_ptr() == messages[0].as_ptr()));
        assert_eq!(
            messages[0],
            &br#"{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{"selectedText":"one\ntwo"}}"#[..]
        );
    }
}
