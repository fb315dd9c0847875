//! The programs that are measured, each as a process in a sandbox of its own.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Stdio};
use std::time::{Duration, Instant};

use alongside_core::Secret;
use alongside_testing::Sandbox;
use anyhow::{Context, Result, bail};
use rustix::fs::inotify;
use serde::{Deserialize, Serialize};

use crate::processes::Process;

/// How long a start may take on a busy machine.
const TIMEOUT: Duration = Duration::from_secs(30);

/// Where Gemini CLI looks, below the temporary directory.
const DISCOVERY: &str = "tmp/gemini/ide";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Subject {
    Ours,
    /// The reference on Node, with express and the official SDK.
    Node,
    /// The reference with the official Rust SDK.
    Rmcp,
    /// A bare hyper route that parses the same bytes and responds with the same bytes.
    Floor,
    /// The same, and one write of a proposal's text to a file.
    FloorAndWrite,
}

impl Subject {
    pub const ALL: [Self; 5] = [Self::Ours, Self::Node, Self::Rmcp, Self::Floor, Self::FloorAndWrite];

    pub fn title(self) -> &'static str {
        match self {
            Self::Ours => "alongside",
            Self::Node => "Node",
            Self::Rmcp => "rmcp",
            Self::Floor => "floor",
            Self::FloorAndWrite => "floor + write",
        }
    }
}

/// Where the programs are.
#[derive(Clone, Debug)]
pub struct Programs {
    pub ours: PathBuf,
    /// Node itself and the reference's source.
    pub node: (PathBuf, PathBuf),
    pub rmcp: PathBuf,
    pub floor: PathBuf,
}

impl Programs {
    fn command(&self, subject: Subject) -> (&Path, Vec<OsString>) {
        match subject {
            Subject::Ours => (&self.ours, vec!["serve".into(), "--json".into()]),
            Subject::Node => (&self.node.0, vec![self.node.1.clone().into()]),
            Subject::Rmcp => (&self.rmcp, Vec::new()),
            Subject::Floor => (&self.floor, Vec::new()),
            Subject::FloorAndWrite => (&self.floor, vec!["--write".into()]),
        }
    }
}

/// Has glibc keep large buffers, as alongside does (`memory.rs`).
pub(crate) const KEPT_BUFFERS: &[(&str, &str)] = &[
    ("MALLOC_MMAP_THRESHOLD_", "33554432"),
    ("MALLOC_TRIM_THRESHOLD_", "67108864"),
    ("MALLOC_ARENA_MAX", "1"),
];

/// The floor keeps large buffers: page faults are no part of the least that has to be done.
fn environment(subject: Subject) -> &'static [(&'static str, &'static str)] {
    match subject {
        Subject::Ours | Subject::Node | Subject::Rmcp => &[],
        Subject::Floor | Subject::FloorAndWrite => KEPT_BUFFERS,
    }
}

/// What is in a discovery file that a client needs.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Discovery {
    port: u16,
    auth_token: String,
}

/// Where front ends connect, from a companion's own record.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Front {
    pub front_port: u16,
    pub front_token: Secret,
}

/// A running program. Killed when dropped.
pub struct Server {
    pub subject: Subject,
    child: Child,
    input: Option<ChildStdin>,
    pub process: Process,
    pub port: u16,
    token: String,
    /// From the start of the process to its discovery file.
    pub started_in: Duration,
    // Deleted after the process is gone.
    pub sandbox: Sandbox,
}

impl Server {
    /// Starts a program and waits for its discovery file.
    pub fn start(programs: &Programs, subject: Subject) -> Result<Self> {
        let sandbox = Sandbox::new("alongside-bench-");
        let directory = sandbox.path(DISCOVERY);
        // There already, as on a machine where an agent has run before, so that it can be watched.
        make_private(&directory)?;
        let watch = inotify::init(inotify::CreateFlags::CLOEXEC).context("cannot watch a directory")?;
        let flags = inotify::WatchFlags::CLOSE_WRITE | inotify::WatchFlags::MOVED_TO;
        inotify::add_watch(&watch, &directory, flags).context("cannot watch the discovery files")?;
        let (program, arguments) = programs.command(subject);
        let mut command = sandbox.command(program);
        command
            .args(arguments)
            .envs(environment(subject).iter().copied())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        let start = Instant::now();
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let found = wait_for_file(&watch, &mut child, start);
        let started_in = start.elapsed();
        let found = found.and_then(|name| {
            let text = fs::read(directory.join(name)).context("cannot read the discovery file")?;
            serde_json::from_slice::<Discovery>(&text).context("cannot parse the discovery file")
        });
        let discovery = match found {
            Ok(discovery) => discovery,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.context(format!("{} did not start", subject.title())));
            }
        };
        Ok(Self {
            subject,
            input: child.stdin.take(),
            process: Process::new(child.id()),
            child,
            port: discovery.port,
            token: discovery.auth_token,
            started_in,
            sandbox,
        })
    }

    pub fn token(&self) -> &str {
        &self.token
    }

    /// Where front ends connect; only ours has such a port.
    pub fn front(&self) -> Result<Front> {
        let records = self.sandbox.path("home/.local/state/alongside/companions");
        let record = records.join(format!("{}.json", self.child.id()));
        let text = fs::read(&record).with_context(|| format!("cannot read {}", record.display()))?;
        serde_json::from_slice(&text).context("cannot parse a companion's record")
    }

    /// Reports a context change to a reference: one line of JSON.
    pub fn send_line(&mut self, line: &str) -> Result<()> {
        let input = self.input.as_mut().context("the program has no input")?;
        input
            .write_all(line.as_bytes())
            .and_then(|()| input.write_all(b"\n"))
            .context("cannot write to a program")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn make_private(directory: &Path) -> Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true).mode(0o700);
    builder
        .create(directory)
        .with_context(|| format!("cannot create {}", directory.display()))
}

/// Waits until a discovery file is complete, and returns its name.
fn wait_for_file(watch: impl rustix::fd::AsFd, child: &mut Child, start: Instant) -> Result<String> {
    let mut buffer = [std::mem::MaybeUninit::uninit(); 4096];
    let mut events = inotify::Reader::new(&watch, &mut buffer);
    loop {
        if events.is_buffer_empty() {
            wait_for_event(&watch, child, start)?;
        }
        let event = events.next().context("cannot read what was watched")?;
        let name = event
            .file_name()
            .map(|name| name.to_string_lossy().into_owned())
            .unwrap_or_default();
        let is_json = Path::new(&name)
            .extension()
            .is_some_and(|extension| extension == "json");
        if is_json && name.starts_with("gemini-ide-server-") {
            return Ok(name);
        }
    }
}

/// Waits for anything in the directory, and looks now and then whether the process is still there.
fn wait_for_event(watch: &impl rustix::fd::AsFd, child: &mut Child, start: Instant) -> Result<()> {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};
    loop {
        let mut ready = [PollFd::new(watch, PollFlags::IN)];
        let limit = Timespec {
            tv_sec: 0,
            tv_nsec: 200_000_000,
        };
        if poll(&mut ready, Some(&limit)).context("cannot wait for a discovery file")? > 0 {
            return Ok(());
        }
        if let Some(status) = child.try_wait().context("cannot wait for a program")? {
            bail!("it exited before it wrote a discovery file: {status}");
        }
        if start.elapsed() > TIMEOUT {
            bail!("it wrote no discovery file within {TIMEOUT:?}");
        }
    }
}
