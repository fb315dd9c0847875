//! System calls per `openDiff` with `closeDiff` and per context change, with strace.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use alongside_testing::Sandbox;
use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};

use super::{context, open_diff};
use crate::row::{Row, Unit};
use crate::run::Run;
use crate::samples::as_f64;
use crate::scenario::Scenario;
use crate::subject::Subject;

const SUBJECTS: [Subject; 4] = [Subject::Ours, Subject::Node, Subject::Rmcp, Subject::Floor];
const ROUNDS: usize = 3;
const CALLS: usize = 50;
const CHANGES: usize = 10;

pub(super) struct SystemCalls;

impl Scenario for SystemCalls {
    fn name(&self) -> &'static str {
        "syscalls"
    }

    fn run(&mut self, run: &Run) -> Result<Vec<Row>> {
        let row = |name: &str| Row::new(self.name(), name, Unit::Count);
        if let Err(error) = try_strace() {
            return Ok(vec![row(&format!("system calls: not measured, {error:#}"))]);
        }
        let mut calls = row("system calls of openDiff with closeDiff, 1 KiB");
        let mut changes = row("system calls of a context change, 1 session");
        run.in_turns(run.rounds(ROUNDS), &SUBJECTS, |subject| {
            let mut stage = open_diff::Stage::set_up(run, run.start(subject)?)?;
            let prepared = stage.prepare(1024);
            stage.check(&prepared)?;
            let trace = Trace::attach(stage.server.process.id(), &stage.server.sandbox.path("strace"))?;
            stage.measure(&prepared, CALLS)?;
            calls.push(subject, &[trace.count()? / as_f64(CALLS)]);

            let mut stage = context::Stage::set_up(run, subject)?;
            stage.crowd.grow(run, &stage.server, 1)?;
            std::thread::sleep(context::SETTLE);
            stage.change(run, 2)?;
            let trace = Trace::attach(stage.server.process.id(), &stage.server.sandbox.path("strace"))?;
            stage.change(run, CHANGES)?;
            changes.push(subject, &[trace.count()? / as_f64(CHANGES)]);
            Ok(())
        })?;
        Ok(vec![calls, changes])
    }
}

/// strace, attached to a program.
struct Trace {
    strace: Child,
    output: PathBuf,
}

impl Trace {
    /// Returns when strace follows all threads.
    fn attach(process: u32, output: &Path) -> Result<Self> {
        let mut strace = Command::new("strace")
            .args(["-f", "-c", "-o"])
            .arg(output)
            .args(["-p", &process.to_string()])
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .context("cannot start strace; install it")?;
        let mut line = String::new();
        if let Some(messages) = strace.stderr.as_mut() {
            BufReader::new(messages)
                .read_line(&mut line)
                .context("cannot read from strace")?;
        }
        let trace = Self {
            strace,
            output: output.to_owned(),
        };
        if !line.contains(" attached") {
            bail!("strace cannot attach to a process: {}", line.trim());
        }
        Ok(trace)
    }

    /// Detaches, and returns how many system calls there were.
    fn count(mut self) -> Result<f64> {
        let id = i32::try_from(self.strace.id()).ok().and_then(Pid::from_raw);
        kill_process(id.context("strace has no id")?, Signal::INT).context("cannot stop strace")?;
        self.strace.wait().context("cannot wait for strace")?;
        let text = fs::read_to_string(&self.output).context("strace wrote nothing")?;
        total(&text).context("strace counted nothing")
    }
}

impl Drop for Trace {
    fn drop(&mut self) {
        // It has ended already, unless something failed.
        let _ = self.strace.kill();
        let _ = self.strace.wait();
    }
}

/// Whether strace is installed and may attach to a process, which some systems forbid.
fn try_strace() -> Result<()> {
    let sandbox = Sandbox::new("alongside-bench-");
    let mut other = sandbox
        .command("cat")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .context("cannot start cat")?;
    let attached = Trace::attach(other.id(), &sandbox.path("strace"));
    let _ = other.kill();
    let _ = other.wait();
    attached.map(drop)
}

/// The number of calls in the last line of strace's summary.
fn total(summary: &str) -> Option<f64> {
    let line = summary.lines().rev().find(|line| line.ends_with("total"))?;
    line.split_whitespace().nth(3)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn total_is_read_from_the_summary() {
        let summary = "% time     seconds  usecs/call     calls    errors syscall\n\
                       ------ ----------- ----------- --------- --------- ----------------\n \
                       60.00    0.000600           3       200        12 futex\n\
                       ------ ----------- ----------- --------- --------- ----------------\n\
                       100.00    0.001000           2       451        12 total\n";
        assert_eq!(total(summary), Some(451.0));
        assert_eq!(total(""), None);
    }

    #[test]
    fn missing_process_cannot_be_traced() {
        let directory = Sandbox::new("alongside-bench-");
        // Either strace is missing, or the process is: there is none with this number.
        let error = Trace::attach(i32::MAX.cast_unsigned(), &directory.path("strace"))
            .err()
            .unwrap();
        assert!(error.to_string().contains("strace"), "{error:#}");
    }
}
