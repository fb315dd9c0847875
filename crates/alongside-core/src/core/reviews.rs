//! Proposals, decisions, and agents that disconnect in between.
//!
//! Gemini CLI and Qwen Code wait for a decision indefinitely, even after losing the connection. So every review ends with
//! a decision: to the session that asked while it exists, and after that to every later session of the same client,
//! because that is how these agents reconnect.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::{Core, DecideError, Effect, EmptyDraft, TooManyReviews};
use crate::dialect::{ClientDialect, ClientInfo};
use crate::review::{Decision, DraftUpdate, Proposal, Review, ReviewId, ReviewOutcome, Update};
use crate::session::{Agent, AgentIdentity, SessionKey};
use crate::time::Now;

/// Pending reviews per session. Gemini CLI and Qwen Code have one at a time.
const MAX_REVIEWS: usize = 100;
/// How long a review must have been shown before a key can decide it.
const ARM_DELAY: Duration = Duration::from_millis(400);
/// Closed reviews whose outcome is kept.
const MAX_CLOSED_REVIEWS: usize = 256;
const MAX_ORPHANS: usize = 64;

/// A proposal whose agent disconnected before it received the decision.
pub(super) struct Orphan {
    session: SessionKey,
    client: Option<ClientInfo>,
    path: Arc<str>,
}

impl Core {
    /// The pending reviews, oldest first.
    pub fn reviews(&self) -> impl Iterator<Item = &Review> {
        self.reviews.values()
    }

    /// A pending review, or why it is not pending.
    pub fn review(&self, id: ReviewId) -> Result<&Review, DecideError> {
        self.reviews.get(&id).ok_or_else(|| self.why_not_open(id))
    }

    /// An agent proposes a change. Another proposal of the same session for the same path is a new revision of the same
    /// review: the agent has dropped the previous one and matches decisions by path alone. Repeating the same proposal
    /// changes nothing and keeps the draft.
    pub fn open_review(
        &mut self,
        now: Now,
        session: &SessionKey,
        proposal: Proposal,
    ) -> Result<ReviewId, TooManyReviews> {
        let agent = self.agents.get(session);
        let client = agent.and_then(|agent| agent.client.clone());
        let agent = agent.map_or_else(AgentIdentity::unknown, Agent::identity);
        let pending = self
            .reviews
            .values()
            .filter(|review| review.session == *session)
            .count();
        let previous = self.find(session, &proposal.path);
        if let Some(same) = previous.filter(|previous| is_same(previous, &proposal)) {
            return Ok(same.id);
        }
        if previous.is_none() && pending >= MAX_REVIEWS {
            return Err(TooManyReviews(pending));
        }
        let previous = previous.map(|previous| (previous.id, previous.revision, previous.version));
        self.orphans
            .retain(|orphan| orphan.path != proposal.path || orphan.client != client);
        let (id, revision, version) = previous.unwrap_or_else(|| {
            self.last_review += 1;
            (ReviewId(self.last_review), 0, 0)
        });
        let review = Review {
            id,
            session: session.clone(),
            agent,
            path: proposal.path,
            revision: revision + 1,
            version: version + 1,
            base: proposal.base,
            opened_unix_milliseconds: now.unix_milliseconds,
            draft: proposal.draft,
            derived: proposal.derived,
            appeared: now.monotonic,
        };
        self.reviews.insert(id, review);
        self.effects.push(if previous.is_some() {
            Effect::ReviewChanged(id)
        } else {
            Effect::ReviewOpened(id)
        });
        Ok(id)
    }

    /// Reopens a review that was pending when the companion was killed.
    pub fn restore_review(&mut self, now: Now, mut review: Review) {
        review.appeared = now.monotonic;
        self.last_review = self.last_review.max(review.id.0);
        self.effects.push(Effect::ReviewOpened(review.id));
        self.reviews.insert(review.id, review);
    }

    /// Closes restored reviews whose agent did not reconnect.
    pub fn orphan_absent(&mut self) {
        let restored = self.reviews.values().map(|review| &review.session);
        let absent: BTreeSet<SessionKey> = restored
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

    /// Restores a decision that its agent did not receive before the companion stopped. It is sent when the session
    /// reconnects.
    pub fn restore_decision(&mut self, session: SessionKey, decision: Decision) {
        self.early.push((session, decision));
    }

    /// The decisions of sessions that have not reconnected since the companion started.
    pub fn early_decisions(&self) -> &[(SessionKey, Decision)] {
        &self.early
    }

    /// The agent closes its own proposal, because it was decided in its terminal. It receives no decision; the response
    /// to it has the draft.
    pub fn close_review(&mut self, session: &SessionKey, path: &str) -> Option<Review> {
        let id = self.find(session, path)?.id;
        self.end(id, ReviewOutcome::ClosedByAgent)
    }

    /// Applies an update that was computed from a snapshot of the review, and returns the new version. Fails with
    /// [`DecideError::Stale`] if the review has changed since: compute it again from a new snapshot.
    pub fn update_draft(&mut self, update: DraftUpdate) -> Result<u64, DecideError> {
        let id = update.id;
        let Some(review) = self.reviews.get_mut(&id) else {
            return Err(self.why_not_open(id));
        };
        if review.version != update.version {
            let version = review.version;
            return Err(DecideError::Stale { id, version });
        }
        review.draft = update.draft;
        review.derived = update.derived;
        // Always a new version: a hunk may have another state although the text is the same.
        review.version += 1;
        let version = review.version;
        match update.update {
            Update::Edited(change) => self.effects.push(Effect::ReviewEdited { id, change }),
            Update::Rebased { base, conflicts } => {
                review.base = base;
                self.effects.push(Effect::ReviewChanged(id));
                self.effects.push(Effect::ReviewRebased { id, conflicts });
            }
        }
        Ok(version)
    }

    /// Fails while a review has only just appeared: a key pressed now was meant for something else. To be checked before
    /// decisions that come from keys or clicks.
    pub fn check_armed(&self, now: Now, id: ReviewId) -> Result<(), DecideError> {
        let review = self.review(id)?;
        if now.monotonic.saturating_sub(review.appeared) < ARM_DELAY {
            Err(DecideError::TooSoon(id))
        } else {
            Ok(())
        }
    }

    /// Accepts the draft, or `content` in its place.
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

    /// The pending reviews of one agent.
    pub fn reviews_of(&self, session: &SessionKey) -> Vec<ReviewId> {
        self.reviews
            .values()
            .filter(|review| review.session == *session)
            .map(|review| review.id)
            .collect()
    }

    pub fn reject(&mut self, id: ReviewId) -> Result<(), DecideError> {
        self.review(id)?;
        self.reject_as(id, ReviewOutcome::Rejected);
        Ok(())
    }

    /// Rejects all pending reviews, so that no agent is left waiting.
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

    fn find(&self, session: &SessionKey, path: &str) -> Option<&Review> {
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

    fn send_decision(&mut self, session: &SessionKey, decision: Decision) {
        let session = session.clone();
        if self.agents.contains_key(&session) {
            self.effects.push(Effect::SendDecision { session, decision });
        } else {
            self.early.push((session, decision));
        }
    }

    pub(super) fn send_early_decisions(&mut self, session: &SessionKey) {
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
        let listening: Vec<SessionKey> = self
            .agents
            .values()
            .filter(|agent| agent.listening)
            .map(|agent| agent.session.clone())
            .collect();
        for session in listening {
            self.rescue_orphans_through(&session);
        }
    }

    /// Rejects the orphans that may be this session's: all sessions of one client share one table of pending changes, so
    /// a rejection through any of them frees the agent, and an agent that is not waiting ignores it. A path with a
    /// pending review is left alone: the rejection could hit that review.
    pub(super) fn rescue_orphans_through(&mut self, session: &SessionKey) {
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

fn is_same(review: &Review, proposal: &Proposal) -> bool {
    review.base == proposal.base
        && review.draft.base() == proposal.draft.base()
        && review.draft.proposal() == proposal.draft.proposal()
}
