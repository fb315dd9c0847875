//! The program under test, as processes that can be killed.

use std::io::{BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::{Child, ChildStdin, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use alongside_core::Secret;
use alongside_testing::Sandbox;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, prlimit};
use serde::Deserialize;

/// How long anything may take on a busy machine.
pub const TIMEOUT: Duration = Duration::from_secs(30);

/// The program under test: the value of `ALONGSIDE_BIN`.
pub fn alongside() -> PathBuf {
    let binary = std::env::var_os("ALONGSIDE_BIN").map(PathBuf::from);
    binary.expect("ALONGSIDE_BIN names no binary: run this with `cargo xtask`")
}

/// Where a running companion listens, from its record.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Endpoints {
    pub port: u16,
    token: Secret,
    front_port: u16,
    front_token: Secret,
}

impl Endpoints {
    /// The agents' token.
    pub fn token(&self) -> &str {
        self.token.reveal()
    }

    /// The port and token of the commands' WebSocket.
    pub fn front(&self) -> (u16, &Secret) {
        (self.front_port, &self.front_token)
    }
}

/// A companion. Killed when dropped.
pub struct Process {
    child: Child,
    /// Closing it ends a bridge.
    input: Option<ChildStdin>,
    pub endpoints: Endpoints,
}

/// A companion that did not start.
#[derive(Debug)]
pub struct NotStarted {
    pub status: ExitStatus,
    /// What it printed. With `--json`, the error is on stdout.
    pub errors: String,
}

impl Process {
    /// Starts `alongside serve`, or a bridge of an editor that is this process.
    pub fn start(sandbox: &Sandbox, arguments: &[&str]) -> Result<Self, NotStarted> {
        let mut child = sandbox
            .command(alongside())
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("start the companion");
        let input = child.stdin.take();
        let record = sandbox
            .path("home/.local/state/alongside/companions")
            .join(format!("{}.json", child.id()));
        let start = Instant::now();
        let endpoints = loop {
            // Renamed into place, so it is whole.
            if let Some(endpoints) = std::fs::read(&record)
                .ok()
                .and_then(|bytes| serde_json::from_slice(&bytes).ok())
            {
                break endpoints;
            }
            if let Some(status) = child.try_wait().unwrap() {
                let mut errors = String::new();
                let _ = child.stderr.take().unwrap().read_to_string(&mut errors);
                let _ = child.stdout.take().unwrap().read_to_string(&mut errors);
                return Err(NotStarted { status, errors });
            }
            if start.elapsed() > TIMEOUT {
                let _ = child.kill();
                let errors = "still not ready after 30 s".to_owned();
                return Err(NotStarted {
                    status: child.wait().unwrap(),
                    errors,
                });
            }
            // Another process's file: there is no event to wait for.
            std::thread::sleep(Duration::from_millis(2));
        };
        // Both pipes are read, so that the companion never waits for us.
        for pipe in [
            child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
            child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        ] {
            let show = std::env::var_os("ALONGSIDE_LOG").is_some();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe.unwrap()).lines().map_while(Result::ok) {
                    if show {
                        eprintln!("    | {line}");
                    }
                }
            });
        }
        Ok(Self {
            child,
            input,
            endpoints,
        })
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// SIGKILL.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Asks a bridge to end by closing its input, everything else with SIGTERM, and waits until it has. `false` if it did not,
    /// and was killed.
    pub async fn stop(mut self, is_bridge: bool) -> bool {
        if is_bridge {
            self.input = None;
        } else {
            let _ = kill_process(self.id(), Signal::TERM);
        }
        let start = Instant::now();
        while start.elapsed() < TIMEOUT {
            if self.child.try_wait().unwrap().is_some() {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        false
    }

    /// Lets every write to a file fail, or none.
    pub fn set_writable(&self, writable: bool) {
        let limit = if writable { None } else { Some(0) };
        let limit = Rlimit {
            current: limit,
            maximum: None,
        };
        prlimit(Some(self.id()), Resource::Fsize, limit).expect("limit a process of our own");
    }

    /// The processes that it started.
    pub fn children(&self) -> Vec<Pid> {
        let own = self.pid().to_string();
        let entries = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        entries
            .filter(|entry| {
                let stat = std::fs::read_to_string(entry.path().join("stat")).unwrap_or_default();
                // The name is in parentheses and may contain anything.
                let parent = stat.rsplit_once(") ").and_then(|(_, rest)| rest.split(' ').nth(1));
                parent == Some(&own)
            })
            .filter_map(|entry| Pid::from_raw(entry.file_name().to_str()?.parse().ok()?))
            .collect()
    }

    fn id(&self) -> Pid {
        Pid::from_raw(i32::try_from(self.pid()).unwrap()).unwrap()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
    }
}
