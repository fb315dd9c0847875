//! Reviews of files that a local agent writes through the companion.
//!
//! The agent is a session of the core, and a write is a proposal of that session. So every front end shows it, and the decision comes
//! back as [`alongside_core::Effect::SendDecision`], which ends up in [`Waiting::tell`].

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use alongside_agent::acp::{ProposedWrite, ReviewGate, WriteDecision};
use alongside_core::dialect::ClientInfo;
use alongside_core::{Base, Decision, Proposal, SessionKey};
use alongside_protocol::ChatWrites;
use alongside_protocol::chat::ConnectedSession;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::Companion;

pub(super) fn client_of(session: &ConnectedSession) -> ClientInfo {
    ClientInfo {
        name: session.agent.clone(),
        version: session.agent_version.clone().unwrap_or_default(),
    }
}

/// Identifies a write.
type Write = (SessionKey, Arc<str>);

/// The writes that wait for a decision.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<HashMap<Write, oneshot::Sender<Decision>>>);

impl Waiting {
    /// Adds a waiter. A previous one for the same write fails.
    fn wait(&self, session: &SessionKey, path: &Arc<str>) -> oneshot::Receiver<Decision> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().insert((session.clone(), Arc::clone(path)), sender);
        receiver
    }

    fn forget(&self, session: &SessionKey, path: &Arc<str>) {
        self.0.lock().remove(&(session.clone(), Arc::clone(path)));
    }

    pub(crate) fn tell(&self, session: &SessionKey, decision: Decision) {
        let waiting = self.0.lock().remove(&(session.clone(), Arc::clone(decision.path())));
        if let Some(waiting) = waiting {
            // The turn may have been cancelled just now.
            let _ = waiting.send(decision);
        }
    }
}

pub(super) struct WriteReviewer(pub(super) Weak<Companion>);

impl ReviewGate for WriteReviewer {
    fn unsaved_text(&self, path: &Path) -> Option<String> {
        let companion = self.0.upgrade()?;
        companion.buffers.get(path).map(|text| text.as_ref().to_owned())
    }

    fn hidden(&self, path: &Path, real: &Path) -> Option<String> {
        let companion = self.0.upgrade()?;
        let rule = companion.core.lock().rule_hiding(path, real)?;
        Some(format!(
            "is hidden from agents by the pattern `{}` in {}",
            rule.pattern, rule.origin
        ))
    }

    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        let companion = self.0.clone();
        Box::pin(async move {
            match companion.upgrade() {
                Some(companion) => review(companion, write).await,
                None => refuse("the companion is shutting down"),
            }
        })
    }
}

fn refuse(reason: impl Into<String>) -> WriteDecision {
    WriteDecision::Refuse { reason: reason.into() }
}

async fn review(companion: Arc<Companion>, write: ProposedWrite) -> WriteDecision {
    if companion.chat.writes() == ChatWrites::Allow {
        return WriteDecision::Write(write.text);
    }
    let Some(path) = write.path.to_str().map(Arc::<str>::from) else {
        return refuse("the path is not valid UTF-8, so the change cannot be reviewed");
    };
    let text: Arc<str> = write.text.into();
    let session = SessionKey::Chat(write.session_id);
    let proposal = match propose(&companion, &session, write.path, Arc::clone(&path), Arc::clone(&text)).await {
        Ok(Some(proposal)) => proposal,
        Ok(None) => return WriteDecision::Write(text.as_ref().to_owned()),
        Err(reason) => return refuse(reason),
    };
    let decision = companion.chat.waiting.wait(&session, &path);
    let opened = tokio::task::spawn_blocking({
        let (companion, session) = (Arc::clone(&companion), session.clone());
        move || companion.open_review(&session, proposal)
    });
    match opened.await {
        Ok(Ok(())) => {}
        Ok(Err(reason)) => return refuse(reason),
        Err(_) => return refuse("the change could not be processed"),
    }
    let mut withdrawal = WithdrawOnDrop {
        companion: Arc::downgrade(&companion),
        session,
        path,
    };
    // The companion must be able to stop while a review is pending.
    drop(companion);
    let decision = decision.await;
    // Decided, or replaced by a newer write, which must not be withdrawn.
    withdrawal.companion = Weak::new();
    match decision {
        Ok(Decision::Accepted { content, .. }) => WriteDecision::Write(content.as_ref().to_owned()),
        Ok(Decision::Rejected { .. }) => refuse("the user rejected this change"),
        Err(_) => refuse("replaced by a newer change to the same file"),
    }
}

/// What is to be reviewed; `None` if nothing would change.
async fn propose(
    companion: &Companion,
    session: &SessionKey,
    file: PathBuf,
    path: Arc<str>,
    text: Arc<str>,
) -> Result<Option<Proposal>, String> {
    let (buffers, host) = (companion.buffers.clone(), companion.host.clone());
    let read = {
        let path = Arc::clone(&path);
        move || (host.read_base)(&path, buffers.get(&file))
    };
    let base = companion.base_threads.run(session, &path, read).await?;
    let host = companion.host.clone();
    let compare = move || {
        let same = matches!(&base, Base::Text(base) if *base == text);
        (!same).then(|| Proposal::new(path, base, text, (host.diff_deadline)()))
    };
    tokio::task::spawn_blocking(compare)
        .await
        .map_err(|_| "The change could not be processed; try again.".to_owned())
}

/// Closes the review when its request is dropped: the turn was cancelled, or the agent exited.
struct WithdrawOnDrop {
    companion: Weak<Companion>,
    session: SessionKey,
    path: Arc<str>,
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        if let Some(companion) = self.companion.upgrade() {
            companion.chat.waiting.forget(&self.session, &self.path);
            companion.with_core(|core, _| core.close_review(&self.session, &self.path));
        }
    }
}
