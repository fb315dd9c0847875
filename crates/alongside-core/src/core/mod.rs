//! The companion's state and its inputs. Rules about reviews are in [`reviews`], rules about the context in [`context`].

mod context;
mod reviews;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::context::{IdeContext, OpenFiles};
use crate::dialect::ClientInfo;
use crate::draft::{DraftChange, HunkError};
use crate::privacy::Privacy;
use crate::review::{Decision, Review, ReviewId, ReviewOutcome};
use crate::session::{Agent, AgentIdentity, SessionKey};
use crate::text_change::InvalidEdit;
use crate::time::Now;

/// What the caller must do after an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send the context to every agent, now and when it connects.
    PublishContext(IdeContext),
    SendDecision {
        session: SessionKey,
        decision: Decision,
    },
    ReviewOpened(ReviewId),
    /// A review has a new revision, or its file changed: show it again.
    ReviewChanged(ReviewId),
    /// The draft of a review changed.
    ReviewEdited {
        id: ReviewId,
        /// From the previous version of the draft to this one.
        change: DraftChange,
    },
    /// The file of a review changed and its draft was carried over: notify the user.
    ReviewRebased {
        id: ReviewId,
        /// How many hunks conflict now.
        conflicts: usize,
    },
    ReviewClosed {
        id: ReviewId,
        path: Arc<str>,
        outcome: ReviewOutcome,
    },
    /// An agent connected, disconnected, or opened or lost its stream.
    AgentsChanged,
    WorkspaceChanged,
    /// Look up [`Core::files_to_look_up`], and watch [`Core::files_to_watch`].
    FilesChanged,
}

/// Why a decision or an edit was refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecideError {
    /// No such review, and none recently closed.
    #[error("no review {0}; run `alongside diff list` to see pending reviews")]
    Unknown(ReviewId),
    /// The first decision wins.
    #[error("review {id} is closed: it was {outcome}")]
    Closed { id: ReviewId, outcome: ReviewOutcome },
    /// A key pressed this soon was meant for something else.
    #[error("review {0} has only just opened; look at it before you decide")]
    TooSoon(ReviewId),
    /// Another client changed the draft first.
    #[error("the draft of review {id} is now at version {version}; apply the newer edits and try again")]
    Stale {
        id: ReviewId,
        /// The current version of the draft.
        version: u64,
    },
    /// The file changed on disk where the draft changes it.
    #[error("the file under review {id} has changed, and {count} of its hunks conflict; resolve them first")]
    Conflicts { id: ReviewId, count: usize },
    #[error(transparent)]
    Hunk(#[from] HunkError),
    #[error(transparent)]
    InvalidEdit(#[from] InvalidEdit),
    /// The agent would treat an empty text as "not edited" and write its own proposal.
    #[error(
        "{agent} treats an empty text as \"not edited\" and would write its own proposal to {path}; reject the change and empty the file yourself, or keep at least a newline"
    )]
    EmptyMeansUnedited { agent: AgentIdentity, path: Arc<str> },
}

/// Whether to send an emptied draft to an agent that treats it as "not edited".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyDraft {
    #[default]
    Refuse,
    Allow,
}

#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("this agent already has {0} pending changes; accept or reject some of them first")]
pub struct TooManyReviews(pub usize);

/// Everything the companion knows.
pub struct Core {
    workspace: Vec<PathBuf>,
    open_files: OpenFiles,
    privacy: Privacy,
    published: IdeContext,
    context_due: Option<Duration>,
    files_watched: bool,
    agents: BTreeMap<SessionKey, Agent>,
    reviews: BTreeMap<ReviewId, Review>,
    last_review: u64,
    /// Outcomes of the latest reviews, to report the first decision to the second.
    ended: VecDeque<(ReviewId, ReviewOutcome)>,
    orphans: VecDeque<reviews::Orphan>,
    /// Decisions about restored reviews whose agent has not reconnected yet.
    early: Vec<(SessionKey, Decision)>,
    effects: Vec<Effect>,
}

impl Core {
    pub fn new(workspace: Vec<PathBuf>) -> Self {
        Self {
            workspace,
            open_files: OpenFiles::default(),
            privacy: Privacy::default(),
            published: IdeContext::default(),
            context_due: None,
            files_watched: false,
            agents: BTreeMap::new(),
            reviews: BTreeMap::new(),
            last_review: 0,
            ended: VecDeque::new(),
            orphans: VecDeque::new(),
            early: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// The effects since the last call, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// When to call [`Core::tick`] next, on the monotonic clock.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.context_due
    }

    pub fn tick(&mut self, now: Now) {
        if self.context_due.is_some_and(|due| due <= now.monotonic) {
            self.publish_context();
        }
    }

    pub fn workspace(&self) -> &[PathBuf] {
        &self.workspace
    }

    pub fn set_workspace(&mut self, folders: Vec<PathBuf>) {
        if self.workspace != folders {
            self.workspace = folders;
            self.effects.push(Effect::WorkspaceChanged);
        }
    }

    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// An agent connected, or reconnected after a restart of the companion.
    pub fn session_started(&mut self, now: Now, session: &SessionKey, client: Option<ClientInfo>) {
        let agent = Agent {
            session: session.clone(),
            client,
            listening: false,
            since_unix_milliseconds: now.unix_milliseconds,
        };
        self.agents.insert(session.clone(), agent);
        self.effects.push(Effect::AgentsChanged);
        self.send_early_decisions(session);
    }

    /// An agent opened its event stream.
    pub fn stream_opened(&mut self, session: &SessionKey) {
        self.set_listening(session, true);
        self.rescue_orphans_through(session);
    }

    /// An agent's event stream closed; it may reconnect.
    pub fn stream_closed(&mut self, session: &SessionKey) {
        self.set_listening(session, false);
    }

    /// A session ended. `undelivered` are the paths of decisions that the agent never received.
    pub fn session_ended(&mut self, session: &SessionKey, undelivered: Vec<Arc<str>>) {
        let Some(agent) = self.agents.remove(session) else {
            return;
        };
        self.effects.push(Effect::AgentsChanged);
        self.orphan_reviews_of(&agent, undelivered);
    }

    fn set_listening(&mut self, session: &SessionKey, listening: bool) {
        if let Some(agent) = self.agents.get_mut(session)
            && agent.listening != listening
        {
            agent.listening = listening;
            self.effects.push(Effect::AgentsChanged);
        }
    }
}
