//! From the start of the process to the discovery file that agents look for.

use anyhow::Result;

use crate::judge::Bar;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::scenario::Scenario;
use crate::subject::Subject;

const SUBJECTS: [Subject; 4] = [Subject::Ours, Subject::Node, Subject::Rmcp, Subject::Floor];
const ROUNDS: usize = 15;

pub(super) struct Start;

impl Scenario for Start {
    fn name(&self) -> &'static str {
        "start"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let mut row = Row::new(self.name(), "start to discovery file", Unit::Seconds)
            .headline()
            .bar(Bar::times(1.0 / 40.0, Subject::Node));
        // Once before it counts: what is read from disk is in memory afterwards.
        run.in_turns(1, &SUBJECTS, |subject| run.start(subject).map(drop))?;
        run.in_turns(run.rounds(ROUNDS), &SUBJECTS, |subject| {
            let server = run.start(subject)?;
            row.push(subject, &[server.started_in.as_secs_f64()]);
            Ok(())
        })?;
        Ok(vec![row])
    }
}
