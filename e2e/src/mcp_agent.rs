//! A fake agent, which finds the companion as a real one does.

use std::fs;
use std::path::{Path, PathBuf};

use alongside_core::dialect::ClientInfo;
use alongside_mcp::client::{Client, Events};
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::process;
use crate::sandbox::Sandbox;
use crate::waiting::{TIMEOUT, eventually};

/// The client of an agent, without the agent.
pub struct Agent {
    client: Client,
    events: Events,
}

/// The discovery files that Gemini CLI would find.
pub fn discovery_files(sandbox: &Sandbox) -> Vec<PathBuf> {
    let entries = fs::read_dir(sandbox.path("tmp/gemini/ide")).into_iter().flatten();
    entries.flatten().map(|entry| entry.path()).collect()
}

/// Waits for the discovery file of an editor's companion; returns its port and token.
pub fn announced(sandbox: &Sandbox, pid: u32) -> (u16, String) {
    let found = eventually(TIMEOUT, || {
        announcements(sandbox, |file| file["companionEditor"] == pid).pop()
    });
    let found = found.unwrap_or_else(|| panic!("the companion of {pid} never wrote its discovery file"));
    found.port_and_token
}

/// A companion, as its discovery file describes it.
#[derive(Clone, Debug)]
pub struct Announced {
    pub pid: u32,
    pub port_and_token: (u16, String),
}

impl Announced {
    /// Kills the companion without warning.
    pub fn kill(&self) {
        process::signal(self.pid, Signal::KILL);
    }

    /// Kills the process that started the companion without warning: in VS Code, the extension host.
    pub fn kill_parent(&self) {
        let parent = process::parent(self.pid).expect("the companion is running");
        process::signal(parent, Signal::KILL);
    }

    /// Waits until the companion has exited.
    pub fn wait_until_exited(&self) {
        let exited = eventually(TIMEOUT, || (!process::is_alive(self.pid)).then_some(()));
        assert!(exited.is_some(), "{self:?} is still running");
    }
}

/// Waits until exactly this many companions have announced exactly this workspace.
pub fn announced_for(sandbox: &Sandbox, workspace: &Path, count: usize) -> Vec<Announced> {
    let workspace = workspace.to_string_lossy();
    let mut found = Vec::new();
    let complete = eventually(TIMEOUT, || {
        found = announcements(sandbox, |file| file["workspacePath"] == *workspace);
        (found.len() == count).then_some(())
    });
    assert!(
        complete.is_some(),
        "not {count} companions for {workspace} but {found:?}"
    );
    found
}

fn announcements(sandbox: &Sandbox, is_wanted: impl Fn(&Value) -> bool) -> Vec<Announced> {
    let files = discovery_files(sandbox).into_iter().filter_map(|file| {
        let file = fs::read(file).ok()?;
        serde_json::from_slice::<Value>(&file).ok()
    });
    let found = files.filter(is_wanted).map(|file| {
        let number = |key: &str| file[key].as_u64();
        let port = number("port").and_then(|port| u16::try_from(port).ok());
        let token = file["authToken"].as_str().map(str::to_owned);
        let pid = number("companionPid").and_then(|pid| u32::try_from(pid).ok());
        Announced {
            pid: pid.expect("a discovery file has the companion's PID"),
            port_and_token: port.zip(token).expect("a discovery file has a port and a token"),
        }
    });
    found.collect()
}

/// Waits until there are no discovery files.
pub fn wait_for_no_announcement(sandbox: &Sandbox) {
    let none_left = eventually(TIMEOUT, || discovery_files(sandbox).is_empty().then_some(()));
    assert!(none_left.is_some(), "{:?} still exist", discovery_files(sandbox));
}

impl Agent {
    pub async fn connect((port, token): &(u16, String)) -> Self {
        let client = Client::connect("127.0.0.1", *port, token).await.expect("connect");
        let info = ClientInfo {
            name: "streamable-http-client".to_owned(),
            version: "0.61.0".to_owned(),
        };
        client.initialize(&info).await.expect("initialize");
        let events = client.events(None).await.expect("listen");
        Self { client, events }
    }

    /// Reconnects the event stream after the companion crashed; it may take a moment to restart.
    pub async fn reconnect(&mut self) {
        let again = async {
            loop {
                match self.client.events(None).await {
                    Ok(events) => return events,
                    Err(_) => tokio::time::sleep(std::time::Duration::from_millis(50)).await,
                }
            }
        };
        self.events = tokio::time::timeout(TIMEOUT, again).await.expect("reconnect in time");
    }

    pub async fn propose(&self, path: &Path, content: &str) {
        let arguments = json!({ "filePath": path, "newContent": content });
        let call = json!({ "name": "openDiff", "arguments": arguments });
        let answer = self.client.request("tools/call", call).await.expect("propose");
        assert_eq!(answer, json!({ "content": [] }));
    }

    /// Withdraws a proposal.
    pub async fn withdraw(&self, path: &Path) {
        let call = json!({ "name": "closeDiff", "arguments": { "filePath": path } });
        self.client.request("tools/call", call).await.expect("withdraw");
    }

    /// Waits for an event; `None` on timeout.
    async fn next(&mut self, is_wanted: impl Fn(&Value) -> bool, limit: std::time::Duration) -> Option<Value> {
        let wait = async {
            loop {
                let event = self
                    .events
                    .next()
                    .await
                    .expect("read events")
                    .expect("the stream ended");
                if is_wanted(&event) {
                    return event;
                }
            }
        };
        tokio::time::timeout(limit, wait).await.ok()
    }

    /// Waits until the first of the open files satisfies a condition.
    pub async fn sees(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        let file = |event: &Value| event["params"]["workspaceState"]["openFiles"][0].clone();
        let event = self
            .next(
                |event| event["method"] == "ide/contextUpdate" && is_wanted(&file(event)),
                TIMEOUT,
            )
            .await;
        file(&event.expect("the context arrived in time"))
    }

    /// Waits until all open files satisfy a condition.
    pub async fn open_files(&mut self, is_wanted: impl Fn(&[Value]) -> bool) -> Vec<Value> {
        let files = |event: &Value| event["params"]["workspaceState"]["openFiles"].as_array().cloned();
        let is_update = |event: &Value| event["method"] == "ide/contextUpdate";
        let wanted = |event: &Value| is_update(event) && is_wanted(&files(event).unwrap_or_default());
        let event = self.next(wanted, TIMEOUT).await;
        files(&event.expect("the context arrived in time")).unwrap_or_default()
    }

    /// Waits for the next decision.
    pub async fn decision(&mut self) -> Value {
        self.decision_within(TIMEOUT).await.expect("a decision arrived in time")
    }

    /// Repeats `act` until it decides: a key too soon after a proposal is ignored.
    pub async fn decision_by(&mut self, mut act: impl FnMut()) -> Value {
        for _ in 0..20 {
            act();
            if let Some(decision) = self.decision_within(std::time::Duration::from_secs(3)).await {
                return decision;
            }
        }
        panic!("no decision arrived")
    }

    /// Waits for the next decision; `None` on timeout.
    pub async fn decision_within(&mut self, limit: std::time::Duration) -> Option<Value> {
        self.next(
            |event| {
                event["method"]
                    .as_str()
                    .is_some_and(|method| method.starts_with("ide/diff"))
            },
            limit,
        )
        .await
    }
}
