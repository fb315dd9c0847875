//! Runs the measuring process as a process group of its own, with a temporary directory of its own, so that nothing is left behind when it
//! is interrupted or crashes: the group is killed, and the directory is removed.

use std::ffi::OsString;
use std::future::Future;
use std::io::{self, Read};
use std::process::{ExitCode, ExitStatus, Stdio};
use std::time::Duration;

use anyhow::{Context, Result};
use rustix::process::{Pid, Signal, kill_current_process_group, kill_process_group};
use tempfile::TempDir;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::subject::KEPT_BUFFERS;

/// Set in the environment of the measuring process.
const WORKER: &str = "ALONGSIDE_BENCH_WORKER";

/// How often to try to remove the directory: a killed process may still be writing to it.
const ATTEMPTS: u32 = 20;
const BETWEEN_ATTEMPTS: Duration = Duration::from_millis(50);

pub fn is_worker() -> bool {
    std::env::var_os(WORKER).is_some()
}

/// For the measuring process: kills it with everything it started when the supervisor is killed, which closes its stdin.
pub fn stop_with_supervisor() {
    std::thread::spawn(|| {
        let _ = io::copy(&mut io::stdin().lock().by_ref(), &mut io::sink());
        let _ = kill_current_process_group(Signal::KILL);
    });
}

/// Runs this program again, as the measuring process, until it exits or this process is asked to stop.
pub fn supervise(arguments: impl Iterator<Item = OsString>) -> Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let own = std::env::current_exe().context("cannot find this program")?;
    runtime.block_on(async {
        let mut worker = Command::new(own);
        worker.args(arguments).env(WORKER, "1");
        // Otherwise the page faults of our own clients would be part of what large texts take. The programs have environments of their own.
        worker.envs(KEPT_BUFFERS.iter().copied());
        let stopped = stop_signal()?;
        run(worker, stopped).await.map(ExitCode::from)
    })
}

/// Resolves to the exit status of a program that Ctrl-C, SIGTERM or a closed terminal stopped.
fn stop_signal() -> Result<impl Future<Output = u8>> {
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut hangup = signal(SignalKind::hangup()).context("cannot wait for signals")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => 130,
            _ = terminate.recv() => 143,
            _ = hangup.recv() => 129,
        }
    })
}

async fn run(mut worker: Command, stopped: impl Future<Output = u8>) -> Result<u8> {
    let directory = tempfile::Builder::new()
        .prefix("alongside-bench-")
        .tempdir()
        .context("cannot create a temporary directory")?;
    let mut worker = worker
        .env("TMPDIR", directory.path())
        .stdin(Stdio::piped())
        .process_group(0)
        .spawn()
        .context("cannot start the measuring process")?;
    // Not waited for yet, so the number is its own.
    let group = worker.id().and_then(|id| Pid::from_raw(id.try_into().ok()?));
    // Waiting would close it, and that means that this process was killed.
    let input = worker.stdin.take();
    let ended = tokio::select! {
        status = worker.wait() => Ok(status),
        code = stopped => Err(code),
    };
    // What it started may still run, even if it has ended itself.
    if let Some(group) = group {
        let _ = kill_process_group(group, Signal::KILL);
    }
    let code = match ended {
        Ok(status) => exit_code(status),
        Err(code) => {
            let _ = worker.wait().await;
            Ok(code)
        }
    };
    drop(input);
    remove(&directory).await;
    code
}

fn exit_code(status: io::Result<ExitStatus>) -> Result<u8> {
    let status = status.context("cannot wait for the measuring process")?;
    let code = status
        .code()
        .with_context(|| format!("the measuring process was stopped: {status}"))?;
    Ok(code.try_into().unwrap_or(1))
}

/// Dropping the directory tries once more.
async fn remove(directory: &TempDir) {
    for _ in 0..ATTEMPTS {
        match std::fs::remove_dir_all(directory.path()) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => tokio::time::sleep(BETWEEN_ATTEMPTS).await,
            _ => return,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::time::Instant;

    use super::*;

    fn block_on<T>(future: impl Future<Output = T>) -> T {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        runtime.unwrap().block_on(future)
    }

    fn shell(script: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        command
    }

    /// Reads a file once it has a whole line.
    async fn line_of(path: PathBuf) -> String {
        loop {
            let text = fs::read_to_string(&path).unwrap_or_default();
            if text.ends_with('\n') {
                return text.trim().to_owned();
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    #[test]
    fn interrupted_run_leaves_no_process_and_no_directory() {
        let notes = tempfile::tempdir().unwrap();
        let note = notes.path().join("note");
        let mut worker = shell("sleep 600 & touch $TMPDIR/file; echo $! $TMPDIR >$NOTE; wait");
        worker.env("NOTE", &note);
        let stopped = {
            let note = note.clone();
            async move {
                line_of(note).await;
                130
            }
        };
        assert_eq!(block_on(run(worker, stopped)).unwrap(), 130);
        assert_gone(&note);
    }

    #[test]
    fn crash_of_the_measuring_process_leaves_no_process_and_no_directory() {
        let notes = tempfile::tempdir().unwrap();
        let note = notes.path().join("note");
        let mut worker = shell("sleep 600 & touch $TMPDIR/file; echo $! $TMPDIR >$NOTE; kill -SEGV $$");
        worker.env("NOTE", &note);
        let error = block_on(run(worker, std::future::pending())).unwrap_err();
        assert!(error.to_string().contains("was stopped"), "{error}");
        assert_gone(&note);
    }

    /// The note names a process and a directory.
    fn assert_gone(note: &Path) {
        let text = fs::read_to_string(note).unwrap();
        let (process, directory) = text.trim().split_once(' ').unwrap();
        assert!(!fs::exists(directory).unwrap());
        // It was killed, but it is not this process's child: there is no event for its end, and it may stay a zombie.
        let state = || fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        let is_running = || !state().is_empty() && !state().contains(") Z ");
        let start = Instant::now();
        while is_running() && start.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert!(!is_running(), "{}", state());
    }

    #[test]
    fn stdin_stays_open_while_it_runs() {
        // `timeout` exits with 124 if it had to stop the program, which otherwise ends with its input.
        let worker = shell("timeout 0.2 cat");
        assert_eq!(block_on(run(worker, std::future::pending())).unwrap(), 124);
    }

    #[test]
    fn exit_status_is_passed_on_and_the_directory_is_removed() {
        let notes = tempfile::tempdir().unwrap();
        let note = notes.path().join("note");
        let mut worker = shell("mkdir $TMPDIR/a; echo $TMPDIR >$NOTE; exit 7");
        worker.env("NOTE", &note);
        assert_eq!(block_on(run(worker, std::future::pending())).unwrap(), 7);
        assert!(!fs::exists(fs::read_to_string(&note).unwrap().trim()).unwrap());
    }
}
