//! Noticing changes on disk: to discovery files, settings, files under review and open files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::dialect::DIALECTS;
use alongside_platform::{Platform, path};
use notify::event::ModifyKind;
use notify::{Config, Event, EventKind, EventKindMask, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::sync::Notify;
use tokio::task::JoinError;

use crate::settings::WORKSPACE_FILE;

mod network;

/// The system's own limit is shared with all programs of the user.
const MAX_DIRECTORIES: usize = 256;

/// Watches directories, and reports what kind of thing changed.
pub(super) struct Watcher {
    platform: Platform,
    system: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    /// What was last asked for, whether it could be watched or not.
    requested: BTreeSet<PathBuf>,
    /// Since [`Watcher::forget`], nothing is watched.
    is_forgotten: bool,
    pub(super) changes: Arc<Changes>,
}

#[derive(Default)]
pub(super) struct Changes {
    /// Something in a watched directory was removed or renamed.
    pub(super) removed: Notify,
    /// Settings or ignore files changed.
    pub(super) rules: Notify,
    /// One of the watched files changed.
    pub(super) files: Notify,
    /// One of the watched directories was created, removed or renamed. Until it is watched again, nothing in it is reported.
    pub(super) directories: Notify,
    watched: Mutex<Watched>,
}

/// What is to be watched, whether it exists or not: the keys of all paths under which the system may report it. macOS reports real
/// paths with the case on disk, whatever was to be watched.
#[derive(Default)]
struct Watched {
    files: BTreeSet<PathBuf>,
    directories: BTreeSet<PathBuf>,
}

impl Watched {
    fn new(files: &BTreeSet<PathBuf>, directories: &BTreeSet<PathBuf>) -> Self {
        let keys = |paths: &BTreeSet<PathBuf>| paths.iter().flat_map(|path| [key(path), key(&real(path))]).collect();
        Self {
            files: keys(files),
            directories: keys(directories),
        }
    }
}

fn key(path: &Path) -> PathBuf {
    path::key(Platform::current(), path)
}

/// The real path, also of a file that is not there.
fn real(path: &Path) -> PathBuf {
    let in_directory = || Some(path::real(path.parent()?).ok()?.join(path.file_name()?));
    path::real(path)
        .ok()
        .or_else(in_directory)
        .unwrap_or_else(|| path.to_owned())
}

impl Watcher {
    /// Starts even if the system cannot watch files: that is logged, and changes go unnoticed.
    pub(super) fn new() -> Self {
        Self::on(Platform::current())
    }

    fn on(platform: Platform) -> Self {
        let changes = Arc::new(Changes::default());
        let note = {
            let changes = changes.clone();
            move |event: notify::Result<Event>| {
                if let Ok(event) = event {
                    changes.note(&event);
                }
            }
        };
        // Otherwise every file that any program opens in one of the directories would wake a thread.
        let config = Config::default().with_event_kinds(EventKindMask::CORE);
        let system = RecommendedWatcher::new(note, config)
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files; changes will not be noticed"))
            .ok();
        Self {
            platform,
            system,
            watched: BTreeSet::new(),
            requested: BTreeSet::new(),
            is_forgotten: false,
            changes,
        }
    }

    /// Watches these directories, and the parent directories of these files, as far as they exist. Returns whether every change
    /// in them will be noticed.
    pub(super) fn watch(&mut self, mut directories: BTreeSet<PathBuf>, files: &BTreeSet<PathBuf>) -> bool {
        let Some(system) = &mut self.system else { return false };
        directories.extend(files.iter().filter_map(|file| file.parent()).map(Path::to_owned));
        let watched = Watched::new(files, &directories);
        let is_new_set = std::mem::replace(&mut self.requested, directories.clone()) != directories;
        *self.changes.watched.lock() = watched;
        let mut is_restarted = false;
        for previous in self.watched.difference(&directories) {
            // It may have been removed.
            let _ = system.unwatch(previous);
            is_restarted = true;
        }
        self.watched.retain(|directory| directories.contains(directory));
        let mut is_complete = true;
        // A directory comes before those in it: one that appears after it was looked at is reported by the one above.
        for directory in directories {
            if self.watched.contains(&directory) {
                continue;
            }
            if !directory.is_dir() || self.watched.len() >= MAX_DIRECTORIES {
                is_complete = false;
                continue;
            }
            is_complete &= network::reports_changes(&directory);
            is_restarted |= !self.is_forgotten;
            if let Err(error) = system.watch(&directory, RecursiveMode::NonRecursive) {
                is_complete = false;
                tracing::warn!(%error, directory = %directory.display(), "cannot watch this directory; changes in it will not be noticed");
            }
            self.watched.insert(directory);
        }
        self.is_forgotten = false;
        // Every change of the set restarts the stream of events there, and those in between are lost.
        if (is_new_set || is_restarted) && self.platform != Platform::Unix {
            self.changes.note_everything();
        }
        is_complete
    }

    /// The same on a thread that may block, because a file system may hang.
    pub(super) async fn watch_in_thread(mut self, directories: BTreeSet<PathBuf>, files: BTreeSet<PathBuf>) -> Self {
        let watching = tokio::task::spawn_blocking(move || {
            self.watch(directories, &files);
            self
        });
        match watching.await.map_err(JoinError::try_into_panic) {
            Ok(watcher) => watcher,
            Err(Ok(panic)) => std::panic::resume_unwind(panic),
            // The program is exiting.
            Err(Err(_)) => std::future::pending().await,
        }
    }

    /// Unwatches everything, so that the next [`Self::watch`] also watches directories that were removed and recreated. The caller looks
    /// at the files after that, because changes in between are not reported.
    pub(super) fn forget(&mut self) {
        self.is_forgotten = true;
        if let Some(system) = &mut self.system {
            for previous in std::mem::take(&mut self.watched) {
                let _ = system.unwatch(&previous);
            }
        }
    }
}

impl Changes {
    #[cfg(test)]
    pub(super) fn is_watched(&self, directory: &Path) -> bool {
        self.watched.lock().directories.contains(&key(directory))
    }

    /// Has everything looked at once.
    fn note_everything(&self) {
        for lost in [&self.removed, &self.rules, &self.files] {
            lost.notify_one();
        }
    }

    fn note(&self, event: &Event) {
        if event.need_rescan() {
            self.note_everything();
            self.directories.notify_one();
            return;
        }
        if matches!(
            event.kind,
            EventKind::Remove(_) | EventKind::Modify(ModifyKind::Name(_))
        ) {
            self.removed.notify_one();
        }
        if event.paths.iter().any(|path| holds_rules(path)) {
            self.rules.notify_one();
        }
        let watched = self.watched.lock();
        if event.paths.iter().any(|path| watched.files.contains(&key(path))) {
            self.files.notify_one();
        }
        // Changes in a directory also change its metadata.
        let concerns_name = !matches!(
            event.kind,
            EventKind::Modify(ModifyKind::Metadata(_) | ModifyKind::Data(_))
        );
        if concerns_name && event.paths.iter().any(|path| watched.directories.contains(&key(path))) {
            self.directories.notify_one();
        }
    }
}

fn holds_rules(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        name == WORKSPACE_FILE
            || name == "config.toml"
            || DIALECTS
                .iter()
                .filter_map(|dialect| dialect.ignore_file)
                .any(|file| name == file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watched_directories_are_limited() {
        let scratch = tempfile::tempdir().unwrap();
        let files: BTreeSet<PathBuf> = (0..MAX_DIRECTORIES)
            .map(|number| scratch.path().join(number.to_string()).join("file"))
            .collect();
        for file in &files {
            std::fs::create_dir(file.parent().unwrap()).unwrap();
        }
        let mut watcher = Watcher::new();
        assert!(watcher.watch(BTreeSet::new(), &files));
        let one_more = BTreeSet::from([scratch.path().to_owned()]);
        watcher.forget();
        assert!(!watcher.watch(one_more, &files));
        assert_eq!(watcher.watched.len(), MAX_DIRECTORIES);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn opening_and_reading_files_wakes_nothing() {
        const IN_ACCESS_CLOSE_NOWRITE_OPEN: u32 = 0x1 | 0x10 | 0x20;
        let scratch = tempfile::tempdir().unwrap();
        let mut watcher = Watcher::new();
        watcher.watch(BTreeSet::from([scratch.path().to_owned()]), &BTreeSet::new());
        let descriptors = std::fs::read_dir("/proc/self/fdinfo").unwrap().flatten();
        let texts = descriptors.filter_map(|descriptor| std::fs::read_to_string(descriptor.path()).ok());
        let masks: Vec<u32> = texts
            .flat_map(|text| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>())
            .filter_map(|word| u32::from_str_radix(word.strip_prefix("mask:")?, 16).ok())
            .collect();
        assert!(!masks.is_empty());
        assert!(
            masks.iter().all(|mask| mask & IN_ACCESS_CLOSE_NOWRITE_OPEN == 0),
            "{masks:x?}"
        );
    }

    /// As on macOS, where the temporary directory is behind a symlink too.
    #[cfg(unix)]
    #[test]
    fn change_reported_under_the_real_path_is_noticed() {
        let scratch = tempfile::tempdir().unwrap();
        let scratch = path::real(scratch.path()).map(|path| (scratch, path)).unwrap();
        let (directory, link) = (scratch.1.join("real"), scratch.1.join("link"));
        std::fs::create_dir(&directory).unwrap();
        std::os::unix::fs::symlink(&directory, &link).unwrap();
        let changes = Changes::default();
        *changes.watched.lock() = Watched::new(&BTreeSet::from([link.join("new")]), &BTreeSet::new());
        let reported = |path: &Path| {
            let created = EventKind::Create(notify::event::CreateKind::File);
            changes.note(&Event::new(created).add_path(path.to_owned()));
            let notified = std::pin::pin!(changes.files.notified());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            notified.poll(&mut context).is_ready()
        };
        assert!(reported(&link.join("new")) && reported(&directory.join("new")));
        assert!(!reported(&directory.join("other")));
    }

    #[test]
    fn everything_is_looked_at_after_each_change_of_the_set_where_events_are_lost() {
        let scratch = tempfile::tempdir().unwrap();
        let (one, two) = (scratch.path().join("one"), scratch.path().join("two"));
        std::fs::create_dir(&one).unwrap();
        let set = |directories: &[&PathBuf]| directories.iter().map(|path| (*path).clone()).collect::<BTreeSet<_>>();
        for (platform, loses_events) in [
            (Platform::MacOs, true),
            (Platform::Windows, true),
            (Platform::Unix, false),
        ] {
            let mut watcher = Watcher::on(platform);
            let mut looks = |change: &mut dyn FnMut(&mut Watcher)| {
                change(&mut watcher);
                [&watcher.changes.removed, &watcher.changes.rules, &watcher.changes.files].map(|lost| {
                    let notified = std::pin::pin!(lost.notified());
                    let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                    notified.poll(&mut context).is_ready()
                })
            };
            let (again, never) = ([loses_events; 3], [false; 3]);
            let mut watch = |directories: &[&PathBuf]| {
                let directories = set(directories);
                looks(&mut |watcher| {
                    watcher.watch(directories.clone(), &BTreeSet::new());
                })
            };
            assert_eq!(watch(&[&one]), again, "{platform:?}");
            assert_eq!(watch(&[&one]), never, "nothing changed");
            assert_eq!(watch(&[&one, &two]), again, "a directory that does not exist yet");
            std::fs::create_dir(&two).unwrap();
            assert_eq!(watch(&[&one, &two]), again, "now it exists");
            assert_eq!(watch(&[&one]), again, "one less");
            std::fs::remove_dir(&two).unwrap();
            // The caller looks, and an endless loop would follow otherwise.
            let forgotten = looks(&mut |watcher| {
                watcher.forget();
                watcher.watch(set(&[&one]), &BTreeSet::new());
            });
            assert_eq!(forgotten, never);
        }
    }

    #[test]
    fn only_a_new_or_lost_name_concerns_a_directory() {
        let changes = Changes::default();
        changes.watched.lock().directories.insert("/a".into());
        let reported = |kind: EventKind, path: &str| {
            changes.note(&Event::new(kind).add_path(path.into()));
            let notified = std::pin::pin!(changes.directories.notified());
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            notified.poll(&mut context).is_ready()
        };
        let created = EventKind::Create(notify::event::CreateKind::Folder);
        let touched = EventKind::Modify(ModifyKind::Metadata(notify::event::MetadataKind::Any));
        assert!(reported(created, "/a") && !reported(created, "/b") && !reported(touched, "/a"));
    }
}
