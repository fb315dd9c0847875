//! Where open files lead on disk, looked up outside the core's lock.
//!
//! A lookup may hang, for example on a network file system, so each path has a thread of its own, and a hung path is not
//! looked up a second time. Files that are watched are looked up only when the watcher reports a change, or when the list
//! of open files changes: moving the cursor costs no system call for a path.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use tokio::task::JoinHandle;

use super::watcher::Watcher;
use super::{Companion, Shared};

/// How many lookups, and thus threads, may be running or hung. Beyond this, files stay hidden until the next lookup.
const MAX_LOOKUPS: usize = 128;
/// How long `context/show` waits for the disk.
const SHOW_TIMEOUT: Duration = Duration::from_secs(1);
/// Collects a burst of changes on disk, such as a checkout.
const SETTLE_DELAY: Duration = Duration::from_millis(50);

/// The file that a path leads to, if there is one.
pub(super) fn real_file(path: &Path) -> Option<PathBuf> {
    let real = path.canonicalize().ok()?;
    real.is_file().then_some(real)
}

impl Companion {
    /// Looks up the files that agents may see, without waiting for the result.
    fn look_up_files(&self) {
        let paths = self.core.lock().files_to_look_up();
        for path in paths {
            if self.lookups.count() < MAX_LOOKUPS && self.lookups.start(&path) {
                self.look_up(path);
            }
        }
    }

    fn look_up(&self, path: Arc<str>) {
        let (companion, host) = (self.me.clone(), self.host.clone());
        tokio::task::spawn_blocking(move || {
            loop {
                // A hung lookup does not keep the companion alive.
                let Some(lookup) = companion
                    .upgrade()
                    .map(|companion| companion.core.lock().start_lookup())
                else {
                    return;
                };
                let real = (host.resolve)(Path::new(&*path));
                let Some(companion) = companion.upgrade() else { return };
                companion.with_core(|core, now| core.file_looked_up(now, lookup, &path, real));
                if !companion.lookups.repeats(&path) {
                    return;
                }
            }
        });
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

/// Looks up open files when they change, in the editor or on disk, and keeps them watched.
pub(super) async fn keep_files(companion: Shared) {
    let mut watch = FileWatch::default();
    loop {
        tokio::select! {
            () = companion.wake.files.notified() => {}
            () = changed(watch.watcher.as_ref()) => tokio::time::sleep(SETTLE_DELAY).await,
            () = removed(watch.watcher.as_ref()) => {
                tokio::time::sleep(SETTLE_DELAY).await;
                // A directory that was removed is no longer watched, even if it exists again.
                watch.files.clear();
            }
            // What changed before the watch began was not reported, so this is followed by a lookup.
            finished = finished(&mut watch.starting) => {
                let is_complete = watch.finish(finished);
                companion.with_core(|core, _| core.set_files_watched(is_complete));
            }
        }
        companion.look_up_files();
        let files = companion.core.lock().files_to_watch();
        if watch.start(files) {
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
    starting: Option<JoinHandle<Started>>,
}

/// The watcher, and whether it watches all files.
type Started = (Watcher, bool);

impl FileWatch {
    /// Watches these files instead. Returns whether they were not watched before.
    fn start(&mut self, files: BTreeSet<PathBuf>) -> bool {
        if self.files == files || self.starting.is_some() {
            return false;
        }
        self.files.clone_from(&files);
        let watcher = self.watcher.take();
        self.starting = Some(tokio::task::spawn_blocking(move || {
            let mut watcher = watcher.unwrap_or_else(Watcher::new);
            watcher.forget();
            let is_complete = watcher.watch(BTreeSet::new(), files);
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

async fn changed(watcher: Option<&Watcher>) {
    match watcher {
        Some(watcher) => watcher.changes.bases.notified().await,
        None => std::future::pending().await,
    }
}

async fn removed(watcher: Option<&Watcher>) {
    match watcher {
        Some(watcher) => watcher.changes.removed.notified().await,
        None => std::future::pending().await,
    }
}
