//! How decisions reach agents.
//!
//! Gemini CLI and Qwen Code wait for a decision indefinitely, even after losing the connection. So every review ends with a
//! decision, and a decision is kept until its agent has demonstrably received it:
//!
//! - It goes to the session that asked, again whenever that session cannot show that it has it. It is always the same decision.
//! - When that session has ended, its agent may be back under another one. So the decision is reported to every later session
//!   of the same client, once to each, unless there is a decision about a later proposal for the file. An agent that is not
//!   waiting for the file ignores it. After an hour, a decision that was reported is forgotten.
//! - A new proposal for the same file replaces it: the agent has closed the previous one on its own, and the decision would
//!   hit the new one.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;

use super::{Change, Core, Delivery, DeliveryId, Effect, Recipient, SessionEnd};
use crate::dialect::ClientInfo;
use crate::review::{Decision, Review, ReviewId, ReviewOutcome};
use crate::session::SessionKey;
use crate::time::Now;

/// Decisions of ended sessions; the oldest are dropped.
const MAX_ORPHANS: usize = 1024;
/// The accepted texts in them.
const MAX_ORPHAN_BYTES: usize = 64 * 1024 * 1024;
/// How long decisions of ended sessions are reported to later sessions.
const ORPHAN_LIFE: Duration = Duration::from_hours(1);

impl Core {
    /// Sends a decision to the session that asked: now if it is connected, and otherwise when it is. Returns what has to be kept
    /// until then: nothing for a session that waits, because it ends with the one that asked.
    pub(super) fn deliver(&mut self, review: &Review, decision: Decision) -> Option<Delivery> {
        let session = &review.session;
        let id = (!session.is_waiting()).then_some(DeliveryId(self.ledger.last_delivery + 1));
        if self.agents.contains_key(session) {
            self.effects.push(Effect::SendDecision {
                session: session.clone(),
                delivery: id,
                decision: decision.clone(),
                repeated: false,
            });
        }
        let session = session.clone();
        id.map(|id| Delivery {
            id,
            review: review.id,
            to: Recipient::Session { session },
            decision,
        })
    }

    /// Sends a session that has just connected everything that it has not received.
    pub(super) fn send_to(&mut self, session: &SessionKey) {
        let restored = self.restored;
        let waiting = self
            .ledger
            .deliveries
            .values()
            .filter(|delivery| delivery.is_for(session));
        self.effects.extend(waiting.map(|delivery| Effect::SendDecision {
            session: session.clone(),
            delivery: Some(delivery.id),
            decision: delivery.decision.clone(),
            repeated: restored.is_some_and(|restored| delivery.id <= restored),
        }));
    }

    /// The agent has these decisions, or can no longer be waiting for them.
    pub fn settle(&mut self, session: &SessionKey, deliveries: &[DeliveryId]) {
        let known = deliveries.iter().copied();
        let known: Vec<DeliveryId> = known
            .filter(|id| {
                self.ledger
                    .delivery(*id)
                    .is_some_and(|delivery| delivery.is_for(session))
            })
            .collect();
        self.change_settled(known);
    }

    /// A new proposal for a file: decisions about the previous one are settled.
    pub(super) fn settle_path(&mut self, session: &SessionKey, client: Option<&ClientInfo>, path: &str) {
        let settled = self.ledger.deliveries.values().filter(|delivery| {
            **delivery.decision.path() == *path
                && match &delivery.to {
                    Recipient::Session { session: to } => to == session,
                    Recipient::Client { client: to, .. } => to.as_ref() == client,
                }
        });
        let settled = settled.map(|delivery| delivery.id).collect();
        self.change_settled(settled);
    }

    fn change_settled(&mut self, settled: Vec<DeliveryId>) {
        if !settled.is_empty() {
            self.change(Change::Settled(settled));
        }
    }

    /// Ends the sessions of a restored ledger whose agents did not reconnect.
    pub fn end_absent_sessions(&mut self, now: Now) {
        let reviews = self.reviews().map(|review| &review.session);
        let deliveries = self.ledger.deliveries.values().filter_map(Delivery::session);
        let known = self.ledger.clients.keys().chain(reviews).chain(deliveries);
        let absent: BTreeSet<SessionKey> = known
            .filter(|session| !self.agents.contains_key(session))
            .cloned()
            .collect();
        for session in absent {
            self.orphan(now, &session, &SessionEnd::Lost);
        }
        self.report_orphans();
    }

    /// The session is gone: rejects its reviews, and readdresses the decisions that it may not have.
    pub(super) fn orphan(&mut self, now: Now, session: &SessionKey, end: &SessionEnd) {
        let to = Recipient::Client {
            client: self.ledger.clients.get(session).cloned(),
            since_unix_milliseconds: now.unix_milliseconds,
        };
        let (mut settled, mut kept) = (Vec::new(), Vec::new());
        for delivery in self
            .ledger
            .deliveries
            .values()
            .filter(|delivery| delivery.is_for(session))
        {
            let received = matches!(end, SessionEnd::Deleted { unwritten } if !unwritten.contains(&delivery.id));
            if received { &mut settled } else { &mut kept }.push(delivery.id);
        }
        self.change_settled(settled);
        for delivery in kept {
            let to = to.clone();
            self.change(Change::Readdressed { delivery, to });
        }
        let pending: Vec<Review> = self
            .reviews()
            .filter(|review| review.session == *session)
            .cloned()
            .collect();
        for review in pending {
            // What waited has ended with its session.
            let delivery = (!session.is_waiting()).then(|| Delivery {
                id: DeliveryId(self.ledger.last_delivery + 1),
                review: review.id,
                to: to.clone(),
                decision: Decision::rejected(review.path.clone()),
            });
            self.close(&review, ReviewOutcome::Orphaned, delivery);
        }
        if self.ledger.clients.contains_key(session) {
            self.change(Change::SessionEnded(session.clone()));
        }
        self.drop_replaced_orphans();
        self.bound_orphans();
    }

    pub(super) fn report_orphans(&mut self) {
        let listening = self.agents.values().filter(|agent| agent.listening);
        for session in listening.map(|agent| agent.session.clone()).collect::<Vec<_>>() {
            self.report_orphans_to(&session);
        }
    }

    /// Reports decisions of ended sessions to a session that may be the same agent's: all sessions of one client share one table
    /// of pending changes. A file with a pending review, or whose decision this session has not received yet, is left alone: the
    /// agent would take this one for it.
    pub(super) fn report_orphans_to(&mut self, session: &SessionKey) {
        let Some(agent) = self.agents.get_mut(session) else {
            return;
        };
        let own = self.ledger.deliveries.values().filter(|own| own.is_for(session));
        let awaited: HashSet<&str> = own
            .map(|own| &**own.decision.path())
            .chain(self.ledger.reviews().map(|review| &*review.path))
            .collect();
        // A later proposal may be the same agent's, under a session that has not ended yet.
        let mut latest: HashMap<&str, ReviewId> = HashMap::new();
        for delivery in self.ledger.deliveries.values() {
            let review = latest.entry(delivery.decision.path()).or_insert(delivery.review);
            *review = delivery.review.max(*review);
        }
        let mut reported = Vec::new();
        for delivery in self.ledger.deliveries.values() {
            if latest.get(&**delivery.decision.path()) != Some(&delivery.review) {
                continue;
            }
            let Recipient::Client { client, .. } = &delivery.to else {
                continue;
            };
            let is_candidate = client.is_none() || *client == agent.client;
            let is_awaited = awaited.contains(&**delivery.decision.path());
            if is_candidate && !is_awaited && agent.orphans_reported.insert(delivery.id) {
                reported.push(delivery.decision.clone());
            }
        }
        self.effects
            .extend(reported.into_iter().map(|decision| Effect::SendDecision {
                session: session.clone(),
                delivery: None,
                decision,
                repeated: true,
            }));
    }

    pub(super) fn forget_reported_orphans(&mut self, now: Now) {
        let life = u64::try_from(ORPHAN_LIFE.as_millis()).unwrap_or(u64::MAX);
        let is_reported = |id: DeliveryId| self.agents.values().any(|agent| agent.orphans_reported.contains(&id));
        let over = self.ledger.deliveries.values().filter(|delivery| match &delivery.to {
            Recipient::Client {
                since_unix_milliseconds: since,
                ..
            } => now.unix_milliseconds.saturating_sub(*since) > life && is_reported(delivery.id),
            Recipient::Session { .. } => false,
        });
        let over: Vec<DeliveryId> = over.map(|delivery| delivery.id).collect();
        for agent in self.agents.values_mut() {
            agent.orphans_reported.retain(|id| !over.contains(id));
        }
        self.change_settled(over);
    }

    /// Of several decisions for one client about one file, only the one about the latest proposal can still be waited for.
    fn drop_replaced_orphans(&mut self) {
        let mut latest: HashMap<&str, Vec<&Delivery>> = HashMap::new();
        let mut replaced = Vec::new();
        let orphans = self.ledger.deliveries.values();
        for delivery in orphans.filter(|delivery| delivery.session().is_none()) {
            let known = latest.entry(delivery.decision.path()).or_default();
            match known.iter_mut().find(|known| known.is_for_same_client(delivery)) {
                Some(known) if delivery.review > known.review => replaced.push(std::mem::replace(known, delivery).id),
                Some(_) => replaced.push(delivery.id),
                None => known.push(delivery),
            }
        }
        self.change_settled(replaced);
    }

    fn bound_orphans(&mut self) {
        let orphans = self
            .ledger
            .deliveries
            .values()
            .filter(|delivery| delivery.session().is_none());
        let (mut count, mut bytes) = (0, 0);
        let dropped = orphans.rev().filter(|delivery| {
            count += 1;
            bytes += delivery.decision.text_bytes();
            count > MAX_ORPHANS || bytes > MAX_ORPHAN_BYTES
        });
        let dropped = dropped.map(|delivery| delivery.id).collect();
        self.change_settled(dropped);
    }
}

impl Delivery {
    /// The session that it is for; `None` if that session has ended.
    pub fn session(&self) -> Option<&SessionKey> {
        match &self.to {
            Recipient::Session { session } => Some(session),
            Recipient::Client { .. } => None,
        }
    }

    fn is_for_same_client(&self, other: &Self) -> bool {
        match (&self.to, &other.to) {
            (Recipient::Client { client, .. }, Recipient::Client { client: other, .. }) => client == other,
            _ => false,
        }
    }

    fn is_for(&self, session: &SessionKey) -> bool {
        self.session() == Some(session)
    }
}
