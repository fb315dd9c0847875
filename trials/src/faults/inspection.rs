//! Compares what is there with what was acknowledged.

use super::invariant::Invariant;
use super::ledger::{Books, Decision, Known, ProposalId, Seen, Text};
use super::plan::Role;

impl Books {
    /// Finds the proposal of a pending review, and checks its texts.
    pub(super) fn inspect_review(&mut self, role: Role, seen: &Seen) -> Option<ProposalId> {
        let mut id = self.newest(|proposal| {
            proposal.role == role
                && proposal.session == seen.session
                && proposal.path == seen.path
                && proposal.opened != Known::No
        });
        // A revision without a response that was not carried out: the review is the one before.
        while let Some(newest) = id
            && self.proposals[newest].opened == Known::Perhaps(())
            && self.proposals[newest].text != seen.proposal
        {
            self.proposals[newest].opened = Known::No;
            id = self.proposals[..newest].iter().rposition(|proposal| {
                proposal.role == role
                    && proposal.session == seen.session
                    && proposal.path == seen.path
                    && proposal.opened != Known::No
            });
        }
        let Some(id) = id else {
            let what = format!("review {} of {} was never proposed", seen.review, seen.path);
            self.violated(Invariant::Kept, what);
            return None;
        };
        let proposal = &mut self.proposals[id];
        proposal.opened = Known::Yes(());
        let name = proposal.name();
        if proposal.given_up {
            return Some(id);
        }
        let again = if let Some(received) = &proposal.received {
            Some(format!(
                "{name} is pending again, although the agent received: {received:?}"
            ))
        } else {
            match (&proposal.decided, &proposal.closed) {
                (Known::Yes(made), _) => Some(format!("{name} is pending again, although it was {made:?}")),
                (_, Known::Yes(())) => Some(format!("{name} is pending again, although its agent closed it")),
                _ => None,
            }
        };
        if let Some(what) = again {
            proposal.given_up = true;
            self.violated(Invariant::Settled, what);
            return Some(id);
        }
        // What had no response was not carried out.
        (proposal.decided, proposal.closed, proposal.replaced) = (Known::No, Known::No, false);
        let edit = proposal.edit.take();
        let (version, draft) = (proposal.version, proposal.draft.clone());
        let what = if proposal.text != seen.proposal {
            proposal.given_up = true;
            Some(format!("{name} has another proposal"))
        } else if seen.version < version {
            Some(format!("{name} is at version {}, and was at {version}", seen.version))
        } else if draft.as_ref().is_some_and(|draft| *draft == seen.draft)
            || version == 0 && seen.draft == seen.proposal
        {
            None
        } else if let Some(attempt) = edit {
            let is_attempt = match attempt {
                Text::Known(text) => text == seen.draft,
                Text::Unknown => true,
            };
            (!is_attempt).then(|| format!("{name} has a draft that nobody wrote"))
        } else {
            draft.map(|_| format!("{name} lost an edit (version {version}, now {})", seen.version))
        };
        (proposal.version, proposal.draft) = (seen.version, Some(seen.draft.clone()));
        if let Some(what) = what {
            self.violated(Invariant::Draft, what);
        }
        Some(id)
    }

    /// A number stays with its review: only a revision of the same proposal may have it too.
    pub(super) fn inspect_number(&mut self, role: Role, review: u64, id: ProposalId) {
        let Some(before) = self.numbers.insert((role, review), id).filter(|before| *before != id) else {
            return;
        };
        let (old, new) = (&self.proposals[before], &self.proposals[id]);
        let is_revision = old.session == new.session && old.path == new.path && old.replaced;
        if !is_revision {
            let what = format!("review {review} is {}, and was {}", new.name(), old.name());
            self.violated(Invariant::Numbers, what);
        }
    }

    /// A proposal that is not pending: find out why.
    pub(super) fn inspect_missing(&mut self, id: ProposalId) {
        let proposal = &mut self.proposals[id];
        proposal.edit = None;
        if proposal.opened == Known::Perhaps(()) {
            proposal.opened = Known::No;
            return;
        }
        if proposal.closed == Known::Perhaps(()) {
            proposal.closed = Known::Yes(());
        }
        if let Known::Perhaps(decision) = &proposal.decided {
            proposal.decided = Known::Yes(decision.clone());
        }
        if !proposal.is_live() {
            return;
        }
        if proposal.may_be_rejected {
            proposal.decided = Known::Yes(Decision::Rejected);
            return;
        }
        (proposal.given_up, proposal.waiting) = (true, false);
        let what = format!("{} is gone without a decision", proposal.name());
        self.violated(Invariant::Kept, what);
    }
}
