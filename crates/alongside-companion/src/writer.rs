//! The thread that writes the chat's log, so that no async worker waits for a disk.
//!
//! Jobs run in order. Adding one never waits: producers await [`Writer::ready`] before each event, so the queue holds at most
//! [`MAX_JOBS`] and what one event leads to.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot};

const MAX_JOBS: usize = 256;

type Job = Box<dyn FnOnce() + Send>;

/// Dropping it waits until everything is written.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    /// The thread has something to do.
    changed: Condvar,
    /// The queue has room again.
    room: Notify,
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    closed: bool,
}

impl Writer {
    pub(crate) fn start() -> io::Result<Self> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new().name("chat log".to_owned()).spawn({
            let shared = shared.clone();
            move || shared.run()
        })?;
        Ok(Self {
            shared,
            thread: Mutex::new(Some(thread)),
        })
    }

    /// Waits until the queue has room.
    pub(crate) async fn ready(&self) {
        loop {
            let room = self.shared.room.notified();
            tokio::pin!(room);
            room.as_mut().enable();
            if self.shared.queue.lock().jobs.len() < MAX_JOBS {
                return;
            }
            room.await;
        }
    }

    /// Runs a job after all others. Await [`ready`](Self::ready) first.
    pub(crate) fn append(&self, job: impl FnOnce() + Send + 'static) {
        let mut queue = self.shared.queue.lock();
        // After the end there is nobody to tell.
        if !queue.closed {
            queue.jobs.push_back(Box::new(job));
            self.shared.changed.notify_one();
        }
    }

    /// Waits until everything appended so far is written.
    pub(crate) async fn written(&self) {
        let (done, written) = oneshot::channel();
        self.append(move || {
            let _ = done.send(());
        });
        // An error means that the thread has ended, and it ends only when everything is written.
        let _ = written.await;
    }

    /// Waits until everything is written, and ends the thread. Blocks.
    pub(crate) fn close(&self) {
        self.shared.queue.lock().closed = true;
        self.shared.changed.notify_one();
        let thread = self.thread.lock().take();
        if let Some(thread) = thread {
            let _ = thread.join();
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn run(&self) {
        let mut queue = self.queue.lock();
        loop {
            let jobs = std::mem::take(&mut queue.jobs);
            if !jobs.is_empty() {
                MutexGuard::unlocked(&mut queue, || jobs.into_iter().for_each(|job| job()));
                self.room.notify_waiters();
            } else if queue.closed {
                return;
            } else {
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

    #[tokio::test]
    async fn jobs_run_in_order_and_can_be_waited_for() {
        let writer = Writer::start().unwrap();
        let (notes, results) = mpsc::channel();
        for number in [1, 2, 3] {
            let notes = notes.clone();
            writer.append(move || notes.send(number).unwrap());
        }
        writer.written().await;
        assert_eq!(results.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn full_queue_makes_producers_wait_until_it_has_room() {
        let writer = Writer::start().unwrap();
        let release = block(&writer);
        for _ in 0..MAX_JOBS {
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
        let (notes, results) = mpsc::channel();
        let writer = Writer::start().unwrap();
        let release = block(&writer);
        writer.append(move || notes.send(1).unwrap());
        drop(release);
        drop(writer);
        assert_eq!(results.try_iter().collect::<Vec<_>>(), [1]);
    }
}
