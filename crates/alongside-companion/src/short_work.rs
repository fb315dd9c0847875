//! Work that may block and rarely does: reading a small file, appending to the journal.
//!
//! Handing it to a thread and waiting for that takes longer than the work. So it runs on an async worker, in a task of its own, for
//! which others can wait with a timeout. A disk that hangs takes that worker with it until the disk answers. So at most one
//! worker does this at a time, and everything else goes to threads that may block: the other workers continue.
//!
//! They may all be asleep, and the one that blocks may be the one that waited for the network and the clock for them. Waking another
//! before each piece of work costs more than the work too. So a thread of its own looks every few milliseconds, while there is work,
//! whether the same piece is still running, and only then wakes another worker.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::task::JoinHandle;

/// Proposals up to this size are short work. Longer texts have files of their own in the journal, and creating one takes a while.
pub(crate) const MAX_BYTES: usize = alongside_journal::MAX_INLINE_BYTES;

/// Work that takes longer than one to two of these is relieved.
const TICK: Duration = Duration::from_millis(5);

/// How many ticks without work the watching thread waits for more before it goes to sleep: waking it costs as much as a few.
const IDLE_TICKS: u32 = 4;

#[derive(Clone, Default)]
pub(crate) struct ShortWork(Arc<Shared>);

#[derive(Default)]
struct Shared {
    state: Arc<State>,
    /// Wakes the watching thread; dropping it ends the thread. `None` if the thread could not be started.
    watcher: OnceLock<Option<SyncSender<()>>>,
}

#[derive(Default)]
struct State {
    /// Odd while a worker has work.
    turn: AtomicU64,
    is_watcher_awake: AtomicBool,
}

/// The worker that may block, until the work is done, has panicked, or can no longer begin.
struct Worker(Arc<State>);

impl Drop for Worker {
    fn drop(&mut self) {
        self.0.turn.fetch_add(1, Ordering::SeqCst);
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
        runtime.spawn(async move {
            let _worker = worker;
            work()
        })
    }

    fn take_worker(&self, runtime: &Handle) -> Option<Worker> {
        if runtime.metrics().num_workers() < 2 {
            return None;
        }
        let watcher = self.0.watcher.get_or_init(|| watch(&self.0.state, runtime)).as_ref()?;
        let state = &self.0.state;
        let turn = state.turn.load(Ordering::SeqCst);
        let is_taken = is_working(turn)
            || state
                .turn
                .compare_exchange(turn, turn + 1, Ordering::SeqCst, Ordering::SeqCst)
                .is_err();
        if is_taken {
            return None;
        }
        let worker = Worker(Arc::clone(state));
        if !state.is_watcher_awake.swap(true, Ordering::SeqCst) {
            // Full if it has been woken already.
            let _ = watcher.try_send(());
        }
        Some(worker)
    }
}

fn is_working(turn: u64) -> bool {
    turn % 2 == 1
}

fn watch(state: &Arc<State>, runtime: &Handle) -> Option<SyncSender<()>> {
    let (wake, woken) = sync_channel(1);
    let (state, runtime) = (Arc::clone(state), runtime.clone());
    let watcher = thread::Builder::new().name("short work".to_owned());
    watcher.spawn(move || while_watched(&state, &runtime, &woken)).ok()?;
    Some(wake)
}

/// Until every [`ShortWork`] is dropped.
fn while_watched(state: &State, runtime: &Handle, woken: &Receiver<()>) {
    while woken.recv().is_ok() {
        let mut seen = state.turn.load(Ordering::SeqCst);
        let mut ticks = 0;
        loop {
            if woken.recv_timeout(TICK) == Err(RecvTimeoutError::Disconnected) {
                return;
            }
            let turn = state.turn.load(Ordering::SeqCst);
            if turn != seen {
                (seen, ticks) = (turn, 0);
                continue;
            }
            ticks += 1;
            if is_working(turn) && ticks == 1 {
                // Spawned from outside of the runtime, a task wakes a worker that sleeps.
                runtime.spawn(async {});
            }
            if is_working(turn) || ticks < IDLE_TICKS {
                continue;
            }
            state.is_watcher_awake.store(false, Ordering::SeqCst);
            // Work that began just before sees an awake watcher, and does not wake it.
            let is_new = state.turn.load(Ordering::SeqCst) != seen;
            if !is_new || state.is_watcher_awake.swap(true, Ordering::SeqCst) {
                break;
            }
        }
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
    use tokio::runtime::Runtime;
    use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};

    use super::*;

    /// Only keeps a failing test from hanging.
    const TIMEOUT: Duration = Duration::from_secs(20);

    fn runtime(workers: usize) -> Runtime {
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

    /// On `h`, it hangs until the sender is dropped. Any other byte comes back after a moment.
    fn serve(runtime: &Runtime, short_work: &ShortWork) -> (TcpStream, UnboundedSender<Box<dyn FnOnce() + Send>>) {
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        client.set_read_timeout(Some(TIMEOUT)).unwrap();
        let (works, mut work) = unbounded_channel();
        let short_work = short_work.clone();
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
        (client, works)
    }

    fn answers(client: &mut TcpStream, byte: u8) -> bool {
        let mut answer = [0];
        client.write_all(&[byte]).unwrap();
        client.read_exact(&mut answer).is_ok_and(|()| answer == [byte])
    }

    #[test]
    fn hung_work_leaves_the_network_and_the_clock_to_the_other_worker() {
        let runtime = runtime(2);
        let short_work = ShortWork::default();
        let (mut client, works) = serve(&runtime, &short_work);
        // The thread that watches was never awake, then it is, then it is asleep again.
        for _ in 0..2 {
            let mut releases = Vec::new();
            for _ in 0..3 {
                let (hang, has_begun, release) = hanging();
                works.send(Box::new(hang)).unwrap();
                assert!(answers(&mut client, b'a'), "the other worker must answer");
                client.write_all(b"h").unwrap();
                has_begun.recv_timeout(TIMEOUT).unwrap();
                releases.push(release);
            }
            let is_answered = answers(&mut client, b'z');
            drop(releases);
            assert!(is_answered, "the other worker must answer");
            while short_work.0.state.is_watcher_awake.load(Ordering::SeqCst) {
                thread::yield_now();
            }
        }
    }

    #[test]
    fn watching_thread_ends_with_the_last_user() {
        let runtime = runtime(2);
        let short_work = ShortWork::default();
        runtime.block_on(short_work.spawn(runtime.handle(), || ())).unwrap();
        let state = Arc::downgrade(&short_work.0.state);
        drop(short_work);
        while state.upgrade().is_some() {
            thread::yield_now();
        }
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
