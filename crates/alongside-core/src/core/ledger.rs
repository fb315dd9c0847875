//! What must survive the process: pending reviews, decisions that their agents have not received yet, and who the
//! sessions belong to.
//!
//! The rules change it only through a [`Change`], and every change is a state, not a command. So the same changes, written to a
//! journal and applied again after a crash, lead to the same ledger, whatever the rules are by then.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;

use serde::{Deserialize, Serialize};

use crate::dialect::ClientInfo;
use crate::review::{Decision, Review, ReviewId, ReviewOutcome};
use crate::session::SessionKey;

/// Closed reviews whose outcome is kept.
const MAX_CLOSED_REVIEWS: usize = 256;

/// The number of a decision. Numbers grow and are never reused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DeliveryId(pub u64);

impl fmt::Display for DeliveryId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// A decision until its agent has demonstrably received it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    pub id: DeliveryId,
    /// The review that it decides.
    pub review: ReviewId,
    pub to: Recipient,
    pub decision: Decision,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "camelCase")]
pub enum Recipient {
    /// The session that asked.
    Session { session: SessionKey },
    /// The session that asked has ended. Its agent may be back under any later session of the same client.
    Client {
        /// `None` if it is unknown: then it may be any.
        client: Option<ClientInfo>,
        /// When the session ended.
        since_unix_milliseconds: u64,
    },
}

/// A step from one ledger to the next.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// A review was opened, revised, edited or rebased.
    Review(Review),
    Ended {
        id: ReviewId,
        outcome: ReviewOutcome,
        /// With it, so that a review never ends without its decision.
        delivery: Option<Delivery>,
    },
    Readdressed {
        delivery: DeliveryId,
        to: Recipient,
    },
    /// The agents have received these decisions, or can no longer wait for them.
    Settled(Vec<DeliveryId>),
    Session {
        session: SessionKey,
        client: ClientInfo,
    },
    SessionEnded(SessionKey),
    /// The last numbers in use. The start of a snapshot.
    Numbers {
        review: u64,
        delivery: u64,
    },
    /// A delivery of a snapshot.
    Delivery(Delivery),
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    pub(super) reviews: BTreeMap<ReviewId, Review>,
    /// Outcomes of the latest reviews, to report the first decision to the second.
    pub(super) ended: VecDeque<(ReviewId, ReviewOutcome)>,
    pub(super) deliveries: BTreeMap<DeliveryId, Delivery>,
    pub(super) clients: BTreeMap<SessionKey, ClientInfo>,
    pub(super) last_review: u64,
    pub(super) last_delivery: u64,
}

impl Ledger {
    pub fn apply(&mut self, change: Change) {
        match change {
            Change::Review(review) => {
                self.last_review = self.last_review.max(review.id.0);
                self.reviews.insert(review.id, review);
            }
            Change::Ended { id, outcome, delivery } => {
                self.reviews.remove(&id);
                self.ended.push_back((id, outcome));
                if self.ended.len() > MAX_CLOSED_REVIEWS {
                    self.ended.pop_front();
                }
                if let Some(delivery) = delivery {
                    self.add(delivery);
                }
            }
            Change::Readdressed { delivery, to } => {
                if let Some(delivery) = self.deliveries.get_mut(&delivery) {
                    delivery.to = to;
                }
            }
            Change::Settled(deliveries) => {
                for delivery in deliveries {
                    self.deliveries.remove(&delivery);
                }
            }
            Change::Session { session, client } => {
                self.clients.insert(session, client);
            }
            Change::SessionEnded(session) => {
                self.clients.remove(&session);
            }
            Change::Numbers { review, delivery } => {
                self.last_review = self.last_review.max(review);
                self.last_delivery = self.last_delivery.max(delivery);
            }
            Change::Delivery(delivery) => self.add(delivery),
        }
    }

    fn add(&mut self, delivery: Delivery) {
        self.last_delivery = self.last_delivery.max(delivery.id.0);
        self.deliveries.insert(delivery.id, delivery);
    }

    /// Changes that lead from an empty ledger to this one.
    pub fn snapshot(&self) -> impl Iterator<Item = Change> {
        let numbers = Change::Numbers {
            review: self.last_review,
            delivery: self.last_delivery,
        };
        let ended = self.ended.iter().map(|&(id, outcome)| Change::Ended {
            id,
            outcome,
            delivery: None,
        });
        let clients = self.clients.iter().map(|(session, client)| Change::Session {
            session: session.clone(),
            client: client.clone(),
        });
        let deliveries = self.deliveries.values().cloned().map(Change::Delivery);
        let reviews = self.reviews.values().cloned().map(Change::Review);
        std::iter::once(numbers)
            .chain(ended)
            .chain(clients)
            .chain(deliveries)
            .chain(reviews)
    }

    /// The pending reviews, oldest first.
    pub fn reviews(&self) -> impl Iterator<Item = &Review> {
        self.reviews.values()
    }

    pub fn review(&self, id: ReviewId) -> Option<&Review> {
        self.reviews.get(&id)
    }

    /// The decisions on their way, oldest first.
    pub fn deliveries(&self) -> impl Iterator<Item = &Delivery> {
        self.deliveries.values()
    }

    pub fn delivery(&self, id: DeliveryId) -> Option<&Delivery> {
        self.deliveries.get(&id)
    }
}
