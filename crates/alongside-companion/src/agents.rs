//! Inputs from agents.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use alongside_core::diagnostics::FileDiagnostics;
use alongside_core::dialect::ClientInfo;
use alongside_core::{DeliveryId, EmptyDraft, Proposal, SessionEnd, SessionKey};
use alongside_mcp::DiffOutcome;

use super::Companion;
use crate::waiting::{self, Reviewed};

const SHUTTING_DOWN: &str = "The companion is shutting down; decide in the terminal.";

impl alongside_mcp::Companion for Companion {
    async fn session_started(&self, session: &SessionKey, client: Option<&ClientInfo>) {
        let started = self.commit(|core, now| core.session_started(now, session, client.cloned()));
        if let Err(error) = started.await {
            tracing::warn!(%error, %session, "a restarted companion would not know this agent's name");
        }
    }

    fn known_client(&self, session: &SessionKey) -> Option<ClientInfo> {
        self.core.lock().known_client(session).cloned()
    }

    fn stream_opened(&self, session: &SessionKey) {
        self.with_core(|core, now| core.stream_opened(now, session));
    }

    fn stream_closed(&self, session: &SessionKey) {
        self.with_core(|core, _| core.stream_closed(session));
    }

    fn settled(&self, session: &SessionKey, deliveries: &[DeliveryId]) {
        self.with_core(|core, _| core.settle(session, deliveries));
    }

    fn session_ended(&self, session: &SessionKey, end: &SessionEnd) {
        self.with_core(|core, now| core.session_ended(now, session, end));
    }

    async fn open_diff(
        &self,
        session: &SessionKey,
        file_path: Arc<str>,
        new_content: Arc<str>,
    ) -> Result<DiffOutcome, String> {
        let companion = self.me.upgrade().ok_or("The companion is shutting down.")?;
        if session.is_waiting() {
            return companion.await_decision(session, file_path, new_content).await;
        }
        let read = waiting::read_base(self, session, &file_path);
        let bytes = new_content.len();
        let open = {
            let (session, file_path) = (session.clone(), Arc::clone(&file_path));
            move |base| {
                let agent = companion.with_core(|core, _| core.agent_name(&session));
                let is_decided = agent.is_some_and(|agent| companion.hooks.take_diff(&agent, &file_path, &new_content));
                let proposal = Proposal::new(file_path, base, new_content, (companion.host.diff_deadline)());
                companion.open_review_as(&session, proposal, is_decided)
            }
        };
        self.base_threads
            .run_then(session, &file_path, bytes, read, open)
            .await?;
        Ok(DiffOutcome::Opened)
    }

    fn diagnostics(&self, path: Option<&Path>) -> Vec<FileDiagnostics> {
        self.core.lock().diagnostics(path)
    }

    async fn close_diff(&self, session: &SessionKey, file_path: &str) -> Result<Option<Arc<str>>, String> {
        let closed = self.commit(|core, _| core.close_review(session, file_path)).await;
        let closed = closed.map_err(|error| not_saved(&error))?;
        Ok(closed.map(|review| review.text().clone()))
    }
}

impl Companion {
    /// Opens a review for an agent whose call waits, and waits for the decision.
    async fn await_decision(
        self: Arc<Self>,
        session: &SessionKey,
        file_path: Arc<str>,
        new_content: Arc<str>,
    ) -> Result<DiffOutcome, String> {
        let look = {
            let (companion, session) = (Arc::clone(&self), session.clone());
            let (path, text) = (Arc::clone(&file_path), Arc::clone(&new_content));
            move || {
                let agent = companion.with_core(|core, _| core.agent_name(&session));
                let is_decided = agent.is_some_and(|agent| companion.hooks.take_diff(&agent, &path, &text));
                Ok((Path::new(&*path).symlink_metadata().is_err(), is_decided))
            }
        };
        let (is_new_file, is_decided) = self.base_threads.run(session, &file_path, look).await?;
        let companion = Arc::downgrade(&self);
        let proposed = Arc::clone(&new_content);
        let path = Arc::clone(&file_path);
        let accepted = |content| {
            if let Some(companion) = companion.upgrade() {
                companion.watch_final_newline(session, &path, &content);
            }
            DiffOutcome::Accepted { content, is_new_file }
        };
        // The user has accepted it already, in the agent's hook.
        if is_decided {
            return Ok(accepted(proposed));
        }
        Ok(
            match waiting::review(self, session.clone(), file_path, new_content).await? {
                Reviewed::Unchanged => accepted(proposed),
                Reviewed::Accepted(content) => accepted(content),
                // Not by the user: the agent's own question is still open.
                Reviewed::Rejected(_) if companion.upgrade().is_none_or(|companion| companion.is_stopping()) => {
                    return Err(SHUTTING_DOWN.to_owned());
                }
                Reviewed::Rejected(_) | Reviewed::Replaced => DiffOutcome::Rejected,
            },
        )
    }

    fn is_stopping(&self) -> bool {
        self.is_stopping.load(Ordering::Relaxed)
    }

    /// Opens a review and waits until it is written. Blocks. The error is for the agent.
    pub(super) fn open_review(&self, session: &SessionKey, proposal: Proposal) -> Result<(), String> {
        self.open_review_as(session, proposal, false)
    }

    /// The same for a change that the user has accepted already, in the agent's hook: it is accepted at once.
    fn open_review_as(&self, session: &SessionKey, proposal: Proposal, is_decided: bool) -> Result<(), String> {
        let texts = self.journal.store(&proposal).map_err(|error| not_saved(&error))?;
        let opened = self.commit_blocking(Some(texts.clone()), |core, now| {
            if self.is_stopping() {
                return Err(SHUTTING_DOWN.to_owned());
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
        self.journal.discard_unused(&texts);
        opened
    }
}

fn not_saved(error: &impl std::fmt::Display) -> String {
    format!("The change cannot be reviewed now, decide in the terminal: {error}.")
}
