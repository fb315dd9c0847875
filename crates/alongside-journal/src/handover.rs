//! The queue between "decided" and "written".
//!
//! Decisions are made under a lock of the caller, which must not be held while a disk is slow. So an item is pushed under
//! that lock, which fixes the order, and written after it: the first caller that finds no leader becomes the leader and
//! writes everything queued, in one batch, until the queue is empty. The others wait for their [`Ticket`]. A thread for
//! the writing would cost two switches per item; this costs a single client nothing.

use std::fmt;
use std::mem;
use std::pin::pin;
use std::sync::Arc;

use parking_lot::{Condvar, Mutex};
use tokio::sync::Notify;

/// Why an item was not written, for everyone who waits for it.
type Outcome = Result<(), Arc<str>>;

pub struct Handover<T> {
    queue: Mutex<Queue<T>>,
}

struct Queue<T> {
    items: Vec<T>,
    /// Of the items in the queue.
    batch: Arc<Batch>,
    leading: bool,
    /// Whether a caller was asked to lead, and has not begun.
    leader_asked: bool,
    /// Batches that the leader has taken and not finished.
    taken: Vec<Arc<Batch>>,
}

/// Items that are written together, or not at all.
#[derive(Default)]
struct Batch {
    outcome: Mutex<Option<Outcome>>,
    decided: Condvar,
    notify: Notify,
}

impl Batch {
    fn decide(&self, outcome: Outcome) {
        *self.outcome.lock() = Some(outcome);
        self.decided.notify_all();
        self.notify.notify_waiters();
    }
}

/// Waits for one pushed item.
#[derive(Clone)]
pub struct Ticket {
    batch: Arc<Batch>,
}

impl<T> Default for Handover<T> {
    fn default() -> Self {
        let queue = Queue {
            items: Vec::new(),
            batch: Arc::default(),
            leading: false,
            leader_asked: false,
            taken: Vec::new(),
        };
        Self {
            queue: Mutex::new(queue),
        }
    }
}

impl<T: Send> Handover<T> {
    pub fn new() -> Self {
        Self::default()
    }

    /// Queues an item. Cheap: call it under the lock that fixes the order, and [`lead`](Self::lead) after it.
    pub fn push(&self, item: T) -> Ticket {
        let mut queue = self.queue.lock();
        queue.items.push(item);
        Ticket {
            batch: queue.batch.clone(),
        }
    }

    /// Whether the caller has to see to it that something [leads](Self::lead): nothing does, and no other caller was asked to.
    pub fn needs_leader(&self) -> bool {
        let mut queue = self.queue.lock();
        !queue.leading && !mem::replace(&mut queue.leader_asked, true)
    }

    /// Becomes the leader unless there is one: passes everything queued to `write`, which may block, hands its result to
    /// the tickets, and repeats this until the queue is empty. Returns false if there is a leader already; that one
    /// writes what was pushed before this call.
    ///
    /// If `write` panics, everything queued fails, and the next caller can lead.
    pub fn lead(&self, mut write: impl FnMut(Vec<T>) -> Result<(), Arc<str>>) -> bool {
        {
            let mut queue = self.queue.lock();
            queue.leader_asked = false;
            if mem::replace(&mut queue.leading, true) {
                return false;
            }
        }
        let leadership = Leadership { handover: self };
        loop {
            let Some(items) = self.next_batch() else {
                mem::forget(leadership);
                return true;
            };
            let outcome = write(items);
            self.decide(&outcome);
        }
    }

    /// What was queued since the batch. Call it in a `write` that fails: what is queued builds on what was not written,
    /// so it must fail, too. The tickets of these items receive the result of that `write`.
    pub fn take_queued(&self) -> Vec<T> {
        self.queue.lock().take()
    }

    /// Whether nothing is queued and nothing is being written.
    pub fn is_idle(&self) -> bool {
        let queue = self.queue.lock();
        queue.items.is_empty() && !queue.leading
    }

    /// Nothing if the queue is empty; then the leadership ended in the same moment, so that no item is left behind.
    fn next_batch(&self) -> Option<Vec<T>> {
        let mut queue = self.queue.lock();
        if queue.items.is_empty() {
            queue.leading = false;
            return None;
        }
        Some(queue.take())
    }
}

impl<T> Handover<T> {
    fn decide(&self, outcome: &Outcome) {
        let batches = mem::take(&mut self.queue.lock().taken);
        for batch in batches {
            batch.decide(outcome.clone());
        }
    }

    /// Fails everything, taken or queued.
    fn fail(&self, reason: &str) {
        let items = {
            let mut queue = self.queue.lock();
            queue.leading = false;
            queue.take()
        };
        self.decide(&Err(reason.into()));
        // Not under the lock: it is not known what dropping an item does.
        drop(items);
    }
}

impl<T> Queue<T> {
    fn take(&mut self) -> Vec<T> {
        let batch = mem::take(&mut self.batch);
        self.taken.push(batch);
        mem::take(&mut self.items)
    }
}

/// Released in the end or, by a panic, when this is dropped.
struct Leadership<'a, T> {
    handover: &'a Handover<T>,
}

impl<T> Drop for Leadership<'_, T> {
    fn drop(&mut self) {
        self.handover.fail("writing to the journal panicked");
    }
}

impl<T> Drop for Handover<T> {
    fn drop(&mut self) {
        self.fail("the journal was closed before this was written");
    }
}

impl Ticket {
    /// Waits until the item was written, or why it was not.
    pub async fn written(&self) -> Result<(), Arc<str>> {
        loop {
            let mut notified = pin!(self.batch.notify.notified());
            // From here on no notification is missed, so the outcome is looked at after it.
            notified.as_mut().enable();
            if let Some(outcome) = self.outcome() {
                return outcome;
            }
            notified.await;
        }
    }

    /// Like [`written`](Self::written), but blocks the thread.
    pub fn wait(&self) -> Result<(), Arc<str>> {
        let mut outcome = self.batch.outcome.lock();
        loop {
            if let Some(outcome) = &*outcome {
                return outcome.clone();
            }
            self.batch.decided.wait(&mut outcome);
        }
    }

    /// Whether the item was written. False for one that failed.
    pub fn is_written(&self) -> bool {
        matches!(self.outcome(), Some(Ok(())))
    }

    fn outcome(&self) -> Option<Outcome> {
        self.batch.outcome.lock().clone()
    }
}

impl fmt::Debug for Ticket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Ticket").field(&self.outcome()).finish()
    }
}

impl<T> fmt::Debug for Handover<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let queue = self.queue.lock();
        f.debug_struct("Handover")
            .field("queued", &queue.items.len())
            .field("leading", &queue.leading)
            .finish()
    }
}
