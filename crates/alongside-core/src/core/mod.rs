//! The companion's state and its inputs. Rules about reviews are in [`reviews`], rules about the context in [`context`].

mod context;
mod deliveries;
mod ledger;
mod reviews;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::context::{IdeContext, OpenFiles};
use crate::diagnostics::Diagnostics;
use crate::dialect::ClientInfo;
use crate::draft::{DraftChange, HunkError};
use crate::privacy::Privacy;
use crate::review::{Decision, Review, ReviewId, ReviewOutcome};
use crate::session::{Agent, AgentIdentity, SessionKey};
use crate::text_change::InvalidEdit;
use crate::time::Now;

pub use ledger::{Change, Delivery, DeliveryId, Ledger, Recipient};

/// What the caller must do after an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect {
    /// Send the context to every agent, now and when it connects.
    PublishContext(IdeContext),
    SendDecision {
        session: SessionKey,
        /// What the session confirms; `None` if it may not be the one that asked, so that its confirmation means nothing.
        delivery: Option<DeliveryId>,
        decision: Decision,
        /// Whether the agent may not be waiting for it: it may have received it before a restart, or be another one.
        repeated: bool,
    },
    /// The session proposed a file again: decisions about the previous proposal must not reach it any more.
    DecisionsSuperseded {
        session: SessionKey,
        path: Arc<str>,
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
    /// Send [`Core::take_changed_diagnostics`] to agents. They are not part of the effect, because there may be megabytes of them.
    DiagnosticsChanged,
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
    /// The agent writes its own proposal or nothing.
    #[error(
        "{agent} cannot write an edited version of {path}: accept its own text, or reject the change; with `alongside install copilot`, edits are written too"
    )]
    TakesNoEdits { agent: AgentIdentity, path: Arc<str> },
}

/// How a session ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SessionEnd {
    /// The agent disconnected and did not come back.
    Lost,
    /// The agent ended it, so it knows the decisions that were written to its stream. These were not.
    Deleted { unwritten: Vec<DeliveryId> },
}

/// Whether to send an emptied draft to an agent that treats it as "not edited".
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EmptyDraft {
    #[default]
    Refuse,
    Allow,
}

/// Why a proposal was refused.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum ProposalError {
    #[error("this agent already has {0} pending changes; accept or reject some of them first")]
    TooMany(usize),
    /// All pending reviews together.
    #[error("the pending changes already hold {0} MiB of text; accept or reject some of them first")]
    TooLarge(usize),
}

/// Everything the companion knows.
pub struct Core {
    workspace: Vec<PathBuf>,
    open_files: OpenFiles,
    diagnostics: Diagnostics,
    privacy: Privacy,
    published: IdeContext,
    context_due: Option<Duration>,
    diagnostics_due: Option<Duration>,
    files_watched: bool,
    agents: BTreeMap<SessionKey, Agent>,
    ledger: Ledger,
    /// The deliveries of a ledger that was restored, up to this number, may have arrived before.
    restored: Option<DeliveryId>,
    changes: Vec<Change>,
    effects: Vec<Effect>,
}

impl Core {
    pub fn new(workspace: Vec<PathBuf>) -> Self {
        Self {
            workspace,
            open_files: OpenFiles::default(),
            diagnostics: Diagnostics::default(),
            privacy: Privacy::default(),
            published: IdeContext::default(),
            context_due: None,
            diagnostics_due: None,
            files_watched: false,
            agents: BTreeMap::new(),
            ledger: Ledger::default(),
            restored: None,
            changes: Vec::new(),
            effects: Vec::new(),
        }
    }

    /// The effects since the last call, in order.
    pub fn take_effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// The changes since the last call, in order. They must be written before any effect is carried out.
    pub fn take_changes(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }

    fn change(&mut self, change: Change) {
        self.ledger.apply(change.clone());
        self.changes.push(change);
    }

    /// Starts with the ledger of a previous companion.
    pub fn restore(&mut self, now: Now, ledger: Ledger) {
        self.restored = ledger.deliveries.keys().next_back().copied();
        self.reset(now, ledger);
        // A connection or a child process ended with its companion, so nothing waits for these.
        let ended: Vec<Review> = self
            .reviews()
            .filter(|review| review.session.is_waiting())
            .cloned()
            .collect();
        for review in ended {
            self.close(&review, ReviewOutcome::Orphaned, None);
        }
    }

    /// Goes back to the ledger that was written, because what came after it could not be.
    pub fn reset(&mut self, now: Now, ledger: Ledger) {
        self.ledger = ledger;
        self.changes.clear();
        self.effects.clear();
        for review in self.ledger.reviews.values_mut() {
            review.appeared = now.monotonic;
            self.effects.push(Effect::ReviewOpened(review.id));
        }
        let connected: Vec<SessionKey> = self.agents.keys().cloned().collect();
        for session in connected {
            self.rejoin(&session);
        }
    }

    /// A connected session of a core that went back: what was about to be written about it or sent to it is lost.
    fn rejoin(&mut self, session: &SessionKey) {
        let Some(agent) = self.agents.get_mut(session) else {
            return;
        };
        agent.orphans_reported.clear();
        let client = agent.client.clone();
        self.set_client(session, client);
        self.send_to(session);
    }

    fn set_client(&mut self, session: &SessionKey, client: Option<ClientInfo>) {
        if let Some(client) = client
            && self.ledger.clients.get(session) != Some(&client)
        {
            let session = session.clone();
            self.change(Change::Session { session, client });
        }
    }

    pub fn ledger(&self) -> &Ledger {
        &self.ledger
    }

    /// When to call [`Core::tick`] next, on the monotonic clock.
    pub fn next_deadline(&self) -> Option<Duration> {
        [self.context_due, self.diagnostics_due, self.open_files.next_to_hide()]
            .into_iter()
            .flatten()
            .min()
    }

    pub fn tick(&mut self, now: Now) {
        if self.open_files.hide_vanished(now.monotonic) {
            self.files_changed(now);
        }
        if self.context_due.is_some_and(|due| due <= now.monotonic) {
            self.publish_context();
        }
        if self.diagnostics_due.is_some_and(|due| due <= now.monotonic) {
            self.publish_diagnostics();
        }
    }

    pub fn workspace(&self) -> &[PathBuf] {
        &self.workspace
    }

    pub fn set_workspace(&mut self, folders: Vec<PathBuf>) {
        if self.workspace != folders {
            self.workspace = folders;
            self.effects.push(Effect::WorkspaceChanged);
            self.diagnosed_files_changed();
        }
    }

    pub fn agents(&self) -> impl Iterator<Item = &Agent> {
        self.agents.values()
    }

    /// The name of a connected agent.
    pub fn agent_name(&self, session: &SessionKey) -> Option<String> {
        self.agents.get(session).map(|agent| agent.identity().name)
    }

    /// An agent connected, or reconnected after a restart of the companion.
    pub fn session_started(&mut self, now: Now, session: &SessionKey, client: Option<ClientInfo>) {
        self.set_client(session, client.clone());
        let agent = Agent {
            session: session.clone(),
            client,
            listening: false,
            orphans_reported: BTreeSet::new(),
            since_unix_milliseconds: now.unix_milliseconds,
        };
        self.agents.insert(session.clone(), agent);
        self.effects.push(Effect::AgentsChanged);
        self.send_to(session);
    }

    /// The client of a session from before a restart.
    pub fn known_client(&self, session: &SessionKey) -> Option<&ClientInfo> {
        self.ledger.clients.get(session)
    }

    /// An agent opened its event stream.
    pub fn stream_opened(&mut self, now: Now, session: &SessionKey) {
        self.set_listening(session, true);
        self.forget_reported_orphans(now);
        self.report_orphans_to(session);
    }

    /// An agent's event stream closed; it may reconnect.
    pub fn stream_closed(&mut self, session: &SessionKey) {
        self.set_listening(session, false);
    }

    /// A session ended.
    pub fn session_ended(&mut self, now: Now, session: &SessionKey, end: &SessionEnd) {
        if self.agents.remove(session).is_some() {
            self.effects.push(Effect::AgentsChanged);
            self.orphan(now, session, end);
            self.report_orphans();
        }
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
