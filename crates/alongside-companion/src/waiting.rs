//! Reviews for agents that wait: a call, a hook or a write that is answered with the decision.
//!
//! The one that asks is a session of the core, so every front end shows its proposal. The decision comes back as
//! [`alongside_core::Effect::SendDecision`], which ends up in [`Waiting::tell`].

use std::collections::HashMap;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use alongside_core::{Base, Decision, Proposal, SessionKey};
use parking_lot::Mutex;
use tokio::sync::oneshot;

use crate::{Companion, base};

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
    let is_gone = Arc::new(AtomicBool::new(false));
    let mut withdrawal = WithdrawOnDrop {
        companion: Arc::downgrade(&companion),
        session: session.clone(),
        path: Arc::clone(&path),
        is_gone: Arc::clone(&is_gone),
    };
    let opened = tokio::task::spawn_blocking({
        let companion = Arc::clone(&companion);
        move || {
            companion.open_review(&session, proposal)?;
            // The one that asked left while the review was being opened.
            if is_gone.load(Ordering::SeqCst) {
                companion.with_core(|core, _| core.close_review(&session, &path));
            }
            Ok::<_, String>(())
        }
    });
    opened.await.map_err(|_| NOT_PROCESSED.to_owned())??;
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
    let base = base(companion, session, &path).await?;
    let host = companion.host.clone();
    let compare = move || {
        let same = matches!(&base, Base::Text(base) if *base == text);
        (!same).then(|| Proposal::new(path, base, text, (host.diff_deadline)()))
    };
    tokio::task::spawn_blocking(compare)
        .await
        .map_err(|_| NOT_PROCESSED.to_owned())
}

/// The text that a proposal is compared with. An error says why it cannot be reviewed.
pub(crate) async fn base(companion: &Companion, session: &SessionKey, path: &Arc<str>) -> Result<Base, String> {
    let read = read_base(companion, session, path);
    companion.base_threads.run(session, path, read).await
}

/// Reads it. Blocks.
pub(crate) fn read_base(
    companion: &Companion,
    session: &SessionKey,
    path: &Arc<str>,
) -> impl FnOnce() -> Result<Base, String> + Send + use<> {
    let (buffers, host) = (companion.buffers.clone(), companion.host.clone());
    let workspace = companion.workspace();
    let outside_workspace = companion.settings.lock().outside_workspace;
    // The others check the path themselves.
    let is_unchecked = matches!(session, SessionKey::Mcp(_) | SessionKey::Connection(_));
    let path = Arc::clone(path);
    move || {
        if is_unchecked {
            base::check(&path, &workspace, outside_workspace)?;
        }
        (host.read_base)(&path, buffers.get(Path::new(&*path)))
    }
}

/// Closes the review when the one that asked left.
struct WithdrawOnDrop {
    companion: Weak<Companion>,
    session: SessionKey,
    path: Arc<str>,
    /// For a review that is still being opened.
    is_gone: Arc<AtomicBool>,
}

impl Drop for WithdrawOnDrop {
    fn drop(&mut self) {
        if let Some(companion) = self.companion.upgrade() {
            // Before the review is closed: one that opens later must see it.
            self.is_gone.store(true, Ordering::SeqCst);
            companion.waiting.forget(&self.session, &self.path);
            companion.with_core(|core, _| core.close_review(&self.session, &self.path));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use alongside_core::SessionId;

    use super::*;
    use crate::journal::Slot;
    use crate::{Host, test_companion};

    /// Only keeps a failing test from hanging.
    const TIMEOUT: Duration = Duration::from_secs(20);

    async fn until(mut is_so: impl FnMut() -> bool) {
        let waiting = async {
            while !is_so() {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };
        tokio::time::timeout(TIMEOUT, waiting).await.expect("it never came");
    }

    #[tokio::test(flavor = "multi_thread")]
    async fn review_closes_if_the_asker_leaves_while_it_opens() {
        let scratch = tempfile::tempdir().unwrap();
        let slot = Slot::take(
            &test_companion::places(&scratch),
            "editor",
            &[scratch.path().to_owned()],
        )
        .unwrap();
        let (compared, has_compared) = mpsc::channel();
        let (release, released) = mpsc::channel::<()>();
        let released = Mutex::new(released);
        let host = Host {
            diff_deadline: Box::new(move || {
                let _ = compared.send(());
                let _ = released.lock().recv_timeout(TIMEOUT);
                None
            }),
            ..Host::default()
        };
        let companion = test_companion::start(&scratch, &slot, host);
        let session = SessionKey::Connection(SessionId::new("1"));
        companion.with_core(|core, now| core.session_started(now, &session, None));
        let idle = Arc::strong_count(&companion);
        let path: Arc<str> = scratch.path().join("a").to_str().unwrap().into();
        let asking = tokio::spawn(review(companion.clone(), session, path, "text".into()));
        tokio::task::spawn_blocking(move || has_compared.recv_timeout(TIMEOUT).unwrap())
            .await
            .unwrap();
        // Opening the review waits for the core from here on.
        let (unlock, unlocked) = mpsc::channel::<()>();
        let (locked, is_locked) = mpsc::channel();
        let holder = std::thread::spawn({
            let companion = companion.clone();
            move || {
                let _core = companion.core.lock();
                let _ = locked.send(());
                let _ = unlocked.recv_timeout(TIMEOUT);
            }
        });
        is_locked.recv_timeout(TIMEOUT).unwrap();
        release.send(()).unwrap();
        until(|| companion.waiting.0.lock().len() == 1).await;
        asking.abort();
        unlock.send(()).unwrap();
        holder.join().unwrap();
        assert!(asking.await.unwrap_err().is_cancelled());
        until(|| Arc::strong_count(&companion) == idle).await;
        assert_eq!(companion.core.lock().reviews().count(), 0);
        assert!(companion.waiting.0.lock().is_empty());
    }
}
