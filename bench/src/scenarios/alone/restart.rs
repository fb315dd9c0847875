//! A companion that was killed, with many pending reviews: from its start until a front end has the list of them all.

use std::time::Instant;

use alongside_protocol::{Empty, requests};
use alongside_testing::Sandbox;
use anyhow::{Result, ensure};

use crate::companion::{Companion, proposal, propose};
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::texts;

const SIZES: [usize; 4] = [125, 250, 500, 1_000];
/// An agent may have 100 pending reviews.
const REVIEWS_PER_AGENT: usize = 100;
const ROUNDS: usize = 7;

pub(super) struct Restart;

impl Scenario for Restart {
    fn name(&self) -> &'static str {
        "restart"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for reviews in SIZES {
            let name = format!("killed to ready again, {reviews} reviews of 1 KiB");
            let mut row = Row::new(self.name(), name, Unit::Seconds).in_series("restart by reviews", as_f64(reviews));
            let sandbox = Sandbox::new("alongside-bench-");
            let companion = Companion::serve(&run.programs.ours, &sandbox)?;
            run.runtime.block_on(fill(&companion, &sandbox, reviews))?;
            drop(companion);
            for _ in 0..run.rounds(ROUNDS) {
                let start = Instant::now();
                let companion = Companion::serve(&run.programs.ours, &sandbox)?;
                let pending = run.runtime.block_on(async {
                    let mut front = companion.front().await?;
                    anyhow::Ok(front.call::<requests::ReviewList>(Empty {}).await?)
                })?;
                row.push(Subject::Ours, &[start.elapsed().as_secs_f64()]);
                ensure!(
                    pending.len() == reviews,
                    "{} of {reviews} reviews are back",
                    pending.len()
                );
            }
            rows.push(row);
        }
        rows.extend(Row::growth(self.name(), "growth of a restart by reviews", &rows));
        Ok(rows)
    }
}

async fn fill(companion: &Companion, sandbox: &Sandbox, reviews: usize) -> Result<()> {
    let mut done = 0;
    while done < reviews {
        let agent = companion.agent().await?;
        for _ in 0..REVIEWS_PER_AGENT.min(reviews - done) {
            let file = sandbox.write(&format!("file-{done}.rs"), &texts::code(30));
            propose(&agent, proposal(&file, &texts::changed(30, 3))).await?;
            done += 1;
        }
    }
    Ok(())
}
