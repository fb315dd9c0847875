//! Records a session of the terminal reviewer: `cargo xtask record`.
//!
//! A real companion, a real reviewer in a pseudo-terminal and an agent made of our own MCP client follow a script. The result is an asciicast
//! (version 2) and an SVG with the same frames. Times come from the script, so that two recordings of the same program look the same.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a script fails by panicking")]

mod svg;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use alongside_core::dialect::ClientInfo;
use alongside_mcp::client::Client;
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use serde_json::{Value, json};

const ROWS: u16 = 20;
const COLUMNS: u16 = 88;
const TIMEOUT: Duration = Duration::from_secs(30);

const BASE: &str = "\
use std::env;

fn main() {
    let name = env::args().nth(1);
    println!(\"Hello\");
}

/// Adds one.
fn next(count: usize) -> usize {
    count + 1
}
";

/// What is pressed, what is then on the screen, and how long that is shown, in milliseconds.
const SCRIPT: &[(&str, &str, u32)] = &[
    ("", "●", 1800),
    ("a", "✓ accepted", 1400),
    ("r", "✗ rejected", 1600),
    ("u", "· proposed  hunk 2", 1400),
    ("i", "editing", 1000),
    ("\x1b[F", "editing", 400),
    (" // at most usize::MAX", "at most usize::MAX", 1400),
    ("\x1b", "✎ edited", 1800),
    ("A", "was accepted.", 2400),
];

struct Recorder {
    parser: vt100::Parser,
    pending: Vec<u8>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (binary, target) = (arguments.next().unwrap(), arguments.next().unwrap());
    let scratch = tempfile::tempdir().unwrap();
    let workspace = scratch.path().join("project");
    fs::create_dir_all(workspace.join("src")).unwrap();
    fs::create_dir(scratch.path().join("tmp")).unwrap();
    let file = workspace.join("src/main.rs");
    fs::write(&file, BASE).unwrap();

    let mut companion = command(&binary, scratch.path());
    let mut companion = companion
        .args(["serve", "--json"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    BufReader::new(companion.stdout.take().unwrap())
        .read_line(&mut line)
        .unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
    let announced = ready["files"][0].as_str().unwrap();
    let announced: Value = serde_json::from_slice(&fs::read(announced).unwrap()).unwrap();
    let agent = Client::connect("127.0.0.1", port, announced["authToken"].as_str().unwrap())
        .await
        .unwrap();
    let info = ClientInfo {
        name: "streamable-http-client".to_owned(),
        version: "0.61.0".to_owned(),
    };
    agent.initialize(&info).await.unwrap();
    let _events = agent.events(None).await.unwrap();

    let (received, mut keys) = start_reviewer(&binary, scratch.path());
    wait_for(&received, "No pending changes.");
    let mut session = Session::default();
    session.add(&received, 1200);
    let proposal = BASE
        .replace(
            "println!(\"Hello\");",
            "println!(\"Hello, {}\", name.unwrap_or_default());",
        )
        .replace("count + 1", "count.saturating_add(1)");
    let arguments = json!({ "filePath": file, "newContent": proposal });
    agent
        .request("tools/call", json!({ "name": "openDiff", "arguments": arguments }))
        .await
        .unwrap();
    for (pressed, expected, milliseconds) in SCRIPT {
        keys.write_all(pressed.as_bytes()).unwrap();
        wait_for(&received, expected);
        // What arrives a moment later, such as colors, belongs to the same frame.
        tokio::time::sleep(Duration::from_millis(700)).await;
        session.add(&received, *milliseconds);
    }
    companion.kill().unwrap();
    companion.wait().unwrap();
    fs::write(target.join("review.cast"), session.cast()).unwrap();
    fs::write(target.join("review.svg"), svg::render(&session.frames, ROWS, COLUMNS)).unwrap();
}

fn command(binary: &Path, scratch: &Path) -> Command {
    let mut command = Command::new(binary);
    command
        .env_clear()
        .current_dir(scratch.join("project"))
        .envs(environment(scratch));
    command
}

fn environment(scratch: &Path) -> Vec<(&'static str, String)> {
    vec![
        ("HOME", scratch.display().to_string()),
        ("TMPDIR", scratch.join("tmp").display().to_string()),
        ("PATH", std::env::var("PATH").unwrap_or_default()),
        ("TERM", "xterm-256color".to_owned()),
        ("COLORTERM", "truecolor".to_owned()),
        ("REMOTE_CONTAINERS", "1".to_owned()),
    ]
}

type Received = Arc<(Mutex<Recorder>, Condvar)>;

fn start_reviewer(binary: &Path, scratch: &Path) -> (Received, Box<dyn Write + Send>) {
    let size = PtySize {
        rows: ROWS,
        cols: COLUMNS,
        pixel_width: 0,
        pixel_height: 0,
    };
    let pair = native_pty_system().openpty(size).unwrap();
    let mut reviewer = CommandBuilder::new(binary);
    reviewer.arg("review");
    reviewer.env_clear();
    for (name, value) in environment(scratch) {
        reviewer.env(name, value);
    }
    reviewer.cwd(scratch.join("project"));
    // Ends with its terminal.
    pair.slave.spawn_command(reviewer).unwrap();
    let received: Received = Arc::new((
        Mutex::new(Recorder {
            parser: vt100::Parser::new(ROWS.try_into().unwrap(), COLUMNS.try_into().unwrap(), 0),
            pending: Vec::new(),
        }),
        Condvar::new(),
    ));
    let mut reader = pair.master.try_clone_reader().unwrap();
    let keys = pair.master.take_writer().unwrap();
    let shared = received.clone();
    std::thread::spawn(move || {
        let _master = pair.master;
        let mut buffer = [0; 8192];
        while let Ok(length) = reader.read(&mut buffer)
            && length > 0
        {
            let mut recorder = shared.0.lock().unwrap();
            recorder.parser.process(&buffer[..length]);
            recorder.pending.extend_from_slice(&buffer[..length]);
            shared.1.notify_all();
        }
    });
    (received, keys)
}

fn wait_for(received: &Received, text: &str) {
    let recorder = received.0.lock().unwrap();
    let is_missing = |recorder: &mut Recorder| !recorder.parser.screen().contents().contains(text);
    let (recorder, timeout) = received.1.wait_timeout_while(recorder, TIMEOUT, is_missing).unwrap();
    assert!(
        !timeout.timed_out(),
        "waited for {text:?}:\n{}",
        recorder.parser.screen().contents()
    );
}

/// What was recorded.
#[derive(Default)]
struct Session {
    /// The time in milliseconds and what was then written.
    output: Vec<(u32, String)>,
    frames: Vec<svg::Frame>,
    now: u32,
}

impl Session {
    fn add(&mut self, received: &Received, milliseconds: u32) {
        let mut recorder = received.0.lock().unwrap();
        let written = String::from_utf8_lossy(&std::mem::take(&mut recorder.pending)).into_owned();
        self.output.push((self.now, written));
        self.frames.push(svg::Frame {
            start: self.now,
            screen: recorder.parser.screen().clone(),
        });
        self.now += milliseconds;
        if let Some(last) = self.frames.last_mut() {
            last.start = self.now - milliseconds;
        }
    }

    fn cast(&self) -> String {
        let header = json!({"version": 2, "width": COLUMNS, "height": ROWS, "title": "alongside review"});
        let mut cast = format!("{header}\n");
        for (time, written) in &self.output {
            cast.push_str(&format!("{}\n", json!([f64::from(*time) / 1000.0, "o", written])));
        }
        // The end of the last frame.
        cast.push_str(&format!("{}\n", json!([f64::from(self.now) / 1000.0, "o", ""])));
        cast
    }
}
