//! Who is found: of several companions that an agent could find, the one whose editor was used last.
//!
//! There is no referee. Each companion has the moment of its last use in its record, hears from the file system when a
//! record comes, changes or goes, and then writes its own discovery files so that agents sort them in that order. Only a
//! change of the order is written down: an editor that is the first already stays it, however often it is used.
//!
//! Nothing depends on a companion being able to say goodbye. The files of one that was killed sort behind the others by
//! themselves, and those who stood behind it see its process end and clear them away.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::SystemTime;

use alongside_discovery::{Announcement, Environment, LastUse, sweep};
use parking_lot::Mutex;
use tokio::task::JoinSet;

use super::{Companion, editor};
use crate::running::{self, Record};

/// When this companion was last used, and whether it is the first.
pub(crate) struct Standing {
    has_editor: bool,
    last_use: Mutex<LastUse>,
    is_first: AtomicBool,
}

impl Standing {
    /// Whoever starts an editor uses it.
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
    /// Notes that a person uses this editor now.
    pub(super) fn used(&self) {
        *self.standing.last_use.lock() = now(self.standing.has_editor);
        if !self.standing.is_first.load(Ordering::Relaxed) {
            self.wake.used.notify_one();
        }
    }

    /// Finds this companion's place among the others; says whether its discovery files have to be written again, and who
    /// the others are.
    pub(super) fn find_place(&self, announcement: &mut Announcement, record: &mut Record) -> (bool, Vec<u32>) {
        // A dead one's file may have a living editor in its name, and then Gemini CLI would try no other.
        sweep(&Environment::current(), |_| true);
        let others = others(running::all(&self.places), record);
        let place = place(self.standing.last_use(), record, &others);
        let is_new = place.is_first != announcement.is_first || place.has_moved;
        self.standing.is_first.store(place.is_first, Ordering::Relaxed);
        if is_new {
            announcement.is_first = place.is_first;
            announcement.last_use = self.standing.last_use();
            record.set_last_use(announcement.last_use);
        }
        (is_new, others.iter().map(|other| other.pid).collect())
    }
}

struct Place {
    is_first: bool,
    /// Whether it is another one than the record says.
    has_moved: bool,
}

fn place(last_use: LastUse, record: &Record, others: &[Record]) -> Place {
    let before = |other: &Record, last_use: LastUse| (last_use, record.pid) < (other.last_use, other.pid);
    Place {
        is_first: !others.iter().any(|other| before(other, last_use)),
        has_moved: others
            .iter()
            .any(|other| before(other, last_use) != before(other, record.last_use)),
    }
}

/// The companions that an agent could find in place of this one.
fn others(all: Vec<Record>, own: &Record) -> Vec<Record> {
    all.into_iter()
        .filter(|other| other.pid != own.pid && overlap(&other.workspace, &own.workspace))
        .collect()
}

/// Whether there is a directory that lies in both.
fn overlap(one: &[PathBuf], other: &[PathBuf]) -> bool {
    let nested = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
    one.iter().any(|one| other.iter().any(|other| nested(one, other)))
}

/// Notices that other companions end, those too that have no time to say so.
#[derive(Default)]
pub(super) struct Others {
    known: BTreeSet<u32>,
    ends: JoinSet<u32>,
}

impl Others {
    /// Watches these from now on, and those that it watches already.
    pub(super) fn watch(&mut self, pids: Vec<u32>) {
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
    pub(super) async fn ended(&mut self) {
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

    fn record(pid: u32, folder: &str, last_use: LastUse) -> Record {
        Record::sample(pid, folder, last_use)
    }

    #[test]
    fn the_one_that_was_used_last_is_the_first() {
        let (own, other) = (record(1, "/a", at(10)), record(2, "/a", at(20)));
        let place_at = |seconds| place(at(seconds), &own, std::slice::from_ref(&other));
        assert!(!place_at(10).is_first && !place_at(10).has_moved);
        assert!(place_at(30).is_first && place_at(30).has_moved);
        assert!(
            !place_at(15).has_moved,
            "a use that changes no order is not written down"
        );
        assert!(place(at(10), &own, &[]).is_first);
    }

    #[test]
    fn of_two_that_were_used_at_the_same_moment_exactly_one_is_the_first() {
        let (one, other) = (record(1, "/a", at(10)), record(2, "/a", at(10)));
        let first = place(at(10), &one, std::slice::from_ref(&other)).is_first;
        let second = place(at(10), &other, std::slice::from_ref(&one)).is_first;
        assert_ne!(first, second);
    }

    #[test]
    fn only_companions_that_could_be_found_in_the_same_directory_compare_themselves() {
        let own = record(1, "/a/b", at(10));
        let others = others(
            vec![
                own.clone(),
                record(2, "/a", at(1)),
                record(3, "/a/b/c", at(1)),
                record(4, "/a/bc", at(1)),
                record(5, "/d", at(1)),
            ],
            &own,
        );
        assert_eq!(others.iter().map(|other| other.pid).collect::<Vec<_>>(), [2, 3]);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn the_end_of_another_is_noticed_and_nobody_is_watched_twice() {
        let mut child = tokio::process::Command::new("sleep")
            .arg("600")
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let pid = child.id().unwrap();
        let mut others = Others::default();
        others.watch(vec![pid]);
        others.watch(vec![pid]);
        assert_eq!(others.ends.len(), 1);
        child.kill().await.unwrap();
        tokio::time::timeout(Duration::from_secs(30), others.ended())
            .await
            .unwrap();
        assert!(others.known.is_empty());
    }
}
