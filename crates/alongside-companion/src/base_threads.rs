//! The threads on which the files of proposals are read.
//!
//! A file may not answer, for example on a network file system that hangs, and a thread cannot be stopped. So a thread counts until
//! it has really finished, each agent has a few, and a proposal that waits too long is refused. The other agents continue.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alongside_core::SessionKey;
use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::short_work::{self, ShortWork};

/// Files that one agent may have read at the same time; further ones wait.
const MAX_THREADS_PER_SESSION: usize = 4;

/// The same for all agents. The program has more such threads: the journal needs one.
const MAX_THREADS: usize = 64;

/// How long a file may take, including the wait for a thread.
const BASE_TIMEOUT: Duration = Duration::from_secs(10);

const NOT_PROCESSED: &str = "The change could not be processed; try again.";

/// Taken once: by the thread that has read the file, or by the caller that no longer waits for it.
#[derive(Clone, Default)]
struct Turn(Arc<AtomicBool>);

impl Turn {
    fn take(&self) -> bool {
        !self.0.swap(true, Ordering::AcqRel)
    }
}

/// One that waits for a file, until it is dropped.
#[derive(Default)]
struct Caller(Turn);

impl Drop for Caller {
    fn drop(&mut self) {
        self.0.take();
    }
}

pub(super) struct BaseThreads {
    all: Arc<Semaphore>,
    sessions: Mutex<HashMap<SessionKey, Arc<Semaphore>>>,
    short_work: ShortWork,
    pub(super) timeout: Duration,
}

impl BaseThreads {
    pub(super) fn new(short_work: ShortWork) -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_THREADS)),
            sessions: Mutex::default(),
            short_work,
            timeout: BASE_TIMEOUT,
        }
    }

    /// Runs work that reads `file_path`. The error is for the agent.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        session: &SessionKey,
        file_path: &str,
        read: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        self.run_then(session, file_path, 0, read, Ok).await
    }

    /// The same, followed by work on a text of this size, on the same thread, because waking another one costs more than most changes.
    /// What follows may take as long as it needs, and does not begin if the file took too long or the caller is gone.
    pub(super) async fn run_then<T, U: Send + 'static>(
        &self,
        session: &SessionKey,
        file_path: &str,
        text_bytes: usize,
        read: impl FnOnce() -> Result<T, String> + Send + 'static,
        then: impl FnOnce(T) -> Result<U, String> + Send + 'static,
    ) -> Result<U, String> {
        let own = self.threads_of(session);
        let caller = Caller::default();
        let turn = caller.0.clone();
        let run = async {
            // These semaphores are never closed.
            let threads = (own.acquire_owned().await, Arc::clone(&self.all).acquire_owned().await);
            let work = move || {
                let read = read();
                drop(threads);
                if turn.take() {
                    read.and_then(then)
                } else {
                    Err(NOT_PROCESSED.to_owned())
                }
            };
            let runtime = Handle::current();
            let work = if text_bytes <= short_work::MAX_BYTES {
                self.short_work.spawn(&runtime, work)
            } else {
                runtime.spawn_blocking(work)
            };
            work.await.unwrap_or_else(|_| Err(NOT_PROCESSED.to_owned()))
        };
        let mut run = std::pin::pin!(run);
        match timeout(self.timeout, run.as_mut()).await {
            Ok(done) => done,
            Err(_) if caller.0.take() => {
                let seconds = self.timeout.as_secs_f32();
                Err(format!(
                    "`{file_path}` could not be read within {seconds} s, so the change cannot be reviewed; decide in the terminal."
                ))
            }
            Err(_) => run.await,
        }
    }

    fn threads_of(&self, session: &SessionKey) -> Arc<Semaphore> {
        let mut sessions = self.sessions.lock();
        // Sessions that read nothing are forgotten.
        sessions.retain(|key, threads| key == session || Arc::strong_count(threads) > 1);
        let threads = sessions.entry(session.clone());
        Arc::clone(threads.or_insert_with(|| Arc::new(Semaphore::new(MAX_THREADS_PER_SESSION))))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use alongside_core::SessionId;

    use super::*;

    fn session(name: &str) -> SessionKey {
        SessionKey::Mcp(SessionId::new(name))
    }

    #[tokio::test]
    async fn agent_with_hung_files_gets_errors_and_others_go_on() {
        let threads = BaseThreads {
            timeout: Duration::from_millis(1),
            ..BaseThreads::new(ShortWork::default())
        };
        let (hung, mut release) = (session("hung"), Vec::new());
        for _ in 0..MAX_THREADS_PER_SESSION {
            let (sender, released) = mpsc::channel::<()>();
            release.push(sender);
            let read = threads.run(&hung, "/hung", move || {
                let _ = released.recv();
                Ok(())
            });
            assert!(read.await.unwrap_err().starts_with("`/hung` could not be read within"));
        }
        assert_eq!(threads.threads_of(&hung).available_permits(), 0);
        assert_eq!(threads.all.available_permits(), MAX_THREADS - MAX_THREADS_PER_SESSION);
        let waiting = threads.run(&hung, "/file", || Ok(())).await;
        assert!(waiting.unwrap_err().starts_with("`/file` could not be read within"));
        let threads = BaseThreads {
            timeout: BASE_TIMEOUT,
            ..threads
        };
        assert_eq!(threads.run(&session("other"), "/file", || Ok(7)).await, Ok(7));
        drop(release);
        assert_eq!(threads.run(&hung, "/file", || Ok(7)).await, Ok(7));
    }

    #[tokio::test]
    async fn what_follows_a_file_takes_as_long_as_it_needs() {
        let threads = BaseThreads {
            timeout: Duration::from_millis(1),
            ..BaseThreads::new(ShortWork::default())
        };
        let (has_read, mut reading) = tokio::sync::mpsc::unbounded_channel();
        let (go_on, released) = mpsc::channel::<()>();
        let follow = move |()| {
            let _ = has_read.send(());
            let _ = released.recv();
            Ok(7)
        };
        let (own, patient) = (
            session("own"),
            BaseThreads {
                timeout: BASE_TIMEOUT,
                ..BaseThreads::new(ShortWork::default())
            },
        );
        let mut run = std::pin::pin!(patient.run_then(&own, "/file", 0, || Ok(()), follow));
        tokio::select! {
            _ = run.as_mut() => unreachable!("it was not released"),
            _ = reading.recv() => {}
        }
        assert_eq!(patient.all.available_permits(), MAX_THREADS, "only the file counts");
        go_on.send(()).unwrap();
        assert_eq!(run.await, Ok(7));

        let (release, released) = mpsc::channel::<()>();
        let read = move || {
            let _ = released.recv();
            Ok(())
        };
        let (late, has_followed) = mpsc::channel();
        let follow = move |()| {
            let _ = late.send(());
            Ok(())
        };
        let refused = threads.run_then(&own, "/hung", 0, read, follow).await;
        assert!(refused.unwrap_err().starts_with("`/hung` could not be read within"));
        release.send(()).unwrap();
        assert!(
            has_followed.recv().is_err(),
            "the agent was told that it is not reviewed"
        );
    }

    #[tokio::test]
    async fn nothing_follows_a_file_whose_reader_is_gone() {
        let threads = BaseThreads::new(ShortWork::default());
        let (release, released) = mpsc::channel::<()>();
        let (late, has_followed) = mpsc::channel();
        let (started, mut has_started) = tokio::sync::mpsc::unbounded_channel();
        let read = move || {
            let _ = started.send(());
            let _ = released.recv();
            Ok(())
        };
        let follow = move |()| {
            let _ = late.send(());
            Ok(())
        };
        let own = session("own");
        {
            let mut run = std::pin::pin!(threads.run_then(&own, "/file", 0, read, follow));
            tokio::select! {
                _ = run.as_mut() => unreachable!("it was not released"),
                _ = has_started.recv() => {}
            }
        }
        release.send(()).unwrap();
        assert!(has_followed.recv().is_err());
    }

    #[tokio::test]
    async fn sessions_that_read_nothing_are_forgotten() {
        let threads = BaseThreads::new(ShortWork::default());
        for number in 0..100 {
            let read = threads.run(&session(&number.to_string()), "/file", || Ok(())).await;
            assert_eq!(read, Ok(()));
        }
        // The thread of the last one may not have given back its permit yet.
        assert!(threads.sessions.lock().len() <= 2);
    }
}
