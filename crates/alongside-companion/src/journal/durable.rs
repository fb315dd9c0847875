//! What is on disk: the log, and the ledger that it leads to.
//!
//! The ledger is here a second time, as it is written: a snapshot is made of it when the log has grown, and the core goes back to
//! it when a write fails. Both copies share their texts.

use std::collections::{BTreeMap, HashSet};
use std::io;
use std::sync::Arc;

use alongside_core::{Change, Decision, Delivery, DeliveryId, Ledger, Review, ReviewId, ReviewOutline};
use alongside_journal::{Directory, Log, Recovered, StoredText};

use super::Entry;
use super::record::{Endpoint, Frame, Record, Role, StoredDelivery, StoredTexts};
use super::recovery::Recovery;

pub(super) struct Durable {
    log: Log,
    directory: Directory,
    pub(super) ledger: Ledger,
    texts: Texts,
    endpoints: Vec<Endpoint>,
    /// When the last frame was written, and whether it said that the companion stopped.
    pub(super) last_frame: LastFrame,
}

#[derive(Clone, Copy, Default)]
pub(super) struct LastFrame {
    pub(super) at: u64,
    pub(super) is_stop: bool,
}

/// Where the texts of reviews and deliveries are.
#[derive(Default)]
pub(super) struct Texts {
    pub(super) reviews: BTreeMap<ReviewId, ReviewTexts>,
    pub(super) contents: BTreeMap<DeliveryId, StoredText>,
    /// The names of the files among them.
    pub(super) files: HashSet<String>,
}

#[derive(Clone)]
pub(super) struct ReviewTexts {
    pub(super) base: Arc<str>,
    pub(super) proposal: Arc<str>,
    pub(super) stored: StoredTexts,
}

/// The texts that a batch adds. They apply when it is written.
#[derive(Default)]
struct Staged {
    reviews: BTreeMap<ReviewId, ReviewTexts>,
    contents: BTreeMap<DeliveryId, StoredText>,
    /// The reviews as they are after the records so far.
    outlines: BTreeMap<ReviewId, ReviewOutline>,
    /// Written for this batch; removed if it fails.
    created: Vec<StoredText>,
}

impl Durable {
    /// Reads the log of a previous companion. Also returns sentences about what could not be restored.
    pub(super) fn open(directory: Directory, log: Log, recovered: Recovered) -> (Self, Vec<String>) {
        let mut problems: Vec<String> = recovered.damage.iter().map(ToString::to_string).collect();
        let mut recovery = Recovery::default();
        for payload in recovered.records {
            match serde_json::from_slice(&payload) {
                Ok(frame) => recovery.add(frame),
                Err(error) => problems.push(format!("a record of the journal cannot be read: {error}")),
            }
        }
        let (endpoints, last_frame) = (std::mem::take(&mut recovery.endpoints), recovery.last_frame);
        let is_incomplete = recovery.is_incomplete();
        let (ledger, texts) = recovery.finish(directory.texts(), &mut problems);
        directory.texts().retain(texts.files.clone());
        let mut durable = Self {
            log,
            directory,
            ledger,
            texts,
            endpoints,
            last_frame,
        };
        // What is left out is reported once.
        if is_incomplete && let Err(error) = durable.compact() {
            tracing::warn!(%error, "cannot shorten the journal");
        }
        (durable, problems)
    }

    pub(super) fn endpoint(&self, role: Role) -> Option<&Endpoint> {
        self.endpoints.iter().find(|endpoint| endpoint.role == role)
    }

    /// Removes the file of a stored text unless something that is written needs it.
    pub(super) fn discard_unused(&self, text: &StoredText) {
        if let Some(file) = text.file_name()
            && !self.texts.files.contains(file)
        {
            self.directory.texts().remove(file);
        }
    }

    /// Writes entries, all or none.
    pub(super) fn write(&mut self, batch: &[Entry]) -> io::Result<()> {
        let mut staged = Staged::default();
        let written = self
            .encode_all(batch, &mut staged)
            .and_then(|frames| self.log.append(&frames));
        if let Err(error) = written {
            for text in &staged.created {
                self.discard_unused(text);
            }
            return Err(error);
        }
        self.texts.add(staged);
        for entry in batch {
            for change in &entry.changes {
                self.ledger.apply(change.clone());
            }
            if let Some(endpoint) = &entry.endpoint {
                set_endpoint(&mut self.endpoints, endpoint.clone());
            }
            self.last_frame = LastFrame {
                at: entry.at,
                is_stop: entry.is_stop,
            };
        }
        if batch.iter().any(Entry::replaces_texts) {
            for file in self.texts.forget_unused(&self.ledger) {
                self.directory.texts().remove(&file);
            }
        }
        if self.log.wants_compaction()
            && let Err(error) = self.compact()
        {
            // The log stays as long as it is; the next write tries again.
            tracing::warn!(%error, "cannot shorten the journal");
        }
        Ok(())
    }

    /// Replaces the log by a snapshot.
    pub(super) fn compact(&mut self) -> io::Result<()> {
        let mut staged = Staged::default();
        let mut records = Vec::new();
        for change in self.ledger.snapshot() {
            records.push(self.encode(&change, None, Repeat::Texts, &mut staged)?);
        }
        records.extend(self.endpoints.iter().cloned().map(Record::Listening));
        if self.last_frame.is_stop {
            records.push(Record::Stopped);
        }
        let at = self.last_frame.at;
        let frames: io::Result<Vec<Vec<u8>>> = records
            .into_iter()
            .map(|record| {
                to_bytes(&Frame {
                    at,
                    records: vec![record],
                })
            })
            .collect();
        self.log.compact(&frames?)
    }

    pub(super) fn sync(&self) -> io::Result<()> {
        self.directory.sync()
    }

    fn encode_all(&self, batch: &[Entry], staged: &mut Staged) -> io::Result<Vec<Vec<u8>>> {
        let mut frames = Vec::with_capacity(batch.len());
        for entry in batch {
            let mut records = Vec::with_capacity(entry.changes.len() + 1);
            for change in &entry.changes {
                records.push(self.encode(change, entry.texts.as_ref(), Repeat::Nothing, staged)?);
            }
            records.extend(entry.endpoint.iter().cloned().map(Record::Listening));
            if entry.is_stop {
                records.push(Record::Stopped);
            }
            frames.push(to_bytes(&Frame { at: entry.at, records })?);
        }
        Ok(frames)
    }

    fn encode(
        &self,
        change: &Change,
        written: Option<&StoredTexts>,
        repeat: Repeat,
        staged: &mut Staged,
    ) -> io::Result<Record> {
        Ok(match change {
            Change::Review(review) => {
                let known = staged.reviews.get(&review.id).or(self.texts.reviews.get(&review.id));
                let (texts, is_new) = match known {
                    Some(known) if known.are_of(review) => (known.stored.clone(), false),
                    known => (self.store(review, known.cloned(), written, staged)?, true),
                };
                let outline = review.outline();
                let before = staged.outlines.insert(review.id, outline.clone());
                let before = before.or_else(|| self.ledger.review(review.id).map(Review::outline));
                let is_whole = is_new || repeat == Repeat::Texts;
                let edit = before.filter(|_| !is_whole);
                match edit.and_then(|before| outline.change_since(&before)) {
                    Some(change) => Record::Edited(change),
                    None => Record::Review {
                        outline,
                        texts: is_whole.then_some(texts),
                    },
                }
            }
            Change::Ended { id, outcome, delivery } => {
                let texts = staged.reviews.get(id).or(self.texts.reviews.get(id)).cloned();
                let delivery = delivery.as_ref();
                Record::Ended {
                    review: *id,
                    outcome: *outcome,
                    delivery: delivery
                        .map(|delivery| self.encode_delivery(delivery, texts.as_ref(), staged))
                        .transpose()?,
                }
            }
            Change::Readdressed { delivery, to } => Record::Readdressed {
                delivery: *delivery,
                to: to.clone(),
            },
            Change::Settled(deliveries) => Record::Settled {
                deliveries: deliveries.clone(),
            },
            Change::Session { session, client } => Record::Session {
                session: session.clone(),
                client: client.clone(),
            },
            Change::SessionEnded(session) => Record::SessionEnded {
                session: session.clone(),
            },
            &Change::Numbers { review, delivery } => Record::Numbers { review, delivery },
            Change::Delivery(delivery) => Record::Delivery(self.encode_delivery(delivery, None, staged)?),
        })
    }

    /// Stores those texts of a review that are new.
    fn store(
        &self,
        review: &Review,
        known: Option<ReviewTexts>,
        written: Option<&StoredTexts>,
        staged: &mut Staged,
    ) -> io::Result<StoredTexts> {
        let (base, proposal) = (review.draft().base().clone(), review.draft().proposal().clone());
        let stored = if let Some(written) = written {
            written.clone()
        } else {
            let (known_base, known_proposal) = known
                .map(|known| ((known.base, known.stored.base), (known.proposal, known.stored.proposal)))
                .unzip();
            let texts = self.directory.texts();
            let base = staged.store(known_base, &base, |base| texts.store(base))?;
            let proposal = staged.store(known_proposal, &proposal, |proposal| {
                texts.store_changed(proposal, &base, review.draft().proposed_changes())
            })?;
            StoredTexts { base, proposal }
        };
        let texts = ReviewTexts {
            base,
            proposal,
            stored: stored.clone(),
        };
        staged.reviews.insert(review.id, texts);
        Ok(stored)
    }

    /// An accepted proposal without edits is stored already.
    fn encode_delivery(
        &self,
        delivery: &Delivery,
        review: Option<&ReviewTexts>,
        staged: &mut Staged,
    ) -> io::Result<StoredDelivery> {
        let content = match &delivery.decision {
            Decision::Rejected { .. } => None,
            Decision::Accepted { content, .. } => {
                let known = self.texts.contents.get(&delivery.id).cloned();
                let proposal = review.filter(|review| Arc::ptr_eq(&review.proposal, content));
                let known = known.or_else(|| proposal.map(|review| review.stored.proposal.clone()));
                let known = known.map(|stored| (Arc::clone(content), stored));
                let stored = staged.store(known, content, |content| self.directory.texts().store(content))?;
                staged.contents.insert(delivery.id, stored.clone());
                Some(stored)
            }
        };
        Ok(StoredDelivery {
            id: delivery.id,
            review: delivery.review,
            to: delivery.to.clone(),
            path: delivery.decision.path().clone(),
            content,
        })
    }
}

/// Whether a record repeats texts that are stored.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Repeat {
    Nothing,
    Texts,
}

impl ReviewTexts {
    fn are_of(&self, review: &Review) -> bool {
        Arc::ptr_eq(&self.base, review.draft().base()) && Arc::ptr_eq(&self.proposal, review.draft().proposal())
    }
}

impl Staged {
    /// Stores a text, unless it is the known one.
    fn store(
        &mut self,
        known: Option<(Arc<str>, StoredText)>,
        text: &Arc<str>,
        store: impl FnOnce(&Arc<str>) -> io::Result<StoredText>,
    ) -> io::Result<StoredText> {
        if let Some((known, stored)) = known
            && Arc::ptr_eq(&known, text)
        {
            return Ok(stored);
        }
        let stored = store(text)?;
        self.created.push(stored.clone());
        Ok(stored)
    }
}

impl Texts {
    fn add(&mut self, staged: Staged) {
        self.reviews.extend(staged.reviews);
        self.contents.extend(staged.contents);
    }

    /// Forgets the texts of reviews and deliveries that ended; returns the files that are no longer needed.
    fn forget_unused(&mut self, ledger: &Ledger) -> Vec<String> {
        self.reviews.retain(|id, _| ledger.review(*id).is_some());
        self.contents.retain(|id, _| ledger.delivery(*id).is_some());
        let names = self.names();
        let unused = self.files.difference(&names).cloned().collect();
        self.files = names;
        unused
    }

    pub(super) fn names(&self) -> HashSet<String> {
        let of_reviews = self
            .reviews
            .values()
            .flat_map(|texts| [&texts.stored.base, &texts.stored.proposal]);
        of_reviews
            .chain(self.contents.values())
            .filter_map(|stored| stored.file_name().map(str::to_owned))
            .collect()
    }
}

pub(super) fn set_endpoint(endpoints: &mut Vec<Endpoint>, endpoint: Endpoint) {
    endpoints.retain(|known| known.role != endpoint.role);
    endpoints.push(endpoint);
}

fn to_bytes(frame: &Frame) -> io::Result<Vec<u8>> {
    serde_json::to_vec(frame).map_err(Into::into)
}
