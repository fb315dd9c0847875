//! From a line that an editor plugin writes to its bridge to the event that its agent receives.

use std::time::Instant;

use alongside_testing::Sandbox;
use anyhow::{Context, Result};
use serde_json::json;

use crate::companion::Companion;
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::scenario::Scenario;
use crate::subject::Subject;

/// Changes are collected this long before they are sent (`alongside-core/src/core/context.rs`). It is a choice and not a cost.
const DEBOUNCE_SECONDS: f64 = 0.050;
const ROUNDS: usize = 5;
const KEYSTROKES: usize = 40;

pub(super) struct Keystroke;

impl Scenario for Keystroke {
    fn name(&self) -> &'static str {
        "keystroke"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let name = "keystroke to agent through the bridge, less the 50 ms debounce";
        let mut row = Row::new(self.name(), name, Unit::Seconds).with_tail();
        let sandbox = Sandbox::new("alongside-bench-");
        let file = sandbox.write("a.rs", "fn main() {}\n");
        let mut bridge = Companion::bridge(&run.programs.ours, &sandbox)?;
        bridge.send_line(
            &json!({"jsonrpc": "2.0", "id": 0, "method": "hello", "params": {"protocol": 1, "name": "bench"}}),
        )?;
        let mut times = run.runtime.block_on(async {
            let agent = bridge.agent().await?;
            let mut events = agent.events(None).await?;
            let mut times = Vec::new();
            for keystroke in 1..=KEYSTROKES * run.rounds(ROUNDS) {
                let cursor = json!({"line": keystroke, "character": 1});
                let focus = json!({"jsonrpc": "2.0", "id": keystroke, "method": "context/focus", "params": {"path": file, "cursor": cursor}});
                let start = Instant::now();
                bridge.send_line(&focus)?;
                loop {
                    let event = events.next().await?.context("the event stream ended")?;
                    if event["params"]["workspaceState"]["openFiles"][0]["cursor"] == cursor {
                        break;
                    }
                }
                times.push(start.elapsed().as_secs_f64() - DEBOUNCE_SECONDS);
            }
            anyhow::Ok(times)
        })?;
        // The first one also finds the file.
        times.remove(0);
        for round in times.chunks(KEYSTROKES) {
            row.push(Subject::Ours, round);
        }
        Ok(vec![row])
    }
}
