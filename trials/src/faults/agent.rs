//! Agents that behave as the real CLIs do: a table of waiting proposals by path, one event stream, and sessions that they resume.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::sync::RwLock;

use super::invariant::Invariant;
use super::ledger::{Answer, Decision, Ledger};
use super::node::{NodePlaces, NodeWire};
use super::plan::{Return, Role};
use super::wire::{Failure, OwnWire, Program, Receive, Wire};
use crate::program::Endpoints;

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

pub(super) struct Agent {
    pub(super) index: usize,
    pub(super) role: Role,
    ledger: Arc<Ledger>,
    wire: Wire,
    /// Locked for reading during a request, which is of one session.
    session: RwLock<String>,
}

impl Agent {
    /// With our own client.
    pub(super) fn new(index: usize, role: Role, program: Program, ledger: Arc<Ledger>) -> Self {
        let wire = Wire::Own(OwnWire::new(program, receiver(&ledger, index)));
        Self::with(wire, index, role, ledger)
    }

    /// With an official SDK.
    pub(super) fn in_node(
        places: &NodePlaces,
        sdk: &str,
        index: usize,
        role: Role,
        program: Program,
        ledger: Arc<Ledger>,
    ) -> Self {
        let wire = NodeWire::spawn(places, sdk, program, receiver(&ledger, index));
        Self::with(Wire::Node(wire), index, role, ledger)
    }

    fn with(wire: Wire, index: usize, role: Role, ledger: Arc<Ledger>) -> Self {
        Self {
            index,
            role,
            ledger,
            wire,
            session: RwLock::default(),
        }
    }

    pub(super) async fn session(&self) -> String {
        self.session.read().await.clone()
    }

    pub(super) fn is_listening(&self) -> bool {
        self.wire.is_listening()
    }

    /// Comes back to a companion that was restarted, or comes for the first time.
    pub(super) async fn come(&self, endpoints: &Endpoints, how: Return) -> Result<(), Failure> {
        if let Return::Late(delay) = how {
            tokio::time::sleep(delay).await;
        }
        if self.session().await.is_empty() || how == Return::NewSession {
            let mut session = self.session.write().await;
            return self.start_session(endpoints, &mut session).await;
        }
        self.ledger.note(|| format!("agent {} comes back: {how:?}", self.index));
        self.wire.resume(endpoints, how != Return::Forgetful).await
    }

    async fn start_session(&self, endpoints: &Endpoints, session: &mut String) -> Result<(), Failure> {
        // Decisions about the previous session's proposals may come to this one as soon as it listens.
        self.ledger.abandoned(self.index);
        *session = self.wire.start(endpoints).await?;
        Ok(())
    }

    /// Loses the event stream.
    pub(super) async fn cut(&self) {
        self.wire.cut().await;
    }

    pub(super) async fn propose(&self, path: &str, text: Arc<str>) {
        let session = self.session.read().await;
        let Some(id) = self
            .ledger
            .proposing(self.role, self.index, &session, path, text.clone())
        else {
            return;
        };
        self.ledger.note(|| format!("agent {} proposes {path}", self.index));
        let arguments = json!({"filePath": path, "newContent": &*text});
        let answer = self.call("openDiff", arguments).await;
        self.ledger.proposed(id, answer);
    }

    pub(super) async fn close(&self, pick: u64) {
        let session = self.session.read().await;
        let Some((id, path)) = self.ledger.waiting_path(self.index, pick) else {
            return;
        };
        let is_own = self.ledger.closing(id, &session);
        let arguments = json!({"filePath": path, "suppressNotification": true});
        let answer = self.call("closeDiff", arguments).await;
        if is_own {
            self.ledger.closed(id, answer);
        }
    }

    /// Ends the session properly, and starts another.
    pub(super) async fn leave(&self, endpoints: &Endpoints) {
        let mut session = self.session.write().await;
        self.ledger.left(self.index);
        self.wire.leave().await;
        let _ = self.start_session(endpoints, &mut session).await;
    }

    async fn call(&self, tool: &str, arguments: Value) -> Answer {
        let response = self.wire.call(tool, arguments).await;
        self.ledger
            .note(|| format!("agent {} {tool}: {response:?}", self.index));
        let sentence = match response {
            Ok(result) if result["isError"] != true => return Answer::Done(()),
            Ok(result) => result["content"][0]["text"].as_str().unwrap_or_default().to_owned(),
            Err(Failure::Refused(sentence)) => sentence,
            Err(Failure::Timeout(limit)) => {
                let what = format!("no response to {tool} within {limit:?}");
                self.ledger.violated(Invariant::Alive, what);
                return Answer::Lost;
            }
            Err(Failure::Lost(_)) => return Answer::Lost,
        };
        if sentence.trim().len() < 10 {
            let what = format!("{tool} was refused without a sentence: {sentence:?}");
            self.ledger.violated(Invariant::Disk, what);
        }
        Answer::Refused
    }
}

/// Records the decisions of an agent's event streams.
fn receiver(ledger: &Arc<Ledger>, agent: usize) -> Receive {
    let ledger = ledger.clone();
    Arc::new(move |session, message| {
        let params = &message["params"];
        let decision = match message["method"].as_str() {
            Some("ide/diffAccepted") => Decision::Accepted(params["content"].as_str().map(Arc::from)),
            Some("ide/diffRejected" | "ide/diffClosed") => Decision::Rejected,
            _ => return,
        };
        let path = params["filePath"].as_str().unwrap_or_default();
        ledger.note(|| format!("agent {agent} receives {decision:?} of {path}"));
        ledger.received(agent, session, path, &decision);
    })
}
