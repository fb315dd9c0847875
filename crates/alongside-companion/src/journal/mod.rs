//! The journal between "decided" and "acknowledged".
//!
//! Every input of the core leads to an [`Entry`]: the changes to write, and the effects to carry out once they are written. Entries
//! are queued with the core locked, which fixes their order, and written after it by the first caller that finds no other
//! writing, on a thread that may block. So nothing leaves this process (a response, a decision, a notification) before the record that it depends on is
//! in the file, and the core's lock is never held while a disk is slow. What is in the file survives a kill; a thread syncs it
//! within 50 ms, so that it also survives a power loss.
//!
//! If a write fails, everything queued behind it fails too, because it builds on it; the core goes back to what is
//! written, and every waiting request gets an error.

mod durable;
mod record;
mod recovery;
mod slot;
#[cfg(test)]
mod tests;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::{Change, Ledger, Proposal, Secret};
use alongside_journal::{Directory, Handover, Log, Ticket};
use anyhow::Result;
use parking_lot::Mutex;

use crate::commit::Outgoing;
use crate::places::Places;
use crate::settings::ResumeLimits;
use durable::Durable;
pub(crate) use record::{Endpoint, Role, StoredTexts};
pub(crate) use slot::{Slot, key};

/// What one input led to.
pub(crate) struct Entry {
    /// In milliseconds since 1970.
    pub(crate) at: u64,
    pub(crate) changes: Vec<Change>,
    /// The texts of the review in `changes`, if they are stored already.
    pub(crate) texts: Option<StoredTexts>,
    pub(crate) endpoint: Option<Endpoint>,
    pub(crate) is_stop: bool,
    pub(crate) effects: Vec<Outgoing>,
}

impl Entry {
    pub(crate) fn new(at: u64) -> Self {
        Self {
            at,
            changes: Vec::new(),
            texts: None,
            endpoint: None,
            is_stop: false,
            effects: Vec::new(),
        }
    }

    /// Whether texts may be unused after it.
    fn replaces_texts(&self) -> bool {
        self.changes
            .iter()
            .any(|change| matches!(change, Change::Review(_) | Change::Ended { .. } | Change::Settled(_)))
    }
}

pub(crate) struct Journal {
    queue: Handover<Entry>,
    durable: Mutex<Durable>,
    directory: Directory,
    epoch: Arc<str>,
    /// Why the last write failed.
    problem: Mutex<Option<Arc<str>>>,
    /// What could not be restored at the start.
    damage: Vec<String>,
}

impl Journal {
    /// Opens the journal of a slot. Blocks.
    pub(crate) fn open(slot: &Slot) -> Result<Self> {
        let directory = slot.directory.clone();
        let (log, recovered) = Log::open(&directory, "state")?;
        let epoch = log.epoch().to_string().into();
        let (durable, damage) = Durable::open(directory.clone(), log, recovered);
        for problem in &damage {
            tracing::error!("{problem}");
        }
        Ok(Self {
            queue: Handover::new(),
            durable: Mutex::new(durable),
            directory,
            epoch,
            problem: Mutex::default(),
            damage,
        })
    }

    /// Names the journal in event ids.
    pub(crate) fn epoch(&self) -> &Arc<str> {
        &self.epoch
    }

    /// What is written.
    pub(crate) fn ledger(&self) -> Ledger {
        self.durable.lock().ledger.clone()
    }

    /// Where the previous companion listened, if that is not too long ago.
    pub(crate) fn previous(
        &self,
        role: Role,
        now_unix_milliseconds: u64,
        limits: ResumeLimits,
    ) -> Option<(u16, Secret)> {
        let durable = self.durable.lock();
        let last = durable.last_frame;
        let limit = if last.is_stop {
            limits.after_stop
        } else {
            limits.after_crash
        };
        let endpoint = durable.endpoint(role)?;
        let since = Duration::from_millis(now_unix_milliseconds.saturating_sub(last.at));
        (since < limit).then(|| (endpoint.port, endpoint.secret.clone()))
    }

    /// Sentences about what is wrong with the journal.
    pub(crate) fn problems(&self) -> Vec<String> {
        let mut problems = self.damage.clone();
        problems.extend(self.problem.lock().as_deref().map(str::to_owned));
        problems.extend(self.directory.problem());
        problems
    }

    pub(crate) fn has_problem(&self) -> bool {
        self.problem.lock().is_some()
    }

    /// Stores the texts of a proposal before it reaches the core, so that a large text delays no other client. Blocks.
    pub(crate) fn store(&self, proposal: &Proposal) -> io::Result<StoredTexts> {
        let (texts, draft) = (self.directory.texts(), proposal.draft());
        let base = texts.store(draft.base())?;
        match texts.store_changed(draft.proposal(), &base, draft.proposed_changes()) {
            Ok(proposal) => Ok(StoredTexts { base, proposal }),
            Err(error) => {
                self.durable.lock().discard_unused(&base);
                Err(error)
            }
        }
    }

    /// Removes stored texts unless something refers to them.
    pub(crate) fn discard_unused(&self, stored: &StoredTexts) {
        let durable = self.durable.lock();
        durable.discard_unused(&stored.base);
        durable.discard_unused(&stored.proposal);
    }

    /// Queues an entry. Call it with the core locked.
    pub(crate) fn push(&self, entry: Entry) -> Ticket {
        self.queue.push(entry)
    }

    /// Whether nothing is queued or being written.
    pub(crate) fn is_idle(&self) -> bool {
        self.queue.is_idle()
    }

    /// Whether the caller has to see to it that what is queued is written.
    pub(crate) fn needs_leader(&self) -> bool {
        self.queue.needs_leader()
    }

    /// Writes what is queued, unless another caller is writing. `done` gets each entry once it is written. `failed` gets the ledger that is
    /// written; it must lock the core before it calls its argument, which returns everything that is queued on top of it.
    pub(crate) fn lead(
        &self,
        mut done: impl FnMut(Vec<Outgoing>),
        mut failed: impl FnMut(&Ledger, &mut dyn FnMut() -> Vec<Entry>, Vec<Entry>),
    ) {
        self.queue.lead(|batch| {
            let mut durable = self.durable.lock();
            match durable.write(&batch) {
                Ok(()) => {
                    *self.problem.lock() = None;
                    for entry in batch {
                        done(entry.effects);
                    }
                    Ok(())
                }
                Err(error) => {
                    let sentence: Arc<str> = sentence(&error).into();
                    *self.problem.lock() = Some(sentence.clone());
                    failed(&durable.ledger, &mut || self.queue.take_queued(), batch);
                    Err(sentence)
                }
            }
        });
    }

    /// Makes the journal as short as it can be, and waits until it is on disk. Blocks.
    pub(crate) fn close(&self) {
        let mut durable = self.durable.lock();
        if let Err(error) = durable.compact().and_then(|()| durable.sync()) {
            tracing::warn!(%error, "cannot shorten the journal");
        }
    }
}

/// For the user and the agent.
fn sentence(error: &io::Error) -> String {
    let hint = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => "; free some space",
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => "; make its directory writable",
        _ => "",
    };
    format!("the journal cannot be written, so nothing was changed: {error}{hint}")
}

/// The directories of all journals.
pub(crate) fn directory(places: &Places) -> PathBuf {
    places.state.join("journal")
}
