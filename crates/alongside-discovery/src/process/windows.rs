//! Processes on Windows. The agents start a PowerShell for this, which takes most of a second and is not allowed everywhere.

use std::time::{Duration, SystemTime};

use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::{Alive, ProcessInfo, alive_in};

/// A process with its command line, as far as it is visible.
pub(super) fn find(pid: u32) -> Option<ProcessInfo> {
    ask(pid, |process| {
        let words: Vec<_> = process.cmd().iter().map(|word| word.to_string_lossy()).collect();
        ProcessInfo {
            pid,
            parent: process.parent().map_or(0, Pid::as_u32),
            command: words.join(" "),
        }
    })
}

pub(super) fn is_alive(pid: u32) -> Alive {
    let own = std::process::id();
    let system = look(&[pid, own], ProcessRefreshKind::nothing());
    alive_in(|pid| system.process(Pid::from_u32(pid)).is_some(), pid, own)
}

pub(super) fn started(pid: u32) -> Option<SystemTime> {
    let seconds = ask(pid, Process::start_time).filter(|seconds| *seconds > 0)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

/// `None` also if the table of processes cannot be read.
fn ask<T>(pid: u32, question: impl FnOnce(&Process) -> T) -> Option<T> {
    let kind = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always);
    look(&[pid], kind).process(Pid::from_u32(pid)).map(question)
}

fn look(pids: &[u32], kind: ProcessRefreshKind) -> System {
    let pids: Vec<Pid> = pids.iter().copied().map(Pid::from_u32).collect();
    let mut system = System::new();
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&pids), true, kind);
    system
}
