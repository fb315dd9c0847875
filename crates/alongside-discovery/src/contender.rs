//! Which of several companions can have their editor's PID where Gemini CLI sorts by it.

use std::cmp::Reverse;
use std::path::{Path, PathBuf};

use crate::LastUse;

/// A companion that agents could find, among others.
#[derive(Clone, Copy, Debug)]
pub struct Contender<'a> {
    pub last_use: LastUse,
    /// The companion's process.
    pub pid: u32,
    /// The editor's process, or the companion's own.
    pub editor: u32,
    pub workspace: &'a [PathBuf],
}

impl Contender<'_> {
    /// Whether agents are to find the other one before this.
    pub fn is_behind(&self, other: &Self) -> bool {
        (self.last_use, self.pid) < (other.last_use, other.pid)
    }

    /// Whether a directory lies in both workspaces, so that an agent there could find either.
    pub fn is_peer_of(&self, other: &Self) -> bool {
        let nested = |one: &Path, other: &Path| one.starts_with(other) || other.starts_with(one);
        let other = other.workspace;
        let nested = |one: &PathBuf| other.iter().any(|other| nested(one, other));
        self.workspace.iter().any(nested)
    }

    /// Whether Gemini CLI's own order, the larger PID of a live process first, is right as far as this companion.
    ///
    /// All that are to be found before it must have their PIDs too: a live process comes before every other number, also when the
    /// first companion is killed and nothing can be rewritten.
    pub fn sorts_by_pid(&self, others: &[Self]) -> bool {
        let mut ahead: Vec<&Self> = others.iter().filter(|other| self.is_behind(other)).collect();
        ahead.sort_by_key(|contender| Reverse((contender.last_use, contender.pid)));
        ahead.push(self);
        let mut sorted: Vec<(&Self, bool)> = Vec::new();
        for contender in ahead {
            let mut peers = sorted.iter().filter(|(other, _)| other.is_peer_of(contender));
            let is_in_order = peers.all(|(other, sorts)| *sorts && contender.editor < other.editor);
            sorted.push((contender, is_in_order));
        }
        sorted.last().is_some_and(|(_, sorts)| *sorts)
    }
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, UNIX_EPOCH};

    use super::*;

    /// Used in this order, the first one last.
    fn sorting<const N: usize>(companions: [(u32, &str); N]) -> [bool; N] {
        let workspaces = companions.map(|(_, folder)| [PathBuf::from(folder)]);
        let contenders: Vec<Contender<'_>> = (0..N)
            .map(|place| Contender {
                last_use: LastUse::of_editor(UNIX_EPOCH + Duration::from_secs(1000 - place as u64)),
                pid: 1,
                editor: companions[place].0,
                workspace: &workspaces[place],
            })
            .collect();
        std::array::from_fn(|place| contenders[place].sorts_by_pid(&contenders))
    }

    #[test]
    fn editors_started_one_after_the_other_keep_their_pids() {
        assert_eq!(sorting([(5, "/a")]), [true]);
        assert_eq!(sorting([(7, "/a"), (6, "/a"), (5, "/a")]), [true; 3]);
    }

    #[test]
    fn larger_pid_behind_a_smaller_one_is_replaced() {
        assert_eq!(sorting([(5, "/a"), (7, "/a")]), [true, false]);
        assert_eq!(sorting([(5, "/a"), (5, "/a")]), [true, false], "two of one editor");
    }

    #[test]
    fn live_pid_never_comes_before_a_replaced_one() {
        assert_eq!(sorting([(6, "/a"), (7, "/a"), (5, "/a")]), [true, false, false]);
    }

    #[test]
    fn companions_of_other_workspaces_do_not_matter() {
        assert_eq!(sorting([(5, "/a"), (7, "/b")]), [true, true]);
        assert_eq!(sorting([(5, "/a"), (7, "/a/b"), (6, "/c")]), [true, false, true]);
    }
}
