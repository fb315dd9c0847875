//! Where open files lead on disk, looked up outside the core's lock.
//!
//! A lookup may hang, for example on a network file system. Another thread then continues with the other paths, and a hung
//! path is not looked up a second time. Files that are watched are looked up only when the watcher reports a change, or when the list
//! of open files changes: moving the cursor costs no system call for a path.

use std::collections::{BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::time::Duration;

use alongside_platform::Platform;
use alongside_platform::path::is_in;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use super::jobs::Jobs;
use super::watcher::Watcher;
use super::{Companion, Host, Shared};

/// Threads that may hang. Beyond this, files are no longer looked up.
const MAX_THREADS: usize = 64;
/// When another thread takes over the queue.
const STUCK_DELAY: Duration = Duration::from_millis(100);
/// How long `context/show` waits for the disk.
const SHOW_TIMEOUT: Duration = Duration::from_secs(1);
/// Collects a burst of changes on disk, such as a checkout.
const SETTLE_DELAY: Duration = Duration::from_millis(50);

/// The file that a path leads to, if there is one.
pub(super) fn real_file(path: &Path) -> Option<PathBuf> {
    let real = alongside_platform::path::real(path).ok()?;
    real.is_file().then_some(real)
}

/// The directory that a path leads to, if there is one.
pub(super) fn real_folder(path: &Path) -> Option<PathBuf> {
    let real = alongside_platform::path::real(path).ok()?;
    real.is_dir().then_some(real)
}

/// Lookups in progress.
#[derive(Default)]
pub(super) struct Lookups {
    jobs: Jobs<Arc<str>>,
    queue: Mutex<Queue>,
}

#[derive(Default)]
struct Queue {
    paths: VecDeque<Arc<str>>,
    threads: usize,
}

impl Companion {
    /// Looks up the files that agents may see, without waiting for the result.
    fn look_up_files(&self) {
        let mut paths = self.core.lock().files_to_look_up();
        paths.retain(|path| self.lookups.jobs.start(path));
        let is_idle = {
            let mut queue = self.lookups.queue.lock();
            queue.paths.extend(paths);
            queue.threads == 0
        };
        if is_idle {
            self.start_lookups();
        }
    }

    /// Starts a thread for the queue. One is enough unless it hangs.
    fn start_lookups(&self) {
        {
            let mut queue = self.lookups.queue.lock();
            if queue.paths.is_empty() || queue.threads == MAX_THREADS {
                return;
            }
            queue.threads += 1;
        }
        let (companion, host) = (self.me.clone(), self.host.clone());
        tokio::task::spawn_blocking(move || while look_up_next(&companion, &host) {});
    }

    fn next_lookup(&self) -> Option<Arc<str>> {
        let mut queue = self.lookups.queue.lock();
        let next = queue.paths.pop_front();
        if next.is_none() {
            queue.threads -= 1;
        }
        next
    }

    /// Looks up all open files. After a timeout, the last known state remains.
    pub(super) async fn look_up_all_files(&self) {
        let look_up = async {
            // Held until the lookup has finished, so that repeated requests block only one thread on a hung file system.
            let guard = self.full_lookup.clone().lock_owned().await;
            let (lookup, paths) = {
                let mut core = self.core.lock();
                (core.start_lookup(), core.open_paths())
            };
            let host = self.host.clone();
            let found = tokio::task::spawn_blocking(move || {
                let _guard = guard;
                let find = |path: Arc<str>| {
                    let real = (host.resolve)(Path::new(&*path));
                    (path, real)
                };
                paths.into_iter().map(find).collect::<Vec<_>>()
            });
            let found = found.await.unwrap_or_default();
            self.with_core(|core, now| {
                for (path, real) in found {
                    core.file_looked_up(now, lookup, &path, real);
                }
            });
        };
        let _ = tokio::time::timeout(SHOW_TIMEOUT, look_up).await;
    }
}

/// Returns whether to go on.
fn look_up_next(companion: &Weak<Companion>, host: &Host) -> bool {
    // A hung lookup must not keep the companion alive.
    let Some((path, lookup)) = companion.upgrade().and_then(|companion| {
        let path = companion.next_lookup()?;
        Some((path, companion.core.lock().start_lookup()))
    }) else {
        return false;
    };
    let real = (host.resolve)(Path::new(&*path));
    let Some(companion) = companion.upgrade() else {
        return false;
    };
    companion.with_core(|core, now| core.file_looked_up(now, lookup, &path, real));
    if companion.lookups.jobs.repeats(&path) {
        companion.lookups.queue.lock().paths.push_back(path);
    }
    true
}

/// Waits until the queue should be empty, and is not.
async fn is_stuck(companion: &Companion) {
    if companion.lookups.queue.lock().paths.is_empty() {
        return std::future::pending().await;
    }
    tokio::time::sleep(STUCK_DELAY).await;
}

/// Looks up open files when they change, in the editor or on disk, and keeps them watched.
pub(super) async fn keep_files(companion: Shared) {
    let mut watch = FileWatch::default();
    loop {
        tokio::select! {
            () = companion.wake.files.notified() => {}
            () = is_stuck(&companion) => {
                companion.start_lookups();
                continue;
            }
            () = file_changed(watch.watcher.as_ref()) => tokio::time::sleep(SETTLE_DELAY).await,
            () = directory_changed(watch.watcher.as_ref()) => {
                tokio::time::sleep(SETTLE_DELAY).await;
                watch.is_stale = true;
            }
            // What changed before the watch began was not reported, so this is followed by a lookup.
            finished = finished(&mut watch.starting) => {
                let is_complete = watch.finish(finished);
                companion.with_core(|core, _| core.set_files_watched(is_complete));
            }
        }
        companion.look_up_files();
        let files = companion.core.lock().files_to_watch();
        if watch.start(files, &companion.workspace()) {
            companion.with_core(|core, _| core.set_files_watched(false));
        }
    }
}

/// The watcher of open files. Watching may hang like any access to a file, so it happens in a thread.
#[derive(Default)]
struct FileWatch {
    /// `None` before the first file, and while another set of files is being watched.
    watcher: Option<Watcher>,
    files: BTreeSet<PathBuf>,
    /// A watched directory was removed, renamed or recreated. What is at its path now is not watched.
    is_stale: bool,
    starting: Option<JoinHandle<Started>>,
}

/// The watcher, and whether it watches all files.
type Started = (Watcher, bool);

impl FileWatch {
    /// Watches these files instead. Returns whether they were not watched before.
    fn start(&mut self, files: BTreeSet<PathBuf>, workspace: &[PathBuf]) -> bool {
        let is_current = self.files == files && !self.is_stale;
        if is_current || self.starting.is_some() {
            return false;
        }
        self.is_stale = false;
        self.files.clone_from(&files);
        let directories = directories_above(&files, workspace);
        let watcher = self.watcher.take();
        self.starting = Some(tokio::task::spawn_blocking(move || {
            let mut watcher = watcher.unwrap_or_else(Watcher::new);
            watcher.forget();
            let is_complete = watcher.watch(directories, &files);
            (watcher, is_complete)
        }));
        true
    }

    /// Returns whether all files are watched.
    fn finish(&mut self, started: Option<Started>) -> bool {
        self.starting = None;
        let Some((watcher, is_complete)) = started else {
            return false;
        };
        self.watcher = Some(watcher);
        is_complete
    }
}

async fn finished(starting: &mut Option<JoinHandle<Started>>) -> Option<Started> {
    match starting {
        Some(starting) => starting.await.ok(),
        None => std::future::pending().await,
    }
}

/// The directories of the workspace with these files in or below them. If one of them is removed or renamed, the ones below
/// report nothing.
fn directories_above(files: &BTreeSet<PathBuf>, workspace: &[PathBuf]) -> BTreeSet<PathBuf> {
    let above = files.iter().flat_map(|file| file.ancestors().skip(1));
    let inside = above.filter(|directory| {
        workspace
            .iter()
            .any(|folder| is_in(Platform::current(), folder, directory))
    });
    inside.map(Path::to_owned).collect()
}

async fn file_changed(watcher: Option<&Watcher>) {
    match watcher {
        Some(watcher) => watcher.changes.files.notified().await,
        None => std::future::pending().await,
    }
}

async fn directory_changed(watcher: Option<&Watcher>) {
    match watcher {
        Some(watcher) => watcher.changes.directories.notified().await,
        None => std::future::pending().await,
    }
}
