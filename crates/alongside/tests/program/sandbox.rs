//! The program in a sandbox, its companions, and an agent that connects to them.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::ops::{Deref, DerefMut};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use alongside_core::Secret;
use alongside_core::dialect::ClientInfo;
use alongside_mcp::client::{Client, Events};
use serde_json::{Value, json};

/// How long anything may take on a busy machine.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(30);

/// See [`alongside_testing::Sandbox`].
pub(crate) struct Sandbox(pub(crate) alongside_testing::Sandbox);

impl Deref for Sandbox {
    type Target = alongside_testing::Sandbox;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Sandbox {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}

impl Sandbox {
    pub(crate) fn new() -> Self {
        let mut sandbox = alongside_testing::Sandbox::new("alongside-test-");
        // A test may run in a container, where Gemini CLI would connect to another machine.
        sandbox.set("REMOTE_CONTAINERS", "1");
        Self(sandbox)
    }

    /// Writes a file in the workspace and returns its path as text.
    pub(crate) fn write(&self, name: &str, content: &str) -> String {
        self.0.write(name, content).to_str().unwrap().to_owned()
    }

    /// The program in the workspace.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = self.0.command(env!("CARGO_BIN_EXE_alongside"));
        command.args(arguments);
        command
    }

    /// Runs a command until it ends. A command that does not end is killed, and the test fails.
    pub(crate) fn output(&self, arguments: &[&str]) -> Output {
        let mut command = self.command(arguments);
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let pid = child.id().to_string();
        let (tell, told) = mpsc::channel();
        std::thread::spawn(move || tell.send(child.wait_with_output().unwrap()));
        told.recv_timeout(TIMEOUT).unwrap_or_else(|_| {
            Command::new("kill").args(["-KILL", &pid]).status().unwrap();
            panic!("{arguments:?} did not end");
        })
    }

    /// Runs a command that succeeds, and gives what it prints.
    pub(crate) fn words(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        let words = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success(),
            "{arguments:?}: {words}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        words
    }

    /// Runs a command that succeeds with `--json`.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.words(&[arguments, &["--json"]].concat())).unwrap()
    }

    /// Runs a command that fails, and gives what it says on standard error.
    pub(crate) fn failure(&self, arguments: &[&str]) -> String {
        let output = self.output(arguments);
        assert!(!output.status.success(), "{arguments:?} succeeded");
        assert!(output.stdout.is_empty(), "an error belongs on standard error");
        String::from_utf8(output.stderr).unwrap()
    }

    pub(crate) fn serve(&self) -> Serving {
        self.serve_with(&[])
    }

    pub(crate) fn serve_with(&self, arguments: &[&str]) -> Serving {
        Serving::start(self.command(&[&["serve", "--json"], arguments].concat()))
    }

    /// The discovery files that exist now.
    pub(crate) fn discovery_files(&self) -> Vec<PathBuf> {
        let directories = [
            "tmp/gemini/ide",
            "tmp/qwen/ide",
            "home/.qwen/ide",
            "home/.claude/ide",
            "home/.copilot/ide",
        ];
        let mut files: Vec<PathBuf> = directories
            .iter()
            .filter_map(|directory| fs::read_dir(self.path(directory)).ok())
            .flat_map(|entries| entries.map(|entry| entry.unwrap().path()))
            .collect();
        files.sort();
        files
    }
}

/// A companion that serves; killed when dropped.
pub(crate) struct Serving {
    child: Child,
    pub(crate) port: u16,
    pub(crate) files: Vec<PathBuf>,
    pub(crate) ready: Value,
}

impl Serving {
    pub(crate) fn start(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        stdout.read_line(&mut line).unwrap();
        child.stdout = Some(stdout.into_inner());
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            let mut errors = String::new();
            child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
            panic!("the companion did not start: {line}{errors}");
        };
        let files = serde_json::from_value(ready["files"].clone()).unwrap();
        let port = u16::try_from(ready["port"].as_u64().unwrap()).unwrap();
        Self {
            child,
            port,
            files,
            ready,
        }
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The token, as agents read it.
    pub(crate) fn token(&self) -> String {
        // The others are called by another name while another companion is found before this one.
        let lock = self
            .files
            .iter()
            .find(|file| file.extension().is_some_and(|is| is == "lock"));
        let file: Value = serde_json::from_slice(&fs::read(lock.unwrap()).unwrap()).unwrap();
        file["authToken"].as_str().unwrap().to_owned()
    }

    /// The people's port and token.
    pub(crate) fn people(&self, sandbox: &Sandbox) -> (u16, Secret) {
        let record = sandbox
            .path("home/.local/state/alongside/companions")
            .join(format!("{}.json", self.pid()));
        let record: Value = serde_json::from_slice(&fs::read(record).unwrap()).unwrap();
        let port = u16::try_from(record["frontPort"].as_u64().unwrap()).unwrap();
        (port, Secret::parse(record["frontToken"].as_str().unwrap()).unwrap())
    }

    /// A conversation with the companion, as an editor plugin would have it.
    pub(crate) async fn front_end(&self, sandbox: &Sandbox) -> alongside_front::client::Client {
        let (port, token) = self.people(sandbox);
        alongside_front::client::Client::connect(port, &token, "test", true)
            .await
            .unwrap()
            .0
    }

    pub(crate) fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.pid().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }

    /// Ends without a word, as after a crash.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits for the end and gives the exit code and what else was printed.
    pub(crate) fn wait(mut self) -> (Option<i32>, String) {
        let status = wait_for("the companion's end", || self.child.try_wait().unwrap());
        let mut rest = String::new();
        self.child.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        (status.code(), rest)
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits for something that another process does, of which nobody tells us.
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(start.elapsed() < TIMEOUT, "waited too long for {what}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A pretend command line.
pub(crate) struct Agent {
    pub(crate) client: Client,
    pub(crate) events: Events,
}

impl Agent {
    pub(crate) async fn connect(serving: &Serving) -> Self {
        Self::connect_as(serving, "streamable-http-client", "0.61.0").await
    }

    pub(crate) async fn connect_as(serving: &Serving, name: &str, version: &str) -> Self {
        Self::connect_to_as(serving.port, &serving.token(), name, version).await
    }

    pub(crate) async fn connect_to(port: u16, token: &str) -> Self {
        Self::connect_to_as(port, token, "streamable-http-client", "0.61.0").await
    }

    async fn connect_to_as(port: u16, token: &str, name: &str, version: &str) -> Self {
        let client = Client::connect("127.0.0.1", port, token).await.unwrap();
        let me = ClientInfo {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        client.initialize(&me).await.unwrap();
        let events = client.events(None).await.unwrap();
        Self { client, events }
    }

    pub(crate) async fn call(&self, tool: &str, arguments: Value) -> Value {
        self.client
            .request("tools/call", json!({ "name": tool, "arguments": arguments }))
            .await
            .unwrap()
    }

    pub(crate) async fn propose(&self, path: &str, content: &str) {
        let answer = self
            .call("openDiff", json!({ "filePath": path, "newContent": content }))
            .await;
        assert_eq!(answer, json!({ "content": [] }));
    }

    /// Tries to propose something that is refused, and gives the sentence.
    pub(crate) async fn refused(&self, path: &str, content: &str) -> String {
        let answer = self
            .call("openDiff", json!({ "filePath": path, "newContent": content }))
            .await;
        assert_eq!(answer["isError"], true, "{answer}");
        answer["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// The next notification of a method.
    pub(crate) async fn told(&mut self, method: &str) -> Value {
        let wait = async {
            loop {
                let event = self
                    .events
                    .next()
                    .await
                    .unwrap()
                    .unwrap_or_else(|| panic!("the stream ended"));
                if event["method"] == method {
                    return event["params"].clone();
                }
            }
        };
        tokio::time::timeout(TIMEOUT, wait)
            .await
            .unwrap_or_else(|_| panic!("never told {method}"))
    }

    /// The next decision, whichever.
    pub(crate) async fn decision(&mut self) -> (String, Value) {
        let wait = async {
            loop {
                let event = self
                    .events
                    .next()
                    .await
                    .unwrap()
                    .unwrap_or_else(|| panic!("the stream ended"));
                let method = event["method"].as_str().unwrap().to_owned();
                if method.starts_with("ide/diff") {
                    return (method, event["params"].clone());
                }
            }
        };
        tokio::time::timeout(TIMEOUT, wait)
            .await
            .unwrap_or_else(|_| panic!("no decision came"))
    }

    /// The context that has a file of this name active.
    pub(crate) async fn sees_active(&mut self, path: &str) -> Value {
        loop {
            let context = self.told("ide/contextUpdate").await;
            if context["workspaceState"]["openFiles"][0]["path"] == path {
                return context;
            }
        }
    }
}
