//! Reviews for agents that wait: a call, a hook or a write that is answered with the decision.
//!
//! The one that asks is a session of the core, so every front end shows its proposal. The decision comes back as
//! [`alongside_core::Effect::SendDecision`], which ends up in [`Waiting::tell`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Arc, Weak};

use alongside_core::{Base, Decision, Proposal, SessionKey};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::Companion;

/// How a review ended for the one that waited.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Reviewed {
    /// There was nothing to review: the file has this text already.
    Unchanged,
    /// With the text to write.
    Accepted(Arc<str>),
    /// With the user's reason.
    Rejected(Option<Arc<str>>),
    /// The same session proposed another text for the file.
    Replaced,
}

/// Identifies a proposal.
type Key = (SessionKey, Arc<str>);

/// The proposals that wait for a decision.
#[derive(Default)]
pub(crate) struct Waiting(Mutex<HashMap<Key, oneshot::Sender<Decision>>>);

impl Waiting {
    /// Adds a waiter. A previous one for the same proposal fails.
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
            // The one that asked may have left just now.
            let _ = waiting.send(decision);
        }
    }
}

/// Opens a review and waits for the decision. If the future is dropped, because the one that asked left, the review closes. The
/// error is for the agent.
pub(crate) async fn review(
    companion: Arc<Companion>,
    session: SessionKey,
    path: Arc<str>,
    text: Arc<str>,
) -> Result<Reviewed, String> {
    let Some(proposal) = propose(&companion, &session, Arc::clone(&path), text).await? else {
        return Ok(Reviewed::Unchanged);
    };
    let decision = companion.waiting.wait(&session, &path);
    let opened = tokio::task::spawn_blocking({
        let (companion, session) = (Arc::clone(&companion), session.clone());
        move || companion.open_review(&session, proposal)
    });
    opened.await.map_err(|_| NOT_PROCESSED.to_owned())??;
    let mut withdrawal = WithdrawOnDrop {
        companion: Arc::downgrade(&companion),
        session,
        path,
    };
    // The companion must be able to stop while a review is pending.
    drop(companion);
    let decision = decision.await;
    // Decided, or replaced by a newer proposal, which must not be withdrawn.
    withdrawal.companion = Weak::new();
    Ok(match decision {
        Ok(Decision::Accepted { content, .. }) => Reviewed::Accepted(content),
        Ok(Decision::Rejected { reason, .. }) => Reviewed::Rejected(reason),
        Err(_) => Reviewed::Replaced,
    })
}

const NOT_PROCESSED: &str = "The change could not be processed; try again.";

/// What is to be reviewed; `None` if nothing would change.
async fn propose(
    companion: &Companion,
    session: &SessionKey,
    path: Arc<str>,
    text: Arc<str>,
) -> Result<Option<Proposal>, String> {
    let (buffers, host) = (companion.buffers.clone(), companion.host.clone());
    let read = {
        let path = Arc::clone(&path);
        move || (host.read_base)(&path, buffers.get(Path::new(&*path)))
    };
    let base = companion.base_threads.run(session, &path, read).await?;
    let host = companion.host.clone();
    let compare = move || {
        let same = matches!(&base, Base::Text(base) if *base == text);
        (!same).then(|| Proposal::new(path, base, text, (host.diff_deadline)()))
    };
    tokio::task::spawn_blocking(compare)
        .await
        .map_err(|_| NOT_PROCESSED.to_owned())
}

/// Closes the review when the one that asked left.
struct WithdrawOnDrop {
    companion: Weak<Companion>,
    session: SessionKey,
    path: Arc<str>,
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        if let Some(companion) = self.companion.upgrade() {
            companion.waiting.forget(&self.session, &self.path);
            companion.with_core(|core, _| core.close_review(&self.session, &self.path));
        }
    }
}
