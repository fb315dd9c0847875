//! Runs a scenario of `e2e/browser/` in a real browser.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use alongside_e2e::{Companion, Sandbox, node};
use serde_json::{Value, json};

/// A scenario has its own timeout for each step and reports which one failed; this is for one that hangs.
const SCENARIO_TIMEOUT: Duration = Duration::from_mins(5);

/// A running scenario. Dropping it closes the browser.
pub(crate) struct Scenario {
    name: String,
    child: Child,
    /// `None` once its input is closed.
    input: Option<ChildStdin>,
    events: Receiver<Value>,
}

pub(crate) struct Played {
    pub(crate) result: Value,
    /// Errors, dialogs and content security policy violations in the browser.
    pub(crate) complaints: Value,
}

impl Scenario {
    /// Opens a browser and runs a scenario with a login link to this companion's page.
    pub(crate) fn start(sandbox: &Sandbox, companion: &Companion<'_>, name: &str, details: Value) -> Self {
        let mut details = details;
        details["url"] = login_link(companion);
        details["chromium"] = json!(chromium());
        details["artifacts"] = json!(artifacts());
        let profile = tempfile::tempdir_in(sandbox.path("")).expect("create a directory for the profile");
        details["profile"] = json!(profile.keep());
        let script = e2e_directory().join("browser").join(format!("{name}.mjs"));
        let mut child = Command::new(node())
            .arg(script)
            .arg(details.to_string())
            .env("HOME", sandbox.path("home"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("start node");
        let input = child.stdin.take();
        let output = child.stdout.take().expect("its output is piped");
        let (sender, events) = mpsc::channel();
        thread::spawn(move || {
            for line in BufReader::new(output).lines().map_while(Result::ok) {
                let event = serde_json::from_str(&line).expect("a scenario prints JSON lines");
                let _ = sender.send(event);
            }
        });
        Self {
            name: name.to_owned(),
            child,
            input,
            events,
        }
    }

    /// Waits until the scenario reaches a point and pauses there, and returns the details it reports.
    pub(crate) fn wait_until(&self, point: &str) -> Value {
        let event = self.next();
        assert_eq!(
            (event["event"].as_str(), event["point"].as_str()),
            (Some("reached"), Some(point)),
            "unexpected event from scenario {}: {event:#}",
            self.name
        );
        event["details"].clone()
    }

    /// Resumes a paused scenario.
    pub(crate) fn resume(&mut self) {
        self.resume_with(&Value::Null);
    }

    /// Resumes a paused scenario with a message.
    pub(crate) fn resume_with(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the scenario is running");
        writeln!(input, "{message}").expect("write to the scenario");
    }

    pub(crate) fn finish(self) -> Played {
        let mut event = self.next();
        assert_eq!(
            event["event"], "done",
            "scenario {} has not ended: {event:#}",
            self.name
        );
        Played {
            result: event["result"].take(),
            complaints: event["complaints"].take(),
        }
    }

    fn next(&self) -> Value {
        let event = self.events.recv_timeout(SCENARIO_TIMEOUT);
        let event = event.unwrap_or_else(|error| panic!("no event from scenario {}: {error}", self.name));
        assert!(
            event["event"] != "failed",
            "scenario {} failed: {}\nthe browser reported: {:#}\nsee {}",
            self.name,
            event["message"].as_str().unwrap_or_default(),
            event["complaints"],
            artifacts().display()
        );
        event
    }
}

impl Played {
    /// Asserts that the browser reported nothing, and returns the result.
    pub(crate) fn without_complaints(self) -> Value {
        let nothing = json!({"errors": [], "dialogs": [], "violations": []});
        assert_eq!(self.complaints, nothing, "the browser reported problems");
        self.result
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        // Closing its input lets a paused scenario close its browser; after a kill the browser would keep running.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A one-time login link.
pub(crate) fn login_link(companion: &Companion<'_>) -> Value {
    companion.json(&["page"])["url"].clone()
}

/// Prints figures even if the test passes.
pub(crate) fn report(what: &str, figures: &Value) {
    // Not `eprintln`, which the test harness captures.
    let _ = writeln!(io::stderr(), "\n{what}: {figures}");
}

/// Directory for screenshots of the running test.
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
