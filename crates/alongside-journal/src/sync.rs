//! What becomes durable when.
//!
//! Appending and storing only write; a thread syncs at most 40 ms after the first unsynced write. One pass syncs, in this
//! order: new texts, the names of the texts, the names of the logs, the logs. So no synced record names a missing text,
//! and no synced record is in a file whose name is lost. After the logs it removes what they no longer name: replaced
//! generations and texts. A new log is synced before it gets its name, here or with its first record.
//!
//! A log whose sync failed is not synced again: the operating system may have dropped what it could not write, and a
//! second sync would claim that it did not. Such a log [wants a compaction](crate::Log::wants_compaction) instead, which
//! rewrites everything.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex, MutexGuard};

use crate::disk::{Disk, DiskFile, Folder, TEXTS_PREFIX};
use crate::format::{MARK_OFFSETS, encode_mark};
use crate::generation::Unnamed;
use crate::random::random_u64;

const SYNC_DELAY: Duration = Duration::from_millis(40);
/// After a failed pass.
const RETRY_DELAY: Duration = Duration::from_secs(1);

/// A log's current generation, shared by the log and the thread.
pub(crate) struct LogFile {
    pub(crate) file: Box<dyn DiskFile>,
    /// Until the first append or pass.
    unnamed: Mutex<Option<Unnamed>>,
    /// Everything before this was written.
    end: AtomicU64,
    /// Everything before this was synced.
    durable_end: AtomicU64,
    /// A sync failed: see the module's description.
    suspect: AtomicBool,
    /// Which mark is written next.
    second_mark: AtomicBool,
    /// There is a `Log` for it.
    pub(crate) in_use: AtomicBool,
}

impl LogFile {
    pub(crate) fn new(file: Box<dyn DiskFile>, unnamed: Option<Unnamed>, end: u64, durable_end: u64) -> Self {
        Self {
            file,
            unnamed: Mutex::new(unnamed),
            end: AtomicU64::new(end),
            durable_end: AtomicU64::new(durable_end),
            suspect: AtomicBool::new(false),
            second_mark: AtomicBool::new(false),
            in_use: AtomicBool::new(true),
        }
    }

    pub(crate) fn set_end(&self, end: u64) {
        self.end.store(end, Ordering::Release);
    }

    pub(crate) fn is_suspect(&self) -> bool {
        self.suspect.load(Ordering::Acquire)
    }

    pub(crate) fn sync(&self) -> io::Result<()> {
        self.file
            .sync()
            .inspect_err(|_| self.suspect.store(true, Ordering::Release))
    }

    /// Syncs the file and gives it its name, if it does not have it yet: what is appended before that would be lost.
    pub(crate) fn name(&self, disk: &dyn Disk) -> io::Result<()> {
        let mut unnamed = self.unnamed.lock();
        let Some(names) = &*unnamed else {
            return Ok(());
        };
        if self.is_suspect() {
            return Err(sync_failed_before());
        }
        self.sync()?;
        names.rename(disk)?;
        *unnamed = None;
        Ok(())
    }

    /// What the file is called, if it does not have its name yet. It will not get one.
    pub(crate) fn give_up_naming(&self) -> Option<String> {
        self.unnamed.lock().take().map(|names| names.aside)
    }

    fn sync_up_to(&self, end: u64) -> io::Result<()> {
        if self.durable_end.load(Ordering::Acquire) >= end {
            return Ok(());
        }
        if self.is_suspect() {
            return Err(sync_failed_before());
        }
        self.sync()?;
        self.durable_end.store(end, Ordering::Release);
        // Durable with the next sync. Until then an older mark does no harm.
        let other = self.second_mark.fetch_xor(true, Ordering::AcqRel);
        let _ = self
            .file
            .write_at(MARK_OFFSETS[usize::from(other)] as u64, &encode_mark(end));
        Ok(())
    }
}

fn sync_failed_before() -> io::Error {
    io::Error::other("an earlier sync of this log failed")
}

/// What the next pass has to do.
#[derive(Default)]
struct Work {
    /// Stored and not synced.
    new_texts: BTreeSet<String>,
    /// The names of texts changed.
    text_names: bool,
    /// Every text that is there at the start: it is not known whether the process before this one synced it.
    found_texts: bool,
    /// Names of logs changed.
    root: bool,
    stale_logs: BTreeSet<String>,
    stale_texts: BTreeSet<String>,
    /// Everything but these and what this process stored is stale.
    retained: Option<HashSet<String>>,
}

#[derive(Default)]
struct State {
    work: Work,
    logs: BTreeMap<String, Arc<LogFile>>,
    /// Something was written since the last pass began.
    dirty: bool,
    stopping: bool,
    problem: Option<String>,
}

pub(crate) struct Syncer {
    pub(crate) disk: Arc<dyn Disk>,
    /// What names of texts stored by this process start with.
    pub(crate) own_prefix: String,
    state: Mutex<State>,
    changed: Condvar,
    /// Held during a pass.
    passing: Mutex<()>,
}

impl Syncer {
    pub(crate) fn new(disk: Arc<dyn Disk>) -> Arc<Self> {
        let state = State {
            work: Work {
                found_texts: true,
                ..Work::default()
            },
            ..State::default()
        };
        Arc::new(Self {
            disk,
            own_prefix: format!("{:016x}-", random_u64()),
            state: Mutex::new(state),
            changed: Condvar::new(),
            passing: Mutex::new(()),
        })
    }

    /// Notes that something was written.
    pub(crate) fn touch(&self) {
        self.touch_locked(&mut self.state.lock());
    }

    fn touch_locked(&self, state: &mut MutexGuard<'_, State>) {
        if !mem::replace(&mut state.dirty, true) {
            self.changed.notify_all();
        }
    }

    pub(crate) fn text_stored(&self, name: &str) {
        let mut state = self.state.lock();
        state.work.new_texts.insert(name.to_owned());
        self.touch_locked(&mut state);
    }

    pub(crate) fn text_unused(&self, name: &str) {
        let mut state = self.state.lock();
        state.work.stale_texts.insert(name.to_owned());
        self.touch_locked(&mut state);
    }

    pub(crate) fn retain_texts(&self, named: HashSet<String>) {
        let mut state = self.state.lock();
        state.work.retained = Some(named);
        self.touch_locked(&mut state);
    }

    /// Whether there is a `Log` of this name.
    pub(crate) fn is_open(&self, log: &str) -> bool {
        let state = self.state.lock();
        state
            .logs
            .get(log)
            .is_some_and(|file| file.in_use.load(Ordering::Acquire))
    }

    /// A log's current generation is this file, and the others are to be removed as soon as its name is durable.
    pub(crate) fn log_opened(&self, log: &str, file: Arc<LogFile>, replaced: impl IntoIterator<Item = String>) {
        let mut state = self.state.lock();
        state.logs.insert(log.to_owned(), file);
        state.work.root = true;
        state.work.stale_logs.extend(replaced);
        self.touch_locked(&mut state);
    }

    /// Why the last pass failed, if it did.
    pub(crate) fn problem(&self) -> Option<String> {
        self.state.lock().problem.clone()
    }

    /// Makes everything durable that was written before this call.
    pub(crate) fn sync(&self) -> io::Result<()> {
        let _pass = self.passing.lock();
        let (mut work, ends) = {
            let mut state = self.state.lock();
            state.dirty = false;
            // The ends are read before the texts are taken and after the removals: a record is written after the texts it
            // names, and before the removal of those it replaces. All three in one lock is both.
            let ends: Vec<_> = state
                .logs
                .values()
                .map(|log| (log.clone(), log.end.load(Ordering::Acquire)))
                .collect();
            (mem::take(&mut state.work), ends)
        };
        let result = self.pass(&mut work, &ends);
        let mut state = self.state.lock();
        state.problem = result.as_ref().err().map(ToString::to_string);
        if !work.is_done() {
            state.work.merge(work);
        }
        if result.is_err() {
            self.touch_locked(&mut state);
        }
        result
    }

    /// Does the work and leaves in it what could not be done.
    fn pass(&self, work: &mut Work, ends: &[(Arc<LogFile>, u64)]) -> io::Result<()> {
        let disk = &*self.disk;
        if work.found_texts || work.retained.is_some() {
            let mut names = disk.names(Folder::Texts)?;
            names.retain(|name| !name.starts_with(&self.own_prefix));
            if let Some(retained) = work.retained.take() {
                let stale = names.iter().filter(|name| !retained.contains(*name));
                work.stale_texts.extend(stale.cloned());
            }
            if mem::take(&mut work.found_texts) {
                work.new_texts.extend(names);
            }
        }
        while let Some(name) = work.new_texts.pop_first() {
            if work.stale_texts.contains(&name) {
                continue;
            }
            work.text_names = true;
            let result = disk.open(&format!("{TEXTS_PREFIX}{name}")).and_then(|file| file.sync());
            if let Err(error) = result
                && error.kind() != io::ErrorKind::NotFound
            {
                work.new_texts.insert(name);
                return Err(error);
            }
        }
        if work.text_names {
            disk.sync_folder(Folder::Texts)?;
            work.text_names = false;
        }
        for (log, _) in ends {
            log.name(disk)?;
        }
        if work.root {
            disk.sync_folder(Folder::Root)?;
            work.root = false;
        }
        for (log, end) in ends {
            log.sync_up_to(*end)?;
        }
        remove_all(disk, &mut work.stale_logs, "")?;
        remove_all(disk, &mut work.stale_texts, TEXTS_PREFIX)
    }

    /// Runs until [`stop`](Self::stop), and syncs a last time then.
    fn run(&self) {
        let mut delay = SYNC_DELAY;
        loop {
            let mut state = self.state.lock();
            while !state.dirty && !state.stopping {
                self.changed.wait(&mut state);
            }
            let deadline = Instant::now() + delay;
            while !state.stopping && !self.changed.wait_until(&mut state, deadline).timed_out() {}
            let (dirty, stopping) = (state.dirty, state.stopping);
            drop(state);
            // A call of `sync` may have been faster.
            let failed = dirty && self.sync().is_err();
            delay = if failed { RETRY_DELAY } else { SYNC_DELAY };
            if stopping {
                return;
            }
        }
    }

    fn stop(&self) {
        self.state.lock().stopping = true;
        self.changed.notify_all();
    }
}

/// Removes files until one cannot be removed. One that is missing is fine.
fn remove_all(disk: &dyn Disk, names: &mut BTreeSet<String>, prefix: &str) -> io::Result<()> {
    while let Some(name) = names.pop_first() {
        match disk.remove(&format!("{prefix}{name}")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                names.insert(name);
                return Err(error);
            }
            _ => {}
        }
    }
    Ok(())
}

impl Work {
    fn is_done(&self) -> bool {
        self.new_texts.is_empty()
            && !self.found_texts
            && !self.text_names
            && !self.root
            && self.stale_logs.is_empty()
            && self.stale_texts.is_empty()
            && self.retained.is_none()
    }

    /// Takes back what an earlier pass left. What was noted since is newer.
    fn merge(&mut self, left: Self) {
        self.new_texts.extend(left.new_texts);
        self.found_texts |= left.found_texts;
        self.text_names |= left.text_names;
        self.root |= left.root;
        self.stale_logs.extend(left.stale_logs);
        self.stale_texts.extend(left.stale_texts);
        if self.retained.is_none() {
            self.retained = left.retained;
        }
    }
}

/// The thread that syncs. Dropping it syncs a last time and waits for that.
pub(crate) struct SyncThread {
    syncer: Arc<Syncer>,
    thread: Option<JoinHandle<()>>,
}

impl SyncThread {
    pub(crate) fn start(syncer: Arc<Syncer>) -> io::Result<Self> {
        let running = syncer.clone();
        let thread = thread::Builder::new()
            .name("journal-sync".to_owned())
            .spawn(move || running.run())?;
        Ok(Self {
            syncer,
            thread: Some(thread),
        })
    }
}

impl Drop for SyncThread {
    fn drop(&mut self) {
        self.syncer.stop();
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
