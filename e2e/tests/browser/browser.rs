//! A real browser that plays a scenario of `e2e/browser/`.

use std::env;
use std::io::{self, BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::Duration;

use alongside_e2e::{Companion, Sandbox, node};
use serde_json::{Value, json};

/// A scenario waits a minute for each of its steps and says itself which one failed; this is for one that says nothing.
const PATIENCE: Duration = Duration::from_mins(3);

/// A scenario that is being played. Dropping it ends the browser.
pub(crate) struct Scenario {
    name: String,
    child: Child,
    /// `None` once the scenario has been told that nobody will speak to it any more.
    input: Option<ChildStdin>,
    events: Receiver<Value>,
}

/// How a scenario went.
pub(crate) struct Played {
    /// What the scenario returned.
    pub(crate) result: Value,
    /// What the browser complained about: errors, dialogs and violations of the content security policy.
    pub(crate) complaints: Value,
}

impl Scenario {
    /// Opens a browser and lets it play a scenario that begins with the page of this companion.
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

    /// Waits until the scenario has reached a point, and gives what it says there. It waits there in its turn.
    pub(crate) fn wait_until(&self, point: &str) -> Value {
        let event = self.next();
        assert_eq!(
            (event["event"].as_str(), event["point"].as_str()),
            (Some("reached"), Some(point)),
            "the scenario {} went elsewhere: {event:#}",
            self.name
        );
        event["details"].clone()
    }

    /// Lets a scenario go on that waits at a point.
    pub(crate) fn go_on(&mut self) {
        self.go_on_with(&Value::Null);
    }

    /// Lets a scenario go on that waits at a point, with something that it needs to know.
    pub(crate) fn go_on_with(&mut self, message: &Value) {
        let input = self.input.as_mut().expect("the scenario still listens");
        writeln!(input, "{message}").expect("speak to the scenario");
    }

    /// Waits for the end of the scenario.
    pub(crate) fn finish(self) -> Played {
        let mut event = self.next();
        assert_eq!(
            event["event"], "done",
            "the scenario {} is not over: {event:#}",
            self.name
        );
        Played {
            result: event["result"].take(),
            complaints: event["complaints"].take(),
        }
    }

    fn next(&self) -> Value {
        let event = self.events.recv_timeout(PATIENCE);
        let event = event.unwrap_or_else(|error| panic!("the scenario {} says nothing more: {error}", self.name));
        assert!(
            event["event"] != "failed",
            "the scenario {} failed: {}\nthe browser complained: {:#}\nsee {}",
            self.name,
            event["message"].as_str().unwrap_or_default(),
            event["complaints"],
            artifacts().display()
        );
        event
    }
}

impl Played {
    /// Checks that the browser had nothing to complain about, and gives the result.
    pub(crate) fn without_complaints(self) -> Value {
        let nothing = json!({"errors": [], "dialogs": [], "violations": []});
        assert_eq!(self.complaints, nothing, "the browser complained");
        self.result
    }
}

impl Drop for Scenario {
    fn drop(&mut self) {
        // The end of its input lets a scenario that waits close its browser; the browser would outlive a killed one.
        self.input = None;
        let _ = self.child.wait();
    }
}

/// A link that logs a browser in, once.
pub(crate) fn login_link(companion: &Companion<'_>) -> Value {
    companion.json(&["page"])["url"].clone()
}

/// Tells the person who runs the tests a figure, also when the test passes.
pub(crate) fn report(what: &str, figures: &Value) {
    // Not `eprintln`, which is kept back unless the test fails.
    let _ = writeln!(io::stderr(), "\n{what}: {figures}");
}

/// Where screenshots of the running test go.
pub(crate) fn artifacts() -> PathBuf {
    let test = thread::current().name().unwrap_or("unnamed").replace("::", "-");
    e2e_directory().join("artifacts").join(test)
}

fn e2e_directory() -> PathBuf {
    env::var_os("CARGO_MANIFEST_DIR").map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")), PathBuf::from)
}

/// Debian's Chromium, wherever the path has it.
fn chromium() -> PathBuf {
    let path = env::var_os("PATH").unwrap_or_default();
    let found = env::split_paths(&path).map(|directory| directory.join("chromium"));
    found
        .into_iter()
        .find(|program: &PathBuf| Path::is_file(program))
        .expect("there is no chromium: run these tests with `cargo xtask test`")
}
