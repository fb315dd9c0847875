//! The program under test: its server and its commands.

use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use rustix::process::Signal;
use serde_json::Value;

use crate::sandbox::Sandbox;
use crate::waiting::{TIMEOUT, eventually};
use crate::{artifacts, process, programs};

/// A running `alongside serve`, killed on drop.
pub struct Companion<'a> {
    sandbox: &'a Sandbox,
    workspace: PathBuf,
    arguments: Vec<String>,
    environment: Vec<(String, String)>,
    log: PathBuf,
    child: Child,
    /// The port that agents connect to.
    pub port: u16,
    pub files: Vec<PathBuf>,
}

/// The result of a command.
#[derive(Debug)]
pub struct Outcome {
    pub success: bool,
    pub stdout: String,
    pub stderr: String,
}

/// A row of `alongside diff list`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    pub id: String,
    pub path: String,
    pub agent: String,
}

impl<'a> Companion<'a> {
    /// Starts a companion for the sandbox's workspace and waits until it is ready.
    pub fn start(sandbox: &'a Sandbox) -> Self {
        Self::start_with(sandbox, &sandbox.workspace(), &[])
    }

    /// Starts a companion for a workspace, with additional arguments.
    pub fn start_with(sandbox: &'a Sandbox, workspace: &Path, arguments: &[&str]) -> Self {
        Self::launch(sandbox, workspace, arguments, Vec::new())
    }

    /// Starts a companion with additional variables, which its local agents inherit.
    pub fn start_with_variables(sandbox: &'a Sandbox, environment: Vec<(String, String)>) -> Self {
        Self::launch(sandbox, &sandbox.workspace(), &[], environment)
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Starts a companion with its own state directory, hidden from other companions. Only the agents can find both.
    pub fn start_apart(sandbox: &'a Sandbox, workspace: &Path, arguments: &[&str]) -> Self {
        let directory = tempfile::tempdir_in(sandbox.path(""))
            .expect("create a directory")
            .keep();
        let directory = directory.to_string_lossy().into_owned();
        let names = ["XDG_RUNTIME_DIR", "XDG_STATE_HOME", "XDG_CONFIG_HOME"];
        let environment = names.map(|name| (name.to_owned(), directory.clone()));
        Self::launch(sandbox, workspace, arguments, environment.into())
    }

    fn launch(sandbox: &'a Sandbox, workspace: &Path, arguments: &[&str], environment: Vec<(String, String)>) -> Self {
        let arguments: Vec<String> = arguments.iter().map(|&argument| argument.to_owned()).collect();
        let log = (0..).map(|number| sandbox.path(&format!("companion-{number}.log")));
        let log = log
            .into_iter()
            .find(|log| !log.exists())
            .expect("there is always another number");
        let (child, ready) = serve(sandbox, workspace, &arguments, &environment, &log);
        let port = ready["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        let files = ready["files"]
            .as_array()
            .expect("the ready line lists the discovery files");
        Self {
            sandbox,
            workspace: workspace.to_owned(),
            arguments,
            environment,
            log,
            child,
            port: port.expect("the ready line has the port"),
            files: files.iter().filter_map(Value::as_str).map(PathBuf::from).collect(),
        }
    }

    /// The port and the token for front ends.
    pub fn front_end(&self) -> (u16, String) {
        let records = self.sandbox.path("home/.local/state/alongside/companions");
        let record = fs::read(records.join(format!("{}.json", self.pid()))).expect("read the companion's record");
        let record: Value = serde_json::from_slice(&record).expect("a record is JSON");
        let port = record["frontPort"].as_u64().and_then(|port| u16::try_from(port).ok());
        let token = record["frontToken"].as_str().expect("a record has a token");
        (port.expect("a record has a port"), token.to_owned())
    }

    /// The token in the discovery files.
    pub fn token(&self) -> String {
        // The other files have different names while another companion takes precedence.
        let lock = self
            .files
            .iter()
            .find(|file| file.extension().is_some_and(|is| is == "lock"));
        let text = fs::read_to_string(lock.expect("a lock for Qwen Code")).expect("read a discovery file");
        let file: Value = serde_json::from_str(&text).expect("a discovery file is JSON");
        file["authToken"]
            .as_str()
            .expect("a discovery file has a token")
            .to_owned()
    }

    /// Ends the only agent's event stream cleanly, which leaves the agent between two streams until it opens the next
    /// one, about a second later: a second stream replaces the first and is closed immediately.
    pub fn end_stream(&self) {
        let session = self.agents()[0]["session"]
            .as_str()
            .expect("an agent has a session")
            .to_owned();
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("connect to the companion");
        let (port, token) = (self.port, self.token());
        write!(
            stream,
            "GET /mcp HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\nauthorization: Bearer {token}\r\n\
             accept: text/event-stream\r\nmcp-session-id: {session}\r\n\r\n"
        )
        .expect("open a second stream");
        let mut line = String::new();
        BufReader::new(&stream)
            .read_line(&mut line)
            .expect("read the status line");
        assert!(line.contains(" 200 "), "{line}");
        drop(stream);
        let ended = eventually(TIMEOUT, || (self.agents()[0]["listening"] == false).then_some(()));
        assert!(ended.is_some(), "the agent still listens");
    }

    /// Terminates it and waits until it has exited.
    pub fn terminate(&mut self) {
        process::signal(self.child.id(), Signal::TERM);
        let ended = eventually(TIMEOUT, || self.child.try_wait().expect("wait for the companion"));
        assert!(ended.is_some(), "the companion did not end after SIGTERM");
    }

    /// Kills it without warning.
    pub fn kill(&mut self) {
        self.child.kill().expect("kill the companion");
        self.child.wait().expect("wait for the companion");
    }

    /// Kills the chat's local agent without warning.
    pub fn kill_local_agent(&self) {
        let is_agent = |pid: &u32| {
            let line = std::fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
            line.contains("--acp") || line.contains("--experimental-acp")
        };
        let agents: Vec<u32> = process::descendants(self.pid()).into_iter().filter(is_agent).collect();
        assert!(!agents.is_empty(), "the companion has no local agent");
        for agent in agents {
            process::signal(agent, Signal::KILL);
        }
    }

    /// Restarts with the same arguments, after [`Self::terminate`] or [`Self::kill`].
    pub fn restart(&mut self) {
        let (sandbox, workspace, arguments) = (self.sandbox, self.workspace.clone(), self.arguments.clone());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        *self = Self::launch(sandbox, &workspace, &arguments, self.environment.clone());
    }

    /// Runs a command for this companion's workspace and parses its JSON output.
    pub fn json(&self, arguments: &[&str]) -> Value {
        let outcome = self.command(arguments);
        assert!(outcome.success, "alongside {} failed: {outcome:?}", arguments.join(" "));
        serde_json::from_str(&outcome.stdout)
            .unwrap_or_else(|error| panic!("{arguments:?} printed no JSON: {error}: {outcome:?}"))
    }

    /// Runs a command for this companion's workspace.
    pub fn command(&self, arguments: &[&str]) -> Outcome {
        let workspace = self.workspace.to_string_lossy().into_owned();
        let arguments = [arguments, &["--workspace", &workspace, "--json"]].concat();
        alongside(self.sandbox, &self.workspace, &arguments, &self.environment)
    }

    /// Reports a focused file to this companion, not to another one for the same workspace.
    pub fn focus(&self, path: &Path) {
        let port = ("GEMINI_CLI_IDE_SERVER_PORT".to_owned(), self.port.to_string());
        let environment = [self.environment.as_slice(), &[port]].concat();
        let path = path.to_string_lossy();
        let outcome = alongside(
            self.sandbox,
            &self.workspace,
            &["context", "focus", &path],
            &environment,
        );
        assert!(outcome.success, "{outcome:?}");
    }

    /// The pending reviews.
    pub fn reviews(&self) -> Vec<Review> {
        let list = self.json(&["diff", "list"]);
        let text = |review: &Value, key: &str| match &review[key] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let reviews = list.as_array().expect("`diff list --json` prints an array").iter();
        reviews
            .map(|review| Review {
                id: text(review, "id"),
                path: text(review, "path"),
                agent: text(review, "agent"),
            })
            .collect()
    }

    /// Waits for a review of this file.
    pub fn wait_for_review(&self, path: &Path) -> Review {
        let wanted = path.to_string_lossy();
        let found = eventually(TIMEOUT, || {
            self.reviews().into_iter().find(|review| review.path == wanted)
        });
        found.unwrap_or_else(|| panic!("no change of {wanted} arrived; there are {:?}", self.reviews()))
    }

    /// Waits until no review is pending.
    pub fn wait_for_no_review(&self, limit: Duration) {
        let none = eventually(limit, || self.reviews().is_empty().then_some(()));
        assert!(none.is_some(), "these changes still wait: {:?}", self.reviews());
    }

    /// The agents listed by `status`.
    pub fn agents(&self) -> Vec<Value> {
        let status = self.json(&["status"]);
        let companions = status["companions"].as_array().expect("`status --json` has companions");
        let agents = companions.iter().filter_map(|companion| companion["agents"].as_array());
        agents.flatten().cloned().collect()
    }

    /// Waits until `status` lists this many agents.
    pub fn wait_for_agents(&self, count: usize, limit: Duration) {
        let reached = eventually(limit, || (self.agents().len() == count).then_some(()));
        assert!(reached.is_some(), "not {count} agents but {:#?}", self.agents());
    }
}

impl Drop for Companion<'_> {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        if thread::panicking() {
            let name = self.log.file_name().unwrap_or_default().to_string_lossy();
            artifacts::keep(&name, &fs::read_to_string(&self.log).unwrap_or_default());
        }
    }
}

/// Runs any `alongside` command in a sandbox directory, with additional variables.
pub(crate) fn alongside(
    sandbox: &Sandbox,
    directory: &Path,
    arguments: &[&str],
    environment: &[(String, String)],
) -> Outcome {
    let mut command = command(sandbox, directory);
    let output = command.args(arguments).envs(environment.iter().cloned()).output();
    let output = output.expect("start alongside");
    Outcome {
        success: output.status.success(),
        stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
        stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
    }
}

fn command(sandbox: &Sandbox, directory: &Path) -> Command {
    let mut command = sandbox.command(programs::alongside());
    command.current_dir(directory);
    command
}

fn serve(
    sandbox: &Sandbox,
    workspace: &Path,
    arguments: &[String],
    environment: &[(String, String)],
    log: &Path,
) -> (Child, Value) {
    let log = File::create(log).expect("create the companion's log");
    let mut command = command(sandbox, workspace);
    command.envs(environment.iter().cloned());
    command
        .args(["serve", "--json", "--workspace"])
        .arg(workspace)
        .args(arguments);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(log)
        .spawn()
        .expect("start alongside");
    let stdout = child.stdout.take().expect("its output is piped");
    let (sender, receiver) = mpsc::channel();
    // Keep reading to the end, so that the companion never writes to a closed pipe.
    thread::spawn(move || {
        for line in BufReader::new(stdout).lines().map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    let line = receiver
        .recv_timeout(TIMEOUT)
        .expect("`alongside serve --json` prints a line when it is ready");
    let ready =
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("the ready line is not JSON: {error}: {line}"));
    (child, ready)
}
