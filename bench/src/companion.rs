//! A companion of ours in a sandbox that outlives it, so that it can be started again, with clients of all kinds.

use std::fs;
use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use alongside_core::Secret;
use alongside_core::dialect::ClientInfo;
use alongside_front::client::Client as FrontClient;
use alongside_mcp::client::Client as AgentClient;
use alongside_protocol::Hello;
use alongside_testing::Sandbox;
use anyhow::{Context, Result, bail, ensure};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::http::{Address, Connection};
use crate::processes::Process;

/// How long a start may take on a busy machine.
const START_TIMEOUT: Duration = Duration::from_secs(30);
/// A large proposal may take long under load.
const CALL_TIMEOUT: Duration = Duration::from_mins(1);
/// How often to look for the record: there is no event for another process's file.
const POLL: Duration = Duration::from_micros(200);

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Endpoints {
    port: u16,
    token: Secret,
    front_port: u16,
    front_token: Secret,
}

/// Killed when dropped.
pub struct Companion {
    child: Child,
    input: Option<ChildStdin>,
    endpoints: Endpoints,
}

impl Companion {
    pub fn serve(program: &Path, sandbox: &Sandbox) -> Result<Self> {
        Self::start(program, sandbox, &["serve", "--json"])
    }

    /// A bridge of an editor that is this process.
    pub fn bridge(program: &Path, sandbox: &Sandbox) -> Result<Self> {
        let own = std::process::id().to_string();
        let names = ["bridge", "--name", "bench", "--display-name", "Bench", "--pid"];
        Self::start(program, sandbox, &[&names[..], &[own.as_str()]].concat())
    }

    fn start(program: &Path, sandbox: &Sandbox, arguments: &[&str]) -> Result<Self> {
        let mut command = sandbox.command(program);
        command
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command
            .spawn()
            .with_context(|| format!("cannot start {}", program.display()))?;
        let input = child.stdin.take();
        if let Some(mut output) = child.stdout.take() {
            // Read, so that it never waits for us.
            thread::spawn(move || io::copy(&mut output.by_ref(), &mut io::sink()));
        }
        let records = sandbox.path("home/.local/state/alongside/companions");
        let record = records.join(format!("{}.json", child.id()));
        let start = Instant::now();
        loop {
            // Renamed into place, so it is whole.
            if let Some(endpoints) = fs::read(&record)
                .ok()
                .and_then(|text| serde_json::from_slice(&text).ok())
            {
                return Ok(Self {
                    child,
                    input,
                    endpoints,
                });
            }
            let exited = child.try_wait().context("cannot wait for the companion")?;
            if exited.is_some() || start.elapsed() > START_TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                bail!("the companion did not start: {exited:?}");
            }
            thread::sleep(POLL);
        }
    }

    pub fn process(&self) -> Process {
        Process::new(self.child.id())
    }

    /// Writes a line to a bridge.
    pub fn send_line(&mut self, message: &Value) -> Result<()> {
        let input = self.input.as_mut().context("its input is closed")?;
        input
            .write_all(format!("{message}\n").as_bytes())
            .context("cannot write to the bridge")
    }

    /// Where front ends connect.
    pub fn front_endpoint(&self) -> (u16, &Secret) {
        (self.endpoints.front_port, &self.endpoints.front_token)
    }

    /// A front end that is sent no notifications.
    pub async fn front(&self) -> Result<FrontClient> {
        let (port, token) = self.front_endpoint();
        Ok(FrontClient::connect(port, token, "bench", false).await?.0)
    }

    /// A front end with the chat.
    pub async fn chat_front(&self) -> Result<FrontClient> {
        let (port, token) = self.front_endpoint();
        let hello = Hello {
            chat: true,
            ..Hello::new("bench")
        };
        Ok(FrontClient::connect_as(port, token, hello).await?.0)
    }

    /// An agent with a session.
    pub async fn agent(&self) -> Result<AgentClient> {
        let client = AgentClient::new("127.0.0.1", self.endpoints.port, self.endpoints.token.reveal())?;
        let client = client.timeout(CALL_TIMEOUT);
        let info = ClientInfo {
            name: "bench".to_owned(),
            version: "1".to_owned(),
        };
        client.initialize(&info).await?;
        Ok(client)
    }

    /// The same, which costs little, and sends requests that are prepared before they are measured.
    pub fn plain_agent(&self) -> Result<(Connection, Address)> {
        Address::initialize(self.endpoints.port, self.endpoints.token.reveal())
    }
}

impl Drop for Companion {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The arguments of a proposal, made before it is measured.
pub fn proposal(file: &Path, text: &str) -> Value {
    json!({"name": "openDiff", "arguments": {"filePath": file, "newContent": text}})
}

/// Proposes a change, and waits for the response.
pub async fn propose(agent: &AgentClient, proposal: Value) -> Result<()> {
    let result = agent.request("tools/call", proposal).await?;
    ensure!(result["isError"] != true, "the proposal was refused: {result}");
    Ok(())
}
