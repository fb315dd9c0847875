//! Noticing changes on disk: to discovery files, settings, files under review and open files.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use alongside_core::dialect::DIALECTS;
use notify::event::ModifyKind;
use notify::{Event, EventKind, RecommendedWatcher, RecursiveMode, Watcher as _};
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::settings::WORKSPACE_FILE;

/// Watches directories, and reports what kind of thing changed.
pub(super) struct Watcher {
    system: Option<RecommendedWatcher>,
    watched: BTreeSet<PathBuf>,
    pub(super) changes: Arc<Changes>,
}

#[derive(Default)]
pub(super) struct Changes {
    /// Something in a watched directory was removed or renamed.
    pub(super) removed: Notify,
    /// Settings or ignore files changed.
    pub(super) rules: Notify,
    /// One of the watched files changed.
    pub(super) bases: Notify,
    files: Mutex<BTreeSet<PathBuf>>,
}

impl Watcher {
    /// Starts even if the system cannot watch files: that is logged, and changes go unnoticed.
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

    /// Watches these directories, and the parent directories of these files. Returns whether all of them are watched.
    pub(super) fn watch(&mut self, mut directories: BTreeSet<PathBuf>, files: BTreeSet<PathBuf>) -> bool {
        let Some(system) = &mut self.system else { return false };
        let mut is_complete = true;
        let parents: BTreeSet<&Path> = files.iter().filter_map(|file| file.parent()).collect();
        for parent in parents {
            if parent.is_dir() {
                directories.insert(parent.to_owned());
            } else {
                is_complete = false;
            }
        }
        *self.changes.files.lock() = files;
        for previous in self.watched.difference(&directories) {
            // It may have been removed.
            let _ = system.unwatch(previous);
        }
        for directory in directories.difference(&self.watched) {
            if let Err(error) = system.watch(directory, RecursiveMode::NonRecursive) {
                is_complete = false;
                tracing::warn!(%error, directory = %directory.display(), "cannot watch this directory; changes in it will not be noticed");
            }
        }
        self.watched = directories;
        is_complete
    }

    /// Unwatches everything, so that the next [`Self::watch`] also watches directories that were removed and recreated.
    pub(super) fn forget(&mut self) {
        if let Some(system) = &mut self.system {
            for previous in std::mem::take(&mut self.watched) {
                let _ = system.unwatch(&previous);
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
