//! Reviews for hook processes.
//!
//! A hook process is a session of the core for as long as it waits. Some agents send a change that the user has just decided
//! once more, in another way; such a change is remembered for a moment and not reviewed again.

use std::collections::VecDeque;
use std::path::Path;
use std::pin::pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use alongside_core::dialect::ClientInfo;
use alongside_core::{HookAgent, Review, SessionEnd, SessionId, SessionKey};
use alongside_protocol::{
    ErrorKind, HookFile, HookFollower, HookOutcome, HookReview, HookReviewed, HookSession, RequestError,
};
use futures_util::future::join_all;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::waiting::{self, Reviewed};
use crate::{Companion, base};

/// How long a decided change is remembered.
const MEMORY: Duration = Duration::from_mins(1);
const MAX_REMEMBERED: usize = 64;
const MAX_REMEMBERED_BYTES: usize = 64 * 1024 * 1024;

const ABANDONED: &str = "The user sent another prompt while this change was under review, so nothing was written.";
const STOPPED: &str = "The companion was stopped before the user decided, so nothing was written.";

#[derive(Default)]
pub(crate) struct Hooks {
    last_process: AtomicU64,
    processes: Mutex<Vec<Process>>,
    decided: Mutex<VecDeque<Decided>>,
}

/// A hook process that waits.
struct Process {
    number: u64,
    session: HookSession,
    abandoned: Arc<Notify>,
}

/// A change that the user accepted, and that the agent sends once more.
struct Decided {
    session: HookSession,
    path: Arc<str>,
    /// `None` for a deletion.
    text: Option<Arc<str>>,
    before_hook: bool,
    before_diff: bool,
    at: Instant,
}

impl Hooks {
    /// Ends what the hooks of a session wait for: not every agent ends its hook when the user cancels.
    pub(crate) fn abandon(&self, session: &HookSession) {
        for process in self.processes.lock().iter() {
            if process.session == *session {
                process.abandoned.notify_one();
            }
        }
    }

    /// Whether the user accepted this proposal of an agent in its hook just now. Forgets it. Blocks.
    pub(crate) fn take_diff(&self, agent: &str, path: &str, text: &str) -> bool {
        let mut decided = self.decided.lock();
        forget_old(&mut decided);
        if decided.is_empty() {
            return false;
        }
        let real = base::real_path(Path::new(path));
        let found = decided.iter_mut().find(|decided| {
            decided.before_diff
                && decided.session.agent.is_called(agent)
                && decided.text.as_deref() == Some(text)
                && (*decided.path == *path || real.as_deref() == Some(Path::new(&*decided.path)))
        });
        found.is_some_and(|decided| std::mem::take(&mut decided.before_diff))
    }

    /// Whether the user accepted exactly these changes of a session just now. Forgets them.
    fn take_hook(&self, review: &HookReview) -> bool {
        let mut decided = self.decided.lock();
        forget_old(&mut decided);
        let find = |file: &HookFile| {
            decided.iter().position(|decided| {
                decided.before_hook
                    && decided.session.agent == review.agent
                    && decided.session.session == review.session
                    && decided.path == file.path
                    && decided.text == file.content
            })
        };
        let Some(found) = review.files.iter().map(find).collect::<Option<Vec<usize>>>() else {
            return false;
        };
        for index in &found {
            decided[*index].before_hook = false;
        }
        true
    }

    fn remember(&self, new: Decided) {
        let mut decided = self.decided.lock();
        decided.push_back(new);
        forget_old(&mut decided);
    }
}

fn forget_old(decided: &mut VecDeque<Decided>) {
    decided.retain(|decided| (decided.before_hook || decided.before_diff) && decided.at.elapsed() < MEMORY);
    let bytes = |decided: &VecDeque<Decided>| -> usize {
        let texts = decided.iter().filter_map(|decided| decided.text.as_ref());
        texts.map(|text| text.len()).sum()
    };
    while decided.len() > MAX_REMEMBERED || bytes(decided) > MAX_REMEMBERED_BYTES {
        decided.pop_front();
    }
}

impl Companion {
    pub(crate) async fn hook_review(&self, review: HookReview) -> Result<HookReviewed, RequestError> {
        let is_first = review.followed_by.contains(&HookFollower::Hook);
        if !is_first && self.hooks.take_hook(&review) {
            let accepted = |_: &HookFile| HookOutcome::Accepted { content: None };
            return Ok(HookReviewed {
                files: review.files.iter().map(accepted).collect(),
            });
        }
        let process = HookProcess::start(self, &review);
        let files = review.files.iter().map(|file| self.hook_file(&process.key, file));
        let mut files = pin!(join_all(files));
        // Dropped before the reviews are.
        let mut undecided = Undecided(Some(&process));
        let files = tokio::select! {
            files = &mut files => files,
            () = process.abandoned.notified() => {
                let abandoned = |_: &HookFile| rejected(ABANDONED);
                review.files.iter().map(abandoned).collect()
            }
        };
        undecided.0 = None;
        for (file, outcome) in review.files.iter().zip(&files) {
            if let HookOutcome::Accepted { content } = outcome
                && !review.followed_by.is_empty()
            {
                self.hooks.remember(Decided {
                    session: process.session.clone(),
                    path: Arc::clone(&file.path),
                    text: content.clone().or_else(|| file.content.clone()),
                    before_hook: is_first,
                    before_diff: review.followed_by.contains(&HookFollower::Diff),
                    at: Instant::now(),
                });
            }
        }
        Ok(HookReviewed { files })
    }

    async fn hook_file(&self, session: &SessionKey, file: &HookFile) -> HookOutcome {
        let Some(companion) = self.me.upgrade() else {
            return rejected(STOPPED);
        };
        self.unreviewed.forget(&file.path);
        if let Err(reason) = self.check_hook_path(&file.path).await {
            return rejected(&reason);
        }
        // A deletion is reviewed as a change that leaves nothing.
        let text = file.content.clone().unwrap_or_default();
        let reviewed = waiting::review(companion, session.clone(), Arc::clone(&file.path), Arc::clone(&text)).await;
        match reviewed {
            Ok(Reviewed::Unchanged) => HookOutcome::Accepted { content: None },
            Ok(Reviewed::Accepted(content)) => HookOutcome::Accepted {
                content: (content != text).then_some(content),
            },
            Ok(Reviewed::Rejected(None)) if self.is_stopping.load(Ordering::Relaxed) => rejected(STOPPED),
            Ok(Reviewed::Rejected(reason)) => HookOutcome::Rejected { reason },
            Ok(Reviewed::Replaced) => rejected("Replaced by a newer change to the same file."),
            Err(reason) => rejected(&reason),
        }
    }

    async fn check_hook_path(&self, path: &Arc<str>) -> Result<(), String> {
        let (path, workspace) = (Arc::clone(path), self.workspace());
        let outside_workspace = self.settings.lock().outside_workspace;
        let check = move || base::check(&path, &workspace, outside_workspace);
        let checked = tokio::task::spawn_blocking(check).await;
        checked.unwrap_or_else(|error| Err(RequestError::new(ErrorKind::Failed, error.to_string()).message))
    }
}

fn rejected(reason: &str) -> HookOutcome {
    HookOutcome::Rejected {
        reason: Some(reason.into()),
    }
}

/// The session of a hook process; it ends when this is dropped, after its reviews.
struct HookProcess {
    companion: Weak<Companion>,
    number: u64,
    key: SessionKey,
    session: HookSession,
    abandoned: Arc<Notify>,
}

impl HookProcess {
    fn start(companion: &Companion, review: &HookReview) -> Self {
        let number = companion.hooks.last_process.fetch_add(1, Ordering::Relaxed) + 1;
        let session = HookSession {
            agent: review.agent,
            session: review.session.clone(),
        };
        let abandoned = Arc::new(Notify::new());
        companion.hooks.processes.lock().push(Process {
            number,
            session: session.clone(),
            abandoned: Arc::clone(&abandoned),
        });
        let key = companion.with_core(|core, now| {
            // Another companion may have had a hook with the same number.
            let id = format!("{}-{}-{number}", review.agent.id(), now.unix_milliseconds);
            let key = SessionKey::Hook(SessionId::new(id));
            core.session_started(now, &key, Some(client(review.agent)));
            key
        });
        Self {
            companion: companion.me.clone(),
            number,
            key,
            session,
            abandoned,
        }
    }
}

impl Drop for HookProcess {
    fn drop(&mut self) {
        if let Some(companion) = self.companion.upgrade() {
            companion
                .hooks
                .processes
                .lock()
                .retain(|process| process.number != self.number);
            companion.with_core(|core, now| core.session_ended(now, &self.key, &SessionEnd::Lost));
        }
    }
}

/// The reviews of a hook process that ends before they are decided.
struct Undecided<'a>(Option<&'a HookProcess>);

impl Drop for Undecided<'_> {
    fn drop(&mut self) {
        let Some(process) = self.0 else { return };
        if let Some(companion) = process.companion.upgrade() {
            let reviews = companion.with_core(|core, _| -> Vec<Review> {
                let own = core.reviews().filter(|review| review.session == process.key);
                own.cloned().collect()
            });
            for review in reviews {
                companion.watch_undecided(review);
            }
        }
    }
}

fn client(agent: HookAgent) -> ClientInfo {
    ClientInfo {
        name: agent.display_name().to_owned(),
        version: String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decided(path: &str, text: Arc<str>) -> Decided {
        Decided {
            session: HookSession {
                agent: HookAgent::Gemini,
                session: "s".to_owned(),
            },
            path: path.into(),
            text: Some(text),
            before_hook: true,
            before_diff: true,
            at: Instant::now(),
        }
    }

    fn review(path: &str, text: &str) -> HookReview {
        HookReview {
            agent: HookAgent::Gemini,
            session: "s".to_owned(),
            files: vec![HookFile {
                path: path.into(),
                content: Some(text.into()),
            }],
            followed_by: Vec::new(),
        }
    }

    #[test]
    fn decided_changes_are_remembered_within_limits() {
        let hooks = Hooks::default();
        for number in 0..=MAX_REMEMBERED {
            hooks.remember(decided(&format!("/{number}"), "text".into()));
        }
        assert!(!hooks.take_hook(&review("/0", "text")), "the oldest is forgotten");
        assert!(hooks.take_hook(&review("/1", "text")));
        let long: Arc<str> = "x".repeat(MAX_REMEMBERED_BYTES).into();
        hooks.remember(decided("/long", Arc::clone(&long)));
        assert_eq!(hooks.decided.lock().len(), 1);
        hooks.decided.lock()[0].at = Instant::now().checked_sub(MEMORY).unwrap();
        assert!(!hooks.take_diff("Gemini CLI", "/long", &long), "a minute later");
    }

    #[test]
    fn decided_change_is_taken_once_by_the_same_agent() {
        let hooks = Hooks::default();
        hooks.remember(decided("/a", "text".into()));
        assert!(!hooks.take_hook(&review("/a", "other")));
        assert!(!hooks.take_diff("Qwen Code", "/a", "text"));
        assert!(hooks.take_hook(&review("/a", "text")) && !hooks.take_hook(&review("/a", "text")));
        assert!(hooks.take_diff("Gemini CLI", "/a", "text") && !hooks.take_diff("Gemini CLI", "/a", "text"));
    }
}
