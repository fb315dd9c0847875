//! Appends to a log, all or nothing.
//!
//! Behind the end of each log are 1 MiB of zeros: space that is already taken. On a full disk the reserve cannot be
//! extended, so large appends are refused, while small ones, such as decisions, use it up. A write that fails is
//! overwritten with zeros, and that synced, before anything else is appended: nothing of it may come back later.

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use crate::directory::{Directory, OpenError};
use crate::format::{Epoch, Header, Kind, push_frame};
use crate::generation::{self, NewGeneration, RESERVE_BYTES, RESERVE_STEP_BYTES};
use crate::random::random_u32;
use crate::recovery::{self, Recovered};
use crate::sync::LogFile;

/// Appends up to this size may use the reserve when it cannot be extended.
const MAX_URGENT_BYTES: u64 = 16 * 1024;
/// A log may grow by this much more than the size of its last snapshot.
const COMPACTION_SLACK_BYTES: u64 = 4 << 20;
/// After a failed compaction, the next one waits until the log has grown by this.
const COMPACTION_RETRY_BYTES: u64 = 1 << 20;

pub struct Log {
    directory: Directory,
    name: String,
    header: Header,
    file: Arc<LogFile>,
    /// Whether the file has its name for sure.
    is_named: bool,
    next_seq: u64,
    /// Behind the last frame.
    end: u64,
    /// The length of the file. Everything between `end` and this is zero, unless `dirty_end` says otherwise.
    allocated: u64,
    /// Up to where there may be something other than zeros behind the end.
    dirty_end: Option<u64>,
    compact_at: u64,
}

impl Log {
    /// Opens the log of this name, or creates it, and returns what is in it.
    ///
    /// There can be only one `Log` of a name at a time.
    pub fn open(directory: &Directory, name: &str) -> Result<(Self, Recovered), OpenError> {
        recovery::open(directory, name)
    }

    /// Appends these payloads, all or none of them, with one write. After an error the log is as before, and later
    /// appends try again.
    pub fn append(&mut self, payloads: &[Vec<u8>]) -> io::Result<()> {
        if payloads.is_empty() {
            return Ok(());
        }
        self.clean()?;
        let mut frames = Vec::new();
        let mut seq = self.next_seq;
        for payload in payloads {
            push_frame(&mut frames, self.header.salt, Kind::Record, seq, payload)?;
            seq += 1;
        }
        let end = self.end + frames.len() as u64;
        if !self.is_named {
            self.file.name(&*self.directory.syncer().disk)?;
            self.is_named = true;
        }
        self.reserve(end)?;
        if let Err(error) = self.file.file.write_at(self.end, &frames) {
            self.dirty_end = Some(end);
            // If this fails, too, the next append tries again.
            let _ = self.clean();
            return Err(error);
        }
        self.end = end;
        self.allocated = self.allocated.max(end);
        self.next_seq = seq;
        self.file.set_end(end);
        self.directory.syncer().touch();
        Ok(())
    }

    /// Whether it is time for [`compact`](Self::compact): the log is larger than twice its last snapshot and 4 MiB, or a
    /// sync of it failed.
    pub fn wants_compaction(&self) -> bool {
        self.end > self.compact_at || self.file.is_suspect()
    }

    /// Replaces everything by these payloads, atomically. After an error the log is as before.
    pub fn compact(&mut self, snapshot: &[Vec<u8>]) -> io::Result<()> {
        let header = Header {
            generation: self.header.generation + 1,
            first_seq: self.next_seq,
            salt: random_u32(),
            ..self.header
        };
        let disk = &*self.directory.syncer().disk;
        let new = generation::create(disk, &self.name, header, snapshot).inspect_err(|_| {
            self.compact_at = self.end + COMPACTION_RETRY_BYTES;
        })?;
        let replaced = self.file.give_up_naming();
        let replaced = replaced.unwrap_or_else(|| generation::file_name(&self.name, self.header.generation));
        self.adopt(new);
        self.directory
            .syncer()
            .log_opened(&self.name, self.file.clone(), [replaced]);
        // The new generation is in use; if its name is not durable yet, the thread tries again before it syncs anything
        // in it, and removes the replaced one only then.
        let _ = self.directory.sync();
        Ok(())
    }

    pub fn epoch(&self) -> &Epoch {
        &self.header.epoch
    }

    /// How many bytes of the file are in use, without the reserve.
    pub fn size(&self) -> u64 {
        self.end
    }

    /// With what was just created.
    pub(crate) fn from_new(directory: &Directory, name: &str, new: NewGeneration) -> Self {
        Self {
            directory: directory.clone(),
            name: name.to_owned(),
            header: new.header,
            is_named: new.unnamed.is_none(),
            next_seq: new.next_seq,
            end: new.end,
            allocated: new.allocated,
            dirty_end: None,
            compact_at: compact_at(new.end),
            file: Arc::new(LogFile::new(new.file, new.unnamed, new.end, new.end)),
        }
    }

    /// With a generation that was read. Removes what is behind its end.
    pub(crate) fn from_found(directory: &Directory, name: &str, found: Found) -> Self {
        let durable_end = found.durable_end.min(found.end.saturating_sub(1));
        let mut log = Self {
            directory: directory.clone(),
            name: name.to_owned(),
            header: found.header,
            is_named: true,
            next_seq: found.next_seq,
            end: found.end,
            allocated: found.allocated,
            dirty_end: (found.used > found.end).then_some(found.used),
            compact_at: compact_at(found.snapshot_end),
            // Not durable to the end, whatever the mark says: a process that was killed may not have synced it.
            file: Arc::new(LogFile::new(found.file, None, found.end, durable_end)),
        };
        // On a full or broken disk this fails. The next append tries again.
        let _ = log.clean();
        let _ = log.reserve(log.end);
        log
    }

    pub(crate) fn file(&self) -> &Arc<LogFile> {
        &self.file
    }

    fn adopt(&mut self, new: NewGeneration) {
        let name = std::mem::take(&mut self.name);
        *self = Self::from_new(&self.directory, &name, new);
    }

    /// Makes sure that there are only zeros behind the end.
    fn clean(&mut self) -> io::Result<()> {
        let Some(dirty_end) = self.dirty_end else {
            return Ok(());
        };
        let file = &*self.file.file;
        file.write_zeros(self.end, dirty_end.min(self.allocated))?;
        if dirty_end > self.allocated {
            file.set_length(self.allocated)?;
        }
        self.file.sync()?;
        self.dirty_end = None;
        Ok(())
    }

    /// Makes sure that the reserve begins at `end` or later. An error means that an append up to there is refused.
    fn reserve(&mut self, end: u64) -> io::Result<()> {
        if self.allocated >= end + RESERVE_BYTES {
            return Ok(());
        }
        let allocated = end + RESERVE_BYTES + RESERVE_STEP_BYTES;
        // What is about to be appended need not be zero before.
        let from = self.allocated.max(end);
        let Err(error) = self.file.file.reserve(from, allocated) else {
            self.allocated = allocated;
            return Ok(());
        };
        // More zeros would do no harm, but others may need the space.
        let _ = self.file.file.set_length(self.allocated);
        if end - self.end > MAX_URGENT_BYTES {
            return Err(error);
        }
        Ok(())
    }
}

/// A generation that was found and read.
pub(crate) struct Found {
    pub(crate) file: Box<dyn crate::disk::DiskFile>,
    pub(crate) header: Header,
    pub(crate) next_seq: u64,
    pub(crate) end: u64,
    pub(crate) used: u64,
    pub(crate) allocated: u64,
    pub(crate) snapshot_end: u64,
    pub(crate) durable_end: u64,
}

fn compact_at(snapshot_end: u64) -> u64 {
    2 * snapshot_end + COMPACTION_SLACK_BYTES
}

impl Drop for Log {
    fn drop(&mut self) {
        self.file.in_use.store(false, Ordering::Release);
    }
}

impl fmt::Debug for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Log")
            .field("name", &self.name)
            .field("epoch", &self.header.epoch)
            .field("generation", &self.header.generation)
            .field("size", &self.end)
            .finish_non_exhaustive()
    }
}
