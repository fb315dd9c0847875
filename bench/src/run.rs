//! What all scenarios share: the programs, how often to measure, and turns.

use std::path::{Path, PathBuf};

use anyhow::Result;

use crate::subject::{Programs, Server, Subject};

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// A few rounds, to try it.
    pub quick: bool,
    /// Only scenarios whose name contains this.
    pub only: Option<String>,
    /// Measure nothing, and write the last results into the documents.
    pub write: bool,
}

pub struct Run {
    pub programs: Programs,
    pub options: Options,
    /// Of the repository.
    pub root: PathBuf,
    pub runtime: tokio::runtime::Runtime,
}

impl Run {
    pub fn new(programs: Programs, options: Options, root: &Path) -> Result<Self> {
        // One thread: the programs have the other cores.
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        Ok(Self {
            programs,
            options,
            root: root.to_owned(),
            runtime,
        })
    }

    /// How many rounds: as many as the scenario wants, or three for a quick try.
    pub fn rounds(&self, wanted: usize) -> usize {
        if self.options.quick { wanted.min(3) } else { wanted }
    }

    pub fn start(&self, subject: Subject) -> Result<Server> {
        Server::start(&self.programs, subject)
    }

    /// Calls `measure` for every subject in every round, in turns.
    pub fn in_turns(
        &self,
        rounds: usize,
        subjects: &[Subject],
        mut measure: impl FnMut(Subject) -> Result<()>,
    ) -> Result<()> {
        for round in 0..rounds {
            for subject in self.order(subjects, round) {
                measure(subject)?;
            }
        }
        Ok(())
    }

    /// The turns of one round.
    pub fn order(&self, subjects: &[Subject], round: usize) -> Vec<Subject> {
        let turns = order(subjects.len(), round).into_iter();
        turns.map(|turn| subjects[turn]).collect()
    }
}

/// The order of the programs in a round. What one leaves behind, such as dirty pages, is in the way of the next one, so each of them
/// follows every other equally often: the order is a Williams design, rotated every round and reversed every second one.
fn order(count: usize, round: usize) -> Vec<usize> {
    // 0, 1, n - 1, 2, n - 2, …: the distance of neighbors is never the same.
    let zigzag = (0..count).map(|turn| {
        if turn % 2 == 1 {
            turn.div_ceil(2)
        } else {
            count - turn / 2
        }
    });
    let mut order: Vec<usize> = zigzag.map(|place| (place + round) % count).collect();
    if round % 2 == 1 {
        order.reverse();
    }
    order
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn each_program_follows_every_other_equally_often() {
        for count in 3..=5 {
            let mut pairs = BTreeMap::new();
            for round in 0..2 * count {
                let order = order(count, round);
                for pair in order.windows(2) {
                    *pairs.entry((pair[0], pair[1])).or_insert(0) += 1;
                }
            }
            assert_eq!(pairs.len(), count * (count - 1), "{pairs:?}");
            assert!(pairs.values().all(|times| *times == 2), "{pairs:?}");
        }
    }

    #[test]
    fn each_program_has_one_turn_in_each_round() {
        for round in 0..10 {
            let mut order = order(5, round);
            order.sort_unstable();
            assert_eq!(order, [0, 1, 2, 3, 4]);
        }
        assert_eq!(order(1, 3), [0]);
    }
}
