//! Inputs of the core, and what follows from them.
//!
//! An input runs with the core locked. What it changes is queued for the journal in the same moment, and its effects are carried
//! out once that is written, in the order of the inputs. Effects that depend on nothing written are carried out at once if
//! nothing is queued before them; the context never waits.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use alongside_core::context::IdeContext;
use alongside_core::draft::DraftChange;
use alongside_core::{Core, DecideError, Effect, Ledger, Now, Review, SessionKey};
use alongside_journal::Ticket;
use alongside_protocol::{
    AgentSummary, AgentsChanged, Empty, Notification, Origin, ReviewClosed, ReviewEdited, ReviewRebased, ReviewSummary,
    SharedNotification,
};

use super::{Companion, MAX_NOTIFICATION_BYTES, summaries};
use crate::journal::{Entry, StoredTexts};

/// An effect with everything that it needs, so that it can be carried out without the core.
pub(crate) enum Outgoing {
    Context(IdeContext),
    Decision(SessionKey, alongside_mcp::Outgoing),
    Superseded(SessionKey, Arc<str>),
    ReviewOpened(Review),
    ReviewChanged(Review),
    ReviewEdited(Review, DraftChange, Option<Origin>),
    ReviewRebased(ReviewRebased),
    ReviewClosed(ReviewClosed),
    Agents(Vec<AgentSummary>),
    Workspace(Vec<PathBuf>),
    Files,
    Diagnostics,
}

impl Outgoing {
    /// `None` for a review that has ended since: its end follows.
    fn of(effect: Effect, core: &Core, origin: Option<&Origin>) -> Option<Self> {
        let review = |id| core.review(id).ok().cloned();
        Some(match effect {
            Effect::PublishContext(context) => Self::Context(context),
            Effect::SendDecision {
                session,
                delivery,
                decision,
                repeated,
            } => {
                let outgoing = alongside_mcp::Outgoing {
                    delivery,
                    decision,
                    repeated,
                };
                Self::Decision(session, outgoing)
            }
            Effect::DecisionsSuperseded { session, path } => Self::Superseded(session, path),
            Effect::ReviewOpened(id) => Self::ReviewOpened(review(id)?),
            Effect::ReviewChanged(id) => Self::ReviewChanged(review(id)?),
            Effect::ReviewEdited { id, change } => Self::ReviewEdited(review(id)?, change, origin.cloned()),
            Effect::ReviewRebased { id, conflicts } => Self::ReviewRebased(ReviewRebased { review: id, conflicts }),
            Effect::ReviewClosed { id, path, outcome } => Self::ReviewClosed(ReviewClosed {
                review: id,
                path,
                outcome,
            }),
            Effect::AgentsChanged => Self::Agents(summaries(core)),
            Effect::WorkspaceChanged => Self::Workspace(core.workspace().to_vec()),
            Effect::FilesChanged => Self::Files,
            Effect::DiagnosticsChanged => Self::Diagnostics,
        })
    }

    /// Whether it is about something that must be written first.
    fn needs_record(&self) -> bool {
        !matches!(
            self,
            Self::Context(_) | Self::Agents(_) | Self::Workspace(_) | Self::Files | Self::Diagnostics
        )
    }
}

/// Why a person's input had no effect.
#[derive(Debug)]
pub(crate) enum CommitError {
    Refused(DecideError),
    /// It could not be written.
    NotSaved(NotSaved),
}

/// What was decided could not be written, so it did not happen.
#[derive(Clone, Debug)]
pub(crate) struct NotSaved(Arc<str>);

impl fmt::Display for NotSaved {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl From<DecideError> for CommitError {
    fn from(error: DecideError) -> Self {
        Self::Refused(error)
    }
}

impl From<NotSaved> for CommitError {
    fn from(error: NotSaved) -> Self {
        Self::NotSaved(error)
    }
}

impl Companion {
    /// Runs an input of the core. What it changes is written soon; the caller does not wait.
    pub(super) fn with_core<R>(&self, input: impl FnOnce(&mut Core, Now) -> R) -> R {
        let (result, ticket) = self.input(None, None, input);
        if ticket.is_some() {
            self.start_writing();
        }
        result
    }

    /// Runs an input of the core, and waits until what it changed is written. On an error nothing was changed.
    pub(super) async fn commit<R>(&self, input: impl FnOnce(&mut Core, Now) -> R) -> Result<R, NotSaved> {
        self.commit_from(None, input).await
    }

    /// The same for a front end's request.
    pub(super) async fn commit_from<R>(
        &self,
        origin: Option<&Origin>,
        input: impl FnOnce(&mut Core, Now) -> R,
    ) -> Result<R, NotSaved> {
        let (result, ticket) = self.input(None, origin, input);
        if let Some(ticket) = ticket {
            self.start_writing();
            ticket.written().await.map_err(NotSaved)?;
        }
        Ok(result)
    }

    /// Like [`commit`](Self::commit), for a thread that may block. `texts` are those of the review that the input opens.
    pub(super) fn commit_blocking<R>(
        &self,
        texts: Option<StoredTexts>,
        input: impl FnOnce(&mut Core, Now) -> R,
    ) -> Result<R, NotSaved> {
        let (result, ticket) = self.input(texts, None, input);
        if let Some(ticket) = ticket {
            self.write();
            ticket.wait().map_err(NotSaved)?;
        }
        Ok(result)
    }

    fn input<R>(
        &self,
        texts: Option<StoredTexts>,
        origin: Option<&Origin>,
        input: impl FnOnce(&mut Core, Now) -> R,
    ) -> (R, Option<Ticket>) {
        let mut core = self.core.lock();
        let (before, now) = (core.next_deadline(), self.clock.now());
        let result = input(&mut core, now);
        if core.next_deadline() != before {
            self.wake.deadline.notify_one();
        }
        let mut entry = Entry::new(now.unix_milliseconds);
        entry.changes = core.take_changes();
        entry.texts = texts;
        for effect in core.take_effects() {
            match Outgoing::of(effect, &core, origin) {
                Some(context @ Outgoing::Context(_)) => self.carry_out(context),
                outgoing => entry.effects.extend(outgoing),
            }
        }
        if entry.changes.is_empty() && (entry.effects.is_empty() || self.journal.is_idle()) {
            // With the core locked, so that nothing overtakes it.
            entry.effects.into_iter().for_each(|effect| self.carry_out(effect));
            return (result, None);
        }
        (result, Some(self.journal.push(entry)))
    }

    /// Queues an entry without an input.
    pub(super) fn push(&self, entry: impl FnOnce(&mut Entry)) -> Ticket {
        let _core = self.core.lock();
        let mut queued = Entry::new(self.clock.now().unix_milliseconds);
        entry(&mut queued);
        self.journal.push(queued)
    }

    /// Writes on a thread that may block: one, however many inputs there are.
    pub(super) fn start_writing(&self) {
        if !self.journal.needs_leader() {
            return;
        }
        match (self.me.upgrade(), tokio::runtime::Handle::try_current()) {
            (Some(companion), Ok(runtime)) => {
                self.short_work.spawn(&runtime, move || companion.write());
            }
            // Only while everything is being dropped.
            _ => self.write(),
        }
    }

    /// Writes what is queued, unless another caller is writing.
    pub(super) fn write(&self) {
        let had_problem = self.journal.has_problem();
        self.journal.lead(
            |effects| effects.into_iter().for_each(|effect| self.carry_out(effect)),
            |written, queued, batch| self.go_back(written, queued, batch),
        );
        if self.journal.has_problem() != had_problem {
            self.wake.journal.notify_one();
            self.report_problems();
        }
    }

    /// A write failed: nothing of it, and nothing on top of it, has happened.
    fn go_back(&self, written: &Ledger, queued: &mut dyn FnMut() -> Vec<Entry>, failed: Vec<Entry>) {
        let mut core = self.core.lock();
        let failed = failed.into_iter().chain(queued());
        for effect in failed.flat_map(|entry| entry.effects) {
            if !effect.needs_record() {
                self.carry_out(effect);
            }
        }
        core.reset(self.clock.now(), written.clone());
        for effect in core.take_effects() {
            if let Some(decision @ Outgoing::Decision(..)) = Outgoing::of(effect, &core, None) {
                self.carry_out(decision);
            }
        }
        self.broadcast(Notification::Resync(Empty {}));
    }

    fn carry_out(&self, outgoing: Outgoing) {
        match outgoing {
            Outgoing::Context(context) => {
                if let Some(agents) = self.agents.get() {
                    agents.publish_context(&context);
                }
                self.codex.publish_context(&context);
                self.broadcast(Notification::ContextChanged(context));
            }
            Outgoing::Decision(session @ SessionKey::Mcp(_), outgoing) => {
                // A session that has just ended: its decision stays in the ledger.
                if let Some(agents) = self.agents.get() {
                    agents.notify(&session, outgoing);
                }
            }
            Outgoing::Decision(session, outgoing) => self.waiting.tell(&session, outgoing.decision),
            Outgoing::Superseded(session @ SessionKey::Mcp(_), path) => {
                if let Some(agents) = self.agents.get() {
                    agents.supersede(&session, &path);
                }
            }
            // A newer proposal replaces the one that waits.
            Outgoing::Superseded(..) => {}
            Outgoing::ReviewOpened(review) => {
                self.wake.reviews.notify_one();
                self.broadcast(Notification::ReviewOpened(ReviewSummary::from(&review)));
            }
            Outgoing::ReviewChanged(review) => {
                self.broadcast(Notification::ReviewChanged(ReviewSummary::from(&review)));
            }
            Outgoing::ReviewEdited(review, change, origin) => {
                self.wake.memory.notify_one();
                // Fails only while no front end is connected.
                let _ = self
                    .notifications
                    .send(SharedNotification::new(edited(&review, change), origin));
            }
            Outgoing::ReviewRebased(rebased) => self.broadcast(Notification::ReviewRebased(rebased)),
            Outgoing::ReviewClosed(closed) => {
                self.wake.reviews.notify_one();
                self.wake.memory.notify_one();
                self.broadcast(Notification::ReviewClosed(closed));
            }
            Outgoing::Agents(agents) => {
                self.wake.memory.notify_one();
                self.broadcast(Notification::AgentsChanged(AgentsChanged { agents }));
            }
            Outgoing::Workspace(folders) => {
                self.codex.set_workspace(folders);
                self.wake.workspace.notify_one();
            }
            Outgoing::Files => self.wake.files.notify_one(),
            Outgoing::Diagnostics => self.wake.diagnostics.notify_one(),
        }
    }
}

/// The notification of an edit. Every slow front end holds a copy, so a very large one is fetched instead.
fn edited(review: &Review, change: DraftChange) -> Notification {
    if change
        .text
        .as_ref()
        .is_some_and(|text| text.insert.len() > MAX_NOTIFICATION_BYTES)
    {
        return Notification::Resync(Empty {});
    }
    Notification::ReviewEdited(ReviewEdited {
        review: review.id,
        version: review.version,
        changes: change.text.into_iter().collect(),
        hunks: change.hunks,
        request: None,
    })
}
