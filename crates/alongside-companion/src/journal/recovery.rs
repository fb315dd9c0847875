//! From the records of a journal to the ledger that they lead to.
//!
//! Texts are read at the end, when it is known which are still needed: the files of others are gone.

use std::collections::{BTreeMap, BTreeSet};

use alongside_core::dialect::ClientInfo;
use alongside_core::{
    Change, Decision, Delivery, DeliveryId, Ledger, Review, ReviewId, ReviewOutcome, ReviewOutline, SessionKey,
};
use anyhow::{Context, Result};

use super::durable::{LastFrame, ReviewTexts, Texts, set_endpoint};
use super::record::{Endpoint, Frame, Record, StoredDelivery, StoredTexts};

#[derive(Default)]
pub(super) struct Recovery {
    reviews: BTreeMap<ReviewId, (ReviewOutline, Option<StoredTexts>)>,
    /// Those with edits that follow a record which cannot be read.
    incomplete: BTreeSet<ReviewId>,
    ended: Vec<(ReviewId, ReviewOutcome)>,
    deliveries: BTreeMap<DeliveryId, StoredDelivery>,
    clients: BTreeMap<SessionKey, ClientInfo>,
    last_review: u64,
    last_delivery: u64,
    pub(super) endpoints: Vec<Endpoint>,
    pub(super) last_frame: LastFrame,
}

impl Recovery {
    pub(super) fn add(&mut self, frame: Frame) {
        let is_stop = frame.records.iter().any(|record| matches!(record, Record::Stopped));
        self.last_frame = LastFrame { at: frame.at, is_stop };
        for record in frame.records {
            self.apply(record);
        }
    }

    /// Whether some edits do not follow what was read.
    pub(super) fn is_incomplete(&self) -> bool {
        !self.incomplete.is_empty()
    }

    fn apply(&mut self, record: Record) {
        match record {
            Record::Review { outline, texts } => {
                let id = outline.id();
                self.last_review = self.last_review.max(id.0);
                self.incomplete.remove(&id);
                let texts = texts.or_else(|| self.reviews.remove(&id).and_then(|(_, texts)| texts));
                self.reviews.insert(id, (outline, texts));
            }
            Record::Edited(change) => {
                let id = change.id();
                let outline = self.reviews.get_mut(&id).map(|(outline, _)| outline);
                if !outline.is_some_and(|outline| outline.apply(change)) {
                    self.incomplete.insert(id);
                }
            }
            Record::Ended {
                review,
                outcome,
                delivery,
            } => {
                self.last_review = self.last_review.max(review.0);
                self.reviews.remove(&review);
                self.ended.push((review, outcome));
                if let Some(delivery) = delivery {
                    self.deliver(delivery);
                }
            }
            Record::Readdressed { delivery, to } => {
                if let Some(delivery) = self.deliveries.get_mut(&delivery) {
                    delivery.to = to;
                }
            }
            Record::Settled { deliveries } => {
                for delivery in deliveries {
                    self.deliveries.remove(&delivery);
                }
            }
            Record::Session { session, client } => {
                self.clients.insert(session, client);
            }
            Record::SessionEnded { session } => {
                self.clients.remove(&session);
            }
            Record::Numbers { review, delivery } => {
                self.last_review = self.last_review.max(review);
                self.last_delivery = self.last_delivery.max(delivery);
            }
            Record::Delivery(delivery) => self.deliver(delivery),
            Record::Listening(endpoint) => set_endpoint(&mut self.endpoints, endpoint),
            Record::Stopped => {}
        }
    }

    fn deliver(&mut self, delivery: StoredDelivery) {
        self.last_delivery = self.last_delivery.max(delivery.id.0);
        self.deliveries.insert(delivery.id, delivery);
    }

    /// Reads the texts. What cannot be read is left out, with a sentence about it.
    pub(super) fn finish(self, files: &alongside_journal::Texts, problems: &mut Vec<String>) -> (Ledger, Texts) {
        let (mut ledger, mut texts) = (Ledger::default(), Texts::default());
        ledger.apply(Change::Numbers {
            review: self.last_review,
            delivery: self.last_delivery,
        });
        for (id, outcome) in self.ended {
            let delivery = None;
            ledger.apply(Change::Ended { id, outcome, delivery });
        }
        for (session, client) in self.clients {
            ledger.apply(Change::Session { session, client });
        }
        for (id, stored) in self.deliveries {
            match delivery(stored, files, &mut texts) {
                Ok(delivery) => ledger.apply(Change::Delivery(delivery)),
                Err(error) => problems.push(format!("decision {id} cannot be restored: {error:#}")),
            }
        }
        for (id, (outline, stored)) in self.reviews {
            if self.incomplete.contains(&id) {
                problems.push(format!(
                    "review {id} is as it was before its last edits, which follow a damaged record"
                ));
            }
            match review(outline, stored, files, &mut texts) {
                Ok(review) => ledger.apply(Change::Review(review)),
                Err(error) => problems.push(format!("review {id} cannot be restored: {error:#}")),
            }
        }
        texts.files = texts.names();
        (ledger, texts)
    }
}

fn review(
    outline: ReviewOutline,
    stored: Option<StoredTexts>,
    files: &alongside_journal::Texts,
    texts: &mut Texts,
) -> Result<Review> {
    let stored = stored.context("its texts are missing")?;
    let id = outline.id();
    let (base, proposal) = (files.load(&stored.base)?, files.load(&stored.proposal)?);
    let review = Review::restore(outline, base.clone(), proposal.clone())?;
    let stored = ReviewTexts { base, proposal, stored };
    texts.reviews.insert(id, stored);
    Ok(review)
}

fn delivery(stored: StoredDelivery, files: &alongside_journal::Texts, texts: &mut Texts) -> Result<Delivery> {
    let StoredDelivery {
        id,
        review,
        to,
        path,
        content,
    } = stored;
    let decision = match content {
        Some(stored) => {
            let content = files.load(&stored)?;
            texts.contents.insert(id, stored);
            Decision::Accepted { path, content }
        }
        None => Decision::rejected(path),
    };
    Ok(Delivery {
        id,
        review,
        to,
        decision,
    })
}
