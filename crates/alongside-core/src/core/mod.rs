//! The state of the companion, and what each input does to it.
//!
//! The rules about reviews are in [`reviews`], those about the context in [`context`]; this file holds what they share.

mod context;
mod reviews;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::context::{IdeContext, OpenFiles, Resolve};
use crate::dialect::ClientInfo;
use crate::draft::{DraftChange, HunkError};
use crate::privacy::Privacy;
use crate::review::{Decision, Review, ReviewId, ReviewOutcome};
use crate::session::{Agent, AgentIdentity, SessionId};
use crate::text_change::InvalidEdit;
use crate::time::Now;

/// Something that the shell around the core must do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Tell every agent, now and when it connects, what is open.
    PublishContext(IdeContext),
    /// Tell one agent how its proposal was decided.
    SendDecision {
        /// Which agent.
        session: SessionId,
        /// What it is told.
        decision: Decision,
    },
    /// A review waits for a decision: show it.
    ReviewOpened(ReviewId),
    /// A review has a new revision, or its file changed on disk: show it anew.
    ReviewChanged(ReviewId),
    /// The draft of a review was edited.
    ReviewEdited {
        /// Which review.
        id: ReviewId,
        /// What leads from the former version of the draft to this one.
        change: DraftChange,
    },
    /// The file of a review changed meanwhile and its draft was carried over; the person must be told.
    ReviewRebased {
        /// Which review.
        id: ReviewId,
        /// How many hunks could not be carried over and must be decided.
        conflicts: usize,
    },
    /// A review is over: close its views.
    ReviewClosed {
        /// Which review.
        id: ReviewId,
        /// Its file.
        path: Arc<str>,
        /// How it ended.
        outcome: ReviewOutcome,
    },
    /// An agent came, went, or opened or lost its stream.
    AgentsChanged,
    /// The workspace has other folders now.
    WorkspaceChanged,
}

/// Why a decision or an edit was refused.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DecideError {
    /// There is no such review, and there was none lately.
    #[error("no review {0}; run `alongside diff list` to see pending reviews")]
    Unknown(ReviewId),
    /// The first decision counts.
    #[error("review {id} is closed: it was {outcome}")]
    Closed {
        /// Which review.
        id: ReviewId,
        /// How it ended.
        outcome: ReviewOutcome,
    },
    /// A key pressed this soon was meant for something else.
    #[error("review {0} has only just opened; look at it before you decide")]
    TooSoon(ReviewId),
    /// Somebody else changed the draft in between.
    #[error("the draft of review {id} is now at version {version}; apply the newer edits and try again")]
    Stale {
        /// Which review.
        id: ReviewId,
        /// The version of the draft.
        version: u64,
    },
    /// The file changed on disk where the draft changes it.
    #[error("the file under review {id} has changed, and {count} of its hunks conflict; resolve them first")]
    Conflicts {
        /// Which review.
        id: ReviewId,
        /// How many hunks.
        count: usize,
    },
    /// The hunk cannot be decided.
    #[error(transparent)]
    Hunk(#[from] HunkError),
    /// The change does not fit the draft.
    #[error(transparent)]
    InvalidEdit(#[from] InvalidEdit),
    /// The agent would take an empty text as "nothing was edited" and write its own proposal.
    #[error(
        "{agent} treats an empty text as \"not edited\" and would write its own proposal to {path}; reject the change and empty the file yourself, or keep at least a newline"
    )]
    EmptyMeansUnedited {
        agent: AgentIdentity,
        /// The file.
        path: Arc<str>,
    },
}

/// Whether a person insists on a decision that an agent will misunderstand.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyDraft {
    /// No: such a decision is refused with the reason.
    #[default]
    Refuse,
    /// Yes: an emptied text is sent even to agents that take it as "nothing was edited".
    Allow,
}

/// Why a proposal was not taken.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("this agent already has {0} pending changes; accept or reject some of them first")]
pub struct TooManyReviews(pub usize);

/// Everything the companion knows.
pub struct Core {
    workspace: Vec<PathBuf>,
    open_files: OpenFiles,
    privacy: Privacy,
    resolve: Box<Resolve>,
    published: IdeContext,
    context_due: Option<Duration>,
    agents: BTreeMap<SessionId, Agent>,
    reviews: BTreeMap<ReviewId, Review>,
    last_review: u64,
    /// How the latest reviews ended, so that a second decision can be told what the first one was.
    ended: VecDeque<(ReviewId, ReviewOutcome)>,
    orphans: VecDeque<reviews::Orphan>,
    /// Decisions about restored reviews whose agent has not come back yet.
    early: Vec<(SessionId, Decision)>,
    effects: Vec<Effect>,
}

impl Core {
    /// A companion that knows nothing but the folders of its workspace. `resolve` follows a path to the real file on disk.
    pub fn new(workspace: Vec<PathBuf>, resolve: Box<Resolve>) -> Self {
        Self {
            workspace,
            open_files: OpenFiles::default(),
            privacy: Privacy::default(),
            resolve,
            published: IdeContext::default(),
            context_due: None,
            agents: BTreeMap::new(),
            reviews: BTreeMap::new(),
            last_review: 0,
            ended: VecDeque::new(),
            orphans: VecDeque::new(),
            early: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// What must be done because of the inputs since the last call, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// When [`Core::tick`] has something to do next, on the clock that never jumps.
    pub fn next_deadline(&self) -> Option<Duration> {
        self.context_due
    }

    /// Does what has fallen due.
    pub fn tick(&mut self, now: Now) {
        if self.context_due.is_some_and(|due| due <= now.monotonic) {
            self.publish_context();
        }
    }

    /// The folders of the workspace.
    pub fn workspace(&self) -> &[PathBuf] {
        &self.workspace
    }

    /// Replaces the folders of the workspace.
    pub fn set_workspace(&mut self, folders: Vec<PathBuf>) {
        if self.workspace != folders {
            self.workspace = folders;
            self.effects.push(Effect::WorkspaceChanged);
        }
    }

    /// The agents that are connected.
    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// An agent connected, or came back after a restart of the companion.
    pub fn session_started(&mut self, now: Now, session: &SessionId, client: Option<ClientInfo>) {
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

    /// An agent opened the stream on which it is told things.
    pub fn stream_opened(&mut self, session: &SessionId) {
        self.set_listening(session, true);
        self.rescue_orphans_through(session);
    }

    /// An agent's stream ended; it may come back.
    pub fn stream_closed(&mut self, session: &SessionId) {
        self.set_listening(session, false);
    }

    /// An agent is gone for good. `undelivered` are the paths of decisions that it never heard of.
    pub fn session_ended(&mut self, session: &SessionId, undelivered: Vec<Arc<str>>) {
        let Some(agent) = self.agents.remove(session) else {
            return;
        };
        self.effects.push(Effect::AgentsChanged);
        self.orphan_reviews_of(&agent, undelivered);
    }

    fn set_listening(&mut self, session: &SessionId, listening: bool) {
        if let Some(agent) = self.agents.get_mut(session)
            && agent.listening != listening
        {
            agent.listening = listening;
            self.effects.push(Effect::AgentsChanged);
        }
    }
}
