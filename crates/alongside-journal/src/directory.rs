//! A directory of logs, used by one process at a time.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::Arc;

use crate::disk::Disk;
use crate::file_system::FileSystem;
use crate::sync::{SyncThread, Syncer};
use crate::texts::Texts;

#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open the journal: another process is using it")]
    InUse,
    #[error("cannot open the journal: {0}")]
    Io(#[from] io::Error),
}

/// A handle of a directory; clones share it. The last handle, that of a [`Log`](crate::Log) included, syncs when it is
/// dropped, and releases the lock.
#[derive(Clone)]
pub struct Directory {
    inner: Arc<Inner>,
}

struct Inner {
    texts: Texts,
    // Dropped in this order: the thread ends before the disk, and with it the lock, is released.
    _thread: Option<SyncThread>,
    syncer: Arc<Syncer>,
}

impl Directory {
    /// Creates the directory if necessary, and locks it.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let syncer = Syncer::new(Arc::new(FileSystem::open(path)?));
        let thread = SyncThread::start(syncer.clone())?;
        Ok(Self::with(syncer, Some(thread)))
    }

    /// On another disk, without a thread: nothing is durable before [`sync`](Self::sync).
    pub fn on(disk: Arc<dyn Disk>) -> Self {
        Self::with(Syncer::new(disk), None)
    }

    pub(crate) fn with(syncer: Arc<Syncer>, thread: Option<SyncThread>) -> Self {
        let inner = Inner {
            texts: Texts::new(syncer.clone()),
            _thread: thread,
            syncer,
        };
        Self { inner: Arc::new(inner) }
    }

    /// Makes everything durable that was written before this call, and waits for that.
    pub fn sync(&self) -> io::Result<()> {
        self.inner.syncer.sync()
    }

    /// Why the last sync failed, if it did. It is tried again every second.
    pub fn problem(&self) -> Option<String> {
        self.inner.syncer.problem()
    }

    pub fn texts(&self) -> &Texts {
        &self.inner.texts
    }

    pub(crate) fn syncer(&self) -> &Syncer {
        &self.inner.syncer
    }
}

impl fmt::Debug for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Directory").field(&self.syncer().disk.path("")).finish()
    }
}
