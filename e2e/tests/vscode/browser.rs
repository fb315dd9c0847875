//! A browser with VS Code windows, driven by `e2e/vscode/driver.mjs`.

use std::collections::HashMap;
use std::env;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use alongside_e2e::{CodeServer, Sandbox, node};
use serde_json::{Value, json};

/// A step has its own timeout and reports it; this is for a driver that hangs.
const HANGING: Duration = Duration::from_mins(3);

type Waiting = Arc<Mutex<HashMap<u64, Sender<Value>>>>;

/// Dropping it closes the windows and the browser.
pub(crate) struct Browser {
    child: Child,
    requests: Mutex<Requests>,
    waiting: Waiting,
}

struct Requests {
    /// `None` once the input is closed.
    input: Option<ChildStdin>,
    last: u64,
}

impl Browser {
    pub(crate) fn start(sandbox: &Sandbox, server: &CodeServer) -> Self {
        let details = json!({
            "chromium": chromium(),
            "profile": sandbox.path("chromium"),
            "url": server.url,
        });
        let mut child = Command::new(node())
            .arg(e2e_directory().join("vscode/driver.mjs"))
            .arg(details.to_string())
            .env("HOME", sandbox.path("home"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start node");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its output is piped");
        let waiting = Waiting::default();
        let answers = Arc::clone(&waiting);
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let answer: Value = serde_json::from_str(&line).expect("the driver prints JSON lines");
                let id = answer["id"].as_u64().expect("an answer has an id");
                let sender = answers.lock().unwrap_or_else(PoisonError::into_inner).remove(&id);
                // A test that failed no longer waits.
                let _ = sender.map(|sender| sender.send(answer));
            }
        });
        let requests = Mutex::new(Requests { input, last: 0 });
        Self {
            child,
            requests,
            waiting,
        }
    }

    /// Calls a method of a window, and waits for its result.
    pub(crate) fn call(&self, window: u64, method: &str, params: &Value) -> Result<Value, String> {
        let (sender, answer) = mpsc::channel();
        {
            let mut requests = self.requests.lock().unwrap_or_else(PoisonError::into_inner);
            requests.last += 1;
            let id = requests.last;
            self.waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .insert(id, sender);
            let request = json!({"id": id, "window": window, "method": method, "params": params});
            let input = requests.input.as_mut().expect("the browser is running");
            writeln!(input, "{request}").map_err(|error| format!("the driver has ended: {error}"))?;
        }
        let mut answer = answer
            .recv_timeout(HANGING)
            .map_err(|error| format!("the driver does not answer {method}: {error}"))?;
        match answer["error"].as_str() {
            Some(error) => Err(format!("{method} {params}: {error}")),
            None => Ok(answer["result"].take()),
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // After a kill, the browser would keep running.
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).input = None;
        let _ = self.child.wait();
    }
}

/// Directory for what a failed test leaves behind.
pub(crate) fn artifacts() -> PathBuf {
    let test = thread::current().name().unwrap_or("unnamed").replace("::", "-");
    e2e_directory().join("artifacts").join(test)
}

fn e2e_directory() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

fn chromium() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|directory| directory.join("chromium"));
    found
        .into_iter()
        .find(|program: &PathBuf| Path::is_file(program))
        .expect("chromium is not in PATH; run these tests with `cargo xtask test`")
}
