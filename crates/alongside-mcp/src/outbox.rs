//! What a session has yet to hear.
//!
//! Two kinds of things, kept apart. The *context* is a state: only the latest matters, so it has one slot. A *decision* is an
//! event: each is written once, in order, and then kept for a while in case the connection broke while it was on its way.
//!
//! Every event has an id `<epoch>-<number>`. A stream that is opened with `Last-Event-ID` says what arrived: decisions up
//! to it are forgotten and later ones are written again, under their old ids. The epoch is drawn at random for each outbox, so an
//! id from before a restart says nothing about the decisions of today. A stream that is opened without the header repeats
//! nothing: the agent cannot tell a repeated decision from a new one.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::{BufMut, Bytes, BytesMut};

use crate::companion;
use crate::config::Limits;
use alongside_core::Decision;

/// The events of one session that are waiting, or not known to have arrived.
pub(crate) struct Outbox {
    epoch: Arc<str>,
    next_number: u64,
    context: Option<Bytes>,
    decisions: VecDeque<QueuedDecision>,
}

struct QueuedDecision {
    decision: Decision,
    /// Under which number it was first written; `None` if it never was.
    number: Option<u64>,
    /// Whether it is to be written, for the first time or again.
    due: bool,
}

/// An event that leaves the outbox; put into bytes outside of the lock, because a decision may be long.
pub(crate) struct Event {
    epoch: Arc<str>,
    number: u64,
    payload: Payload,
}

enum Payload {
    Context(Bytes),
    Decision(Decision),
}

/// More decisions wait than the limits allow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Overflow;

impl Outbox {
    /// An empty outbox. `epoch` must be new.
    pub(crate) fn new(epoch: impl Into<Arc<str>>) -> Self {
        Self {
            epoch: epoch.into(),
            next_number: 1,
            context: None,
            decisions: VecDeque::new(),
        }
    }

    /// Puts a context into the slot, in place of one that was not written yet.
    pub(crate) fn set_context(&mut self, message: Bytes) {
        self.context = Some(message);
    }

    /// Empties the slot: nobody listens, and whoever does next gets the context of that time.
    pub(crate) fn clear_context(&mut self) {
        self.context = None;
    }

    /// Adds a decision. It is kept even if it is one too many: then the session has to end and gets it handed back.
    pub(crate) fn push(&mut self, decision: Decision, limits: &Limits) -> Result<(), Overflow> {
        self.decisions.push_back(QueuedDecision {
            decision,
            number: None,
            due: true,
        });
        let (count, bytes) = self.measure(|decision| decision.due);
        let fits = count <= limits.pending_decisions && (count == 1 || bytes <= limits.pending_bytes);
        if fits { Ok(()) } else { Err(Overflow) }
    }

    /// Takes the next event to write: decisions first, a person is waiting for them.
    pub(crate) fn next_event(&mut self, limits: &Limits) -> Option<Event> {
        let due = self.decisions.iter_mut().find(|decision| decision.due);
        let (number, payload) = if let Some(decision) = due {
            decision.due = false;
            let number = *decision.number.get_or_insert(self.next_number);
            let payload = Payload::Decision(decision.decision.clone());
            self.forget_oldest(limits);
            (number, payload)
        } else {
            (self.next_number, Payload::Context(self.context.take()?))
        };
        self.next_number = self.next_number.max(number + 1);
        Some(Event {
            epoch: self.epoch.clone(),
            number,
            payload,
        })
    }

    /// A new stream opens and says what the last one brought.
    pub(crate) fn reopen(&mut self, last_event_id: Option<&str>) {
        let Some(arrived) = last_event_id.and_then(|id| self.number_of(id)) else {
            return;
        };
        self.decisions
            .retain(|decision| decision.number.is_none_or(|number| number > arrived));
        for decision in &mut self.decisions {
            decision.due = true;
        }
    }

    /// The agent asked to close a review: whatever was written about it has arrived or does not matter any more.
    pub(crate) fn acknowledge(&mut self, file_path: &str) {
        self.decisions
            .retain(|decision| decision.due || &**decision.decision.path() != file_path);
    }

    /// The agent opened a new review of a file. It has settled the former one by itself, so a decision about that, even
    /// one that still waits, would settle the new review without anybody having looked at it.
    pub(crate) fn supersede(&mut self, file_path: &str) {
        self.decisions
            .retain(|decision| &**decision.decision.path() != file_path);
    }

    /// How many decisions wait to be written.
    pub(crate) fn undelivered(&self) -> usize {
        self.measure(|decision| decision.due).0
    }

    /// Takes the decisions that wait to be written.
    pub(crate) fn take_undelivered(&mut self) -> Vec<Decision> {
        self.decisions
            .drain(..)
            .filter(|decision| decision.due)
            .map(|decision| decision.decision)
            .collect()
    }

    /// The number in an event id, if it is one that we issued.
    fn number_of(&self, id: &str) -> Option<u64> {
        let (epoch, number) = id.rsplit_once('-')?;
        let number = number.parse().ok()?;
        (epoch == &*self.epoch && number < self.next_number).then_some(number)
    }

    /// Holds what was written to its limits.
    fn forget_oldest(&mut self, limits: &Limits) {
        loop {
            let (count, bytes) = self.measure(|decision| !decision.due);
            let fits = count <= limits.unacknowledged_decisions && bytes <= limits.unacknowledged_bytes;
            if fits || count <= 1 {
                return;
            }
            let Some(oldest) = self.decisions.iter().position(|decision| !decision.due) else {
                return;
            };
            self.decisions.remove(oldest);
        }
    }

    fn measure(&self, which: impl Fn(&QueuedDecision) -> bool) -> (usize, usize) {
        self.decisions
            .iter()
            .filter(|decision| which(decision))
            .fold((0, 0), |(count, bytes), decision| {
                (count + 1, bytes + companion::size(&decision.decision))
            })
    }
}

impl Event {
    /// The event as it goes over the wire. The data is one line and never empty: Gemini CLI disconnects over an empty one.
    pub(crate) fn encode(&self) -> Result<Bytes, serde_json::Error> {
        let message;
        let data: &[u8] = match &self.payload {
            Payload::Context(message) => message,
            Payload::Decision(decision) => {
                message = companion::to_json(decision)?;
                &message
            }
        };
        let head = format!("id: {}-{}\ndata: ", self.epoch, self.number);
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

    fn rejected(file_path: &str) -> Decision {
        Decision::Rejected { path: file_path.into() }
    }

    fn accepted(file_path: &str, length: usize) -> Decision {
        Decision::Accepted {
            path: file_path.into(),
            content: "x".repeat(length).into(),
        }
    }

    fn outbox() -> Outbox {
        Outbox::new("epoch")
    }

    fn written(outbox: &mut Outbox, limits: &Limits) -> Vec<String> {
        std::iter::from_fn(|| outbox.next_event(limits))
            .map(|event| String::from_utf8(event.encode().unwrap().to_vec()).unwrap())
            .map(|event| event.trim_end().replace("\ndata: ", " "))
            .collect()
    }

    fn paths(outbox: &mut Outbox, limits: &Limits) -> Vec<String> {
        let path = |event: Event| match event.payload {
            Payload::Decision(decision) => decision.path().to_string(),
            Payload::Context(_) => "context".to_owned(),
        };
        std::iter::from_fn(|| outbox.next_event(limits)).map(path).collect()
    }

    #[test]
    fn the_latest_context_takes_the_one_slot() {
        let mut outbox = outbox();
        for text in ["1", "2", "3"] {
            outbox.set_context(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!(written(&mut outbox, &Limits::default()), ["id: epoch-1 3"]);
    }

    #[test]
    fn decisions_keep_their_order_and_go_before_the_context() {
        let mut outbox = outbox();
        outbox.set_context(Bytes::from_static(b"{}"));
        for path in ["/a", "/b", "/a"] {
            outbox.push(rejected(path), &Limits::default()).unwrap();
        }
        assert_eq!(paths(&mut outbox, &Limits::default()), ["/a", "/b", "/a", "context"]);
    }

    #[test]
    fn an_acknowledged_decision_is_forgotten_and_a_later_one_written_again_under_its_old_id() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(rejected("/a"), &limits).unwrap();
        outbox.push(rejected("/b"), &limits).unwrap();
        let first = written(&mut outbox, &limits);
        outbox.reopen(Some("epoch-1"));
        assert_eq!(written(&mut outbox, &limits), first[1..]);
        outbox.set_context(Bytes::from_static(b"{}"));
        assert_eq!(written(&mut outbox, &limits), ["id: epoch-3 {}"]);
    }

    #[test]
    fn without_a_usable_last_event_id_nothing_is_repeated_or_forgotten() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(rejected("/a"), &limits).unwrap();
        assert_eq!(paths(&mut outbox, &limits), ["/a"]);
        for id in [None, Some("other-0"), Some("epoch-2"), Some("epoch-x"), Some("1")] {
            outbox.reopen(id);
            assert!(paths(&mut outbox, &limits).is_empty(), "{id:?}");
        }
        outbox.reopen(Some("epoch-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/a"]);
    }

    #[test]
    fn closing_a_review_acknowledges_what_was_written_about_it() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(rejected("/a"), &limits).unwrap();
        outbox.push(rejected("/b"), &limits).unwrap();
        paths(&mut outbox, &limits);
        outbox.push(rejected("/a"), &limits).unwrap();
        outbox.acknowledge("/a");
        outbox.reopen(Some("epoch-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/b", "/a"]);
    }

    #[test]
    fn a_new_review_is_never_settled_by_a_decision_about_the_former_one() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(accepted("/a", 1), &limits).unwrap();
        outbox.push(rejected("/b"), &limits).unwrap();
        outbox.supersede("/a");
        assert_eq!(paths(&mut outbox, &limits), ["/b"]);
    }

    #[test]
    fn too_many_decisions_overflow_and_are_handed_back() {
        let limits = Limits {
            pending_decisions: 2,
            ..Limits::default()
        };
        let mut outbox = outbox();
        assert_eq!(outbox.push(rejected("/a"), &limits), Ok(()));
        assert_eq!(outbox.push(rejected("/b"), &limits), Ok(()));
        assert_eq!(outbox.push(rejected("/c"), &limits), Err(Overflow));
        assert_eq!(outbox.take_undelivered().len(), 3);
    }

    #[test]
    fn one_decision_may_be_as_long_as_it_likes() {
        let limits = Limits {
            pending_bytes: 10,
            ..Limits::default()
        };
        let mut outbox = outbox();
        assert_eq!(outbox.push(accepted("/a", 100), &limits), Ok(()));
        assert_eq!(outbox.push(rejected("/b"), &limits), Err(Overflow));
    }

    #[test]
    fn what_was_written_is_kept_within_its_limits() {
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
        outbox.reopen(Some("epoch-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/b", "/c"]);
        outbox.push(accepted("/long", 1000), &limits).unwrap();
        paths(&mut outbox, &limits);
        outbox.reopen(Some("epoch-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/long"]);
    }

    /// What may happen between a companion and an agent.
    #[derive(Clone, Debug)]
    enum Step {
        Decide,
        ChangeContext,
        Write,
        /// The connection breaks, this many of the last events never arrive, and the agent comes back.
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
        fn whatever_is_lost_on_the_way_each_decision_arrives_once_and_in_order(
            steps in prop::collection::vec(step(), 0..60),
        ) {
            let limits = Limits::default();
            let mut outbox = outbox();
            let mut decided = 0;
            // What the agent has: the number of an event and, of a decision, its path.
            let mut arrived: Vec<(u64, Option<String>)> = Vec::new();
            // It has heard the first context, so it always has an id to come back with.
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
                    Step::Write => arrived.extend(outbox.next_event(&limits).map(|event| match event.payload {
                        Payload::Decision(decision) => (event.number, Some(decision.path().to_string())),
                        Payload::Context(_) => (event.number, None),
                    })),
                    Step::Break(lost) => {
                        // What an earlier stream brought is not lost any more.
                        arrived.truncate(arrived.len().saturating_sub(lost).max(safe));
                        safe = arrived.len();
                        let last = arrived.last().map(|(number, _)| format!("epoch-{number}"));
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
