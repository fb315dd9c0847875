//! Commands as a user runs them: the whole process, next to a running companion with pending reviews.

use std::process::Stdio;
use std::time::{Duration, Instant};

use alongside_testing::Sandbox;
use anyhow::{Context, Result, ensure};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;

use crate::companion::{Companion, proposal, propose};
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;
use crate::texts;

const REVIEWS: usize = 20;
const ROUNDS: usize = 7;
const RUNS: usize = 20;

pub(super) struct Commands;

impl Scenario for Commands {
    fn name(&self) -> &'static str {
        "commands"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let sandbox = Sandbox::new("alongside-bench-");
        let companion = Companion::serve(&run.programs.ours, &sandbox)?;
        run.runtime.block_on(async {
            let agent = companion.agent().await?;
            for review in 0..REVIEWS {
                let file = sandbox.write(&format!("file-{review}.rs"), &texts::code(200));
                propose(&agent, proposal(&file, &texts::changed(200, 5))).await?;
            }
            anyhow::Ok(())
        })?;
        let commands: [&[&str]; 2] = [&["status"], &["diff", "list"]];
        let mut rows = Vec::new();
        for arguments in commands {
            let name = format!("`alongside {}`, {REVIEWS} reviews", arguments.join(" "));
            let mut wall = Row::new(self.name(), format!("{name}, wall"), Unit::Seconds).with_tail();
            let mut cpu = Row::new(self.name(), format!("{name}, CPU"), Unit::Seconds);
            // The first one reads the program from disk.
            once(run, &sandbox, arguments)?;
            for _ in 0..run.rounds(ROUNDS) {
                let before = children_cpu()?;
                let times = (0..RUNS)
                    .map(|_| once(run, &sandbox, arguments))
                    .collect::<Result<Vec<_>>>()?;
                wall.push(Subject::Ours, &times);
                cpu.push(Subject::Ours, &[(children_cpu()? - before) / as_f64(RUNS)]);
            }
            rows.extend([wall, cpu]);
        }
        Ok(rows)
    }
}

fn once(run: &Run, sandbox: &Sandbox, arguments: &[&str]) -> Result<f64> {
    let mut command = sandbox.command(&run.programs.ours);
    command.args(arguments).stdout(Stdio::null()).stderr(Stdio::null());
    let start = Instant::now();
    let status = command.status().context("cannot start a command")?;
    let took = start.elapsed().as_secs_f64();
    ensure!(status.success(), "`alongside {}` failed: {status}", arguments.join(" "));
    Ok(took)
}

/// The CPU time of all children that have ended, in seconds. `/proc/self/stat` has it too, but in hundredths of a second.
fn children_cpu() -> Result<f64> {
    let usage = getrusage(UsageWho::RUSAGE_CHILDREN).context("cannot read the CPU time of commands")?;
    let used = usage.user_time() + usage.system_time();
    Ok(Duration::from_micros(used.num_microseconds().try_into()?).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_of_one_short_command_is_not_rounded_away() {
        let before = children_cpu().unwrap();
        let status = std::process::Command::new("true").status().unwrap();
        let used = children_cpu().unwrap() - before;
        assert!(status.success() && used > 0.0, "{used}");
    }
}
