//! The thread that writes the chat's log, so that no async worker waits for a disk.
//!
//! Jobs run in order. Adding one never waits: producers await [`Writer::ready`] before each event, so the queue holds at most
//! [`MAX_JOBS`] and what one event leads to. A job that fails is tried again until it succeeds, and everything after it waits:
//! nothing is shown that is not written.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use tokio::sync::{Notify, oneshot, watch};

const MAX_JOBS: usize = 256;

type Job = Box<dyn FnMut() -> io::Result<()> + Send>;

/// How long to wait before a job that failed is tried again.
const RETRY_PAUSE: Duration = Duration::from_millis(500);

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
    problem: watch::Sender<Problem>,
}

/// Why the current job fails.
#[derive(Clone, Default)]
pub(crate) struct Problem {
    pub(crate) sentence: Option<Arc<str>>,
    /// Counts failures.
    failures: u64,
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

    /// Runs a job after all others, until it succeeds. Await [`ready`](Self::ready) first.
    pub(crate) fn append(&self, job: impl FnMut() -> io::Result<()> + Send + 'static) {
        let mut queue = self.shared.queue.lock();
        // After the end no front end is connected.
        if !queue.closed {
            queue.jobs.push_back(Box::new(job));
            self.shared.changed.notify_one();
        }
    }

    /// Waits until everything appended so far is written, or why it cannot be.
    pub(crate) async fn written(&self) -> Result<(), Arc<str>> {
        let (done, written) = oneshot::channel();
        let mut done = Some(done);
        let mut problem = self.shared.problem.subscribe();
        let failures = problem.borrow().failures;
        // A job that failed before is tried again at once.
        self.append(move || {
            let _ = done.take().map(|done| done.send(()));
            Ok(())
        });
        let failed = problem.wait_for(|problem| problem.failures > failures);
        tokio::select! {
            biased;
            // An error means that the thread has ended, and it ends only when everything is written.
            _ = written => Ok(()),
            problem = failed => match problem.ok().and_then(|problem| problem.sentence.clone()) {
                Some(sentence) => Err(sentence),
                None => Ok(()),
            },
        }
    }

    /// Changes when a write fails, and when it succeeds again.
    pub(crate) fn problem(&self) -> watch::Receiver<Problem> {
        self.shared.problem.subscribe()
    }

    /// Waits until everything is written that can be, and ends the thread. Blocks.
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
    /// Runs a job until it succeeds, or once more after the end.
    fn complete(&self, mut job: Job, queue: &mut MutexGuard<'_, Queue>) {
        while let Err(error) = MutexGuard::unlocked(queue, &mut job) {
            let problem: Arc<str> = format!("the chat cannot be saved, so it waits: {error}").into();
            tracing::error!(%problem);
            self.problem.send_modify(|current| {
                current.failures += 1;
                current.sentence = Some(problem);
            });
            if queue.closed {
                return;
            }
            self.changed.wait_for(queue, RETRY_PAUSE);
        }
        self.problem
            .send_if_modified(|problem| problem.sentence.take().is_some());
    }

    fn run(&self) {
        let mut queue = self.queue.lock();
        loop {
            let jobs = std::mem::take(&mut queue.jobs);
            if !jobs.is_empty() {
                for job in jobs {
                    self.complete(job, &mut queue);
                }
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
    use super::*;
    use std::sync::mpsc;

    /// Keeps the thread busy until the returned sender is dropped.
    fn block(writer: &Writer) -> mpsc::Sender<()> {
        let (started, has_started) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        writer.append(move || {
            started.send(()).unwrap();
            let _ = released.recv();
            Ok(())
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
            writer.append(move || {
                notes.send(number).unwrap();
                Ok(())
            });
        }
        writer.written().await.unwrap();
        assert_eq!(results.try_iter().collect::<Vec<_>>(), [1, 2, 3]);
    }

    #[tokio::test]
    async fn full_queue_makes_producers_wait_until_it_has_room() {
        let writer = Writer::start().unwrap();
        let release = block(&writer);
        for _ in 0..MAX_JOBS {
            writer.ready().await;
            writer.append(|| Ok(()));
        }
        let mut ready = Box::pin(writer.ready());
        assert!(tokio::time::timeout(Duration::ZERO, &mut ready).await.is_err());
        drop(release);
        tokio::time::timeout(Duration::from_secs(30), ready).await.unwrap();
    }

    #[tokio::test]
    async fn failed_job_is_tried_again_and_the_others_wait() {
        let writer = Writer::start().unwrap();
        let (notes, results) = mpsc::channel();
        let is_full = Arc::new(std::sync::atomic::AtomicBool::new(true));
        let (full, first) = (is_full.clone(), notes.clone());
        writer.append(move || {
            if full.load(std::sync::atomic::Ordering::SeqCst) {
                return Err(io::ErrorKind::StorageFull.into());
            }
            first.send(1).unwrap();
            Ok(())
        });
        writer.append(move || {
            notes.send(2).unwrap();
            Ok(())
        });
        assert!(writer.written().await.unwrap_err().contains("cannot be saved"));
        assert!(results.try_recv().is_err());
        is_full.store(false, std::sync::atomic::Ordering::SeqCst);
        let mut problem = writer.problem();
        problem.wait_for(|problem| problem.sentence.is_none()).await.unwrap();
        writer.written().await.unwrap();
        assert_eq!(results.try_iter().collect::<Vec<_>>(), [1, 2]);
    }

    #[test]
    fn dropped_writer_has_written_everything() {
        let (notes, results) = mpsc::channel();
        let writer = Writer::start().unwrap();
        let release = block(&writer);
        writer.append(move || {
            notes.send(1).unwrap();
            Ok(())
        });
        drop(release);
        drop(writer);
        assert_eq!(results.try_iter().collect::<Vec<_>>(), [1]);
    }
}
