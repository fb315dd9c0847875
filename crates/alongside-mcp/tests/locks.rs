//! The companion has its own lock. It holds it while it sends to agents, and acquires it in callbacks.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on should panic"
)]

mod common;

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use alongside_core::context::IdeContext;
use alongside_core::dialect::ClientInfo;
use alongside_core::{Decision, SessionId};
use alongside_mcp::client::Client;
use alongside_mcp::{AgentHub, Companion, Config, Server};
use common::{gemini, rejected, soon, start_session, token};
use parking_lot::Mutex;
use serde_json::json;

/// A companion with one lock around everything, like the real one.
#[derive(Default)]
struct Locked {
    state: Mutex<u64>,
    agents: OnceLock<AgentHub>,
}

impl Locked {
    fn send_locked(&self, session: &SessionId) {
        let mut state = self.state.lock();
        *state += 1;
        if let Some(agents) = self.agents.get() {
            agents.publish_context(&IdeContext::default());
            agents.notify(session, rejected("/a"));
        }
    }
}

impl Companion for Locked {
    fn session_started(&self, session: &SessionId, _: Option<&ClientInfo>) {
        self.send_locked(session);
    }

    fn known_client(&self, session: &SessionId) -> Option<ClientInfo> {
        self.send_locked(session);
        None
    }

    fn stream_opened(&self, session: &SessionId) {
        self.send_locked(session);
    }

    fn stream_closed(&self, session: &SessionId) {
        self.send_locked(session);
    }

    fn session_ended(&self, session: &SessionId, _: Vec<Decision>) {
        self.send_locked(session);
    }

    async fn open_diff(&self, session: &SessionId, _: Arc<str>, _: Arc<str>) -> Result<(), String> {
        self.send_locked(session);
        Ok(())
    }

    fn close_diff(&self, session: &SessionId, _: &str) -> Option<Arc<str>> {
        self.send_locked(session);
        None
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

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn requests_wait_while_too_many_events_are_queued() {
    let companion = Arc::new(Locked::default());
    let mut config = Config::new(token());
    config.limits.queued_events = 2;
    let server = Server::bind(config, companion.clone()).await.unwrap();
    let port = server.port();
    let (locked, is_locked) = tokio::sync::oneshot::channel();
    let (release, released) = std::sync::mpsc::channel::<()>();
    std::thread::spawn(move || {
        let _state = companion.state.lock();
        let _ = locked.send(());
        let _ = released.recv();
    });
    is_locked.await.unwrap();
    soon(start_session(port)).await;
    soon(start_session(port)).await;
    let mut third = tokio::spawn(start_session(port));
    let early = tokio::time::timeout(Duration::from_millis(200), &mut third).await;
    assert!(early.is_err(), "the companion is two events behind");
    drop(release);
    soon(third).await.unwrap();
}
