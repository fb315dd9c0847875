//! Runs tests that drive real programs, and those that fail a second time.
//!
//! An editor, a browser or an agent on a busy machine sometimes ignores a key or draws late. Such a test may fail once without
//! anything being wrong, and out of several hundred one often does. A test that fails is run again, alone; if it passes then,
//! the step passes, and the summary names it, so that it is looked at.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use crate::plan::Verdict;

/// More failures than this are not bad luck.
const MAX_TESTS: usize = 3;

/// Runs `cargo test`. `again` is the same command without test names and options of the tests.
pub(crate) fn run(first: Command, again: impl FnOnce() -> Result<Command, String>) -> Result<Verdict, String> {
    let Attempt { failed, failure, .. } = Attempt::make(first)?;
    let Some(failure) = failure else {
        return Ok(Verdict::Passed);
    };
    if failed.is_empty() || failed.len() > MAX_TESTS {
        return Err(failure);
    }
    eprintln!("xtask: a second attempt for {}", failed.join(", "));
    let mut command = again()?;
    command.args(["--", "--test-threads=1", "--exact"]).args(&failed);
    let second = Attempt::make(command)?;
    if let Some(failure) = second.failure {
        return Err(failure);
    }
    // `cargo test` is content if no test has such a name.
    match failed.iter().find(|name| !second.passed.contains(name)) {
        Some(name) => Err(format!("{name} failed, and did not run at the second attempt")),
        None => Ok(Verdict::PassedAgain(failed)),
    }
}

/// What a run of tests printed.
#[derive(Default)]
struct Attempt {
    passed: Vec<String>,
    failed: Vec<String>,
    failure: Option<String>,
}

impl Attempt {
    /// Shows the output, too.
    fn make(mut command: Command) -> Result<Self, String> {
        let cannot_run = |error: std::io::Error| format!("cannot run the tests: {error}");
        let mut child = command.stdout(Stdio::piped()).spawn().map_err(cannot_run)?;
        let mut attempt = Self::default();
        if let Some(output) = child.stdout.take() {
            for line in BufReader::new(output).split(b'\n') {
                let line = line.map_err(cannot_run)?;
                let line = String::from_utf8_lossy(&line);
                println!("{line}");
                attempt.passed.extend(test_with(&line, " ... ok"));
                attempt.failed.extend(test_with(&line, " ... FAILED"));
            }
        }
        let status = child.wait().map_err(cannot_run)?;
        if !status.success() {
            attempt.failure = Some(format!("{command:?} failed: {status}"));
        }
        Ok(attempt)
    }
}

fn test_with(line: &str, result: &str) -> Option<String> {
    let name = line.strip_prefix("test ")?.strip_suffix(result)?;
    Some(name.to_owned())
}

#[cfg(all(test, unix))]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

    use super::*;

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    const ONE_FAILS: &str = "echo 'test good ... ok'; echo 'test a::b ... FAILED'; exit 101";

    #[test]
    fn test_that_passes_at_the_second_attempt_is_named() {
        let again = || {
            Ok(shell(
                "echo 'test a::b ... ok'; test \"$*\" = '--test-threads=1 --exact a::b'",
            ))
        };
        let verdict = run(shell(ONE_FAILS), again).unwrap();
        assert!(matches!(verdict, Verdict::PassedAgain(tests) if tests == ["a::b"]));
    }

    #[test]
    fn test_that_fails_twice_fails() {
        assert!(run(shell(ONE_FAILS), || Ok(shell("exit 101"))).is_err());
    }

    #[test]
    fn test_that_does_not_run_at_the_second_attempt_fails() {
        let error = run(shell(ONE_FAILS), || Ok(shell("true"))).err().unwrap();
        assert_eq!(error, "a::b failed, and did not run at the second attempt");
    }

    #[test]
    fn there_is_no_second_attempt_without_names_or_with_many() {
        let four = "for i in 1 2 3 4; do echo \"test $i ... FAILED\"; done; exit 101";
        for script in ["echo 'error: could not compile'; exit 101", four] {
            let again = || unreachable!("{script} is run again");
            assert!(run(shell(script), again).is_err());
        }
    }
}
