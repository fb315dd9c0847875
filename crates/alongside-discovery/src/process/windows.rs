//! Processes on Windows. The agents start a PowerShell for this, which takes most of a second and is not allowed everywhere.

use std::time::{Duration, SystemTime};

use sysinfo::{Pid, Process, ProcessRefreshKind, ProcessesToUpdate, System, UpdateKind};

use super::ProcessInfo;

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

pub(super) fn is_running(pid: u32) -> bool {
    ask(pid, |_| ()).is_some()
}

pub(super) fn started(pid: u32) -> Option<SystemTime> {
    let seconds = ask(pid, Process::start_time).filter(|seconds| *seconds > 0)?;
    Some(SystemTime::UNIX_EPOCH + Duration::from_secs(seconds))
}

fn ask<T>(pid: u32, question: impl FnOnce(&Process) -> T) -> Option<T> {
    let pid = Pid::from_u32(pid);
    let mut system = System::new();
    let kind = ProcessRefreshKind::nothing().with_cmd(UpdateKind::Always);
    system.refresh_processes_specifics(ProcessesToUpdate::Some(&[pid]), true, kind);
    system.process(pid).map(question)
}
