//! A program and everything that it starts.

use std::io;
use std::process::{Command, ExitStatus};

/// A running program that can be killed with the processes that it started: many commands are scripts around the program that
/// does the work.
pub struct ProcessTree(system::Tree);

impl ProcessTree {
    /// Starts it apart from us: Ctrl-C in our terminal does not reach it.
    pub fn start(command: Command) -> io::Result<Self> {
        system::Tree::start(command).map(Self)
    }

    /// The exit status of the program itself, if it has exited.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.0.try_wait()
    }

    /// Kills all of it, and waits for the program itself.
    pub fn kill(&mut self) -> io::Result<()> {
        self.0.kill()
    }
}

#[cfg(unix)]
mod system {
    use std::io;
    use std::os::unix::process::CommandExt as _;
    use std::process::{Child, Command, ExitStatus};

    use rustix::process::{Pid, Signal, kill_process_group};

    pub(super) struct Tree(Child);

    impl Tree {
        pub(super) fn start(mut command: Command) -> io::Result<Self> {
            command.process_group(0).spawn().map(Self)
        }

        pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
            self.0.try_wait()
        }

        pub(super) fn kill(&mut self) -> io::Result<()> {
            match i32::try_from(self.0.id()).ok().and_then(Pid::from_raw) {
                // Fails only if all of them have ended.
                Some(group) => drop(kill_process_group(group, Signal::KILL)),
                None => self.0.kill()?,
            }
            self.0.wait().map(drop)
        }
    }
}

#[cfg(windows)]
mod system {
    use std::io;
    use std::process::{Command, ExitStatus};

    use process_wrap::std::{ChildWrapper, CommandWrap, CreationFlags, JobObject};
    use windows::Win32::System::Threading::CREATE_NO_WINDOW;

    pub(super) struct Tree(Box<dyn ChildWrapper>);

    impl Tree {
        pub(super) fn start(command: Command) -> io::Result<Self> {
            let mut command = CommandWrap::from(command);
            command.wrap(CreationFlags(CREATE_NO_WINDOW)).wrap(JobObject);
            command.spawn().map(Self)
        }

        /// Not of the whole job: an editor's command may leave the editor running.
        pub(super) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
            self.0.inner_mut().try_wait()
        }

        pub(super) fn kill(&mut self) -> io::Result<()> {
            self.0.start_kill()?;
            self.0.inner_mut().wait().map(drop)
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn killed_program_leaves_nothing_running() {
        let scratch = tempfile::tempdir().unwrap();
        let noted = scratch.path().join("pid");
        let mut command = Command::new("sh");
        let script = "sleep 600 & echo $! > \"$1.new\"; mv \"$1.new\" \"$1\"; wait";
        command.args(["-c", script, "sh"]).arg(&noted);
        let mut tree = ProcessTree::start(command).unwrap();
        while !noted.exists() {
            std::thread::yield_now();
        }
        let pid = std::fs::read_to_string(&noted).unwrap().trim().parse().unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        assert!(tree.try_wait().unwrap().is_none());
        tree.kill().unwrap();
        // It is not our child, so it disappears a moment later; a zombie that nobody reaps has no files.
        let has_files = || std::fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|files| files.count() > 0);
        let is_running =
            || rustix::process::test_kill_process(pid).is_ok() && (!cfg!(target_os = "linux") || has_files());
        for _ in 0..1000 {
            if !is_running() {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("{pid} is still running");
    }
}
