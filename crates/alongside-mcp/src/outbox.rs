//! The events that a session has not received yet.
//!
//! There are two kinds. The *context* is a state: only the latest matters, so it has one slot. A *decision* is an event: each
//! is written once, in order, and then kept for a while in case the connection broke on the way.
//!
//! Every event has an id `<epoch>-<number>`. A stream that opens with `Last-Event-ID` acknowledges what arrived: decisions up
//! to it are forgotten, and later ones are written again under their old ids. The epoch is random for each outbox, so an id
//! from before a restart acknowledges nothing. A stream that opens without the header repeats nothing: the agent could not
//! distinguish a repeated decision from a new one.

use std::collections::VecDeque;
use std::sync::Arc;

use alongside_core::Decision;
use bytes::{BufMut, Bytes, BytesMut};

use crate::companion;
use crate::config::Limits;

pub(crate) struct Outbox {
    epoch: Arc<str>,
    next_number: u64,
    context: Option<Bytes>,
    decisions: VecDeque<QueuedDecision>,
}

struct QueuedDecision {
    decision: Decision,
    /// The number of its event; `None` until it is written.
    number: Option<u64>,
    /// Still to be written, for the first time or again.
    due: bool,
}

/// An event to write. Encoded outside of the lock, because a decision may be long.
pub(crate) struct Event {
    epoch: Arc<str>,
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

impl Outbox {
    /// `epoch` must be unique.
    pub(crate) fn new(epoch: impl Into<Arc<str>>) -> Self {
        Self {
            epoch: epoch.into(),
            next_number: 1,
            context: None,
            decisions: VecDeque::new(),
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

    /// Adds a decision, even beyond the limits: then the session has to end, and returns it as undelivered.
    pub(crate) fn push(&mut self, decision: Decision, limits: &Limits) -> Result<(), OutboxFull> {
        self.decisions.push_back(QueuedDecision {
            decision,
            number: None,
            due: true,
        });
        let (count, bytes) = self.measure(|decision| decision.due);
        let fits = count <= limits.pending_decisions && (count == 1 || bytes <= limits.pending_bytes);
        if fits { Ok(()) } else { Err(OutboxFull) }
    }

    /// Takes the next event to write: decisions first, because the agent is waiting for them.
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

    /// A new stream opens; `last_event_id` is the last event that arrived.
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

    /// The agent closed a review: decisions written about it have arrived or no longer matter.
    pub(crate) fn acknowledge(&mut self, file_path: &str) {
        self.decisions
            .retain(|decision| decision.due || &**decision.decision.path() != file_path);
    }

    /// The agent opened a new review of a file. It has closed the previous one on its own, so a decision about that, even a
    /// pending one, would decide the new review unseen.
    pub(crate) fn supersede(&mut self, file_path: &str) {
        self.decisions
            .retain(|decision| &**decision.decision.path() != file_path);
    }

    pub(crate) fn undelivered(&self) -> usize {
        self.measure(|decision| decision.due).0
    }

    pub(crate) fn take_undelivered(&mut self) -> Vec<Decision> {
        self.decisions
            .drain(..)
            .filter(|decision| decision.due)
            .map(|decision| decision.decision)
            .collect()
    }

    /// The number in an event id that this outbox issued.
    fn number_of(&self, id: &str) -> Option<u64> {
        let (epoch, number) = id.rsplit_once('-')?;
        let number = number.parse().ok()?;
        (epoch == &*self.epoch && number < self.next_number).then_some(number)
    }

    /// Keeps written decisions within their limits.
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
    fn latest_context_wins() {
        let mut outbox = outbox();
        for text in ["1", "2", "3"] {
            outbox.set_context(Bytes::from_static(text.as_bytes()));
        }
        assert_eq!(written(&mut outbox, &Limits::default()), ["id: epoch-1 3"]);
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
        outbox.reopen(Some("epoch-1"));
        assert_eq!(written(&mut outbox, &limits), first[1..]);
        outbox.set_context(Bytes::from_static(b"{}"));
        assert_eq!(written(&mut outbox, &limits), ["id: epoch-3 {}"]);
    }

    #[test]
    fn unknown_last_event_id_changes_nothing() {
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
    fn closing_a_review_acknowledges_written_decisions() {
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
    fn new_review_drops_decisions_about_the_previous_one() {
        let limits = Limits::default();
        let mut outbox = outbox();
        outbox.push(accepted("/a", 1), &limits).unwrap();
        outbox.push(rejected("/b"), &limits).unwrap();
        outbox.supersede("/a");
        assert_eq!(paths(&mut outbox, &limits), ["/b"]);
    }

    #[test]
    fn too_many_decisions_are_returned_as_undelivered() {
        let limits = Limits {
            pending_decisions: 2,
            ..Limits::default()
        };
        let mut outbox = outbox();
        assert_eq!(outbox.push(rejected("/a"), &limits), Ok(()));
        assert_eq!(outbox.push(rejected("/b"), &limits), Ok(()));
        assert_eq!(outbox.push(rejected("/c"), &limits), Err(OutboxFull));
        assert_eq!(outbox.take_undelivered().len(), 3);
    }

    #[test]
    fn single_decision_may_exceed_the_byte_limit() {
        let limits = Limits {
            pending_bytes: 10,
            ..Limits::default()
        };
        let mut outbox = outbox();
        assert_eq!(outbox.push(accepted("/a", 100), &limits), Ok(()));
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
        outbox.reopen(Some("epoch-0"));
        assert_eq!(paths(&mut outbox, &limits), ["/b", "/c"]);
        outbox.push(accepted("/long", 1000), &limits).unwrap();
        paths(&mut outbox, &limits);
        outbox.reopen(Some("epoch-0"));
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
                    Step::Write => arrived.extend(outbox.next_event(&limits).map(|event| match event.payload {
                        Payload::Decision(decision) => (event.number, Some(decision.path().to_string())),
                        Payload::Context(_) => (event.number, None),
                    })),
                    Step::Break(lost) => {
                        // Events of an earlier stream can no longer be lost.
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
