//! Decisions that arrive, and whether they are the right ones.

use std::time::Duration;

use super::invariant::Invariant;
use super::ledger::{Books, Decision, Known, Proposal, ProposalId};

/// How much later than a request an event that was written before it may be read on a busy machine.
const CROSSING: Duration = Duration::from_millis(500);

impl Books {
    /// A decision arrived on an agent's event stream.
    pub(super) fn receive(&mut self, agent: usize, session: &str, path: &str, decision: &Decision) {
        let waiting = self.newest(|proposal| proposal.agent == agent && proposal.path == path && proposal.waiting);
        let Some(id) = waiting else {
            return self.receive_again(agent, path, decision);
        };
        let proposal = &self.proposals[id];
        let is_expected = match &proposal.decided {
            Known::Yes(made) => made.matches(decision),
            Known::Perhaps(made) if made.matches(decision) => true,
            Known::No | Known::Perhaps(_) => *decision == Decision::Rejected && proposal.may_be_rejected,
        };
        if !is_expected && self.crosses(id, decision) {
            return;
        }
        let proposal = &self.proposals[id];
        let name = proposal.name();
        if proposal.session != session && !proposal.may_be_rejected {
            let what = format!("{name}: its decision came to another session");
            self.violated(Invariant::Addressed, what);
        }
        if !is_expected && !self.proposals[id].given_up {
            let proposal = &self.proposals[id];
            let what = format!("{name}: {decision:?} arrived, but it was {:?}", proposal.decided);
            self.violated(Invariant::Delivered, what);
        }
        let proposal = &mut self.proposals[id];
        proposal.decided = Known::Yes(decision.clone());
        proposal.received = Some(decision.clone());
        proposal.waiting = false;
    }

    /// A decision may cross the agent's next proposal for the path: neither side knows of the other's message yet, and events name
    /// only the path. Requests and events have different connections, so it may even be read after the response.
    fn crosses(&mut self, id: ProposalId, decision: &Decision) -> bool {
        let (before, from) = self.proposals.split_at_mut(id);
        let next = &from[0];
        let is_previous = |proposal: &&mut Proposal| {
            proposal.agent == next.agent && proposal.path == next.path && proposal.opened != Known::No
        };
        let Some(previous) = before.iter_mut().rev().find(is_previous) else {
            return false;
        };
        let is_its = matches!(&previous.decided, Known::Yes(made) | Known::Perhaps(made) if made.matches(decision));
        let is_recent = next.busy || next.sent.elapsed() < CROSSING;
        if !is_recent || !is_its {
            return false;
        }
        previous.received = Some(decision.clone());
        self.count("decisions that crossed the next proposal");
        true
    }

    /// A decision that the agent is not waiting for. Real agents ignore it; it must still not be a different one.
    fn receive_again(&mut self, agent: usize, path: &str, decision: &Decision) {
        let own: Vec<ProposalId> = (0..self.proposals.len())
            .filter(|id| self.proposals[*id].agent == agent && self.proposals[*id].path == path)
            .collect();
        let Some(last) = own.last().copied() else {
            // A program's sessions are not told apart: what one of them left behind is reported to all, and ignored by the others.
            let client = self.clients[agent];
            let owner = self.newest(|proposal| proposal.path == path && self.clients[proposal.agent] == client);
            if owner.is_none() {
                let what = format!("agent {agent} received a decision about {path}, which is not its program's");
                self.violated(Invariant::Addressed, what);
            }
            return;
        };
        self.count("decisions repeated");
        let is_known = own.iter().any(|id| {
            let proposal = &self.proposals[*id];
            match (&proposal.decided, &proposal.received) {
                (_, Some(received)) => received.matches(decision),
                (Known::Yes(made) | Known::Perhaps(made), None) => made.matches(decision),
                (Known::No, None) => false,
            }
        });
        let may_be_rejected =
            *decision == Decision::Rejected && own.iter().any(|id| self.proposals[*id].may_be_rejected);
        let last = &self.proposals[last];
        if !is_known && !may_be_rejected && !last.given_up && last.closed == Known::No {
            let what = format!(
                "{}: {decision:?} arrived as well, after {:?}",
                last.name(),
                last.received
            );
            self.violated(Invariant::Delivered, what);
        }
    }
}
