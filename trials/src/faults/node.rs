//! An agent made of the official TypeScript SDK, at a version that a CLI pins.

use std::collections::HashMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, Command};
use tokio::sync::oneshot;

use super::wire::{Failure, Program, Receive};
use crate::program::{Endpoints, TIMEOUT};

/// The SDK's own limit is a minute.
const RESPONSE: Duration = Duration::from_secs(30);

/// Where Node and the SDKs are, from `cargo xtask`. `None` if they are not installed.
#[derive(Clone, Debug)]
pub(super) struct NodePlaces {
    node: PathBuf,
    script: PathBuf,
}

impl NodePlaces {
    pub(super) fn find() -> Option<Self> {
        let e2e = PathBuf::from(std::env::var_os("ALONGSIDE_E2E")?);
        let places = Self {
            node: std::env::var_os("ALONGSIDE_NODE")?.into(),
            script: e2e.join("typescript/agent.mjs"),
        };
        e2e.join("node_modules/sdk-1-23").is_dir().then_some(places)
    }
}

pub(super) struct NodeWire {
    _child: Child,
    input: tokio::sync::Mutex<ChildStdin>,
    state: Arc<State>,
    next: AtomicU64,
}

#[derive(Default)]
struct State {
    pending: Mutex<HashMap<u64, oneshot::Sender<Value>>>,
    is_listening: AtomicBool,
    gave_up: AtomicBool,
}

impl NodeWire {
    pub(super) fn spawn(places: &NodePlaces, sdk: &str, program: Program, receive: Receive) -> Self {
        let mut child = Command::new(&places.node)
            .arg(&places.script)
            .args([sdk, program.name, program.version])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("start Node");
        let input = child.stdin.take().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let state = Arc::<State>::default();
        let shared = state.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = lines.next_line().await {
                let message: Value = serde_json::from_str(&line).expect("the agent prints JSON lines");
                shared.take(&message, &receive);
            }
        });
        Self {
            _child: child,
            input: tokio::sync::Mutex::new(input),
            state,
            next: AtomicU64::new(1),
        }
    }

    pub(super) fn is_listening(&self) -> bool {
        self.state.is_listening.load(Ordering::Relaxed)
    }

    pub(super) async fn start(&self, endpoints: &Endpoints) -> Result<String, Failure> {
        let url = format!("http://127.0.0.1:{}/mcp", endpoints.port);
        self.state.gave_up.store(false, Ordering::Relaxed);
        let connect = json!({"do": "connect", "url": url, "token": endpoints.token()});
        let connected = self.order(connect, TIMEOUT).await?;
        Ok(connected["session"].as_str().unwrap_or_default().to_owned())
    }

    /// The SDK reconnects on its own, twice; after that, only a new session helps.
    pub(super) fn resume(&self) -> Result<(), Failure> {
        if self.state.gave_up.load(Ordering::Relaxed) {
            return Err(Failure::Lost("the SDK gave up".to_owned()));
        }
        Ok(())
    }

    pub(super) async fn cut(&self) {
        let _ = self.order(json!({"do": "cut"}), TIMEOUT).await;
    }

    pub(super) async fn call(&self, tool: &str, arguments: &Value) -> Result<Value, Failure> {
        self.order(json!({"do": "call", "name": tool, "arguments": arguments}), RESPONSE)
            .await
    }

    pub(super) async fn leave(&self) {
        let _ = self.order(json!({"do": "leave"}), TIMEOUT).await;
    }

    async fn order(&self, mut order: Value, limit: Duration) -> Result<Value, Failure> {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        order["id"] = json!(id);
        let (sender, answer) = oneshot::channel();
        self.state.pending.lock().insert(id, sender);
        let line = format!("{order}\n");
        let written = self.input.lock().await.write_all(line.as_bytes()).await;
        written.expect("Node reads its input");
        let answer = tokio::time::timeout(limit, answer).await;
        let mut answer = match answer {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => panic!("Node ended"),
            Err(_) => return Err(Failure::Timeout(limit)),
        };
        if let Some(sentence) = answer["refused"].as_str() {
            Err(Failure::Refused(sentence.to_owned()))
        } else if let Some(reason) = answer["lost"].as_str() {
            Err(Failure::Lost(reason.to_owned()))
        } else {
            Ok(answer["result"].take())
        }
    }
}

impl State {
    fn take(&self, message: &Value, receive: &Receive) {
        match message["event"].as_str() {
            Some("listening") => self.is_listening.store(true, Ordering::Relaxed),
            Some("deaf") => self.is_listening.store(false, Ordering::Relaxed),
            Some("gave-up") => self.gave_up.store(true, Ordering::Relaxed),
            Some("notification") => receive(message["session"].as_str().unwrap_or_default(), message),
            _ => {
                let sender = message["id"].as_u64().and_then(|id| self.pending.lock().remove(&id));
                if let Some(sender) = sender {
                    let _ = sender.send(message.clone());
                }
            }
        }
    }
}
