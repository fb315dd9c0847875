//! Inspects and kills processes started by a test.

use std::fs;
use std::path::Path;

use rustix::process::{Pid, Signal, kill_process};

/// Sends a signal. It is fine if the process has already exited.
pub(crate) fn signal(pid: u32, signal: Signal) {
    let pid = to_pid(pid);
    let _ = kill_process(pid, signal);
}

/// Kills a process without warning.
pub fn kill(pid: u32) {
    signal(pid, Signal::KILL);
}

/// Whether a process with this PID is running. Zombies do not count: in a container, PID 1 may never reap them.
pub(crate) fn is_alive(pid: u32) -> bool {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat"));
    let state = status
        .as_deref()
        .ok()
        .and_then(|status| status.rsplit_once(')'))
        .map(|(_, rest)| rest.trim_start());
    state.is_some_and(|state| !state.starts_with(['Z', 'X']))
}

/// The process that started it.
pub(crate) fn parent(pid: u32) -> Option<u32> {
    let status = fs::read_to_string(Path::new("/proc").join(pid.to_string()).join("stat")).ok()?;
    let (_, rest) = status.rsplit_once(')')?;
    rest.split_whitespace().nth(1)?.parse().ok()
}

/// All descendants of `pid`, children before grandchildren.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let mut found = vec![pid];
    let mut next = 0;
    while let Some(&parent) = found.get(next) {
        found.extend(children(parent));
        next += 1;
    }
    found.split_off(1)
}

fn children(pid: u32) -> Vec<u32> {
    let tasks = Path::new("/proc").join(pid.to_string()).join("task");
    let Ok(tasks) = fs::read_dir(tasks) else {
        return Vec::new();
    };
    tasks
        .flatten()
        .filter_map(|task| fs::read_to_string(task.path().join("children")).ok())
        .flat_map(|list| {
            list.split_whitespace()
                .filter_map(|pid| pid.parse().ok())
                .collect::<Vec<_>>()
        })
        .collect()
}

fn to_pid(pid: u32) -> Pid {
    let raw = i32::try_from(pid).expect("a process id fits");
    Pid::from_raw(raw).expect("a process id is not zero")
}
