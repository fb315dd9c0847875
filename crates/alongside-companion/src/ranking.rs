//! Which companion agents find: of several candidates, the one whose editor was used most recently.
//!
//! There is no coordinator. Each companion has the time of its last use in its record, notices when another record appears,
//! changes or disappears, and then names its own discovery files so that agents sort them in that order. Only a change of the
//! order is written: an editor that already ranks first stays first, however often it is used.
//!
//! Nothing depends on a companion being able to clean up. The files of a killed one sort behind the others, and those that
//! ranked behind it see its process end and remove them.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use alongside_discovery::{Announcement, Contender, LastUse, sweep};
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
    is_first: bool,
    /// See [`Announcement::sorts_by_pid`].
    sorts_by_pid: bool,
    /// The last use that the order is based on.
    pub(super) last_use: LastUse,
}

impl Rank {
    /// Behind every peer.
    pub(super) fn lowest(last_use: LastUse) -> Self {
        Self {
            is_first: false,
            sorts_by_pid: false,
            last_use,
        }
    }

    pub(super) fn apply_to(self, announcement: &mut Announcement) {
        announcement.is_first = self.is_first;
        announcement.sorts_by_pid = self.sorts_by_pid;
        announcement.last_use = self.last_use;
    }
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
        let (records, workspace) = (companion_record::all(&self.places), self.workspace());
        let own = Contender {
            last_use: self.ranking.last_use(),
            pid: std::process::id(),
            editor: self.identity.pid,
            workspace: &workspace,
        };
        let others = others(own, &records);
        let rank = rank(own, published, &others);
        self.ranking.is_first.store(rank.is_first, Ordering::Relaxed);
        (rank, peers(own, &others).map(|peer| peer.pid).collect())
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
fn rank(own: Contender<'_>, published: Rank, others: &[Contender<'_>]) -> Rank {
    let before = Contender {
        last_use: published.last_use,
        ..own
    };
    let has_moved = peers(own, others).any(|peer| own.is_behind(peer) != before.is_behind(peer));
    let is_first = !peers(own, others).any(|peer| own.is_behind(peer));
    let is_news = has_moved || is_first != published.is_first;
    Rank {
        is_first,
        sorts_by_pid: own.sorts_by_pid(others),
        last_use: if is_news { own.last_use } else { published.last_use },
    }
}

fn others<'a>(own: Contender<'_>, records: &'a [CompanionRecord]) -> Vec<Contender<'a>> {
    let contender = |record: &'a CompanionRecord| Contender {
        last_use: record.last_use,
        pid: record.pid,
        editor: record.editor_pid,
        workspace: &record.workspace,
    };
    let others = records.iter().filter(|record| record.pid != own.pid);
    others.map(contender).collect()
}

/// The companions that an agent could find instead of this one.
fn peers<'a>(own: Contender<'a>, others: &'a [Contender<'a>]) -> impl Iterator<Item = &'a Contender<'a>> {
    others.iter().filter(move |other| other.is_peer_of(&own))
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
    use std::path::PathBuf;
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    fn at(seconds: u64) -> LastUse {
        LastUse::of_editor(UNIX_EPOCH + Duration::from_secs(seconds))
    }

    fn record(pid: u32, folder: &str, last_use: LastUse) -> CompanionRecord {
        CompanionRecord::sample(pid, folder, last_use)
    }

    /// The rank of a companion with the process 100, used at this time and published as used at 10.
    fn rank_at(seconds: u64, records: &[CompanionRecord]) -> Rank {
        let workspace = [PathBuf::from("/a")];
        let own = Contender {
            last_use: at(seconds),
            pid: 100,
            editor: 101,
            workspace: &workspace,
        };
        rank(own, Rank::lowest(at(10)), &others(own, records))
    }

    #[test]
    fn most_recently_used_companion_ranks_first() {
        let peers = [record(200, "/a", at(20))];
        let behind = Rank {
            sorts_by_pid: true,
            ..Rank::lowest(at(10))
        };
        assert_eq!(rank_at(10, &peers), behind);
        let first = Rank {
            is_first: true,
            sorts_by_pid: true,
            last_use: at(30),
        };
        assert_eq!(rank_at(30, &peers), first);
        assert_eq!(
            rank_at(15, &peers),
            behind,
            "a use that changes no order is not published"
        );
        assert!(rank_at(10, &[]).is_first);
    }

    #[test]
    fn rank_between_two_peers_is_published() {
        let peers = [record(2, "/a", at(20)), record(3, "/a", at(40))];
        assert_eq!(rank_at(30, &peers), Rank::lowest(at(30)));
    }

    #[test]
    fn companions_used_at_the_same_moment_are_ordered_by_pid() {
        assert!(rank_at(10, &[record(99, "/a", at(10))]).is_first);
        assert!(!rank_at(10, &[record(101, "/a", at(10))]).is_first);
    }

    #[test]
    fn only_other_companions_with_a_directory_in_common_are_peers() {
        let all = [
            record(1, "/a/b", at(10)),
            record(2, "/a", at(1)),
            record(3, "/a/b/c", at(1)),
            record(4, "/a/bc", at(1)),
            record(5, "/d", at(1)),
        ];
        let workspace = [PathBuf::from("/a/b")];
        let own = Contender {
            last_use: at(10),
            pid: 1,
            editor: 1,
            workspace: &workspace,
        };
        let others = others(own, &all);
        assert_eq!(peers(own, &others).map(|peer| peer.pid).collect::<Vec<_>>(), [2, 3]);
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
