//! Which companion agents find: of several candidates, the one whose editor was used most recently.
//!
//! There is no coordinator. Each companion has the time of its last use in its record, notices when another record appears,
//! changes or disappears, and then names its own discovery files so that agents sort them in that order. Only a change of the
//! order is written: an editor that already ranks first stays first, however often it is used.
//!
//! Nothing depends on a companion being able to clean up. The files of a killed one sort behind the others, and those that
//! ranked behind it see its process end and remove them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use alongside_discovery::{LastUse, sweep};
use parking_lot::Mutex;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::{Companion, Shared, editor};
use crate::companion_record::{self, CompanionRecord};

pub(crate) struct Ranking {
    has_editor: bool,
    last_use: Mutex<LastUse>,
    is_first: AtomicBool,
}

/// A companion's place among its peers, as agents are told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rank {
    pub(super) is_first: bool,
    /// The last use that the order is based on.
    pub(super) last_use: LastUse,
}

impl Ranking {
    /// Starting an editor counts as using it.
    pub(super) fn new(has_editor: bool) -> Self {
        Self {
            has_editor,
            last_use: Mutex::new(now(has_editor)),
            is_first: AtomicBool::new(false),
        }
    }

    pub(super) fn last_use(&self) -> LastUse {
        *self.last_use.lock()
    }
}

fn now(has_editor: bool) -> LastUse {
    let now = SystemTime::now();
    if has_editor {
        LastUse::of_editor(now)
    } else {
        LastUse::without_editor(now)
    }
}

impl Companion {
    /// Notes that this editor is in use now.
    pub(super) fn used(&self) {
        *self.ranking.last_use.lock() = now(self.ranking.has_editor);
        if !self.ranking.is_first.load(Ordering::Relaxed) {
            self.wake.ranking.notify_one();
        }
    }

    /// Compares this companion with its peers, and returns its rank and their process ids. Blocks: it reads their records,
    /// and connects to ports of which only a file is left.
    pub(super) fn rank(&self, published: Rank) -> (Rank, Vec<u32>) {
        // The file of a killed companion may have a live editor's pid in its name, and then Gemini CLI would try no other.
        sweep(&self.environment, |_| true);
        let peers = peers(companion_record::all(&self.places), &self.workspace());
        let rank = rank(self.ranking.last_use(), published, &peers);
        self.ranking.is_first.store(rank.is_first, Ordering::Relaxed);
        (rank, peers.iter().map(|peer| peer.pid).collect())
    }
}

/// Ranks this companion again whenever something may have changed, and publishes a new rank. A slow look at the peers delays
/// only this task.
pub(super) async fn keep_ranked(companion: Shared, ranks: watch::Sender<Rank>, peers: Vec<u32>) {
    let mut watcher = PeerWatcher::default();
    watcher.watch(peers);
    loop {
        tokio::select! {
            () = companion.wake.ranking.notified() => {}
            () = watcher.ended() => {}
        }
        let published = *ranks.borrow();
        let blocking = companion.clone();
        let Ok((rank, peers)) = tokio::task::spawn_blocking(move || blocking.rank(published)).await else {
            return;
        };
        watcher.watch(peers);
        ranks.send_if_modified(|current| std::mem::replace(current, rank) != rank);
    }
}

/// The rank for a last use. A use that changes no order is not published.
fn rank(last_use: LastUse, published: Rank, peers: &[CompanionRecord]) -> Rank {
    let pid = std::process::id();
    let is_behind = |peer: &CompanionRecord, last_use: LastUse| (last_use, pid) < (peer.last_use, peer.pid);
    let has_moved = peers
        .iter()
        .any(|peer| is_behind(peer, last_use) != is_behind(peer, published.last_use));
    let is_first = !peers.iter().any(|peer| is_behind(peer, last_use));
    if has_moved || is_first != published.is_first {
        Rank { is_first, last_use }
    } else {
        published
    }
}

/// The companions that an agent could find instead of this one.
fn peers(all: Vec<CompanionRecord>, workspace: &[PathBuf]) -> Vec<CompanionRecord> {
    all.into_iter()
        .filter(|other| other.pid != std::process::id() && overlap(&other.workspace, workspace))
        .collect()
}

/// Whether a directory lies in both.
fn overlap(one: &[PathBuf], other: &[PathBuf]) -> bool {
    let nested = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
    one.iter().any(|one| other.iter().any(|other| nested(one, other)))
}

/// Notices that a peer's process ended, even if it was killed.
#[derive(Default)]
struct PeerWatcher {
    known: BTreeSet<u32>,
    ends: JoinSet<u32>,
}

impl PeerWatcher {
    /// Watches these processes in addition to the known ones.
    fn watch(&mut self, pids: Vec<u32>) {
        for pid in pids {
            if self.known.insert(pid) {
                self.ends.spawn(async move {
                    editor::ended(pid).await;
                    pid
                });
            }
        }
    }

    /// Waits until one has ended.
    async fn ended(&mut self) {
        match self.ends.join_next().await {
            Some(pid) => self.known.retain(|known| pid.as_ref().ok() != Some(known)),
            None => std::future::pending().await,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn at(seconds: u64) -> LastUse {
        LastUse::of_editor(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    fn record(pid: u32, folder: &str, last_use: LastUse) -> CompanionRecord {
        CompanionRecord::sample(pid, folder, last_use)
    }

    #[test]
    fn most_recently_used_companion_ranks_first() {
        let peer = record(2, "/a", at(20));
        let published = Rank {
            is_first: false,
            last_use: at(10),
        };
        let rank_at = |seconds| rank(at(seconds), published, std::slice::from_ref(&peer));
        assert_eq!(rank_at(10), published);
        let first = Rank {
            is_first: true,
            last_use: at(30),
        };
        assert_eq!(rank_at(30), first);
        assert_eq!(rank_at(15), published, "a use that changes no order is not published");
        assert!(rank(at(10), published, &[]).is_first);
    }

    #[test]
    fn rank_between_two_peers_is_published() {
        let peers = [record(2, "/a", at(20)), record(3, "/a", at(40))];
        let published = Rank {
            is_first: false,
            last_use: at(10),
        };
        let moved = Rank {
            is_first: false,
            last_use: at(30),
        };
        assert_eq!(rank(at(30), published, &peers), moved);
    }

    #[test]
    fn companions_used_at_the_same_moment_are_ordered_by_pid() {
        let published = Rank {
            is_first: false,
            last_use: at(10),
        };
        let own = std::process::id();
        assert!(rank(at(10), published, &[record(own - 1, "/a", at(10))]).is_first);
        assert!(!rank(at(10), published, &[record(own + 1, "/a", at(10))]).is_first);
    }

    #[test]
    fn only_companions_with_a_directory_in_common_are_peers() {
        let all = vec![
            record(std::process::id(), "/a/b", at(10)),
            record(2, "/a", at(1)),
            record(3, "/a/b/c", at(1)),
            record(4, "/a/bc", at(1)),
            record(5, "/d", at(1)),
        ];
        let peers = peers(all, &["/a/b".into()]);
        assert_eq!(peers.iter().map(|peer| peer.pid).collect::<Vec<_>>(), [2, 3]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn ended_peer_is_noticed_and_no_peer_is_watched_twice() {
        let mut child = tokio::process::Command::new("sleep")
            .arg("600")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = child.id().unwrap();
        let mut watcher = PeerWatcher::default();
        watcher.watch(vec![pid]);
        watcher.watch(vec![pid]);
        assert_eq!(watcher.ends.len(), 1);
        child.kill().await.unwrap();
        tokio::time::timeout(Duration::from_secs(30), watcher.ended())
            .await
            .unwrap();
        assert!(watcher.known.is_empty());
    }
}
