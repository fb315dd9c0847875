//! The end of a local agent's processes.
//!
//! An agent runs in a process group of its own, because many are wrappers around the program that does the work. Whatever ends the
//! connection ends the group: its stdin is closed first, then it is asked to exit, then it is killed. A [`Watchdog`] does the same
//! when the companion itself is killed and cannot.

use std::sync::Arc;
use std::time::Duration;

use tokio::process::Child;
use tokio::sync::watch;

/// How long an agent may take to exit after its stdin was closed, and again after it was asked to.
const EXIT_TIMEOUT: Duration = Duration::from_secs(1);

/// How long to wait for all of them. A process in the kernel's hands does not even end when it is killed.
const ALL_TIMEOUT: Duration = Duration::from_secs(10);

/// Counts the agents whose processes have not ended.
#[derive(Clone, Debug)]
pub(crate) struct Children(Arc<watch::Sender<usize>>);

/// One agent. Dropped when its processes have ended.
pub(super) struct Running(Children);

impl Default for Children {
    fn default() -> Self {
        Self(Arc::new(watch::channel(0).0))
    }
}

impl Children {
    pub(super) fn add(&self) -> Running {
        self.0.send_modify(|count| *count += 1);
        Running(self.clone())
    }

    /// Waits until the processes of all agents that were stopped have ended.
    pub(crate) async fn ended(&self) {
        let mut count = self.0.subscribe();
        let ended = count.wait_for(|count| *count == 0);
        if tokio::time::timeout(ALL_TIMEOUT, ended).await.is_err() {
            tracing::warn!("an agent's process does not end");
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.0.send_modify(|count| *count -= 1);
    }
}

/// Ends an agent whose stdin is closed, which a well-behaved program takes as the request to exit.
pub(super) async fn end(child: &mut Child) {
    let group = child.id();
    if tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await.is_ok() {
        return;
    }
    group::ask_to_exit(group);
    if tokio::time::timeout(EXIT_TIMEOUT, child.wait()).await.is_err() {
        let _ = child.kill().await;
    }
}

pub(super) use group::{Watchdog, end_group};

#[cfg(unix)]
mod group {
    use std::process::Stdio;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
    use tokio::io::AsyncWriteExt;
    use tokio::process::{Child, Command};

    use super::EXIT_TIMEOUT;

    /// Nothing reports the end of a process that is not our child.
    const POLL_INTERVAL: Duration = Duration::from_millis(20);

    /// Waits for a line. The end of its stdin in place of the line means that the companion is gone. The group that is left then
    /// gets up to two seconds to end by itself.
    const SCRIPT: &str = "trap '' HUP INT TERM
        read -r line && exit
        kill -s TERM -- \"-$1\" || exit
        left=20
        while [ $left -gt 0 ] && kill -s 0 -- \"-$1\"; do sleep 0.1; left=$((left - 1)); done
        kill -s KILL -- \"-$1\"";

    fn pid(group: Option<u32>) -> Option<Pid> {
        Pid::from_raw(i32::try_from(group?).ok()?)
    }

    pub(super) fn ask_to_exit(group: Option<u32>) {
        if let Some(group) = pid(group) {
            let _ = kill_process_group(group, Signal::TERM);
        }
    }

    /// Ends what an agent has left behind: a wrapper may exit before the program that it started.
    pub(in crate::acp) async fn end_group(group: Option<u32>) {
        let Some(group) = pid(group) else { return };
        for signal in [Signal::TERM, Signal::KILL] {
            if kill_process_group(group, signal).is_err() {
                return;
            }
            let ended = async {
                while test_kill_process_group(group).is_ok() {
                    tokio::time::sleep(POLL_INTERVAL).await;
                }
            };
            if tokio::time::timeout(EXIT_TIMEOUT, ended).await.is_ok() {
                return;
            }
        }
    }

    /// A small process that ends an agent's group when the companion is killed. A parent-death signal would reach only the wrapper,
    /// exists on Linux only, and needs code between `fork` and `exec`.
    pub(in crate::acp) struct Watchdog(Option<Child>);

    impl Watchdog {
        pub(in crate::acp) fn start(group: Option<u32>) -> Self {
            let Some(group) = group else { return Self(None) };
            let mut command = Command::new("/bin/sh");
            command
                .args(["-c", SCRIPT, "alongside-watchdog", &group.to_string()])
                .stdin(Stdio::piped())
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .process_group(0);
            match command.spawn() {
                Ok(child) => Self(Some(child)),
                Err(error) => {
                    tracing::warn!(%error, "cannot watch over the agent; it may outlive a killed companion");
                    Self(None)
                }
            }
        }

        /// The group has ended.
        pub(in crate::acp) async fn stop(self) {
            let Self(Some(mut child)) = self else { return };
            if let Some(mut stdin) = child.stdin.take() {
                let _ = stdin.write_all(b"\n").await;
                let _ = child.wait().await;
            }
        }
    }
}

#[cfg(not(unix))]
mod group {
    pub(super) fn ask_to_exit(_group: Option<u32>) {}

    #[allow(clippy::unused_async, reason = "it waits on other systems")]
    pub(in crate::acp) async fn end_group(_group: Option<u32>) {}

    /// Not available here.
    pub(in crate::acp) struct Watchdog;

    impl Watchdog {
        pub(in crate::acp) fn start(_group: Option<u32>) -> Self {
            Self
        }

        #[allow(clippy::unused_async, reason = "it waits on other systems")]
        pub(in crate::acp) async fn stop(self) {}
    }
}
