//! The process tree, liveness, and which process an agent treats as the editor.
//!
//! The agents guess the editor from the process tree. The guess now only breaks ties and finds legacy files, but
//! `doctor` has to make the same guess to get the same result.

mod walk;

#[cfg(target_os = "linux")]
mod linux;
#[cfg(all(unix, any(not(target_os = "linux"), test)))]
mod ps;
#[cfg(windows)]
mod windows;

use std::collections::BTreeMap;
use std::time::SystemTime;

use serde::{Deserialize, Serialize};

pub use walk::{IdeProcess, ide_process};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProcessInfo {
    pub pid: u32,
    pub parent: u32,
    pub command: String,
}

/// Whether a process with some PID exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Alive {
    Yes,
    /// It exists but belongs to another user. Gemini CLI treats that as alive, Qwen Code as dead.
    YesButForeign,
    No,
}

/// Tells a process from a later one with the same PID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct StartStamp(String);

impl StartStamp {
    /// `None` if the process is not visible.
    pub fn of(pid: u32) -> Option<Self> {
        #[cfg(target_os = "linux")]
        return linux::start_stamp(pid).map(Self);
        #[cfg(all(unix, not(target_os = "linux")))]
        return ps::start_stamp(pid).map(Self);
        #[cfg(windows)]
        return {
            let started = windows::started(pid)?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
            Some(Self(started.as_secs().to_string()))
        };
    }
}

/// Access to the running processes.
pub trait Processes {
    /// A process, if it is visible.
    fn find(&self, pid: u32) -> Option<ProcessInfo>;

    fn is_alive(&self, pid: u32) -> Alive;

    /// When a process started, where known.
    fn started(&self, _pid: u32) -> Option<SystemTime> {
        None
    }
}

#[derive(Debug, Default)]
pub struct SystemProcesses(());

/// A fixed set of processes: a snapshot, or made up for a test.
#[derive(Clone, Debug, Default)]
pub struct ProcessTable {
    processes: BTreeMap<u32, ProcessInfo>,
    foreign: Vec<u32>,
}

impl ProcessTable {
    pub fn new(processes: impl IntoIterator<Item = ProcessInfo>) -> Self {
        let processes = processes.into_iter().map(|process| (process.pid, process)).collect();
        Self {
            processes,
            foreign: Vec::new(),
        }
    }

    /// The same table with one more process.
    #[must_use]
    pub fn with(mut self, pid: u32, parent: u32, command: &str) -> Self {
        let command = command.to_owned();
        self.processes.insert(pid, ProcessInfo { pid, parent, command });
        self
    }

    /// The same table, with a process marked as another user's.
    #[must_use]
    pub fn with_foreign(mut self, pid: u32) -> Self {
        self.foreign.push(pid);
        self
    }
}

impl Processes for ProcessTable {
    fn find(&self, pid: u32) -> Option<ProcessInfo> {
        self.processes.get(&pid).cloned()
    }

    fn is_alive(&self, pid: u32) -> Alive {
        if self.foreign.contains(&pid) {
            Alive::YesButForeign
        } else if self.processes.contains_key(&pid) {
            Alive::Yes
        } else {
            Alive::No
        }
    }
}

#[cfg(unix)]
impl Processes for SystemProcesses {
    fn find(&self, pid: u32) -> Option<ProcessInfo> {
        #[cfg(target_os = "linux")]
        return linux::find(pid);
        #[cfg(not(target_os = "linux"))]
        return ps::find(pid);
    }

    fn is_alive(&self, pid: u32) -> Alive {
        let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) else {
            return Alive::No;
        };
        match rustix::process::test_kill_process(pid) {
            Ok(()) => Alive::Yes,
            Err(rustix::io::Errno::PERM) => Alive::YesButForeign,
            Err(_) => Alive::No,
        }
    }

    fn started(&self, pid: u32) -> Option<SystemTime> {
        #[cfg(target_os = "linux")]
        return linux::started(pid);
        #[cfg(not(target_os = "linux"))]
        return ps::started(pid);
    }
}

#[cfg(windows)]
impl Processes for SystemProcesses {
    fn find(&self, pid: u32) -> Option<ProcessInfo> {
        windows::find(pid)
    }

    fn is_alive(&self, pid: u32) -> Alive {
        windows::is_alive(pid)
    }

    fn started(&self, pid: u32) -> Option<SystemTime> {
        windows::started(pid)
    }
}

/// What the system's table of processes shows about one. Without our own process it could not be read, which proves nothing: taken for
/// the end of a process, it would stop companions and remove the files of others.
#[cfg(any(windows, test))]
fn alive_in(lists: impl Fn(u32) -> bool, pid: u32, own: u32) -> Alive {
    if lists(pid) || !lists(own) {
        Alive::Yes
    } else {
        Alive::No
    }
}

#[cfg(test)]
#[cfg(unix)]
pub(crate) mod tests {
    use super::*;

    #[test]
    fn process_is_not_dead_if_the_table_cannot_be_read() {
        let own = 7;
        for (table, alive) in [
            (&[own, 9][..], Alive::Yes),
            (&[own], Alive::No),
            (&[], Alive::Yes),
            (&[9], Alive::Yes),
        ] {
            assert_eq!(alive_in(|pid| table.contains(&pid), 9, own), alive, "{table:?}");
        }
    }

    /// The PID of an exited process.
    pub(crate) fn dead_pid() -> u32 {
        let mut child = std::process::Command::new("true").spawn().unwrap();
        child.wait().unwrap();
        child.id()
    }

    #[test]
    fn own_process_is_alive_and_exited_child_is_not() {
        let processes = SystemProcesses::default();
        assert_eq!(processes.is_alive(std::process::id()), Alive::Yes);
        assert_eq!(processes.is_alive(dead_pid()), Alive::No);
        assert_eq!(processes.is_alive(0), Alive::No);
        assert_eq!(processes.is_alive(u32::MAX), Alive::No);
    }

    #[test]
    fn own_process_is_found_with_its_parent() {
        let own = SystemProcesses::default().find(std::process::id()).unwrap();
        assert_eq!(own.parent, std::os::unix::process::parent_id());
        assert!(own.command.contains("alongside"), "{own:?}");
    }

    #[test]
    fn start_stamp_stays_the_same_and_differs_between_processes() {
        let own = StartStamp::of(std::process::id()).unwrap();
        assert_eq!(StartStamp::of(std::process::id()), Some(own.clone()));
        assert_ne!(StartStamp::of(1), Some(own));
        assert_eq!(StartStamp::of(dead_pid()), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn child_started_after_parent() {
        let processes = SystemProcesses::default();
        let own = processes.started(std::process::id()).unwrap();
        assert!(own <= SystemTime::now() + std::time::Duration::from_secs(2));
        assert_eq!(processes.started(dead_pid()), None);
    }
}
