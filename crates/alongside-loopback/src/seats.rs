//! How many connections a port holds: some for clients that have not authenticated, others for those that have.
//!
//! Anyone on this machine can open connections and send nothing. Such connections never take the place of authenticated
//! clients: they have seats of their own, a new one takes the seat of the oldest, and none keeps its seat for long. A client
//! with a token sends it right away, so it has moved on before its turn comes.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::AbortHandle;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionLimits {
    /// Connections of authenticated clients.
    pub authenticated: usize,
    /// Connections of clients that have not authenticated yet; one more closes the oldest.
    pub unauthenticated: usize,
    /// How long a client may take to authenticate.
    pub authentication_timeout: Duration,
    /// How long a client may read nothing while there is something to write to it.
    pub write_timeout: Duration,
}

impl ConnectionLimits {
    /// Longer than a machine under load keeps a program from reading.
    pub const WRITE_TIMEOUT: Duration = Duration::from_mins(1);

    /// For clients that send a token with their first request, within milliseconds. All of them may connect at the same time,
    /// for example after a restart, without taking each other's places.
    pub const fn with_authenticated(authenticated: usize) -> Self {
        Self {
            authenticated,
            unauthenticated: authenticated,
            authentication_timeout: Duration::from_secs(10),
            write_timeout: Self::WRITE_TIMEOUT,
        }
    }
}

/// All authenticated connections are taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooManyConnections;

/// The seats of a port.
pub(crate) struct Seats {
    limits: ConnectionLimits,
    authenticated: Arc<Semaphore>,
    /// By age.
    waiting: Mutex<BTreeMap<u64, AbortHandle>>,
}

impl Seats {
    pub(crate) fn new(limits: ConnectionLimits) -> Arc<Self> {
        let authenticated = Arc::new(Semaphore::new(limits.authenticated));
        Arc::new(Self {
            limits,
            authenticated,
            waiting: Mutex::default(),
        })
    }

    /// Assigns a seat to a new connection. `number` is its position among all that this port accepted; `spawn` starts its task.
    pub(crate) fn take(self: &Arc<Self>, number: u64, spawn: impl FnOnce(Seat) -> AbortHandle) {
        let seat = Seat(Arc::new(Taken {
            number,
            seats: Arc::clone(self),
            permit: Mutex::default(),
        }));
        // Locked until the task is known, because it may run and authenticate at once.
        let mut waiting = self.waiting.lock();
        let evicted = if waiting.len() >= self.limits.unauthenticated.max(1) {
            waiting.pop_first()
        } else {
            None
        };
        waiting.insert(number, spawn(seat));
        drop(waiting);
        if let Some((_, oldest)) = evicted {
            tracing::debug!("too many connections wait to authenticate; closing the oldest");
            oldest.abort();
        }
    }
}

/// The seat of one connection; given back when it is dropped.
#[derive(Clone)]
pub struct Seat(Arc<Taken>);

struct Taken {
    number: u64,
    seats: Arc<Seats>,
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl Seat {
    /// Moves the connection to the authenticated ones, where it may stay. Further calls do nothing.
    pub fn authenticate(&self) -> Result<(), TooManyConnections> {
        let Taken { number, seats, permit } = &*self.0;
        let mut permit = permit.lock();
        if permit.is_none() {
            let free = seats.authenticated.clone().try_acquire_owned();
            *permit = Some(free.map_err(|_| TooManyConnections)?);
            seats.waiting.lock().remove(number);
        }
        Ok(())
    }

    /// Completes if the client has not authenticated in time.
    pub(crate) async fn timed_out(&self) {
        tokio::time::sleep(self.0.seats.limits.authentication_timeout).await;
        if self.0.permit.lock().is_some() {
            std::future::pending::<()>().await;
        }
        tracing::debug!("closing a connection: its client did not authenticate in time");
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.seats.waiting.lock().remove(&self.number);
    }
}

impl fmt::Debug for Seat {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = formatter.debug_struct("Seat");
        debug.field("number", &self.0.number).finish_non_exhaustive()
    }
}
