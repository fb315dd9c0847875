//! Calls that wait for a response.
//!
//! An entry lives as long as its [`PendingCall`]: a call that timed out or was dropped leaves nothing behind, and a response that
//! comes later is ignored. So the table needs no limit of its own. When the connection ends, [`PendingCalls::close`] fails every
//! pending call, and later ones fail at once.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use parking_lot::Mutex;
use tokio::sync::oneshot;

/// The table of pending calls over one connection, and the source of their ids. Clones share it.
pub struct PendingCalls<T> {
    state: Arc<Mutex<State<T>>>,
}

struct State<T> {
    last_id: u64,
    waiting: HashMap<u64, oneshot::Sender<T>>,
    closed: bool,
}

/// The connection ended before the response came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the connection was closed before a response came")]
pub struct ConnectionClosed;

/// A call that waits for its response. Dropping it gives up on the response.
pub struct PendingCall<T> {
    id: u64,
    response: oneshot::Receiver<T>,
    state: Arc<Mutex<State<T>>>,
}

impl<T> PendingCalls<T> {
    pub fn new() -> Self {
        Self {
            state: Arc::new(Mutex::new(State {
                last_id: 0,
                waiting: HashMap::new(),
                closed: false,
            })),
        }
    }

    /// An id for a request whose response the caller recognizes without the table.
    pub fn next_id(&self) -> u64 {
        let mut state = self.state.lock();
        state.last_id += 1;
        state.last_id
    }

    /// Adds an entry. Do this before the request is sent, or its response may come too early.
    pub fn start(&self) -> Result<PendingCall<T>, ConnectionClosed> {
        let (sender, response) = oneshot::channel();
        let mut state = self.state.lock();
        if state.closed {
            return Err(ConnectionClosed);
        }
        state.last_id += 1;
        let id = state.last_id;
        state.waiting.insert(id, sender);
        drop(state);
        Ok(PendingCall {
            id,
            response,
            state: Arc::clone(&self.state),
        })
    }

    /// Delivers a response. `false` if no call waits for it.
    pub fn resolve(&self, id: u64, response: T) -> bool {
        let waiting = self.state.lock().waiting.remove(&id);
        waiting.is_some_and(|waiting| waiting.send(response).is_ok())
    }

    /// Fails every pending call, and every later one.
    pub fn close(&self) {
        let mut state = self.state.lock();
        state.closed = true;
        state.waiting = HashMap::new();
    }

    pub fn len(&self) -> usize {
        self.state.lock().waiting.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Default for PendingCalls<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Clone for PendingCalls<T> {
    fn clone(&self) -> Self {
        Self {
            state: Arc::clone(&self.state),
        }
    }
}

impl<T> fmt::Debug for PendingCalls<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PendingCalls")
            .field("len", &self.len())
            .finish_non_exhaustive()
    }
}

impl<T> PendingCall<T> {
    pub fn id(&self) -> u64 {
        self.id
    }
}

impl<T> Future for PendingCall<T> {
    type Output = Result<T, ConnectionClosed>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.response).poll(context).map_err(|_| ConnectionClosed)
    }
}

impl<T> Drop for PendingCall<T> {
    fn drop(&mut self) {
        self.state.lock().waiting.remove(&self.id);
    }
}

impl<T> fmt::Debug for PendingCall<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PendingCall")
            .field("id", &self.id)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn response_reaches_its_call() {
        let calls = PendingCalls::new();
        let (first, second) = (calls.start().unwrap(), calls.start().unwrap());
        assert!(calls.resolve(second.id(), "two"));
        assert!(calls.resolve(first.id(), "one"));
        assert!(!calls.resolve(99, "unknown"));
        assert_eq!((first.await, second.await), (Ok("one"), Ok("two")));
        assert!(calls.is_empty());
    }

    #[tokio::test]
    async fn call_that_timed_out_leaves_no_entry() {
        let calls = PendingCalls::<()>::new();
        let call = calls.start().unwrap();
        let id = call.id();
        assert!(tokio::time::timeout(Duration::ZERO, call).await.is_err());
        assert_eq!(calls.len(), 0);
        assert!(!calls.resolve(id, ()));
    }

    #[tokio::test]
    async fn closing_fails_pending_and_later_calls() {
        let calls = PendingCalls::<()>::new();
        let call = calls.start().unwrap();
        calls.close();
        assert_eq!(call.await, Err(ConnectionClosed));
        assert_eq!(calls.start().unwrap_err(), ConnectionClosed);
        assert!(calls.is_empty());
    }

    #[test]
    fn ids_are_never_reused() {
        let calls = PendingCalls::<()>::new();
        let first = calls.start().unwrap().id();
        let second = calls.next_id();
        let third = calls.start().unwrap().id();
        assert!(first < second && second < third);
    }
}
