//! Keeps the discovery files and the companion's record current.
//!
//! The task waits for its own events and its own small files and for nothing else: peers are ranked, settings read and review
//! bases compared by other tasks, however slow.

use std::collections::BTreeSet;
use std::path::Path;

use alongside_discovery::{Announcement, DiscoveryFiles};
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;

use super::Shared;
use super::ranking::Rank;
use super::watcher::Watcher;
use crate::companion_record::CompanionRecord;

/// How often files that keep disappearing are written in one go.
const MAX_REWRITE_ATTEMPTS: usize = 5;

/// Dropping it removes the discovery files.
pub(super) struct Announcer {
    pub(super) companion: Shared,
    pub(super) announcement: Announcement,
    pub(super) files: DiscoveryFiles,
    pub(super) record: CompanionRecord,
    pub(super) watcher: Watcher,
}

/// The running task.
pub(super) struct AnnouncerTask {
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

impl AnnouncerTask {
    /// Removes the discovery files and the record, and waits until they are gone.
    pub(super) async fn stop(self) {
        let _ = self.stop.send(());
        let _ = self.task.await;
    }
}

impl Announcer {
    pub(super) fn start(self, ranks: watch::Receiver<Rank>) -> AnnouncerTask {
        let (stop, stopped) = oneshot::channel();
        AnnouncerTask {
            stop,
            task: tokio::spawn(self.run(ranks, stopped)),
        }
    }

    async fn run(mut self, mut ranks: watch::Receiver<Rank>, mut stopped: oneshot::Receiver<()>) {
        let companion = self.companion.clone();
        let changes = self.watcher.changes.clone();
        // Files may have been removed before the first watch.
        changes.removed.notify_one();
        loop {
            let Some(watching) = self.blocking(Self::watch).await else {
                return;
            };
            self = watching;
            let updated = tokio::select! {
                // A dropped sender means that the companion was dropped.
                _ = &mut stopped => break,
                () = companion.wake.workspace.notified() => {
                    companion.wake.rules.notify_one();
                    companion.wake.bases.notify_one();
                    companion.wake.ranking.notify_one();
                    self.blocking(Self::update_workspace).await
                }
                Ok(()) = ranks.changed() => {
                    let rank = *ranks.borrow_and_update();
                    self.blocking(move |announcer| announcer.update_rank(rank)).await
                }
                () = changes.removed.notified() => {
                    // The file that disappeared may be a peer's record.
                    companion.wake.ranking.notify_one();
                    self.restore().await
                }
            };
            let Some(announcer) = updated else { return };
            self = announcer;
        }
        let remove = |announcer: &mut Self| {
            announcer.record.remove();
            if let Err(error) = announcer.files.remove() {
                tracing::warn!("{error}");
            }
        };
        self.blocking(remove).await;
    }

    /// Writes missing files again. They are looked at again after watching, because a removal before the new watch would go
    /// unnoticed. A directory that cannot be written is left until the next event.
    async fn restore(mut self) -> Option<Self> {
        for _ in 0..MAX_REWRITE_ATTEMPTS {
            let is_complete;
            (self, is_complete) = self.look_for_missing().await?;
            if is_complete {
                break;
            }
            self.watcher.forget();
            self = self.blocking(Self::watch).await?;
        }
        Some(self)
    }

    async fn look_for_missing(mut self) -> Option<(Self, bool)> {
        let looking = tokio::task::spawn_blocking(move || {
            let is_complete = self.files.missing().is_empty();
            if !is_complete {
                tracing::warn!("a discovery file was removed by another process; recreating it");
                self.rewrite();
            }
            (self, is_complete)
        });
        looking.await.ok()
    }

    /// Does file work outside the async workers. `None` if that failed, which ends the task.
    async fn blocking(mut self, work: impl FnOnce(&mut Self) + Send + 'static) -> Option<Self> {
        let working = tokio::task::spawn_blocking(move || {
            work(&mut self);
            self
        });
        working.await.ok()
    }

    fn update_workspace(&mut self) {
        self.announcement.workspace = self.companion.workspace();
        self.announcement.aliases = self.companion.folder_aliases();
        self.announcement.directories = self.companion.entered_directories();
        let Announcement { workspace, aliases, .. } = &self.announcement;
        self.record.set_workspace(workspace, aliases);
        self.rewrite();
    }

    fn update_rank(&mut self, rank: Rank) {
        rank.apply_to(&mut self.announcement);
        self.record.set_last_use(rank.last_use);
        self.rewrite();
    }

    fn rewrite(&mut self) {
        if let Err(error) = self.files.rewrite(&self.announcement) {
            tracing::error!(%error, "cannot update the discovery files; agents may not find this companion");
        }
        self.report();
    }

    /// Updates what `status` shows.
    pub(super) fn report(&self) {
        let mut report = self.companion.announce_report.lock();
        report.port = self.announcement.port;
        report.files = self.files.paths().map(Path::to_owned).collect();
        report.problems = self.files.problems().iter().map(ToString::to_string).collect();
    }

    fn watch(&mut self) {
        let discovery = self.files.directories().into_iter().map(Path::to_owned);
        let directories = discovery.chain([self.companion.places.companions()]).collect();
        self.watcher.watch(directories, &BTreeSet::new());
    }
}
