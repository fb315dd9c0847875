//! Runs editors' commands.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use alongside_platform::ProcessTree;

/// Installing an extension includes the download. A command that takes longer has probably opened a window.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);

pub trait Runner {
    /// Runs a command to completion and returns its stdout, or its error output on failure.
    fn run(&self, program: &Path, arguments: &[String]) -> Result<String, String>;
}

#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRunner;

impl Runner for SystemRunner {
    fn run(&self, program: &Path, arguments: &[String]) -> Result<String, String> {
        run(program, arguments, COMMAND_TIMEOUT).unwrap_or_else(|error| Err(error.to_string()))
    }
}

fn run(program: &Path, arguments: &[String], timeout: Duration) -> io::Result<Result<String, String>> {
    // Files, not pipes: an unread pipe fills up, and a grandchild may hold it open indefinitely.
    let (mut stdout, mut stderr) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut command = Command::new(alongside_platform::program(program.as_os_str()));
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(stdout.try_clone()?)
        .stderr(stderr.try_clone()?);
    let mut child = ProcessTree::start(command)?;
    let start = Instant::now();
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > timeout {
            child.kill()?;
            return Ok(Err(format!("it did not finish within {} seconds", timeout.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
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
        run(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], timeout).unwrap()
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
        assert!(SystemRunner.run(Path::new("/nowhere/code"), &[]).is_err());
    }

    #[test]
    fn hanging_command_is_killed() {
        let error = shell("exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("did not finish"), "{error}");
    }
}
