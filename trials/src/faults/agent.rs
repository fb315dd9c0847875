//! Agents that behave as the real CLIs do: a table of waiting proposals by path, one event stream, and sessions that they resume.

use std::sync::Arc;
use std::time::Duration;

use alongside_core::dialect::ClientInfo;
use alongside_mcp::client::{Client, ClientError};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use super::invariant::Invariant;
use super::ledger::{Answer, Decision, Ledger};
use super::plan::{Return, Role};
use crate::program::Endpoints;

/// How often an agent tries to open its next stream, as the SDK does, and the first delay. The SDK's is 1 s.
const ATTEMPTS: u32 = 3;
const FIRST_DELAY: Duration = Duration::from_millis(30);

/// What an agent calls its program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Program {
    pub name: &'static str,
    pub version: &'static str,
}

pub(super) const GEMINI: Program = Program {
    name: "streamable-http-client",
    version: "0.61.0",
};
pub(super) const QWEN: Program = Program {
    name: "streamable-http-client",
    version: "1.0.0",
};
pub(super) const OTHER: Program = Program {
    name: "another-client",
    version: "2.0.0",
};

/// An agent made of our own client.
pub(super) struct Agent {
    pub index: usize,
    pub role: Role,
    program: Program,
    ledger: Arc<Ledger>,
    link: Mutex<Link>,
    last_event: Arc<Mutex<Option<String>>>,
}

#[derive(Default)]
struct Link {
    client: Option<Client>,
    session: String,
    stream: Option<JoinHandle<()>>,
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(stream) = self.stream.take() {
            stream.abort();
        }
    }
}

impl Agent {
    pub(super) fn new(index: usize, role: Role, program: Program, ledger: Arc<Ledger>) -> Self {
        Self {
            index,
            role,
            program,
            ledger,
            link: Mutex::default(),
            last_event: Arc::default(),
        }
    }

    pub(super) fn session(&self) -> String {
        self.link.lock().session.clone()
    }

    /// Whether its event stream is open, as far as it knows.
    pub(super) fn is_listening(&self) -> bool {
        let link = self.link.lock();
        link.stream.as_ref().is_some_and(|stream| !stream.is_finished())
    }

    /// Comes back to a companion that was restarted, or comes for the first time.
    pub(super) async fn come(&self, endpoints: &Endpoints, how: Return) -> Result<(), ClientError> {
        if let Return::Late(delay) = how {
            tokio::time::sleep(delay).await;
        }
        let session = self.session();
        if session.is_empty() || how == Return::NewSession {
            return self.start_session(endpoints).await;
        }
        let client = Client::new("127.0.0.1", endpoints.port, endpoints.token())?;
        client.resume(&session, None)?;
        self.link.lock().client = Some(client);
        self.reopen(how != Return::Forgetful).await
    }

    async fn start_session(&self, endpoints: &Endpoints) -> Result<(), ClientError> {
        let client = Client::new("127.0.0.1", endpoints.port, endpoints.token())?;
        let me = ClientInfo {
            name: self.program.name.to_owned(),
            version: self.program.version.to_owned(),
        };
        client.initialize(&me).await?;
        self.ledger.abandoned(self.index);
        self.cut();
        *self.last_event.lock() = None;
        {
            let mut link = self.link.lock();
            link.session = client.session_id().unwrap_or_default();
            link.client = Some(client);
        }
        self.reopen(false).await
    }

    /// Loses the event stream.
    pub(super) fn cut(&self) {
        if let Some(stream) = self.link.lock().stream.take() {
            stream.abort();
        }
    }

    /// Opens the next stream, in several attempts.
    pub(super) async fn reopen(&self, with_last_event: bool) -> Result<(), ClientError> {
        let Some(client) = self.link.lock().client.clone() else {
            return Ok(());
        };
        let last_event = self.last_event.lock().clone().filter(|_| with_last_event);
        let mut delay = FIRST_DELAY;
        for attempt in 1.. {
            match client.events(last_event.as_deref()).await {
                Ok(mut events) => {
                    let (ledger, index, session) = (self.ledger.clone(), self.index, self.session());
                    let last = self.last_event.clone();
                    let stream = tokio::spawn(async move {
                        while let Ok(Some(message)) = events.next().await {
                            *last.lock() = events.last_event_id().map(str::to_owned);
                            receive(&ledger, index, &session, &message);
                        }
                    });
                    if let Some(previous) = self.link.lock().stream.replace(stream) {
                        previous.abort();
                    }
                    return Ok(());
                }
                Err(error) if attempt >= ATTEMPTS => return Err(error),
                Err(_) => tokio::time::sleep(delay).await,
            }
            delay = delay * 3 / 2;
        }
        Ok(())
    }

    pub(super) async fn propose(&self, path: &str, text: Arc<str>) {
        let session = self.session();
        let Some(client) = self.link.lock().client.clone() else {
            return;
        };
        let Some(id) = self
            .ledger
            .proposing(self.role, self.index, &session, path, text.clone())
        else {
            return;
        };
        let answer = self
            .call(&client, "openDiff", json!({"filePath": path, "newContent": &*text}))
            .await;
        self.ledger.proposed(id, answer);
    }

    pub(super) async fn close(&self, pick: u64) {
        let Some(client) = self.link.lock().client.clone() else {
            return;
        };
        let Some((id, path)) = self.ledger.waiting_path(self.index, pick) else {
            return;
        };
        let is_own = self.ledger.closing(id, &self.session());
        let answer = self
            .call(
                &client,
                "closeDiff",
                json!({"filePath": path, "suppressNotification": true}),
            )
            .await;
        if is_own {
            self.ledger.closed(id, answer);
        }
    }

    /// Ends the session properly.
    pub(super) async fn leave(&self, endpoints: &Endpoints) {
        let Some(client) = self.link.lock().client.clone() else {
            return;
        };
        self.ledger.left(self.index);
        let _ = client.end().await;
        self.cut();
        let _ = self.start_session(endpoints).await;
    }

    async fn call(&self, client: &Client, tool: &str, arguments: Value) -> Answer {
        let response = client
            .request("tools/call", json!({"name": tool, "arguments": arguments}))
            .await;
        self.ledger
            .note(|| format!("agent {} {tool}: {response:?}", self.index));
        judge(&self.ledger, tool, response)
    }
}

/// What a response to a tool call means for the ledger.
fn judge(ledger: &Ledger, tool: &str, response: Result<Value, ClientError>) -> Answer {
    let sentence = match response {
        Ok(result) if result["isError"] != true => return Answer::Done(()),
        Ok(result) => result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
        Err(ClientError::Rpc { message, .. }) => message,
        Err(ClientError::Status { sentence, .. }) => sentence,
        Err(ClientError::Timeout(limit)) => {
            ledger.violated(Invariant::Alive, format!("no response to {tool} within {limit:?}"));
            return Answer::Lost;
        }
        Err(_) => return Answer::Lost,
    };
    if sentence.trim().len() < 10 {
        ledger.violated(
            Invariant::Disk,
            format!("{tool} was refused without a sentence: {sentence:?}"),
        );
    }
    Answer::Refused
}

/// Records a message of an event stream, if it is a decision.
pub(super) fn receive(ledger: &Ledger, agent: usize, session: &str, message: &Value) {
    let params = &message["params"];
    let decision = match message["method"].as_str() {
        Some("ide/diffAccepted") => Decision::Accepted(params["content"].as_str().map(Arc::from)),
        Some("ide/diffRejected" | "ide/diffClosed") => Decision::Rejected,
        _ => return,
    };
    ledger.note(|| format!("agent {agent} receives {decision:?} of {}", params["filePath"]));
    ledger.received(
        agent,
        session,
        params["filePath"].as_str().unwrap_or_default(),
        &decision,
    );
}
