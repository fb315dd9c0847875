//! Inputs from agents.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alongside_core::dialect::ClientInfo;
use alongside_core::{Decision, Proposal, SessionId, SessionKey};

use super::{Companion, base};

impl alongside_mcp::Companion for Companion {
    fn session_started(&self, session: &SessionId, client: Option<&ClientInfo>) {
        if let Some(client) = client {
            self.store.remember_client(session, client);
        }
        self.store.forget_undelivered(session);
        self.with_core(|core, now| core.session_started(now, &key(session), client.cloned()));
    }

    fn known_client(&self, session: &SessionId) -> Option<ClientInfo> {
        self.store.known_client(session)
    }

    fn stream_opened(&self, session: &SessionId) {
        self.with_core(|core, _| core.stream_opened(&key(session)));
    }

    fn stream_closed(&self, session: &SessionId) {
        self.with_core(|core, _| core.stream_closed(&key(session)));
    }

    fn session_ended(&self, session: &SessionId, undelivered: Vec<Decision>) {
        let paths = undelivered.iter().map(|decision| decision.path().clone()).collect();
        self.with_core(|core, _| core.session_ended(&key(session), paths));
    }

    async fn open_diff(&self, session: &SessionId, file_path: Arc<str>, new_content: Arc<str>) -> Result<(), String> {
        let workspace = self.workspace();
        let outside_workspace = self.settings.lock().outside_workspace;
        let (buffers, host) = (self.buffers.clone(), self.host.clone());
        // Outside the core's lock: reading and comparing may take a while.
        let proposal = tokio::task::spawn_blocking(move || {
            base::check(&file_path, &workspace, outside_workspace)?;
            let base = base::read(&file_path, buffers.get(Path::new(&*file_path)))?;
            Ok::<_, String>(Proposal::new(file_path, base, new_content, (host.diff_deadline)()))
        })
        .await
        .map_err(|_| "The change could not be processed; try again.".to_owned())??;
        self.with_core(|core, now| {
            if self.is_stopping.load(Ordering::Relaxed) {
                return Err("The companion is shutting down.".to_owned());
            }
            core.open_review(now, &key(session), proposal)
                .map(|_| ())
                .map_err(|refusal| refusal.to_string())
        })
    }

    fn close_diff(&self, session: &SessionId, file_path: &str) -> Option<Arc<str>> {
        let closed = self.with_core(|core, _| core.close_review(&key(session), file_path));
        closed.map(|review| review.text().clone())
    }
}

fn key(session: &SessionId) -> SessionKey {
    SessionKey::Mcp(session.clone())
}
