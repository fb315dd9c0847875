//! What a process uses, from the outside.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use alongside_front::client::Client;
use alongside_protocol::{Empty, requests};
use alongside_testing::Sandbox;

use crate::program::{Endpoints, Process};

#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reading {
    pub(crate) memory_kilobytes: u64,
    /// Open files, sockets included.
    pub(crate) files: usize,
    pub(crate) threads: usize,
    pub(crate) sessions: usize,
    /// The size of the state directory.
    pub(crate) disk_bytes: u64,
}

pub(crate) struct Gauge {
    process: PathBuf,
    state: PathBuf,
    endpoints: Endpoints,
}

impl Gauge {
    pub(crate) fn new(process: &Process, sandbox: &Sandbox) -> Self {
        Self {
            process: PathBuf::from(format!("/proc/{}", process.pid())),
            state: sandbox.path("home/.local/state"),
            endpoints: process.endpoints.clone(),
        }
    }

    /// Everything but the sessions.
    pub(crate) fn read(&self) -> Reading {
        let status = fs::read_to_string(self.process.join("status")).unwrap_or_default();
        let field = |name: &str| {
            let line = status.lines().find_map(|line| line.strip_prefix(name));
            let number = line.and_then(|line| line.split_whitespace().next()?.parse().ok());
            number.unwrap_or_default()
        };
        Reading {
            memory_kilobytes: field("VmRSS:"),
            files: fs::read_dir(self.process.join("fd")).map_or(0, Iterator::count),
            threads: usize::try_from(field("Threads:")).unwrap_or_default(),
            sessions: 0,
            disk_bytes: directory_size(&self.state),
        }
    }

    /// Reads until a reading is good enough, or time is up; returns it and how long that took. A process reports nothing about its
    /// memory, so there is no event to wait for.
    pub(crate) async fn wait_for(&self, limit: Duration, is_enough: impl Fn(&Reading) -> bool) -> (Reading, Duration) {
        let start = Instant::now();
        loop {
            let sessions = self.sessions().await;
            let reading = Reading {
                sessions,
                ..self.read()
            };
            if is_enough(&reading) || start.elapsed() > limit {
                return (reading, start.elapsed());
            }
            tokio::time::sleep(Duration::from_millis(250)).await;
        }
    }

    async fn sessions(&self) -> usize {
        let (port, token) = self.endpoints.front();
        let Ok((mut client, _)) = Client::connect(port, token, "gauge", false).await else {
            return usize::MAX;
        };
        let status = client.call::<requests::Status>(Empty {}).await;
        status.map_or(usize::MAX, |status| status.agents.len())
    }
}

fn directory_size(directory: &Path) -> u64 {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries
        .map(|entry| match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => directory_size(&entry.path()),
            Ok(metadata) => metadata.len(),
            Err(_) => 0,
        })
        .sum()
}
