//! The companion has its own lock. It holds it while it sends to agents, and acquires it in callbacks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::path::Path;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alongside_core::context::IdeContext;
use alongside_core::diagnostics::FileDiagnostics;
use alongside_core::dialect::ClientInfo;
use alongside_core::{DeliveryId, SessionEnd, SessionKey};
use alongside_mcp::client::Client;
use alongside_mcp::{AgentHub, Companion, Config, DiffOutcome, Server};
use common::{Call, Received, Setup, gemini, read_response, rejected, soon, start_session, token};
use parking_lot::Mutex;
use serde_json::json;

/// A companion with one lock around everything, like the real one.
#[derive(Default)]
struct Locked {
    state: Mutex<u64>,
    agents: OnceLock<AgentHub>,
}

impl Locked {
    fn send_locked(&self, session: &SessionKey) {
        let mut state = self.state.lock();
        *state += 1;
        if let Some(agents) = self.agents.get() {
            agents.publish_context(&IdeContext::default());
            agents.notify(session, rejected("/a"));
        }
    }
}

impl Companion for Locked {
    async fn session_started(&self, session: &SessionKey, _: Option<&ClientInfo>) {
        self.send_locked(session);
    }

    fn known_client(&self, session: &SessionKey) -> Option<ClientInfo> {
        self.send_locked(session);
        None
    }

    fn stream_opened(&self, session: &SessionKey) {
        self.send_locked(session);
    }

    fn stream_closed(&self, session: &SessionKey) {
        self.send_locked(session);
    }

    fn settled(&self, session: &SessionKey, _: &[DeliveryId]) {
        self.send_locked(session);
    }

    fn session_ended(&self, session: &SessionKey, _: &SessionEnd) {
        self.send_locked(session);
    }

    async fn open_diff(&self, session: &SessionKey, _: Arc<str>, _: Arc<str>) -> Result<DiffOutcome, String> {
        self.send_locked(session);
        Ok(DiffOutcome::Opened)
    }

    fn diagnostics(&self, _: Option<&Path>) -> Vec<FileDiagnostics> {
        Vec::new()
    }

    async fn close_diff(&self, session: &SessionKey, _: &str) -> Result<Option<Arc<str>>, String> {
        self.send_locked(session);
        Ok(None)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn companion_may_send_with_its_lock_held() {
    let companion = Arc::new(Locked::default());
    let mut config = Config::new(token());
    config.limits.sessions = 4;
    config.limits.pending_decisions = 3;
    let server = Server::bind(config, companion.clone()).await.unwrap();
    let _ = companion.agents.set(server.agents());
    let port = server.port();
    let agents: Vec<_> = (0..8)
        .map(|_| {
            tokio::spawn(async move {
                for _ in 0..20 {
                    let client = Client::new("127.0.0.1", port, token().reveal()).unwrap();
                    // Sessions keep replacing each other, so anything may fail, but nothing may hang.
                    let _ = client.initialize(&gemini()).await;
                    let events = client.events(None).await;
                    for tool in ["openDiff", "closeDiff"] {
                        let params = json!({"name": tool, "arguments": {"filePath": "/a", "newContent": ""}});
                        let _ = client.request("tools/call", params).await;
                    }
                    drop(events);
                    let _ = client.end().await;
                }
            })
        })
        .collect();
    for agent in agents {
        soon(agent).await.unwrap();
    }
    soon(server.shutdown()).await;
    assert!(*companion.state.lock() > 100);
}

#[tokio::test]
async fn requests_wait_while_too_many_events_are_queued() {
    let mut setup = Setup::with(|config| config.limits.queued_events = 2).await;
    let port = setup.port();
    let (first, second) = (start_session(port).await, start_session(port).await);
    let gate = setup.companion.gate.clone().acquire_owned().await.unwrap();
    let third = tokio::spawn(start_session(port));
    for _ in 0..3 {
        assert!(matches!(setup.next_call().await, Received::Started(..)));
    }
    let mut opened = soon(Call::get(port, &first).open(port)).await;
    soon(read_response(&mut opened)).await;
    let mut waiting = soon(Call::get(port, &second).open(port)).await;
    let early = tokio::time::timeout(Duration::from_millis(200), read_response(&mut waiting)).await;
    assert!(early.is_err(), "the companion is two events behind");
    drop(gate);
    soon(read_response(&mut waiting)).await;
    soon(third).await.unwrap();
}
