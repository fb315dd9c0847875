//! A program and everything that it starts.

use std::io;
use std::process::{Command, ExitStatus};

/// A running program that can be killed with the processes that it started: many commands are scripts around the program that
/// does the work. Killed when dropped, unless the program has exited: what it then leaves behind is meant to stay.
pub struct ProcessTree {
    tree: system::Tree,
    has_exited: bool,
}

impl ProcessTree {
    /// Starts it apart from us: Ctrl-C in our terminal does not reach it.
    pub fn start(command: Command) -> io::Result<Self> {
        let tree = system::Tree::start(command)?;
        Ok(Self {
            tree,
            has_exited: false,
        })
    }

    /// The exit status of the program itself, if it has exited.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        let status = self.tree.try_wait()?;
        self.has_exited |= status.is_some();
        Ok(status)
    }

    /// Kills all of it, and waits for the program itself.
    pub fn kill(&mut self) -> io::Result<()> {
        self.tree.kill()?;
        self.has_exited = true;
        Ok(())
    }
}

impl Drop for ProcessTree {
    fn drop(&mut self) {
        if !self.has_exited {
            let _ = self.kill();
        }
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

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use std::path::Path;
    use std::time::Duration;

    use rustix::process::{Pid, Signal, kill_process, test_kill_process};

    use super::*;

    /// A script that waits for another program, and that program.
    fn script(directory: &Path) -> (ProcessTree, Pid) {
        let noted = directory.join("pid");
        let mut command = Command::new("sh");
        let script = "sleep 600 & echo $! > \"$1.new\"; mv \"$1.new\" \"$1\"; wait";
        command.args(["-c", script, "sh"]).arg(&noted);
        let tree = ProcessTree::start(command).unwrap();
        while !noted.exists() {
            std::thread::yield_now();
        }
        let pid = std::fs::read_to_string(&noted).unwrap().trim().parse().unwrap();
        (tree, Pid::from_raw(pid).unwrap())
    }

    fn ends(pid: Pid) -> bool {
        // It is not our child, so it disappears a moment later; a zombie that nobody reaps has no files.
        let has_files = || std::fs::read_dir(format!("/proc/{pid}/fd")).is_ok_and(|files| files.count() > 0);
        let is_running = || test_kill_process(pid).is_ok() && (!cfg!(target_os = "linux") || has_files());
        for _ in 0..1000 {
            if !is_running() {
                return true;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        false
    }

    #[test]
    fn killed_program_leaves_nothing_running() {
        let scratch = tempfile::tempdir().unwrap();
        let (mut tree, pid) = script(scratch.path());
        assert!(tree.try_wait().unwrap().is_none());
        tree.kill().unwrap();
        assert!(ends(pid), "{pid} is still running");
    }

    #[test]
    fn dropped_program_leaves_nothing_running() {
        let scratch = tempfile::tempdir().unwrap();
        let (tree, pid) = script(scratch.path());
        drop(tree);
        assert!(ends(pid), "{pid} is still running");
    }

    #[test]
    fn program_that_has_exited_may_leave_others_running() {
        let scratch = tempfile::tempdir().unwrap();
        let noted = scratch.path().join("pid");
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 600 >/dev/null 2>&1 & echo $! > \"$1\"", "sh"])
            .arg(&noted);
        let mut tree = ProcessTree::start(command).unwrap();
        while tree.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        drop(tree);
        let pid = std::fs::read_to_string(&noted).unwrap().trim().parse().unwrap();
        let pid = Pid::from_raw(pid).unwrap();
        let is_running = test_kill_process(pid).is_ok();
        let _ = kill_process(pid, Signal::KILL);
        assert!(is_running, "{pid} was killed");
    }
}
