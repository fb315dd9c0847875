//! The threads on which the files of proposals are read.
//!
//! A file may not answer, for example on a network file system that hangs, and a thread cannot be stopped. So a thread counts until
//! it has really finished, each agent has a few, and a proposal that waits too long is refused. The other agents continue.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::SessionKey;
use parking_lot::Mutex;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// Files that one agent may have read at the same time; further ones wait.
const MAX_THREADS_PER_SESSION: usize = 4;

/// The same for all agents. The program has more such threads: the journal needs one.
const MAX_THREADS: usize = 64;

/// How long a file may take, including the wait for a thread.
const BASE_TIMEOUT: Duration = Duration::from_secs(10);

pub(super) struct BaseThreads {
    all: Arc<Semaphore>,
    sessions: Mutex<HashMap<SessionKey, Arc<Semaphore>>>,
    pub(super) timeout: Duration,
}

impl Default for BaseThreads {
    fn default() -> Self {
        Self {
            all: Arc::new(Semaphore::new(MAX_THREADS)),
            sessions: Mutex::default(),
            timeout: BASE_TIMEOUT,
        }
    }
}

impl BaseThreads {
    /// Runs work that reads `file_path`. The error is for the agent.
    pub(super) async fn run<T: Send + 'static>(
        &self,
        session: &SessionKey,
        file_path: &str,
        work: impl FnOnce() -> Result<T, String> + Send + 'static,
    ) -> Result<T, String> {
        let own = self.threads_of(session);
        let run = async {
            // These semaphores are never closed.
            let threads = (own.acquire_owned().await, Arc::clone(&self.all).acquire_owned().await);
            let work = tokio::task::spawn_blocking(move || {
                let _threads = threads;
                work()
            });
            work.await
                .unwrap_or_else(|_| Err("The change could not be processed; try again.".to_owned()))
        };
        timeout(self.timeout, run).await.unwrap_or_else(|_| {
            let seconds = self.timeout.as_secs_f32();
            Err(format!(
                "`{file_path}` could not be read within {seconds} s, so the change cannot be reviewed; decide in the terminal."
            ))
        })
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
            ..BaseThreads::default()
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
    async fn sessions_that_read_nothing_are_forgotten() {
        let threads = BaseThreads::default();
        for number in 0..100 {
            let read = threads.run(&session(&number.to_string()), "/file", || Ok(())).await;
            assert_eq!(read, Ok(()));
        }
        // The thread of the last one may not have given back its permit yet.
        assert!(threads.sessions.lock().len() <= 2);
    }
}
