//! Runs the commands of editors.

use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Installing an extension downloads it. Anything longer is a command that has opened a window and waits for its end.
const COMMAND_TIMEOUT: Duration = Duration::from_mins(2);

/// Runs commands.
pub trait Runner {
    /// Runs a command to its end and gives what it printed; on failure, what it said about it.
    fn run(&self, program: &Path, arguments: &[String]) -> Result<String, String>;
}

/// Runs commands for real.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemRunner;

impl Runner for SystemRunner {
    fn run(&self, program: &Path, arguments: &[String]) -> Result<String, String> {
        run(program, arguments, COMMAND_TIMEOUT).unwrap_or_else(|error| Err(error.to_string()))
    }
}

fn run(program: &Path, arguments: &[String], patience: Duration) -> io::Result<Result<String, String>> {
    // Files and not pipes: a pipe that nobody reads fills up, and a grandchild may hold it open for ever.
    let (mut printed, mut said) = (tempfile::tempfile()?, tempfile::tempfile()?);
    let mut child = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(printed.try_clone()?)
        .stderr(said.try_clone()?)
        .spawn()?;
    let start = Instant::now();
    let status: ExitStatus = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > patience {
            child.kill()?;
            child.wait()?;
            return Ok(Err(format!("it did not finish within {} seconds", patience.as_secs())));
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let printed = content(&mut printed)?;
    if status.success() {
        return Ok(Ok(printed));
    }
    let said = content(&mut said)?;
    let words = [said.trim(), printed.trim()]
        .into_iter()
        .find(|words| !words.is_empty());
    Ok(Err(words.map_or_else(|| status.to_string(), str::to_owned)))
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

    fn shell(script: &str, patience: Duration) -> Result<String, String> {
        run(Path::new("/bin/sh"), &["-c".to_owned(), script.to_owned()], patience).unwrap()
    }

    #[test]
    fn a_command_gives_what_it_printed_or_what_it_said() {
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
    fn a_command_that_does_not_end_is_ended() {
        let error = shell("exec sleep 60", Duration::from_millis(50)).unwrap_err();
        assert!(error.contains("did not end"), "{error}");
    }
}
