//! Proposals, decisions, and agents that go away in between.
//!
//! A command line waits for its answer without a limit and keeps waiting even after its connection broke. So whatever
//! happens to a review, the agent is told: its own session while it lives, and after that every later session of the
//! same client, because that is how a command line comes back.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Core, DecideError, Effect, EmptyDraft, TooManyReviews};
use crate::dialect::{ClientDialect, ClientInfo};
use crate::draft::{DraftChange, HunkDecision, HunkId};
use crate::review::{Base, CachedText, Decision, Proposal, Review, ReviewId, ReviewOutcome};
use crate::session::{Agent, AgentIdentity, SessionId};
use crate::text_change::TextChange;
use crate::time::Now;

/// How many reviews of one session may wait. Both command lines wait with one at a time.
const MAX_REVIEWS: usize = 100;
/// How long a review must have been there before a key can decide it.
const ARM_DELAY: Duration = Duration::from_millis(400);
/// How many ended reviews are remembered by their outcome.
const MAX_CLOSED_REVIEWS: usize = 256;
/// How many orphans are remembered.
const MAX_ORPHANS: usize = 64;

/// A proposal whose agent went away before it heard the answer.
pub(super) struct Orphan {
    session: SessionId,
    client: Option<ClientInfo>,
    path: Arc<str>,
}

impl Core {
    /// The reviews that wait, oldest first.
    pub fn reviews(&self) -> impl Iterator<Item = &Review> {
        self.reviews.values()
    }

    /// One review that waits, or why it does not.
    pub fn review(&self, id: ReviewId) -> Result<&Review, DecideError> {
        self.reviews.get(&id).ok_or_else(|| self.why_not_open(id))
    }

    /// An agent proposes a change. A further proposal of the same session for the same path is a new revision of the
    /// same review: the agent has forgotten the former one and recognises answers by path alone. The same proposal again
    /// is nothing new, and what the person made of it stays.
    pub fn open_review(
        &mut self,
        now: Now,
        session: &SessionId,
        proposal: Proposal,
    ) -> Result<ReviewId, TooManyReviews> {
        let agent = self.agents.get(session);
        let client = agent.and_then(|agent| agent.client.clone());
        let agent = agent.map_or_else(AgentIdentity::unknown, Agent::identity);
        let waiting = self
            .reviews
            .values()
            .filter(|review| review.session == *session)
            .count();
        let former = self.find(session, &proposal.path);
        if let Some(same) = former.filter(|former| is_same(former, &proposal)) {
            return Ok(same.id);
        }
        if former.is_none() && waiting >= MAX_REVIEWS {
            return Err(TooManyReviews(waiting));
        }
        let former = former.map(|former| (former.id, former.revision, former.version));
        self.orphans
            .retain(|orphan| orphan.path != proposal.path || orphan.client != client);
        let (id, revision, version) = former.unwrap_or_else(|| {
            self.last_review += 1;
            (ReviewId(self.last_review), 0, 0)
        });
        let mut review = Review {
            id,
            session: session.clone(),
            agent,
            path: proposal.path,
            revision: revision + 1,
            version,
            base: proposal.base,
            opened_unix_milliseconds: now.unix_milliseconds,
            draft: proposal.draft,
            text: CachedText::default(),
            appeared: now.monotonic,
        };
        review.changed();
        self.reviews.insert(id, review);
        self.effects.push(if former.is_some() {
            Effect::ReviewChanged(id)
        } else {
            Effect::ReviewOpened(id)
        });
        Ok(id)
    }

    /// Puts back a review that was open when the companion ended without a word.
    pub fn restore_review(&mut self, now: Now, mut review: Review) {
        review.appeared = now.monotonic;
        self.last_review = self.last_review.max(review.id.0);
        self.effects.push(Effect::ReviewOpened(review.id));
        self.reviews.insert(review.id, review);
    }

    /// Restored reviews whose agent did not come back have nobody to answer to.
    pub fn orphan_absent(&mut self) {
        let restored = self.reviews.values().map(|review| &review.session);
        let absent: BTreeSet<SessionId> = restored
            .chain(self.early.iter().map(|(session, _)| session))
            .filter(|session| !self.agents.contains_key(session))
            .cloned()
            .collect();
        for session in absent {
            let early = self.early.extract_if(.., |(waiting, _)| *waiting == session);
            let undelivered = early.map(|(_, decision)| decision.path().clone()).collect();
            let agent = Agent {
                session,
                client: None,
                listening: false,
                since_unix_milliseconds: 0,
            };
            self.orphan_reviews_of(&agent, undelivered);
        }
    }

    /// Restores a decision that its agent did not receive before the companion stopped. It is sent when the session is back.
    pub fn restore_decision(&mut self, session: SessionId, decision: Decision) {
        self.early.push((session, decision));
    }

    /// The decisions of sessions that have not come back since the companion started.
    pub fn early_decisions(&self) -> &[(SessionId, Decision)] {
        &self.early
    }

    /// The agent closes its proposal itself, because it was answered in its terminal. It gets the draft and no decision.
    pub fn close_review(&mut self, session: &SessionId, path: &str) -> Option<Arc<str>> {
        let id = self.find(session, path)?.id;
        let review = self.end(id, ReviewOutcome::ClosedByAgent)?;
        Some(review.text().clone())
    }

    /// A person replaces the whole draft without deciding. Gives the new version.
    pub fn edit(&mut self, id: ReviewId, text: &str) -> Result<u64, DecideError> {
        self.change_draft(id, |review| Ok(review.edit(text)))
    }

    /// A person changes stretches of the draft of some version. Gives the new version.
    pub fn change(&mut self, id: ReviewId, version: u64, changes: &[TextChange]) -> Result<u64, DecideError> {
        let current = self.review(id)?.version;
        if version != current {
            return Err(DecideError::Stale { id, version: current });
        }
        self.change_draft(id, |review| {
            let text = TextChange::apply_all(review.text(), changes)?;
            Ok(review.edit(&text))
        })
    }

    /// A person decides one hunk. Gives the new version.
    pub fn decide_hunk(&mut self, id: ReviewId, hunk: HunkId, choice: HunkDecision) -> Result<u64, DecideError> {
        self.change_draft(id, |review| Ok(review.draft.set_hunk(hunk, choice)?))
    }

    fn change_draft(
        &mut self,
        id: ReviewId,
        change: impl FnOnce(&mut Review) -> Result<DraftChange, DecideError>,
    ) -> Result<u64, DecideError> {
        let Some(review) = self.reviews.get_mut(&id) else {
            return Err(self.why_not_open(id));
        };
        let change = change(review)?;
        // A hunk may have another state now although the text is the same, so this counts as a change in any case.
        review.changed();
        let version = review.version;
        self.effects.push(Effect::ReviewEdited { id, change });
        Ok(version)
    }

    /// The file of a review changed on disk or in the editor: the draft is carried over to what it holds now, and where
    /// that is not possible, hunks are marked as in conflict.
    pub fn base_changed(&mut self, id: ReviewId, base: Base) {
        let Some(review) = self.reviews.get_mut(&id) else {
            return;
        };
        let (kind, base) = base.into_parts();
        if kind == review.base && base == *review.draft.base() {
            return;
        }
        review.base = kind;
        let conflicts = review.draft.rebase(base).conflicts;
        review.changed();
        self.effects.push(Effect::ReviewChanged(id));
        self.effects.push(Effect::ReviewRebased { id, conflicts });
    }

    /// Whether a key may decide a review already. A front end whose decisions come from keys or clicks asks this first.
    pub fn check_armed(&self, now: Now, id: ReviewId) -> Result<(), DecideError> {
        let review = self.review(id)?;
        if now.monotonic.saturating_sub(review.appeared) < ARM_DELAY {
            Err(DecideError::TooSoon(id))
        } else {
            Ok(())
        }
    }

    /// A person accepts the draft, or `content` in its place.
    pub fn accept(
        &mut self,
        id: ReviewId,
        content: Option<Arc<str>>,
        empty_draft: EmptyDraft,
    ) -> Result<(), DecideError> {
        let review = self.review(id)?;
        let conflicts = review.conflicts();
        if content.is_none() && conflicts > 0 {
            return Err(DecideError::Conflicts { id, count: conflicts });
        }
        let content = content.unwrap_or_else(|| review.text().clone());
        let client = self.agents.get(&review.session).and_then(|agent| agent.client.as_ref());
        let emptied = content.is_empty() && !review.draft.proposal().is_empty();
        if emptied && empty_draft == EmptyDraft::Refuse && ClientDialect::of(client).empty_means_unedited {
            return Err(DecideError::EmptyMeansUnedited {
                agent: review.agent.clone(),
                path: review.path.clone(),
            });
        }
        if let Some(review) = self.end(id, ReviewOutcome::Accepted) {
            self.send_decision(
                &review.session,
                Decision::Accepted {
                    path: review.path,
                    content,
                },
            );
        }
        Ok(())
    }

    /// The reviews of one agent that wait.
    pub fn reviews_of(&self, session: &SessionId) -> Vec<ReviewId> {
        self.reviews
            .values()
            .filter(|review| review.session == *session)
            .map(|review| review.id)
            .collect()
    }

    /// A person rejects the proposal.
    pub fn reject(&mut self, id: ReviewId) -> Result<(), DecideError> {
        self.review(id)?;
        self.reject_as(id, ReviewOutcome::Rejected);
        Ok(())
    }

    /// The companion ends: every agent that waits is told, so that none hangs.
    pub fn shut_down(&mut self) {
        let open: Vec<ReviewId> = self.reviews.keys().copied().collect();
        for id in open {
            self.reject_as(id, ReviewOutcome::ShutDown);
        }
    }

    fn reject_as(&mut self, id: ReviewId, outcome: ReviewOutcome) {
        if let Some(review) = self.end(id, outcome) {
            self.send_decision(&review.session, Decision::Rejected { path: review.path });
        }
    }

    fn find(&self, session: &SessionId, path: &str) -> Option<&Review> {
        self.reviews
            .values()
            .find(|review| review.session == *session && *review.path == *path)
    }

    fn end(&mut self, id: ReviewId, outcome: ReviewOutcome) -> Option<Review> {
        let review = self.reviews.remove(&id)?;
        self.ended.push_back((id, outcome));
        if self.ended.len() > MAX_CLOSED_REVIEWS {
            self.ended.pop_front();
        }
        self.effects.push(Effect::ReviewClosed {
            id,
            path: review.path.clone(),
            outcome,
        });
        Some(review)
    }

    fn why_not_open(&self, id: ReviewId) -> DecideError {
        match self.ended.iter().find(|(ended, _)| *ended == id) {
            Some(&(id, outcome)) => DecideError::Closed { id, outcome },
            None => DecideError::Unknown(id),
        }
    }

    fn send_decision(&mut self, session: &SessionId, decision: Decision) {
        let session = session.clone();
        if self.agents.contains_key(&session) {
            self.effects.push(Effect::SendDecision { session, decision });
        } else {
            self.early.push((session, decision));
        }
    }

    pub(super) fn send_early_decisions(&mut self, session: &SessionId) {
        let early = self.early.extract_if(.., |(waiting, _)| waiting == session);
        self.effects
            .extend(early.map(|(session, decision)| Effect::SendDecision { session, decision }));
    }

    pub(super) fn orphan_reviews_of(&mut self, agent: &Agent, undelivered: Vec<Arc<str>>) {
        let open = self.reviews_of(&agent.session);
        let mut paths = undelivered;
        for id in open {
            paths.extend(self.end(id, ReviewOutcome::Orphaned).map(|review| review.path));
        }
        for path in paths {
            self.orphans.push_back(Orphan {
                session: agent.session.clone(),
                client: agent.client.clone(),
                path,
            });
            if self.orphans.len() > MAX_ORPHANS {
                self.orphans.pop_front();
            }
        }
        let listening: Vec<SessionId> = self
            .agents
            .values()
            .filter(|agent| agent.listening)
            .map(|agent| agent.session.clone())
            .collect();
        for session in listening {
            self.rescue_orphans_through(&session);
        }
    }

    /// Tells a session about the orphans that may be its own: all sessions of one command line share one table of
    /// waiting proposals, so a rejection through any of them frees it, and one that is not waiting ignores it.
    /// A path that somebody still reviews is left alone: the rejection could hit that review.
    pub(super) fn rescue_orphans_through(&mut self, session: &SessionId) {
        let Some(agent) = self.agents.get(session) else { return };
        let decisions: Vec<Decision> = self
            .orphans
            .iter()
            .filter(|orphan| orphan.session == *session || orphan.client.is_none() || orphan.client == agent.client)
            .filter(|orphan| !self.reviews.values().any(|review| review.path == orphan.path))
            .map(|orphan| Decision::Rejected {
                path: orphan.path.clone(),
            })
            .collect();
        for decision in decisions {
            self.send_decision(session, decision);
        }
    }
}

/// Whether a proposal asks for what already waits.
fn is_same(review: &Review, proposal: &Proposal) -> bool {
    review.base == proposal.base
        && review.draft.base() == proposal.draft.base()
        && review.draft.proposal() == proposal.draft.proposal()
}
