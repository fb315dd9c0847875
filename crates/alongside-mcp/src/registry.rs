//! The one lock around all sessions, and the one timer that drops those whose agents have gone.
//!
//! Nothing is called while the lock is held: streams are woken and serialisation is done outside of it.

use std::task::{Context, Poll, Waker};

use alongside_core::dialect::ClientInfo;
use bytes::Bytes;
use parking_lot::Mutex;
use serde_json::value::RawValue;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::agents::SessionStatus;
use crate::callbacks::Callbacks;
use crate::companion::{random_hexadecimal, random_session};
use crate::config::{Limits, Timing};
use crate::outbox::Event;
use crate::session::{Table, Unavailable};
use alongside_core::{Decision, SessionId};

/// All sessions, for everybody.
pub(crate) struct Registry {
    table: Mutex<Table>,
    callbacks: Callbacks,
    /// A deadline may have come nearer.
    deadlines: Notify,
}

/// Why a session cannot be started.
#[derive(Debug)]
pub(crate) enum StartError {
    Unavailable(Unavailable),
    /// The system gives no random numbers.
    Random(getrandom::Error),
}

impl From<getrandom::Error> for StartError {
    fn from(error: getrandom::Error) -> Self {
        Self::Random(error)
    }
}

impl From<Unavailable> for StartError {
    fn from(reason: Unavailable) -> Self {
        Self::Unavailable(reason)
    }
}

impl Registry {
    pub(crate) fn new(initial_context: &str, limits: Limits, timing: Timing, callbacks: Callbacks) -> Self {
        let context = context_message(initial_context).unwrap_or_else(|| {
            tracing::error!("the initial context is not a JSON object; an empty one is used instead");
            Bytes::from_static(br#"{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{}}"#)
        });
        Self {
            table: Mutex::new(Table::new(context, limits, timing, callbacks.clone())),
            callbacks,
            deadlines: Notify::new(),
        }
    }

    /// Starts a session for an agent that introduced itself.
    pub(crate) fn start(&self, client: ClientInfo, protocol: &'static str) -> Result<SessionId, StartError> {
        let id = random_session()?;
        let epoch = random_hexadecimal::<4>()?;
        self.table.lock().add(&id, Some(client), Some(protocol), &epoch)?;
        self.deadlines.notify_one();
        Ok(id)
    }

    /// Notes that a session is in use. `Ok(false)` if there is no such session.
    pub(crate) fn touch(&self, id: &SessionId) -> Result<bool, Unavailable> {
        self.table.lock().touch(id)
    }

    /// Takes up a session from before a restart, unless another request just did.
    pub(crate) fn take_up(
        &self,
        id: &SessionId,
        client: Option<ClientInfo>,
        protocol: Option<&'static str>,
    ) -> Result<(), StartError> {
        let epoch = random_hexadecimal::<4>()?;
        {
            let mut table = self.table.lock();
            if !table.touch(id)? {
                table.add(id, client, protocol, &epoch)?;
            }
        }
        self.deadlines.notify_one();
        Ok(())
    }

    /// Who a session's agent is.
    pub(crate) fn client(&self, id: &SessionId) -> Option<ClientInfo> {
        self.table.lock().sessions.get(id)?.client.clone()
    }

    /// Ends a session at its agent's wish. `false` if there is no such session.
    pub(crate) fn delete(&self, id: &SessionId) -> bool {
        let mut table = self.table.lock();
        let Some(waker) = table.end(id) else { return false };
        table.remember_deletion(id.clone());
        drop(table);
        wake(waker);
        true
    }

    /// Opens a stream and ends any other of the session.
    pub(crate) fn open_stream(&self, id: &SessionId, last_event_id: Option<&str>) -> Option<u64> {
        let (number, replaced) = self.table.lock().open_stream(id, last_event_id)?;
        wake(replaced);
        Some(number)
    }

    /// What a stream has to write next; ready with `None` when it has to end.
    pub(crate) fn poll_stream(&self, id: &SessionId, number: u64, task: &Context<'_>) -> Poll<Option<Event>> {
        self.table.lock().poll_stream(id, number, task)
    }

    /// Puts the context into the outbox of a stream once more.
    pub(crate) fn repeat_context(&self, id: &SessionId, number: u64) {
        self.table.lock().repeat_context(id, number);
    }

    /// A stream is gone.
    pub(crate) fn close_stream(&self, id: &SessionId, number: u64) {
        if self.table.lock().close_stream(id, number) {
            self.deadlines.notify_one();
        }
    }

    /// The agent asked to close a review of this path.
    pub(crate) fn acknowledge(&self, id: &SessionId, file_path: &str) {
        if let Some(session) = self.table.lock().sessions.get_mut(id) {
            session.outbox.acknowledge(file_path);
        }
    }

    /// The agent opened a new review of this path.
    pub(crate) fn supersede(&self, id: &SessionId, file_path: &str) {
        if let Some(session) = self.table.lock().sessions.get_mut(id) {
            session.outbox.supersede(file_path);
        }
    }

    /// Waits until the companion was told all that happened so far.
    pub(crate) async fn settled(&self) {
        self.callbacks.settled().await;
    }

    /// Takes the `params` of a new context for everybody who listens.
    pub(crate) fn publish(&self, params: &str) {
        let Some(message) = context_message(params) else {
            tracing::error!("a context that is not a JSON object was not sent");
            return;
        };
        let wakers = self.table.lock().publish(&message);
        wake(wakers);
    }

    /// Takes a decision for one session. `false` if there is no such session.
    pub(crate) fn notify(&self, id: &SessionId, notification: Decision) -> bool {
        let Some(waker) = self.table.lock().notify(id, notification) else {
            return false;
        };
        wake(waker);
        true
    }

    /// Everybody who is connected, by id.
    pub(crate) fn statuses(&self) -> Vec<SessionStatus> {
        let table = self.table.lock();
        let mut statuses: Vec<_> = table
            .sessions
            .iter()
            .map(|(id, session)| SessionStatus {
                session: id.clone(),
                client: session.client.clone(),
                protocol_version: session.protocol,
                stream_open: session.listens(),
                undelivered: session.outbox.undelivered(),
            })
            .collect();
        drop(table);
        statuses.sort_by(|left, right| left.session.cmp(&right.session));
        statuses
    }

    /// Lets every stream end as soon as it has nothing to write.
    pub(crate) fn close(&self) {
        let wakers = self.table.lock().close();
        wake(wakers);
    }

    /// Takes what no session ever got, at the very end.
    pub(crate) fn take_undelivered(&self) -> Vec<(SessionId, Vec<Decision>)> {
        let sessions = std::mem::take(&mut self.table.lock().sessions);
        sessions
            .into_iter()
            .map(|(id, mut session)| (id, session.outbox.take_undelivered()))
            .filter(|(_, undelivered)| !undelivered.is_empty())
            .collect()
    }

    /// Drops sessions whose time has come, for ever.
    pub(crate) async fn expire(&self) {
        loop {
            let next = self.table.lock().expire(Instant::now());
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

fn wake(wakers: impl IntoIterator<Item = Waker>) {
    wakers.into_iter().for_each(Waker::wake);
}

/// Wraps the `params` of a context into a message, on one line; `None` unless they are a JSON object, because an agent
/// that gets anything else disconnects.
fn context_message(params: &str) -> Option<Bytes> {
    let params = params.trim();
    if !params.starts_with('{') || serde_json::from_str::<&RawValue>(params).is_err() {
        return None;
    }
    // A JSON text has line breaks only between its tokens, where a space does as well. In an event they would end the line.
    let params = params.replace(['\r', '\n'], " ");
    let message = format!(r#"{{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{params}}}"#);
    Some(Bytes::from(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_is_sent_on_one_line_or_not_at_all() {
        let message = context_message("{\n  \"workspaceState\": {}\r\n}\n").unwrap();
        assert_eq!(
            message,
            &br#"{"jsonrpc":"2.0","method":"ide/contextUpdate","params":{   "workspaceState": {}  }}"#[..]
        );
        for params in ["", "null", "[]", "{", "{} {}"] {
            assert_eq!(context_message(params), None, "{params}");
        }
    }
}
