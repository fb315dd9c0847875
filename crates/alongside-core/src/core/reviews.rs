//! Proposals and decisions. How decisions reach agents is in [`deliveries`](super::deliveries).

use std::sync::Arc;
use std::time::Duration;

use super::{Change, Core, DecideError, Delivery, Effect, EmptyDraft, ProposalError};
use crate::dialect::{ClientDialect, ClientInfo};
use crate::review::{Decision, DraftUpdate, Proposal, Review, ReviewId, ReviewOutcome, Update};
use crate::session::{Agent, AgentIdentity, SessionKey};
use crate::time::Now;

/// Pending reviews per session. Gemini CLI and Qwen Code have one at a time.
const MAX_REVIEWS: usize = 100;
/// Base and proposal of all pending reviews together.
const MAX_TEXT_BYTES: usize = 256 * 1024 * 1024;
/// How long a review must have been shown before a key can decide it.
const ARM_DELAY: Duration = Duration::from_millis(400);

impl Core {
    /// The pending reviews, oldest first.
    pub fn reviews(&self) -> impl Iterator<Item = &Review> {
        self.ledger.reviews()
    }

    /// A pending review, or why it is not pending.
    pub fn review(&self, id: ReviewId) -> Result<&Review, DecideError> {
        self.ledger.review(id).ok_or_else(|| self.why_not_open(id))
    }

    /// An agent proposes a change. Another proposal of the same session for the same path is a new revision of the same
    /// review: the agent has dropped the previous one and matches decisions by path alone. Repeating the same proposal
    /// changes nothing and keeps the draft.
    pub fn open_review(
        &mut self,
        now: Now,
        session: &SessionKey,
        proposal: Proposal,
    ) -> Result<ReviewId, ProposalError> {
        let agent = self.agents.get(session);
        let client = agent.and_then(|agent| agent.client.clone());
        let agent = agent.map_or_else(AgentIdentity::unknown, Agent::identity);
        let previous = self.find(session, &proposal.path);
        if let Some(same) = previous.filter(|previous| is_same(previous, &proposal)) {
            return Ok(same.id);
        }
        self.check_room(session, &proposal, previous)?;
        let previous = previous.map(|previous| (previous.id, previous.revision, previous.version));
        self.settle_path(session, client.as_ref(), &proposal.path);
        let (id, revision, version) = previous.unwrap_or_else(|| (ReviewId(self.ledger.last_review + 1), 0, 0));
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
        let path = review.path.clone();
        self.change(Change::Review(review));
        let session = session.clone();
        self.effects.push(Effect::DecisionsSuperseded { session, path });
        self.effects.push(if previous.is_some() {
            Effect::ReviewChanged(id)
        } else {
            Effect::ReviewOpened(id)
        });
        Ok(id)
    }

    fn check_room(
        &self,
        session: &SessionKey,
        proposal: &Proposal,
        previous: Option<&Review>,
    ) -> Result<(), ProposalError> {
        let pending = self.reviews().filter(|review| review.session == *session).count();
        if previous.is_none() && pending >= MAX_REVIEWS {
            return Err(ProposalError::TooMany(pending));
        }
        let pending: usize = self.reviews().map(|review| review.draft.text_bytes()).sum();
        let replaced = previous.map_or(0, |previous| previous.draft.text_bytes());
        if pending - replaced + proposal.draft.text_bytes() > MAX_TEXT_BYTES {
            return Err(ProposalError::TooLarge(MAX_TEXT_BYTES / (1024 * 1024)));
        }
        Ok(())
    }

    /// The agent closes its own proposal, because it was decided in its terminal. It receives no decision; the response
    /// to it has the draft.
    pub fn close_review(&mut self, session: &SessionKey, path: &str) -> Option<Review> {
        let review = self.find(session, path)?.clone();
        self.end(&review, ReviewOutcome::ClosedByAgent, None);
        Some(review)
    }

    /// Applies an update that was computed from a snapshot of the review, and returns the new version. Fails with
    /// [`DecideError::Stale`] if the review has changed since: compute it again from a new snapshot.
    pub fn update_draft(&mut self, update: DraftUpdate) -> Result<u64, DecideError> {
        let id = update.id;
        let mut review = self.review(id)?.clone();
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
        self.change(Change::Review(review));
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
        let is_connected = matches!(review.session, SessionKey::Connection(_));
        let takes_edits = !is_connected || client.is_none_or(ClientInfo::takes_edits);
        if !takes_edits && content != *review.draft.proposal() {
            return Err(DecideError::TakesNoEdits {
                agent: review.agent.clone(),
                path: review.path.clone(),
            });
        }
        let review = review.clone();
        let path = review.path.clone();
        self.end(
            &review,
            ReviewOutcome::Accepted,
            Some(Decision::Accepted { path, content }),
        );
        Ok(())
    }

    /// The pending reviews of one agent.
    pub fn reviews_of(&self, session: &SessionKey) -> Vec<ReviewId> {
        self.reviews()
            .filter(|review| review.session == *session)
            .map(|review| review.id)
            .collect()
    }

    /// Rejects a review. The reason is for the agent, if it can receive one.
    pub fn reject(&mut self, id: ReviewId, reason: Option<Arc<str>>) -> Result<(), DecideError> {
        let review = self.review(id)?.clone();
        let reason = reason.filter(|_| review.session.takes_reason());
        self.reject_as(&review, ReviewOutcome::Rejected, reason);
        Ok(())
    }

    /// Rejects all pending reviews, so that no agent is left waiting.
    pub fn shut_down(&mut self) {
        let pending: Vec<Review> = self.reviews().cloned().collect();
        for review in pending {
            self.reject_as(&review, ReviewOutcome::ShutDown, None);
        }
    }

    fn reject_as(&mut self, review: &Review, outcome: ReviewOutcome, reason: Option<Arc<str>>) {
        let path = review.path.clone();
        self.end(review, outcome, Some(Decision::Rejected { path, reason }));
    }

    fn find(&self, session: &SessionKey, path: &str) -> Option<&Review> {
        self.reviews()
            .find(|review| review.session == *session && *review.path == *path)
    }

    /// Ends a review and sends the decision to the session that asked.
    fn end(&mut self, review: &Review, outcome: ReviewOutcome, decision: Option<Decision>) {
        let delivery = decision.and_then(|decision| self.deliver(review, decision));
        self.close(review, outcome, delivery);
    }

    pub(super) fn close(&mut self, review: &Review, outcome: ReviewOutcome, delivery: Option<Delivery>) {
        let id = review.id;
        self.change(Change::Ended { id, outcome, delivery });
        self.effects.push(Effect::ReviewClosed {
            id,
            path: review.path.clone(),
            outcome,
        });
    }

    fn why_not_open(&self, id: ReviewId) -> DecideError {
        match self.ledger.ended.iter().find(|(ended, _)| *ended == id) {
            Some(&(id, outcome)) => DecideError::Closed { id, outcome },
            None => DecideError::Unknown(id),
        }
    }
}

fn is_same(review: &Review, proposal: &Proposal) -> bool {
    review.base == proposal.base
        && review.draft.base() == proposal.draft.base()
        && review.draft.proposal() == proposal.draft.proposal()
}
