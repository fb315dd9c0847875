//! The rules and the files under review, which are read again when they change on disk.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::ReviewId;

use super::watcher::{Changes, Watcher};
use super::{Companion, Shared};

/// How long a file must be unchanged before it is read again. A review that ends earlier is never watched.
const SETTLE_DELAY: Duration = Duration::from_millis(80);
/// When a file that keeps changing is read anyway.
const SETTLE_TIMEOUT: Duration = Duration::from_secs(2);

/// Reads settings and ignore files again when they change, or the workspace does.
pub(super) async fn keep_rules(companion: Shared, changes: Arc<Changes>) {
    loop {
        tokio::select! {
            () = companion.wake.rules.notified() => {}
            () = changes.rules.notified() => {}
        }
        let blocking = companion.clone();
        let _ = tokio::task::spawn_blocking(move || blocking.refresh_privacy()).await;
    }
}

/// Watches settings, ignore files and the files under review, and compares reviews with the latter when they change.
pub(super) async fn keep_bases(companion: Shared, watcher: Watcher) {
    let changes = watcher.changes.clone();
    let mut compared = BTreeSet::<ReviewId>::new();
    let mut watcher = watch(&companion, watcher).await;
    loop {
        let is_change = tokio::select! {
            () = companion.wake.reviews.notified() => {
                settled(&changes).await;
                false
            }
            () = companion.wake.bases.notified() => true,
            () = changes.files.notified() => {
                settled(&changes).await;
                true
            }
        };
        // One that is opened from now on may not be watched, so it is read again the next time.
        let pending = companion.core.lock().reviews().map(|review| review.id).collect();
        // Watched first, then read once more, so that a change in between is not missed.
        watcher = watch(&companion, watcher).await;
        companion.refresh_bases(|review| is_change || !compared.contains(&review));
        compared = pending;
    }
}

async fn watch(companion: &Companion, watcher: Watcher) -> Watcher {
    let files = companion
        .core
        .lock()
        .reviews()
        .map(|review| PathBuf::from(&*review.path))
        .collect();
    let directories = companion
        .workspace()
        .into_iter()
        .chain([companion.places.configuration.clone()]);
    watcher.watch_in_thread(directories.collect(), files).await
}

/// Waits until a file is no longer being written. Many programs empty a file before they fill it, and merging with an
/// empty file in between would throw the draft into conflict.
async fn settled(changes: &Changes) {
    let writing = async {
        while tokio::time::timeout(SETTLE_DELAY, changes.files.notified())
            .await
            .is_ok()
        {}
    };
    let _ = tokio::time::timeout(SETTLE_TIMEOUT, writing).await;
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use alongside_core::SessionKey;
    use alongside_mcp::Companion as _;

    use super::*;
    use crate::journal::Slot;
    use crate::{Host, test_companion};

    #[tokio::test(start_paused = true)]
    async fn review_is_watched_once_it_has_lasted_a_moment() {
        let scratch = tempfile::tempdir().unwrap();
        let directory = scratch.path().join("directory");
        std::fs::create_dir(&directory).unwrap();
        let slot = Slot::take(
            &test_companion::places(&scratch),
            "editor",
            &[scratch.path().to_owned()],
        )
        .unwrap();
        let companion = test_companion::start(&scratch, &slot, Host::default());
        let watcher = Watcher::new();
        let changes = watcher.changes.clone();
        tokio::spawn(keep_bases(companion.clone(), watcher));
        let is_watched = |path: &Path| changes.is_watched(path);
        // Time advances only while everything waits for it.
        while !is_watched(scratch.path()) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }

        let session = SessionKey::from("agent");
        companion.session_started(&session, None).await;
        let path: Arc<str> = directory.join("new.txt").to_str().unwrap().into();
        companion
            .open_diff(&session, path.clone(), "text\n".into())
            .await
            .unwrap();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(!is_watched(&directory));
        companion.close_diff(&session, &path).await.unwrap();
        tokio::time::sleep(SETTLE_DELAY * 3).await;
        assert!(!is_watched(&directory));

        companion
            .open_diff(&session, path.clone(), "text\n".into())
            .await
            .unwrap();
        while !is_watched(&directory) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}
