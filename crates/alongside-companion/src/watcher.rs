//! Noticing what others do to our files, and what people do to theirs.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::dialect::DIALECTS;
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::settings::WORKSPACE_FILE;

/// Watches directories, and says what kind of thing changed.
pub(super) struct Watcher {
    system: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    pub(super) changes: Arc<Changes>,
}

/// What changed, to be awaited.
#[derive(Default)]
pub(super) struct Changes {
    /// A file may have been removed.
    pub(super) removed: Notify,
    /// Settings or ignore files may say something else.
    pub(super) rules: Notify,
    /// The file of a review may hold something else.
    pub(super) bases: Notify,
    /// The files of the reviews.
    files: Mutex<BTreeSet<PathBuf>>,
}

impl Watcher {
    /// A system that cannot watch is no reason not to start: then nothing is noticed, and that is logged.
    pub(super) fn new() -> Self {
        let changes = Arc::new(Changes::default());
        let system = notify::recommended_watcher({
            let changes = changes.clone();
            move |event: notify::Result<Event>| {
                if let Ok(event) = event {
                    changes.note(&event);
                }
            }
        });
        let system = system
            .inspect_err(|error| tracing::warn!(%error, "cannot watch files; changes will not be noticed"))
            .ok();
        Self {
            system,
            watched: BTreeSet::new(),
            changes,
        }
    }

    /// Watches these directories, and those that the files of reviews are in.
    pub(super) fn watch(&mut self, mut directories: BTreeSet<PathBuf>, files: BTreeSet<PathBuf>) {
        let Some(system) = &mut self.system else { return };
        directories.extend(
            files
                .iter()
                .filter_map(|file| file.parent())
                .filter(|parent| parent.is_dir())
                .map(Path::to_owned),
        );
        *self.changes.files.lock() = files;
        for former in self.watched.difference(&directories) {
            // It may be gone.
            let _ = system.unwatch(former);
        }
        for directory in directories.difference(&self.watched) {
            if let Err(error) = system.watch(directory, RecursiveMode::NonRecursive) {
                tracing::warn!(%error, directory = %directory.display(), "cannot watch this directory; changes in it will not be noticed");
            }
        }
        self.watched = directories;
    }

    /// Forgets what is watched, so that a directory that was removed and made again is watched anew.
    pub(super) fn forget(&mut self) {
        if let Some(system) = &mut self.system {
            for former in std::mem::take(&mut self.watched) {
                let _ = system.unwatch(&former);
            }
        }
    }
}

impl Changes {
    fn note(&self, event: &Event) {
        if matches!(event.kind, EventKind::Access(_)) {
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
        let files = self.files.lock();
        if event.paths.iter().any(|path| files.contains(path)) {
            self.bases.notify_one();
        }
    }
}

fn holds_rules(path: &Path) -> bool {
    path.file_name().is_some_and(|name| {
        name == WORKSPACE_FILE || name == "config.toml" || DIALECTS.iter().any(|dialect| name == dialect.ignore_file)
    })
}
