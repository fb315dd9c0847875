//! The events that a session has not received yet.
//!
//! There are two kinds. The *context* is a state: only the latest matters, so it has one slot. Changed *diagnostics* are such a state
//! for each file. A *decision* is an event: it is written in order, and kept until the agent has shown that it arrived, in case the
//! connection broke on the way.
//!
//! Every event has an id `<epoch>-<delivery>-<outbox>-<number>`. The last two name the event; the outbox is random. The first two
//! survive a restart: all decisions of the session up to that delivery came before this event. A stream that opens with
//! `Last-Event-ID` confirms what arrived, and everything else is written again, under its old id. A stream that opens
//! without a usable one confirms nothing, so everything is written again. What may have arrived, on such a stream or before a
//! restart, is held for a moment, and as long as a request of the agent is being read: if the agent has it and is proposing the
//! same file again, the repetition would decide the new proposal. For the same reason, a decision about a file is blocked while
//! the agent's next proposal for it is being opened.

mod diagnostics;
mod event;

use std::collections::VecDeque;
use std::sync::Arc;

use alongside_core::{Decision, DeliveryId};
use bytes::Bytes;

use crate::companion::{self, Outgoing};
use crate::config::Limits;
use diagnostics::ChangedDiagnostics;
pub(crate) use diagnostics::ChangedFile;
pub(crate) use event::Event;
use event::{EventId, Payload};

/// A user sends them one at a time.
const MAX_MENTIONS: usize = 16;

pub(crate) struct Outbox {
    epoch: Arc<str>,
    name: Arc<str>,
    next_number: u64,
    context: Option<Bytes>,
    diagnostics: ChangedDiagnostics,
    /// For the agent's prompt.
    mentions: VecDeque<Bytes>,
    decisions: VecDeque<QueuedDecision>,
    /// The files that the agent is proposing now.
    opening: Vec<Arc<str>>,
    /// The latest delivery that was written.
    written: Option<DeliveryId>,
    /// Whether the open stream is past the moment in which decisions are held.
    is_past_hold: bool,
    /// Whether a request of the agent is being read.
    is_requesting: bool,
    /// What the agent confirmed with an id from before a restart, once it did.
    resumed: Option<DeliveryId>,
}

struct QueuedDecision {
    decision: Decision,
    delivery: Option<DeliveryId>,
    /// The number of its event; `None` until this outbox writes it.
    number: Option<u64>,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// Still to be written, for the first time or again.
    Due,
    /// About the previous proposal of a file that the agent is proposing again.
    Blocked,
    /// To be written again in a moment, unless the agent shows before that it has it.
    Held,
    Written,
}

/// More decisions are pending than the limits allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct OutboxFull;

/// Where an event id points.
enum Confirmed {
    /// To an event of this outbox.
    Event(u64),
    /// To an event of the session's outbox before a restart.
    Delivery(DeliveryId),
}

impl Outbox {
    /// `epoch` names the journal that the deliveries are from; `name` must be unique.
    pub(crate) fn new(epoch: Arc<str>, name: impl Into<Arc<str>>) -> Self {
        Self {
            epoch,
            name: name.into(),
            next_number: 1,
            context: None,
            diagnostics: ChangedDiagnostics::default(),
            mentions: VecDeque::new(),
            decisions: VecDeque::new(),
            opening: Vec::new(),
            written: None,
            is_past_hold: false,
            is_requesting: false,
            resumed: None,
        }
    }

    /// Replaces a context that was not written yet.
    pub(crate) fn set_context(&mut self, message: Bytes) {
        self.context = Some(message);
    }

    /// Replaces what was not written yet about these files.
    pub(crate) fn set_diagnostics(&mut self, files: &[ChangedFile]) {
        for file in files {
            self.diagnostics.insert(file);
        }
    }

    /// The next stream starts with the context of its own time, and with diagnostics that change after it opened.
    pub(crate) fn clear_state(&mut self) {
        self.context = None;
        self.diagnostics = ChangedDiagnostics::default();
    }

    pub(crate) fn push_mention(&mut self, message: Bytes) -> Result<(), OutboxFull> {
        if self.mentions.len() >= MAX_MENTIONS {
            return Err(OutboxFull);
        }
        self.mentions.push_back(message);
        Ok(())
    }

    /// Adds a decision, even beyond the limits: then the session has to end. `Ok(Some(..))` if the agent has it already.
    pub(crate) fn push(&mut self, outgoing: Outgoing, limits: &Limits) -> Result<Option<DeliveryId>, OutboxFull> {
        if let (Some(resumed), Some(delivery), true) = (self.resumed, outgoing.delivery, outgoing.repeated)
            && delivery <= resumed
        {
            return Ok(Some(delivery));
        }
        let is_queued = |queued: &QueuedDecision| queued.delivery.is_some() && queued.delivery == outgoing.delivery;
        if self.decisions.iter().any(is_queued) {
            return Ok(None);
        }
        let is_held = outgoing.repeated && self.is_holding();
        let is_opening = self.opening.contains(outgoing.decision.path());
        self.decisions.push_back(QueuedDecision {
            decision: outgoing.decision,
            delivery: outgoing.delivery,
            number: None,
            state: if is_opening {
                State::Blocked
            } else if is_held {
                State::Held
            } else {
                State::Due
            },
        });
        let (count, bytes) = self.measure(|state| state != State::Written);
        let fits = count <= limits.pending_decisions && (count == 1 || bytes <= limits.pending_bytes);
        if fits { Ok(None) } else { Err(OutboxFull) }
    }

    /// Takes the next event to write: decisions first, because the agent is waiting for them. Also returns the decisions that are
    /// no longer kept.
    pub(crate) fn next_event(&mut self, limits: &Limits) -> Option<(Event, Vec<DeliveryId>)> {
        let mut forgotten = Vec::new();
        let due = self.decisions.iter_mut().find(|queued| queued.state == State::Due);
        let (number, payload) = if let Some(queued) = due {
            queued.state = State::Written;
            let number = *queued.number.get_or_insert(self.next_number);
            let payload = Payload::Decision(queued.decision.clone());
            self.written = self.written.max(queued.delivery);
            forgotten = self.forget_oldest(limits);
            (number, payload)
        } else {
            let message = self.context.take().or_else(|| self.mentions.pop_front());
            let payload = message
                .map(Payload::Message)
                .or_else(|| self.diagnostics.take().map(Payload::Diagnostics))?;
            (self.next_number, payload)
        };
        self.next_number = self.next_number.max(number + 1);
        let id = EventId {
            epoch: self.epoch.clone(),
            delivery: self.confirmable(),
            outbox: self.name.clone(),
            number,
        };
        Some((Event { id, payload }, forgotten))
    }

    /// All decisions up to this delivery were written.
    fn confirmable(&self) -> u64 {
        let unwritten = self.decisions.iter().filter(|queued| queued.state != State::Written);
        let first_unwritten = unwritten.filter_map(|queued| queued.delivery).min();
        let written = self.written.max(self.resumed).map_or(0, |delivery| delivery.0);
        first_unwritten.map_or(written, |first| written.min(first.0.saturating_sub(1)))
    }

    /// A new stream opens; `last_event_id` is the last event that arrived. Returns the decisions that arrived with it.
    pub(crate) fn reopen(&mut self, last_event_id: Option<&str>) -> Vec<DeliveryId> {
        self.is_past_hold = false;
        let Some(confirmed) = last_event_id.and_then(|id| self.parse(id)) else {
            for queued in self
                .decisions
                .iter_mut()
                .filter(|queued| queued.state == State::Written)
            {
                // Events that come before it now must not confirm it.
                (queued.state, queued.number) = (State::Held, None);
            }
            return Vec::new();
        };
        if let Confirmed::Delivery(delivery) = confirmed {
            self.resumed = self.resumed.max(Some(delivery));
        }
        let arrived = self.remove(|queued| match confirmed {
            Confirmed::Event(last) => queued.number.is_some_and(|number| number <= last),
            Confirmed::Delivery(last) => queued.delivery.is_some_and(|delivery| delivery <= last),
        });
        // What is held was not part of the stream with this id, so it may have arrived before that.
        for queued in self
            .decisions
            .iter_mut()
            .filter(|queued| queued.state == State::Written)
        {
            queued.state = State::Due;
        }
        arrived
    }

    /// The stream has been open for a moment: the agent has had the time to show that it has what is held.
    pub(crate) fn end_hold(&mut self) {
        self.is_past_hold = true;
        self.release_held();
    }

    /// Whether [`next_event`](Self::next_event) has one.
    pub(crate) fn has_event(&self) -> bool {
        self.context.is_some()
            || !self.mentions.is_empty()
            || !self.diagnostics.is_empty()
            || self.decisions.iter().any(|queued| queued.state == State::Due)
    }

    /// The agent's requests may show that it has what is held.
    pub(crate) fn set_requesting(&mut self, is_requesting: bool) {
        self.is_requesting = is_requesting;
        self.release_held();
    }

    fn release_held(&mut self) {
        if self.is_holding() {
            return;
        }
        for queued in self.decisions.iter_mut().filter(|queued| queued.state == State::Held) {
            queued.state = State::Due;
        }
    }

    fn is_holding(&self) -> bool {
        self.is_requesting || !self.is_past_hold
    }

    /// The agent closed a review: decisions written about it have arrived or no longer matter. Returns them.
    pub(crate) fn acknowledge(&mut self, file_path: &str) -> Vec<DeliveryId> {
        self.remove(|queued| queued.state != State::Due && &**queued.decision.path() == file_path)
    }

    /// The agent proposes a file, and has closed a previous proposal of it on its own. A decision about that, even one that is yet
    /// to come, would decide the new one unseen, so none is written until [`supersede`](Self::supersede).
    pub(crate) fn begin_open(&mut self, file_path: &Arc<str>) {
        self.opening.push(file_path.clone());
        for queued in self
            .decisions
            .iter_mut()
            .filter(|queued| queued.decision.path() == file_path)
        {
            queued.state = State::Blocked;
        }
    }

    /// The new proposal is a review: decisions from now on are about it.
    pub(crate) fn supersede(&mut self, file_path: &str) {
        self.remove(|queued| &**queued.decision.path() == file_path);
        self.opening.retain(|opening| &**opening != file_path);
    }

    /// The proposal was answered. If it was refused, decisions about the previous one are not written on this stream any more: the
    /// agent no longer waits for them. They are kept, because the agent may not have received the refusal.
    pub(crate) fn end_open(&mut self, file_path: &str) {
        if let Some(index) = self.opening.iter().position(|opening| &**opening == file_path) {
            self.opening.swap_remove(index);
        }
        if self.opening.iter().any(|opening| &**opening == file_path) {
            return;
        }
        let blocked = self
            .decisions
            .iter_mut()
            .filter(|queued| queued.state == State::Blocked);
        for queued in blocked.filter(|queued| &**queued.decision.path() == file_path) {
            queued.state = State::Written;
        }
    }

    fn remove(&mut self, which: impl Fn(&QueuedDecision) -> bool) -> Vec<DeliveryId> {
        let mut removed = Vec::new();
        self.decisions.retain(|queued| {
            let is_removed = which(queued);
            if is_removed {
                removed.extend(queued.delivery);
            }
            !is_removed
        });
        removed
    }

    pub(crate) fn undelivered(&self) -> usize {
        self.measure(|state| state != State::Written).0
    }

    /// The decisions that this outbox never wrote.
    pub(crate) fn unwritten(&self) -> Vec<DeliveryId> {
        let unwritten = self.decisions.iter().filter(|queued| queued.number.is_none());
        unwritten.filter_map(|queued| queued.delivery).collect()
    }

    fn parse(&self, id: &str) -> Option<Confirmed> {
        let id = EventId::parse(id).filter(|id| id.epoch == self.epoch)?;
        if id.outbox != self.name {
            return Some(Confirmed::Delivery(DeliveryId(id.delivery)));
        }
        (id.number < self.next_number).then_some(Confirmed::Event(id.number))
    }

    /// Keeps written decisions within their limits; returns those that are no longer kept.
    fn forget_oldest(&mut self, limits: &Limits) -> Vec<DeliveryId> {
        let mut forgotten = Vec::new();
        loop {
            let (count, bytes) = self.measure(|state| state == State::Written);
            let fits = count <= limits.unacknowledged_decisions && bytes <= limits.unacknowledged_bytes;
            if fits || count <= 1 {
                return forgotten;
            }
            let oldest = self.decisions.iter().position(|queued| queued.state == State::Written);
            let Some(oldest) = oldest.and_then(|oldest| self.decisions.remove(oldest)) else {
                return forgotten;
            };
            forgotten.extend(oldest.delivery);
        }
    }

    fn measure(&self, which: impl Fn(State) -> bool) -> (usize, usize) {
        self.decisions
            .iter()
            .filter(|queued| which(queued.state))
            .fold((0, 0), |(count, bytes), queued| {
                (count + 1, bytes + companion::size(&queued.decision))
            })
    }
}

#[cfg(test)]
mod tests;
