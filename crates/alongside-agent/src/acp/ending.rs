//! The end of a local agent's processes.
//!
//! An agent runs in a process group of its own, because many are wrappers around the program that does the work. Whatever ends the
//! connection ends the group: its stdin is closed first, then it is asked to exit, then it is killed. A [`Watchdog`] does the same
//! when the companion itself is killed and cannot.

use std::sync::Arc;
use std::time::Duration;

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
pub(super) async fn end(group: &mut Group) {
    if tokio::time::timeout(EXIT_TIMEOUT, group.exited()).await.is_ok() {
        return;
    }
    group.ask_to_exit();
    if tokio::time::timeout(EXIT_TIMEOUT, group.exited()).await.is_err() {
        group.kill().await;
    }
}

pub use group::Group;

#[cfg(unix)]
mod group {
    use std::io;
    use std::process::{ExitStatus, Stdio};
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process_group, test_kill_process_group};
    use tokio::io::AsyncWriteExt;
    use tokio::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command};

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

    /// An agent and the processes that it started.
    pub struct Group {
        child: Child,
        id: Option<Pid>,
        watchdog: Watchdog,
    }

    impl Group {
        /// Starts it in a process group of its own: Ctrl-C in our terminal is not meant for it, and its own children are stopped
        /// with it.
        pub fn start(mut command: Command) -> io::Result<Self> {
            let child = command.process_group(0).spawn()?;
            let watchdog = Watchdog::start(child.id());
            let id = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
            Ok(Self { child, id, watchdog })
        }

        pub fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
            let child = &mut self.child;
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        }

        /// Waits for the agent itself, which may leave others behind.
        pub async fn exited(&mut self) -> io::Result<ExitStatus> {
            self.child.wait().await
        }

        pub(super) fn ask_to_exit(&self) {
            if let Some(group) = self.id {
                let _ = kill_process_group(group, Signal::TERM);
            }
        }

        pub(super) async fn kill(&mut self) {
            let _ = self.child.kill().await;
        }

        /// Ends what an agent has left behind: a wrapper may exit before the program that it started.
        pub async fn end(self) {
            if let Some(group) = self.id {
                end_group(group).await;
            }
            self.watchdog.stop().await;
        }
    }

    async fn end_group(group: Pid) {
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
    struct Watchdog(Option<Child>);

    impl Watchdog {
        fn start(group: Option<u32>) -> Self {
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
        async fn stop(self) {
            let Self(Some(mut child)) = self else { return };
            if let Some(mut stdin) = child.stdin.take() {
                let _ = stdin.write_all(b"\n").await;
                let _ = child.wait().await;
            }
        }
    }
}

#[cfg(windows)]
mod group {
    use std::io;
    use std::process::ExitStatus;

    use process_wrap::tokio::{ChildWrapper, CommandWrap, CreationFlags, JobObject, KillOnDrop};
    use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
    use windows::Win32::System::Threading::{CREATE_NEW_PROCESS_GROUP, CREATE_NO_WINDOW};

    use super::EXIT_TIMEOUT;

    /// An agent and the processes that it started, in a job object: the system ends all of them when the job's last handle is
    /// closed, which also happens when the companion is killed.
    pub struct Group(Box<dyn ChildWrapper>);

    impl Group {
        /// Ctrl-C in our console is not meant for it, and no console window appears where we have none.
        pub fn start(command: Command) -> io::Result<Self> {
            let mut command = CommandWrap::from(command);
            command
                .wrap(CreationFlags(CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW))
                .wrap(KillOnDrop)
                .wrap(JobObject);
            command.spawn().map(Self)
        }

        pub fn pipes(&mut self) -> (Option<ChildStdin>, Option<ChildStdout>, Option<ChildStderr>) {
            let child = &mut self.0;
            (child.stdin().take(), child.stdout().take(), child.stderr().take())
        }

        /// Waits for the agent itself, which may leave others behind.
        pub async fn exited(&mut self) -> io::Result<ExitStatus> {
            self.0.inner_mut().wait().await
        }

        /// A program without a window cannot be asked.
        #[expect(clippy::unused_self, reason = "other systems ask the group")]
        pub(super) fn ask_to_exit(&self) {}

        pub(super) async fn kill(&mut self) {
            let _ = self.0.start_kill();
            let _ = self.exited().await;
        }

        /// Ends what an agent has left behind: a wrapper may exit before the program that it started.
        pub async fn end(mut self) {
            let _ = self.0.start_kill();
            let _ = tokio::time::timeout(EXIT_TIMEOUT, self.0.wait()).await;
        }
    }
}
