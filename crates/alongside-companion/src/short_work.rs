//! Work that may block and rarely does: reading a small file, appending to the journal.
//!
//! Handing it to a thread and waiting for that takes longer than the work. So it runs on an async worker, in a task of its own, for
//! which others can wait with a timeout. A disk that hangs takes that worker with it until the disk answers. So at most one
//! worker does this at a time, and everything else goes to threads that may block: the other workers continue.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Proposals up to this size are short work. Longer texts have files of their own in the journal, and creating one takes a while.
pub(crate) const MAX_BYTES: usize = alongside_journal::MAX_INLINE_BYTES;

#[derive(Clone, Default)]
pub(crate) struct ShortWork {
    has_worker: Arc<AtomicBool>,
}

/// The worker that may block, until the work is done, has panicked, or can no longer begin.
struct Worker(Arc<AtomicBool>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Release);
    }
}

impl ShortWork {
    pub(crate) fn spawn<T: Send + 'static>(
        &self,
        runtime: &Handle,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        let Some(worker) = self.take_worker(runtime) else {
            return runtime.spawn_blocking(work);
        };
        // A worker that has two tasks wakes another one. Otherwise none might be left to wait for the network and the clock while the
        // work blocks.
        runtime.spawn(async {});
        runtime.spawn(async move {
            let _worker = worker;
            work()
        })
    }

    fn take_worker(&self, runtime: &Handle) -> Option<Worker> {
        let has_others = runtime.metrics().num_workers() > 1;
        let is_free = has_others && !self.has_worker.swap(true, Ordering::Acquire);
        is_free.then(|| Worker(Arc::clone(&self.has_worker)))
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream;
    use std::sync::mpsc;
    use std::time::Duration;

    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// Only keeps a failing test from hanging.
    const TIMEOUT: Duration = Duration::from_secs(20);

    fn runtime(workers: usize) -> tokio::runtime::Runtime {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(workers).enable_all().build().unwrap()
    }

    /// Work that hangs until the sender is dropped, and says when it began.
    fn hanging() -> (impl FnOnce() + Send, mpsc::Receiver<()>, mpsc::Sender<()>) {
        let (began, has_begun) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let work = move || {
            let _ = began.send(());
            let _ = released.recv();
        };
        (work, has_begun, release)
    }

    #[test]
    fn hung_work_leaves_the_network_and_the_clock_to_the_other_worker() {
        let runtime = runtime(2);
        let short_work = ShortWork::default();
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        // `h` hangs; any other byte comes back after a moment.
        let mut releases = Vec::new();
        let (begins, have_begun) = mpsc::channel();
        let (works, mut work) = tokio::sync::mpsc::unbounded_channel();
        for _ in 0..3 {
            let (hang, has_begun, release) = hanging();
            works.send(hang).unwrap();
            begins.send(has_begun).unwrap();
            releases.push(release);
        }
        runtime.spawn(async move {
            let (mut stream, _) = listener.accept().await.unwrap();
            let mut byte = [0];
            while stream.read_exact(&mut byte).await.is_ok() {
                if byte == *b"h" {
                    drop(short_work.spawn(&Handle::current(), work.recv().await.unwrap()));
                } else {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                    stream.write_all(&byte).await.unwrap();
                }
            }
        });
        let mut client = TcpStream::connect(address).unwrap();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        for _ in 0..3 {
            let mut answer = [0];
            client.write_all(b"a").unwrap();
            client.read_exact(&mut answer).unwrap();
            client.write_all(b"h").unwrap();
            have_begun.recv().unwrap().recv_timeout(TIMEOUT).unwrap();
        }
        client.write_all(b"z").unwrap();
        let mut answer = [0];
        let answered = client.read_exact(&mut answer);
        drop(releases);
        answered.expect("the other worker must answer");
        assert_eq!(answer, *b"z");
    }

    #[test]
    fn only_one_worker_blocks_and_never_the_only_one() {
        for (workers, expected) in [(1, [false, false]), (2, [true, false])] {
            let runtime = runtime(workers);
            let short_work = ShortWork::default();
            let on_worker = expected.map(|_| {
                let (hang, has_begun, release) = hanging();
                let name = short_work.spawn(runtime.handle(), move || {
                    hang();
                    // A thread that may block can wait for a future; a worker would panic.
                    std::panic::catch_unwind(|| Handle::current().block_on(async {})).is_err()
                });
                has_begun.recv_timeout(TIMEOUT).unwrap();
                (name, release)
            });
            let on_worker = on_worker.map(|(is_worker, release)| {
                drop(release);
                runtime.block_on(is_worker).unwrap()
            });
            assert_eq!(on_worker, expected, "{workers} workers");
        }
    }

    #[test]
    fn worker_is_free_again_after_a_panic() {
        let runtime = runtime(2);
        let short_work = ShortWork::default();
        for _ in 0..2 {
            let failed = short_work.spawn(runtime.handle(), || panic!("this test panics"));
            assert!(runtime.block_on(failed).unwrap_err().is_panic());
            assert!(short_work.take_worker(runtime.handle()).is_some());
        }
    }
}
