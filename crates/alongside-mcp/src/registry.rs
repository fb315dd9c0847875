//! The lock around all sessions, and the timer that drops the sessions of disconnected agents.
//!
//! Nothing is called while the lock is held: waking streams and serializing happen outside of it.

use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use alongside_core::SessionKey;
use alongside_core::context::IdeContext;
use alongside_core::diagnostics::FileDiagnostics;
use alongside_core::dialect::{ClientDialect, ClientInfo, Transport};
use parking_lot::Mutex;
use serde_json::Value;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::callbacks::Callbacks;
use crate::companion::{Outgoing, random_hexadecimal, random_session};
use crate::config::{Limits, Timing};
use crate::hub::{Mention, MentionError};
use crate::outbox::{ChangedFile, Event};
use crate::selection::{ContextMessages, mention};
use crate::session::{EndedBy, SessionError, SessionTable};
use crate::tabs::Tab;
use crate::tools;

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
        let context = context.map_or_else(ContextMessages::unpublished, ContextMessages::new);
        Self {
            table: Mutex::new(SessionTable::new(context, epoch, limits, timing, callbacks.clone())),
            callbacks,
            deadlines: Notify::new(),
            drained: Notify::new(),
        }
    }

    /// Starts a session for an agent that sent `initialize`.
    /// `own` is the id that the agent has chosen: with one that is known, that session continues.
    pub(crate) fn start(
        &self,
        transport: Transport,
        client: ClientInfo,
        own: Option<SessionKey>,
    ) -> Result<SessionKey, StartError> {
        let id = match (own, transport) {
            (Some(own), _) => own,
            (None, Transport::Http) => SessionKey::Mcp(random_session()?),
            (None, Transport::WebSocket | Transport::Socket) => SessionKey::Connection(random_session()?),
        };
        let outbox = random_hexadecimal::<4>()?;
        let dialect = ClientDialect::on(transport, &client);
        {
            let mut table = self.table.lock();
            if !table.touch(&id)? {
                table.add(&id, Some(client), dialect, &outbox)?;
            }
        }
        self.deadlines.notify_one();
        Ok(id)
    }

    /// Marks a session as used. `Ok(false)` if it is unknown.
    pub(crate) fn touch(&self, id: &SessionKey) -> Result<bool, SessionError> {
        self.table.lock().touch(id)
    }

    /// Resumes a session from before a restart, unless another request just did.
    pub(crate) fn resume(&self, id: &SessionKey, client: Option<ClientInfo>) -> Result<(), StartError> {
        let outbox = random_hexadecimal::<4>()?;
        {
            let mut table = self.table.lock();
            if !table.touch(id)? {
                let dialect = ClientDialect::of(client.as_ref());
                table.add(id, client, dialect, &outbox)?;
            }
        }
        self.deadlines.notify_one();
        Ok(())
    }

    /// That of any client if the session has just ended.
    pub(crate) fn dialect(&self, id: &SessionKey) -> &'static ClientDialect {
        let table = self.table.lock();
        let dialect = table.sessions.get(id).map(|session| session.dialect);
        dialect.unwrap_or_else(|| ClientDialect::of(None))
    }

    /// A call of the agent waits for the decision about this tab. `None` if the session has just ended.
    pub(crate) fn open_tab(&self, id: &SessionKey, name: &str) -> Option<Tab> {
        let mut table = self.table.lock();
        table.sessions.get_mut(id).map(|session| session.tabs.open(name))
    }

    /// Ends the call that waits for this tab, if there is one.
    pub(crate) fn close_tab(&self, id: &SessionKey, name: &str) -> bool {
        let mut table = self.table.lock();
        table
            .sessions
            .get_mut(id)
            .is_some_and(|session| session.tabs.close(name))
    }

    /// What a session was last sent about the selection; `None` if no file is open.
    pub(crate) fn selection(&self, id: &SessionKey) -> Option<Value> {
        let table = self.table.lock();
        let form = table.sessions.get(id)?.dialect.context;
        let message = table.context().initial(form)?.clone();
        drop(table);
        let mut message: Value = serde_json::from_slice(&message).ok()?;
        Some(message["params"].take()).filter(|params| params["filePath"] != "")
    }

    /// Ends all calls of the session that wait; returns how many.
    pub(crate) fn close_all_tabs(&self, id: &SessionKey) -> usize {
        let mut table = self.table.lock();
        table.sessions.get_mut(id).map_or(0, |session| session.tabs.close_all())
    }

    /// Ends a session whose connection is lost.
    pub(crate) fn lose(&self, id: &SessionKey) {
        self.table.lock().end(id, EndedBy::Us);
    }

    pub(crate) fn mention(&self, id: Option<&SessionKey>, what: &Mention) -> Result<SessionKey, MentionError> {
        let (id, waker) = self.table.lock().mention(id, |form| mention(what, form))?;
        wake(waker);
        Ok(id)
    }

    /// Ends a session that its agent deleted. `false` if it is unknown.
    pub(crate) fn delete(&self, id: &SessionKey) -> bool {
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
    pub(crate) fn open_stream(&self, id: &SessionKey, last_event_id: Option<&str>) -> Option<u64> {
        let (number, replaced) = self.table.lock().open_stream(id, last_event_id)?;
        self.drained.notify_one();
        wake(replaced);
        Some(number)
    }

    /// The next event of a stream; ready with `None` when the stream has to end.
    pub(crate) fn poll_stream(&self, id: &SessionKey, number: u64, task: &Context<'_>) -> Poll<Option<Event>> {
        self.table.lock().poll_stream(id, number, task)
    }

    /// Queues the context for a stream again, and decisions that its agent may have received.
    pub(crate) fn repeat(&self, id: &SessionKey, number: u64) {
        self.table.lock().repeat(id, number);
    }

    pub(crate) fn close_stream(&self, id: &SessionKey, number: u64) {
        if self.table.lock().close_stream(id, number) {
            self.deadlines.notify_one();
        }
    }

    /// The agent asked to close a review of this path.
    pub(crate) fn acknowledge(&self, id: &SessionKey, file_path: &str) {
        self.table.lock().acknowledge(id, file_path);
    }

    /// The head of a request arrived: what the agent may have is not repeated before the returned guard is dropped.
    pub(crate) fn begin_request(&self, id: SessionKey) -> ActiveRequest<'_> {
        self.table.lock().begin_request(&id);
        ActiveRequest { registry: self, id }
    }

    /// The agent proposes this file: no decision about a previous proposal is written before the returned guard is dropped.
    pub(crate) fn begin_open<'a>(&'a self, id: &'a SessionKey, file_path: &'a Arc<str>) -> Opening<'a> {
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
    pub(crate) fn supersede(&self, id: &SessionKey, file_path: &str) {
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
    pub(crate) async fn drained(&self, expected: &[SessionKey]) {
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

    /// Serializes a context, once for each form, and queues it for every open stream.
    pub(crate) fn publish(&self, context: &IdeContext) {
        let messages = ContextMessages::new(context);
        let wakers = self.table.lock().publish(messages);
        wake(wakers);
    }

    /// Serializes changed diagnostics, once, and queues them for every open stream that wants them.
    pub(crate) fn publish_diagnostics(&self, files: &[FileDiagnostics]) {
        if files.is_empty() || !self.table.lock().wants_diagnostics() {
            return;
        }
        let changed: Vec<ChangedFile> = files.iter().map(tools::changed_diagnostics).collect();
        let wakers = self.table.lock().publish_diagnostics(&changed);
        wake(wakers);
    }

    /// Queues a decision for one session. `false` if it is unknown.
    pub(crate) fn notify(&self, id: &SessionKey, decision: Outgoing) -> bool {
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
    id: SessionKey,
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
    id: &'a SessionKey,
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

#[cfg(test)]
mod tests {
    use alongside_core::context::{File, WorkspaceState};
    use bytes::Bytes;

    use super::*;
    use crate::callbacks;

    fn client(name: &str) -> ClientInfo {
        ClientInfo {
            name: name.to_owned(),
            version: "1".to_owned(),
        }
    }

    /// P8: Claude Code asks for diagnostics, and the others do not know them.
    #[test]
    fn only_copilot_is_sent_changed_diagnostics() {
        let (callbacks, _queue) = callbacks::channel(100);
        let registry = Registry::new(None, "epoch".into(), Limits::default(), Timing::default(), callbacks);
        let task = Context::from_waker(Waker::noop());
        let stream = |transport, name| {
            let session = registry.start(transport, client(name), None).unwrap();
            let stream = registry.open_stream(&session, None).unwrap();
            while registry.poll_stream(&session, stream, &task).is_ready() {}
            (session, stream)
        };
        let others = [
            stream(Transport::Http, "test"),
            stream(Transport::WebSocket, "claude-code"),
            stream(Transport::WebSocket, "opencode"),
        ];
        let (copilot, mut number) = stream(Transport::Socket, "copilot-cli");
        let changed = || FileDiagnostics {
            path: "/a".to_owned(),
            diagnostics: Vec::new(),
        };
        registry.publish_diagnostics(&[changed()]);
        for (session, stream) in others {
            assert!(registry.poll_stream(&session, stream, &task).is_pending());
        }
        assert!(registry.poll_stream(&copilot, number, &task).is_ready());

        // The next stream is only sent what changes from then on.
        registry.publish_diagnostics(&[changed()]);
        registry.close_stream(&copilot, number);
        registry.publish_diagnostics(&[changed()]);
        number = registry.open_stream(&copilot, None).unwrap();
        assert!(registry.poll_stream(&copilot, number, &task).is_ready(), "the context");
        assert!(registry.poll_stream(&copilot, number, &task).is_pending());
    }

    #[test]
    fn context_is_serialized_once_for_all_streams() {
        let (callbacks, _queue) = callbacks::channel(100);
        let registry = Registry::new(None, "epoch".into(), Limits::default(), Timing::default(), callbacks);
        let streams = |transport, name| {
            [(); 3].map(|()| {
                let session = registry.start(transport, client(name), None).unwrap();
                let stream = registry.open_stream(&session, None).unwrap();
                (session, stream)
            })
        };
        let dialects = [
            streams(Transport::Http, "test"),
            streams(Transport::WebSocket, "claude-code"),
            streams(Transport::WebSocket, "opencode"),
        ];
        let file = File {
            path: "/a".to_owned(),
            timestamp: 1,
            is_active: Some(true),
            cursor: None,
            selected_text: None,
            selection_start: None,
        };
        registry.publish(&IdeContext {
            workspace_state: WorkspaceState {
                open_files: vec![file],
                is_trusted: None,
            },
        });
        let task = Context::from_waker(Waker::noop());
        let message = |(session, stream): &(SessionKey, u64)| match registry.poll_stream(session, *stream, &task) {
            Poll::Ready(Some(event)) => event.context().unwrap().clone(),
            _ => panic!("the context is not queued"),
        };
        for streams in &dialects {
            let messages: Vec<Bytes> = streams.iter().map(message).collect();
            assert!(messages.iter().all(|message| message.as_ptr() == messages[0].as_ptr()));
        }
    }
}
