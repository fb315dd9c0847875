//! Deciding every hunk of a file, one after the other, as a careful reader does.

use std::time::Instant;

use alongside_protocol::{DecideHunkParams, Empty, HunkAction, ReviewRef, requests};
use alongside_testing::Sandbox;
use anyhow::{Context, Result};

use crate::companion::{Companion, proposal, propose};
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::texts;

const LINES: usize = 20_000;
const CHANGES: [usize; 4] = [125, 250, 500, 1_000];
const ROUNDS: usize = 5;

pub(super) struct DecideAll;

impl Scenario for DecideAll {
    fn name(&self) -> &'static str {
        "decide-all"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for changes in CHANGES {
            let name = format!("{changes} hunks decided one by one, {LINES} lines");
            let mut row = Row::new(self.name(), name, Unit::Seconds).in_series("all hunks by changes", as_f64(changes));
            let sandbox = Sandbox::new("alongside-bench-");
            let companion = Companion::serve(&run.programs.ours, &sandbox)?;
            let file = sandbox.write("a.rs", &texts::code(LINES));
            run.runtime.block_on(async {
                let agent = companion.agent().await?;
                let mut front = companion.front().await?;
                for _ in 0..run.rounds(ROUNDS) {
                    propose(&agent, proposal(&file, &texts::changed(LINES, changes))).await?;
                    let pending = front.call::<requests::ReviewList>(Empty {}).await?;
                    let review = pending.first().context("no review is pending")?.id;
                    let shown = front.call::<requests::ReviewGet>(ReviewRef { review }).await?;
                    let start = Instant::now();
                    for hunk in &shown.hunks {
                        let decision = HunkAction::Reject;
                        let decided = DecideHunkParams {
                            review,
                            hunk: hunk.id,
                            decision,
                        };
                        front.call::<requests::ReviewHunk>(decided).await?;
                    }
                    row.push(Subject::Ours, &[start.elapsed().as_secs_f64()]);
                    front.call::<requests::ReviewReject>(review.into()).await?;
                }
                anyhow::Ok(())
            })?;
            rows.push(row);
        }
        rows.extend(Row::growth(
            self.name(),
            "growth of deciding all hunks by changes",
            &rows,
        ));
        Ok(rows)
    }
}
