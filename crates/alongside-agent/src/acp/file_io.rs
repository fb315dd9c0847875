//! The blocking threads on which a local agent's files are read and written.
//!
//! A file may not answer, for example on a network file system that hangs, and a thread cannot be stopped. So each agent has a few
//! threads of its own: a thread counts until it has really finished, and a request that waits too long fails.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;

/// Files of the largest size take this many times their memory, and no disk gets faster with more.
const MAX_THREADS: usize = 4;

/// How long a file may take to answer, including the wait for a thread.
const FILE_TIMEOUT: Duration = Duration::from_secs(30);

#[derive(Debug)]
pub(super) struct FileIo {
    threads: Arc<Semaphore>,
    timeout: Duration,
}

impl Default for FileIo {
    fn default() -> Self {
        Self::with_timeout(FILE_TIMEOUT)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FileIoError {
    #[error("the file did not answer within {0:?}")]
    Timeout(Duration),
    #[error("the companion is shutting down")]
    ShuttingDown,
}

impl FileIo {
    fn with_timeout(timeout: Duration) -> Self {
        Self {
            threads: Arc::new(Semaphore::new(MAX_THREADS)),
            timeout,
        }
    }

    pub(super) async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, FileIoError> {
        let run = async {
            // The semaphore is never closed, and a task fails only if the runtime shuts down.
            let thread = Arc::clone(&self.threads).acquire_owned().await;
            let work = tokio::task::spawn_blocking(move || {
                let _thread = thread;
                work()
            });
            work.await.map_err(|_| FileIoError::ShuttingDown)
        };
        let finished = tokio::time::timeout(self.timeout, run).await;
        finished.unwrap_or(Err(FileIoError::Timeout(self.timeout)))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    /// Uses up all threads with requests that are abandoned. Dropping the result lets them finish.
    async fn hang(files: &FileIo) -> Vec<mpsc::Sender<()>> {
        let mut release = Vec::new();
        for _ in 0..MAX_THREADS {
            let (sender, released) = mpsc::channel::<()>();
            release.push(sender);
            let hung = files.run(move || released.recv().is_ok()).await;
            assert!(matches!(hung, Err(FileIoError::Timeout(_))), "{hung:?}");
        }
        release
    }

    #[tokio::test]
    async fn file_that_does_not_answer_is_an_error_and_keeps_its_thread() {
        let mut files = FileIo::with_timeout(Duration::from_millis(1));
        let release = hang(&files).await;
        assert_eq!(files.threads.available_permits(), 0);
        let next = files.run(|| ()).await;
        assert_eq!(next.unwrap_err().to_string(), "the file did not answer within 1ms");
        drop(release);
        files.timeout = FILE_TIMEOUT;
        assert_eq!(files.run(|| 7).await, Ok(7));
    }

    #[tokio::test]
    async fn hung_files_of_one_agent_hold_up_no_other() {
        let hung = FileIo::with_timeout(Duration::from_millis(1));
        let _release = hang(&hung).await;
        assert_eq!(FileIo::default().run(|| 7).await, Ok(7));
    }
}
