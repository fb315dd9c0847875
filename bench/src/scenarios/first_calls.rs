//! The first calls of `openDiff` after a start: nothing is compiled or cached yet. A user notices these more than the thousandth.

use std::time::Duration;

use anyhow::Result;

use super::open_diff::Stage;
use crate::judge::Bar;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::scenario::Scenario;
use crate::subject::{Server, Subject};

const ROUNDS: usize = 7;

const BYTES: usize = 1024;

/// Pairs of calls: more than an agent makes in most sessions.
const PAIRS: usize = 100;

/// After the start. By then, what only the start needed is no longer in memory.
const IDLE: Duration = Duration::from_millis(2500);

pub(super) struct FirstCalls;

impl Scenario for FirstCalls {
    fn name(&self) -> &'static str {
        "first"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let mut first = Row::new(self.name(), "first openDiff after the start, 1 KiB", Unit::Seconds);
        let name = format!("CPU of openDiff with closeDiff, 1 KiB, first {PAIRS}");
        let mut cpu = Row::new(self.name(), name, Unit::Seconds)
            .headline()
            .bar(Bar::times(1.0 / 8.0, Subject::Node));
        for round in 0..run.rounds(ROUNDS) {
            // All at the same time: they only wait.
            let servers: Result<Vec<Server>> = Subject::ALL.iter().map(|subject| run.start(*subject)).collect();
            let mut servers = servers?;
            std::thread::sleep(IDLE);
            for subject in run.order(&Subject::ALL, round) {
                let place = servers.iter().position(|server| server.subject == subject);
                let Some(place) = place else { continue };
                let mut stage = Stage::set_up(run, servers.swap_remove(place))?;
                let calls = stage.prepare(BYTES);
                let (times, used) = stage.measure(&calls, PAIRS)?;
                first.push(subject, &times[..1]);
                cpu.push(subject, &[used]);
            }
        }
        Ok(vec![first, cpu])
    }
}
