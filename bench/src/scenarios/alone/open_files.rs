//! The companion's CPU time for one context change, with more and more open files. Agents see the ten most recent ones.

use std::time::Duration;

use alongside_core::context::Cursor;
use alongside_protocol::{FilePath, Focus, requests};
use alongside_testing::Sandbox;
use anyhow::{Context, Result};

use crate::companion::Companion;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;

const SIZES: [usize; 4] = [10, 30, 100, 300];
const ROUNDS: usize = 3;
const CHANGES: u32 = 30;

pub(super) struct OpenFiles;

impl Scenario for OpenFiles {
    fn name(&self) -> &'static str {
        "open-files"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let mut rows = Vec::new();
        for files in SIZES {
            let name = format!("one context change, {files} open files, CPU");
            let mut row =
                Row::new(self.name(), name, Unit::Seconds).in_series("context change by open files", as_f64(files));
            let sandbox = Sandbox::new("alongside-bench-");
            let companion = Companion::serve(&run.programs.ours, &sandbox)?;
            let process = companion.process();
            run.runtime.block_on(async {
                let mut front = companion.front().await?;
                let path = |file: usize| sandbox.file(&format!("file-{file}.rs")).to_string_lossy().into_owned();
                for file in 0..files {
                    sandbox.write(&format!("file-{file}.rs"), "fn main() {}\n");
                    front
                        .call::<requests::ContextOpen>(FilePath { path: path(file) })
                        .await?;
                }
                let agent = companion.agent().await?;
                let mut events = agent.events(None).await?;
                let mut line = 0;
                for round in 0..=run.rounds(ROUNDS) {
                    let before = process.cpu()?;
                    for _ in 0..CHANGES {
                        line += 1;
                        // Another file each time, so that it gets the focus.
                        let focus = Focus {
                            path: path(usize::try_from(line)? % files.min(10)),
                            cursor: Some(Cursor { line, character: 1 }),
                            selected_text: None,
                            selection_start: None,
                        };
                        front.call::<requests::ContextFocus>(focus).await?;
                        loop {
                            let event = events.next().await?.context("the event stream ended")?;
                            if event["params"]["workspaceState"]["openFiles"][0]["cursor"]["line"] == line {
                                break;
                            }
                        }
                    }
                    // The first round also finds the files.
                    if round > 0 {
                        tokio::time::sleep(Duration::from_millis(5)).await;
                        let used = process.cpu()?.saturating_sub(before);
                        row.push(Subject::Ours, &[used.as_secs_f64() / f64::from(CHANGES)]);
                    }
                }
                anyhow::Ok(())
            })?;
            rows.push(row);
        }
        rows.extend(Row::growth(
            self.name(),
            "growth of a context change by open files",
            &rows,
        ));
        Ok(rows)
    }
}
