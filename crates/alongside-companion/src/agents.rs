//! Inputs from agents.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alongside_core::dialect::ClientInfo;
use alongside_core::{DeliveryId, EmptyDraft, Proposal, SessionEnd, SessionId, SessionKey};

use super::{Companion, base};

impl alongside_mcp::Companion for Companion {
    async fn session_started(&self, session: &SessionId, client: Option<&ClientInfo>) {
        let started = self.commit(|core, now| core.session_started(now, &key(session), client.cloned()));
        if let Err(error) = started.await {
            tracing::warn!(%error, %session, "a restarted companion would not know this agent's name");
        }
    }

    fn known_client(&self, session: &SessionId) -> Option<ClientInfo> {
        self.core.lock().known_client(&key(session)).cloned()
    }

    fn stream_opened(&self, session: &SessionId) {
        self.with_core(|core, now| core.stream_opened(now, &key(session)));
    }

    fn stream_closed(&self, session: &SessionId) {
        self.with_core(|core, _| core.stream_closed(&key(session)));
    }

    fn settled(&self, session: &SessionId, deliveries: &[DeliveryId]) {
        self.with_core(|core, _| core.settle(&key(session), deliveries));
    }

    fn session_ended(&self, session: &SessionId, end: &SessionEnd) {
        self.with_core(|core, now| core.session_ended(now, &key(session), end));
    }

    async fn open_diff(&self, session: &SessionId, file_path: Arc<str>, new_content: Arc<str>) -> Result<(), String> {
        let workspace = self.workspace();
        let outside_workspace = self.settings.lock().outside_workspace;
        let companion = self.me.upgrade().ok_or("The companion is shutting down.")?;
        let session = key(session);
        // Outside the core's lock: reading, comparing and writing may take a while.
        let base = self.base_threads.run(&session, &file_path, {
            let (file_path, buffers, host) = (file_path.clone(), self.buffers.clone(), self.host.clone());
            move || {
                base::check(&file_path, &workspace, outside_workspace)?;
                (host.read_base)(&file_path, buffers.get(Path::new(&*file_path)))
            }
        });
        let base = base.await?;
        tokio::task::spawn_blocking(move || {
            let agent = companion.with_core(|core, _| core.agent_name(&session));
            let is_decided = agent.is_some_and(|agent| companion.hooks.take_diff(&agent, &file_path, &new_content));
            let proposal = Proposal::new(file_path, base, new_content, (companion.host.diff_deadline)());
            companion.open_review_as(&session, proposal, is_decided)
        })
        .await
        .map_err(|_| "The change could not be processed; try again.".to_owned())?
    }

    async fn close_diff(&self, session: &SessionId, file_path: &str) -> Result<Option<Arc<str>>, String> {
        let closed = self.commit(|core, _| core.close_review(&key(session), file_path)).await;
        let closed = closed.map_err(|error| not_saved(&error))?;
        Ok(closed.map(|review| review.text().clone()))
    }
}

impl Companion {
    /// Opens a review and waits until it is written. Blocks. The error is for the agent.
    pub(super) fn open_review(&self, session: &SessionKey, proposal: Proposal) -> Result<(), String> {
        self.open_review_as(session, proposal, false)
    }

    /// The same for a change that the user has accepted already, in the agent's hook: it is accepted at once.
    fn open_review_as(&self, session: &SessionKey, proposal: Proposal, is_decided: bool) -> Result<(), String> {
        let texts = self.journal.store(&proposal).map_err(|error| not_saved(&error))?;
        let opened = self.commit_blocking(Some(texts.clone()), |core, now| {
            if self.is_stopping.load(Ordering::Relaxed) {
                return Err("The companion is shutting down; decide in the terminal.".to_owned());
            }
            let opened = core.open_review(now, session, proposal);
            let id = opened.map_err(|refusal| refusal.to_string())?;
            if is_decided {
                core.accept(id, None, EmptyDraft::Allow)
                    .map_err(|refusal| refusal.to_string())?;
            }
            Ok(())
        });
        let opened = opened.map_err(|error| not_saved(&error)).flatten();
        // Refused, not written, or the same proposal again.
        self.journal.discard_unused(texts);
        opened
    }
}

fn not_saved(error: &impl std::fmt::Display) -> String {
    format!("The change cannot be reviewed now, decide in the terminal: {error}.")
}

fn key(session: &SessionId) -> SessionKey {
    SessionKey::Mcp(session.clone())
}
