//! The events that a session has not received yet.
//!
//! There are two kinds. The *context* is a state: only the latest matters, so it has one slot. A *decision* is an event: it is
//! written in order, and kept until the agent has shown that it arrived, in case the connection broke on the way.
//!
//! Every event has an id `<epoch>-<delivery>-<outbox>-<number>`. The last two name the event; the outbox is random. The first two
//! survive a restart: all decisions of the session up to that delivery came before this event. A stream that opens with
//! `Last-Event-ID` so confirms what arrived, and everything else is written again, under its old id. A stream that opens
//! without a usable one confirms nothing, so everything is written again, but what may have arrived only after a moment: if the
//! agent has it and is just proposing the same file again, the repetition would hit the new proposal.

use std::collections::VecDeque;
use std::sync::Arc;

use alongside_core::{Decision, DeliveryId};
use bytes::{BufMut, Bytes, BytesMut};

use crate::companion::{self, Outgoing};
use crate::config::Limits;

pub(crate) struct Outbox {
    epoch: Arc<str>,
    name: Arc<str>,
    next_number: u64,
    context: Option<Bytes>,
    decisions: VecDeque<QueuedDecision>,
    /// The files that the agent is just proposing.
    opening: Vec<Arc<str>>,
    /// The latest delivery that was written.
    written: Option<DeliveryId>,
    /// Whether the open stream is past the moment in which decisions are held.
    is_settled: bool,
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
    /// About the previous proposal of a file that the agent is just proposing again.
    Blocked,
    /// To be written again in a moment, unless the agent shows before that it has it.
    Held,
    Written,
}

/// An event to write. Encoded outside of the lock, because a decision may be long.
pub(crate) struct Event {
    epoch: Arc<str>,
    delivery: u64,
    outbox: Arc<str>,
    number: u64,
    payload: Payload,
}

enum Payload {
    Context(Bytes),
    Decision(Decision),
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
            decisions: VecDeque::new(),
            opening: Vec::new(),
            written: None,
            is_settled: false,
            resumed: None,
        }
    }

    /// Replaces a context that was not written yet.
    pub(crate) fn set_context(&mut self, message: Bytes) {
        self.context = Some(message);
    }

    /// The next stream starts with the context of its own time.
    pub(crate) fn clear_context(&mut self) {
        self.context = None;
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
        let may_be_known = self.resumed.is_none() || outgoing.delivery.is_none();
        let is_held = outgoing.repeated && may_be_known && !self.is_settled;
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
            (self.next_number, Payload::Context(self.context.take()?))
        };
        self.next_number = self.next_number.max(number + 1);
        let event = Event {
            epoch: self.epoch.clone(),
            delivery: self.confirmable(),
            outbox: self.name.clone(),
            number,
            payload,
        };
        Some((event, forgotten))
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
        self.is_settled = false;
        let Some(confirmed) = last_event_id.and_then(|id| self.parse(id)) else {
            for queued in self
                .decisions
                .iter_mut()
                .filter(|queued| queued.state == State::Written)
            {
                queued.state = State::Held;
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
        for queued in self
            .decisions
            .iter_mut()
            .filter(|queued| queued.state != State::Blocked)
        {
            queued.state = State::Due;
        }
        arrived
    }

    /// Writes held decisions, too: the agent has had the time to show that it has them.
    pub(crate) fn release_held(&mut self) {
        self.is_settled = true;
        for queued in self.decisions.iter_mut().filter(|queued| queued.state == State::Held) {
            queued.state = State::Due;
        }
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

    /// The proposal was answered. If it was refused, decisions about the previous one are not written on this stream any more: nobody
    /// is waiting for them. They are kept, because the agent may not have received the refusal.
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
        let mut parts = id.split('-');
        let (epoch, delivery) = (parts.next()?, parts.next()?.parse().ok()?);
        let (outbox, number) = (parts.next()?, parts.next()?.parse().ok()?);
        if parts.next().is_some() || epoch != &*self.epoch {
            return None;
        }
        if outbox != &*self.name {
            return Some(Confirmed::Delivery(DeliveryId(delivery)));
        }
        (number < self.next_number).then_some(Confirmed::Event(number))
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

impl Event {
    #[cfg(test)]
    pub(crate) fn context(&self) -> Option<&Bytes> {
        match &self.payload {
            Payload::Context(message) => Some(message),
            Payload::Decision(_) => None,
        }
    }

    /// The event in wire format. The data is one line and never empty: Gemini CLI disconnects on empty data.
    pub(crate) fn encode(&self) -> Result<Bytes, serde_json::Error> {
        let message;
        let data: &[u8] = match &self.payload {
            Payload::Context(context) => context,
            Payload::Decision(decision) => {
                message = companion::to_json(decision)?;
                &message
            }
        };
        let Self {
            epoch,
            delivery,
            outbox,
            number,
            ..
        } = self;
        let head = format!("id: {epoch}-{delivery}-{outbox}-{number}\ndata: ");
        let mut bytes = BytesMut::with_capacity(head.len() + data.len() + 2);
        bytes.put_slice(head.as_bytes());
        bytes.put_slice(data);
        bytes.put_slice(b"\n\n");
        Ok(bytes.freeze())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn rejected(file_path: &str) -> Outgoing {
        Decision::Rejected { path: file_path.into() }.into()
    }

    fn accepted(file_path: &str, length: usize) -> Outgoing {
        let content = "x".repeat(length).into();
        let path = file_path.into();
        Decision::Accepted { path, content }.into()
    }

    fn numbered(number: u64, file_path: &str) -> Outgoing {
        Outgoing {
            delivery: Some(DeliveryId(number)),
            ..rejected(file_path)
        }
    }

    /// As it is sent by a companion that was restarted.
    fn repeated(number: u64, file_path: &str) -> Outgoing {
        Outgoing {
            repeated: true,
            ..numbered(number, file_path)
        }
    }

    fn outbox() -> Outbox {
        Outbox::new("epoch".into(), "box")
    }

    fn written(outbox: &mut Outbox, limits: &Limits) -> Vec<String> {
        std::iter::from_fn(|| outbox.next_event(limits))
            .map(|(event, _)| String::from_utf8(event.encode().unwrap().to_vec()).unwrap())
            .map(|event| event.trim_end().replace("\ndata: ", " "))
            .collect()
    }

    fn paths(outbox: &mut Outbox, limits: &Limits) -> Vec<String> {
        let path = |(event, _): (Event, _)| match event.payload {
            Payload::Decision(decision) => decision.path().to_string(),
            Payload::Context(_) => "context".to_owned(),
        };
        std::iter::from_fn(|| outbox.next_event(limits)).map(path).collect()
    }

    #[test]
    fn latest_context_wins() {
        let mut outbox = outbox();
        for text in ["1", "2", "3"] {
            outbox.set_context(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!(written(&mut outbox, &Limits::default()), ["id: epoch-0-box-1 3"]);
    }

    #[test]
    fn decisions_keep_order_and_precede_context() {
        let mut outbox = outbox();
        outbox.set_context(Bytes::from_static(b"{}"));
        for path in ["/a", "/b", "/a"] {
            outbox.push(rejected(path), &Limits::default()).unwrap();
        }
        assert_eq!(paths(&mut outbox, &Limits::default()), ["/a", "/b", "/a", "context"]);
    }

    #[test]
    fn unacknowledged_decision_is_repeated_with_its_id() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(rejected("/a"), &limits).unwrap();
        outbox.push(rejected("/b"), &limits).unwrap();
        let first = written(&mut outbox, &limits);
        outbox.reopen(Some("epoch-0-box-1"));
        assert_eq!(written(&mut outbox, &limits), first[1..]);
        outbox.set_context(Bytes::from_static(b"{}"));
        assert_eq!(written(&mut outbox, &limits), ["id: epoch-0-box-3 {}"]);
    }

    #[test]
    fn stream_without_a_usable_last_event_id_repeats_everything_after_a_moment() {
        let limits = Limits::default();
        for id in [
            None,
            Some("other-0-box-0"),
            Some("epoch-0-box-2"),
            Some("epoch-x-box-0"),
            Some("epoch-1"),
            Some("1"),
        ] {
            let mut outbox = outbox();
            outbox.push(rejected("/a"), &limits).unwrap();
            assert_eq!(paths(&mut outbox, &limits), ["/a"]);
            outbox.push(rejected("/b"), &limits).unwrap();
            outbox.reopen(id);
            assert_eq!(paths(&mut outbox, &limits), ["/b"], "{id:?}");
            outbox.release_held();
            assert_eq!(paths(&mut outbox, &limits), ["/a"], "{id:?}");
        }
    }

    #[test]
    fn held_decision_is_not_repeated_when_the_agent_proposes_the_file_again() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(rejected("/a"), &limits).unwrap();
        paths(&mut outbox, &limits);
        outbox.reopen(None);
        outbox.supersede("/a");
        outbox.release_held();
        assert!(paths(&mut outbox, &limits).is_empty());
    }

    #[test]
    fn decision_about_the_previous_proposal_does_not_reach_the_new_one() {
        let limits = Limits::default();
        let mut outbox = outbox();
        let path: Arc<str> = "/a".into();
        outbox.push(rejected("/a"), &limits).unwrap();
        outbox.begin_open(&path);
        outbox.push(accepted("/a", 1), &limits).unwrap();
        assert!(
            paths(&mut outbox, &limits).is_empty(),
            "both are about the previous one"
        );
        outbox.supersede("/a");
        outbox.push(rejected("/a"), &limits).unwrap();
        assert_eq!(paths(&mut outbox, &limits), ["/a"], "about the new one");
        outbox.end_open("/a");
        assert!(paths(&mut outbox, &limits).is_empty());
    }

    #[test]
    fn decision_about_the_previous_proposal_waits_for_the_next_stream_when_the_new_one_is_refused() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(numbered(1, "/a"), &limits).unwrap();
        outbox.begin_open(&"/a".into());
        outbox.push(numbered(2, "/a"), &limits).unwrap();
        outbox.end_open("/a");
        assert!(paths(&mut outbox, &limits).is_empty());
        outbox.reopen(None);
        outbox.release_held();
        assert_eq!(paths(&mut outbox, &limits), ["/a", "/a"]);
    }

    #[test]
    fn id_from_before_a_restart_confirms_the_deliveries_up_to_it() {
        let limits = Limits::default();
        let mut before = outbox();
        before.push(numbered(3, "/a"), &limits).unwrap();
        let last = written(&mut before, &limits).remove(0);
        assert!(last.starts_with("id: epoch-3-box-1 "), "{last}");

        // The stream opens before the companion sends what it restored.
        let mut after = Outbox::new("epoch".into(), "other");
        assert!(after.reopen(Some("epoch-3-box-1")).is_empty());
        assert_eq!(after.push(repeated(3, "/a"), &limits), Ok(Some(DeliveryId(3))));
        assert_eq!(after.push(repeated(4, "/b"), &limits), Ok(None));
        assert_eq!(paths(&mut after, &limits), ["/b"]);

        // The other way round.
        let mut after = Outbox::new("epoch".into(), "other");
        after.push(repeated(3, "/a"), &limits).unwrap();
        after.push(repeated(4, "/b"), &limits).unwrap();
        assert_eq!(after.reopen(Some("epoch-3-box-1")), [DeliveryId(3)]);
        assert_eq!(paths(&mut after, &limits), ["/b"]);
    }

    #[test]
    fn delivery_is_queued_once() {
        let limits = Limits::default();
        let mut outbox = outbox();
        for _ in 0..2 {
            outbox.push(numbered(1, "/a"), &limits).unwrap();
        }
        assert_eq!(paths(&mut outbox, &limits), ["/a"]);
        outbox.push(numbered(1, "/a"), &limits).unwrap();
        assert!(paths(&mut outbox, &limits).is_empty());
    }

    #[test]
    fn event_confirms_no_decision_that_is_held() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(repeated(3, "/a"), &limits).unwrap();
        outbox.push(numbered(9, "/b"), &limits).unwrap();
        let first = written(&mut outbox, &limits).remove(0);
        assert!(first.starts_with("id: epoch-2-box-1 "), "{first}");
        outbox.release_held();
        let second = written(&mut outbox, &limits).remove(0);
        assert!(second.starts_with("id: epoch-9-box-2 "), "{second}");
    }

    #[test]
    fn closing_a_review_acknowledges_written_decisions() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(rejected("/a"), &limits).unwrap();
        outbox.push(rejected("/b"), &limits).unwrap();
        paths(&mut outbox, &limits);
        outbox.push(rejected("/a"), &limits).unwrap();
        assert!(outbox.acknowledge("/a").is_empty(), "neither has a delivery");
        outbox.reopen(Some("epoch-0-box-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/b", "/a"]);
    }

    #[test]
    fn new_review_drops_decisions_about_the_previous_one() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(accepted("/a", 1), &limits).unwrap();
        outbox.push(rejected("/b"), &limits).unwrap();
        outbox.supersede("/a");
        assert_eq!(paths(&mut outbox, &limits), ["/b"]);
    }

    #[test]
    fn too_many_decisions_end_the_session() {
        let limits = Limits {
            pending_decisions: 2,
            ..Limits::default()
        };
        let mut outbox = outbox();
        assert_eq!(outbox.push(rejected("/a"), &limits), Ok(None));
        assert_eq!(outbox.push(rejected("/b"), &limits), Ok(None));
        assert_eq!(outbox.push(rejected("/c"), &limits), Err(OutboxFull));
        assert_eq!(outbox.undelivered(), 3);
    }

    #[test]
    fn single_decision_may_exceed_the_byte_limit() {
        let limits = Limits {
            pending_bytes: 10,
            ..Limits::default()
        };
        let mut outbox = outbox();
        assert_eq!(outbox.push(accepted("/a", 100), &limits), Ok(None));
        assert_eq!(outbox.push(rejected("/b"), &limits), Err(OutboxFull));
    }

    #[test]
    fn written_decisions_stay_within_their_limits() {
        let limits = Limits {
            unacknowledged_decisions: 2,
            unacknowledged_bytes: 100,
            ..Limits::default()
        };
        let mut outbox = outbox();
        for path in ["/a", "/b", "/c"] {
            outbox.push(rejected(path), &limits).unwrap();
        }
        paths(&mut outbox, &limits);
        outbox.reopen(Some("epoch-0-box-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/b", "/c"]);
        outbox.push(accepted("/long", 1000), &limits).unwrap();
        paths(&mut outbox, &limits);
        outbox.reopen(Some("epoch-0-box-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/long"]);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Decide,
        ChangeContext,
        Write,
        /// The connection breaks, the last events are lost, and the agent reconnects.
        Break(usize),
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            1 => Just(Step::Decide),
            1 => Just(Step::ChangeContext),
            3 => Just(Step::Write),
            1 => (0_usize..4).prop_map(Step::Break),
        ]
    }

    proptest! {
        #[test]
        fn each_decision_arrives_once_and_in_order(
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let limits = Limits::default();
            let mut outbox = outbox();
            let mut decided = 0;
            // What the agent received: the number of an event and the path of a decision.
            let mut arrived: Vec<(u64, Option<String>)> = Vec::new();
            // It received the first context, so it always has an id to reconnect with.
            let mut safe = 1;
            outbox.set_context(Bytes::from_static(b"{}"));
            let all_written = std::iter::repeat_n(Step::Write, 100);
            for step in std::iter::once(Step::Write).chain(steps).chain(all_written) {
                match step {
                    Step::Decide => {
                        outbox.push(rejected(&decided.to_string()), &limits).unwrap();
                        decided += 1;
                    }
                    Step::ChangeContext => outbox.set_context(Bytes::from_static(b"{}")),
                    Step::Write => arrived.extend(outbox.next_event(&limits).map(|(event, _)| match event.payload {
                        Payload::Decision(decision) => (event.number, Some(decision.path().to_string())),
                        Payload::Context(_) => (event.number, None),
                    })),
                    Step::Break(lost) => {
                        // Events of an earlier stream can no longer be lost.
                        arrived.truncate(arrived.len().saturating_sub(lost).max(safe));
                        safe = arrived.len();
                        let last = arrived.last().map(|(number, _)| format!("epoch-0-box-{number}"));
                        outbox.reopen(last.as_deref());
                    }
                }
            }
            let numbers: Vec<u64> = arrived.iter().map(|(number, _)| *number).collect();
            prop_assert!(numbers.is_sorted_by(|left, right| left < right), "{:?}", numbers);
            let paths: Vec<String> = arrived.into_iter().filter_map(|(_, path)| path).collect();
            let expected: Vec<String> = (0..decided).map(|number: i32| number.to_string()).collect();
            prop_assert_eq!(paths, expected);
        }
    }
}
