//! The thread that writes the companion's files, so that no async worker waits for a disk.
//!
//! It has two queues, and adding to either never waits:
//! - *State* holds one job per [`Key`]. A newer job replaces one that has not started, so the number of keys is the bound.
//! - The *log* runs its jobs in order. Producers await [`Writer::ready`] before each event, so it holds at most
//!   [`MAX_LOG_JOBS`] and what one event leads to.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use alongside_core::ReviewId;
use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

const MAX_LOG_JOBS: usize = 256;

/// What a job for a file writes. Jobs that wait together run in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    SavedState,
    Decisions,
    Review(ReviewId),
}

type Job = Box<dyn FnOnce() + Send>;

/// Dropping it waits until everything is written.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// The thread has something to do.
    changed: Condvar,
    /// The log has room again.
    room: Notify,
}

#[derive(Default)]
struct Queue {
    state: BTreeMap<Key, Job>,
    log: VecDeque<Job>,
    flushes: Vec<oneshot::Sender<()>>,
    closed: bool,
}

impl Writer {
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name("writer".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.run()
        })?;
        Ok(Self {
            shared,
            thread: Some(thread),
        })
    }

    /// Runs a job soon, in place of one with the same key that has not started.
    pub(crate) fn replace(&self, key: Key, job: impl FnOnce() + Send + 'static) {
        self.shared.queue.lock().state.insert(key, Box::new(job));
        self.shared.changed.notify_one();
    }

    /// Removes the job with this key; `false` if there is none, or it has started.
    pub(crate) fn cancel(&self, key: Key) -> bool {
        self.shared.queue.lock().state.remove(&key).is_some()
    }

    /// Waits until the log has room.
    pub(crate) async fn ready(&self) {
        loop {
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.shared.queue.lock().log.len() < MAX_LOG_JOBS {
                return;
            }
            room.await;
        }
    }

    /// Runs a job after all others that were appended. Await [`ready`](Self::ready) first.
    pub(crate) fn append(&self, job: impl FnOnce() + Send + 'static) {
        self.shared.queue.lock().log.push_back(Box::new(job));
        self.shared.changed.notify_one();
    }

    /// Waits until everything appended so far is written.
    pub(crate) async fn log_written(&self) {
        let (done, written) = oneshot::channel();
        self.append(move || {
            let _ = done.send(());
        });
        // An error means that the thread has ended, and it ends only when everything is written.
        let _ = written.await;
    }

    /// Waits until everything added so far is written.
    pub(crate) async fn flush(&self) {
        let (done, flushed) = oneshot::channel();
        self.shared.queue.lock().flushes.push(done);
        self.shared.changed.notify_one();
        // An error means that the thread has ended, and it ends only when everything is written.
        let _ = flushed.await;
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.queue.lock().closed = true;
        self.shared.changed.notify_one();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn run(&self) {
        let mut paused_until = Instant::now();
        let mut queue = self.queue.lock();
        loop {
            let is_urgent = queue.closed || !queue.flushes.is_empty();
            let log = std::mem::take(&mut queue.log);
            let state = if is_urgent || Instant::now() >= paused_until {
                std::mem::take(&mut queue.state)
            } else {
                BTreeMap::new()
            };
            if !log.is_empty() || !state.is_empty() {
                MutexGuard::unlocked(&mut queue, || {
                    for job in log {
                        job();
                    }
                    self.room.notify_waiters();
                    let start = Instant::now();
                    for job in state.into_values() {
                        job();
                    }
                    // A large review that is being edited would keep the disk busy; half of the time is left to others.
                    paused_until = Instant::now() + start.elapsed();
                });
            } else if !queue.state.is_empty() {
                self.changed.wait_until(&mut queue, paused_until);
            } else {
                for flushed in queue.flushes.drain(..) {
                    let _ = flushed.send(());
                }
                if queue.closed {
                    return;
                }
                self.changed.wait(&mut queue);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::*;

    /// Keeps the thread busy until the returned sender is dropped.
    fn block(writer: &Writer) -> mpsc::Sender<()> {
        let (started, has_started) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        writer.append(move || {
            started.send(()).unwrap();
            let _ = released.recv();
        });
        has_started.recv().unwrap();
        release
    }

    fn note(notes: &mpsc::Sender<u32>, number: u32) -> impl FnOnce() + Send + 'static {
        let notes = notes.clone();
        move || notes.send(number).unwrap()
    }

    #[tokio::test]
    async fn slow_disk_latest_state_wins_and_log_keeps_its_order() {
        let writer = Writer::start().unwrap();
        let release = block(&writer);
        let (notes, noted) = mpsc::channel();
        for number in [1, 2, 3] {
            writer.replace(Key::SavedState, note(&notes, number));
            writer.append(note(&notes, number + 10));
        }
        writer.replace(Key::Decisions, note(&notes, 4));
        assert!(writer.cancel(Key::Decisions) && !writer.cancel(Key::Decisions));
        drop(release);
        writer.flush().await;
        assert_eq!(noted.try_iter().collect::<Vec<_>>(), [11, 12, 13, 3]);
    }

    #[tokio::test]
    async fn full_log_makes_producers_wait_until_it_has_room() {
        let writer = Writer::start().unwrap();
        let release = block(&writer);
        for _ in 0..MAX_LOG_JOBS {
            writer.ready().await;
            writer.append(|| {});
        }
        let mut ready = Box::pin(writer.ready());
        assert!(tokio::time::timeout(Duration::ZERO, &mut ready).await.is_err());
        drop(release);
        tokio::time::timeout(Duration::from_secs(30), ready).await.unwrap();
    }

    #[test]
    fn dropped_writer_has_written_everything() {
        let (notes, noted) = mpsc::channel();
        let writer = Writer::start().unwrap();
        let release = block(&writer);
        writer.replace(Key::SavedState, note(&notes, 1));
        writer.append(note(&notes, 2));
        drop(release);
        drop(writer);
        assert_eq!(noted.try_iter().collect::<Vec<_>>(), [2, 1]);
    }
}
