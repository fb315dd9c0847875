//! Runs editors' commands.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{self, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use alongside_platform::ProcessTree;

/// Installing an extension includes the download. A command that takes longer has probably opened a window.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);

pub trait Runner {
    /// Runs a command to completion and returns its stdout, or its error output on failure.
    fn run(&self, program: &Path, arguments: &[String]) -> Result<String, String>;
}

/// Runs commands of the system, one at a time. Clones share it.
#[derive(Clone, Default)]
pub struct SystemRunner(Arc<Mutex<Command>>);

/// What is running.
#[derive(Default)]
enum Command {
    #[default]
    None,
    Running(ProcessTree),
    /// There will be none.
    Interrupted,
}

impl Runner for SystemRunner {
    fn run(&self, program: &Path, arguments: &[String]) -> Result<String, String> {
        self.run_within(COMMAND_TIMEOUT, program, arguments)
            .unwrap_or_else(|error| Err(error.to_string()))
    }
}

impl SystemRunner {
    /// Kills the running command with everything that it started; those after it fail. It does not share our terminal, so Ctrl-C does
    /// not reach it.
    pub fn interrupt(&self) {
        let mut command = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Dropping a command that is running kills it.
        *command = Command::Interrupted;
    }

    fn run_within(
        &self,
        timeout: Duration,
        program: &Path,
        arguments: &[String],
    ) -> io::Result<Result<String, String>> {
        // Files, not pipes: an unread pipe fills up, and a grandchild may hold it open indefinitely.
        let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
        let mut command = process::Command::new(alongside_platform::program(program.as_os_str()));
        command
            .args(arguments)
            .stdin(Stdio::null())
            .stdout(stdout.try_clone()?)
            .stderr(stderr.try_clone()?);
        let status = match self.wait(command, timeout)? {
            Ok(status) => status,
            Err(reason) => return Ok(Err(reason)),
        };
        let stdout = content(&mut stdout)?;
        if status.success() {
            return Ok(Ok(stdout));
        }
        let stderr = content(&mut stderr)?;
        let output = [stderr.trim(), stdout.trim()]
            .into_iter()
            .find(|output| !output.is_empty());
        Ok(Err(output.map_or_else(|| status.to_string(), str::to_owned)))
    }

    /// Its exit status, or why there is none.
    fn wait(&self, command: process::Command, timeout: Duration) -> io::Result<Result<ExitStatus, String>> {
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let interrupted = || Ok(Err("it was interrupted".to_owned()));
        let mut running = lock();
        if matches!(*running, Command::Interrupted) {
            return interrupted();
        }
        *running = Command::Running(ProcessTree::start(command)?);
        drop(running);
        let start = Instant::now();
        loop {
            let mut running = lock();
            let Command::Running(tree) = &mut *running else {
                return interrupted();
            };
            if let Some(status) = tree.try_wait()? {
                *running = Command::None;
                return Ok(Ok(status));
            }
            if start.elapsed() > timeout {
                tree.kill()?;
                *running = Command::None;
                return Ok(Err(format!("it did not finish within {} seconds", timeout.as_secs())));
            }
            drop(running);
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

fn content(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;

    fn shell(script: &str, timeout: Duration) -> Result<String, String> {
        let arguments = ["-c".to_owned(), script.to_owned()];
        let runner = SystemRunner::default();
        runner.run_within(timeout, Path::new("/bin/sh"), &arguments).unwrap()
    }

    #[test]
    fn run_returns_stdout_or_error_output() {
        assert_eq!(shell("echo yes; echo no >&2", COMMAND_TIMEOUT), Ok("yes\n".to_owned()));
        assert_eq!(
            shell("echo yes; echo no >&2; exit 3", COMMAND_TIMEOUT),
            Err("no".to_owned())
        );
        assert_eq!(shell("echo yes; exit 3", COMMAND_TIMEOUT), Err("yes".to_owned()));
        assert!(shell("exit 3", COMMAND_TIMEOUT).unwrap_err().contains('3'));
        assert!(SystemRunner::default().run(Path::new("/nowhere/code"), &[]).is_err());
    }

    #[test]
    fn hanging_command_is_killed() {
        let error = shell("exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("did not finish"), "{error}");
    }

    #[test]
    fn interrupted_command_is_killed_and_no_other_starts() {
        let runner = SystemRunner::default();
        let scratch = tempfile::tempdir().unwrap();
        let started = scratch.path().join("started");
        let script = format!("touch '{}'; exec sleep 600", started.display());
        let run = |script: &str| runner.run(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()]);
        let result = std::thread::scope(|scope| {
            let running = scope.spawn(|| run(&script));
            while !started.exists() {
                std::thread::yield_now();
            }
            runner.interrupt();
            running.join().unwrap()
        });
        assert_eq!(result, Err("it was interrupted".to_owned()));
        std::fs::remove_file(&started).unwrap();
        assert_eq!(run(&script), Err("it was interrupted".to_owned()));
        assert!(!started.exists());
    }
}
