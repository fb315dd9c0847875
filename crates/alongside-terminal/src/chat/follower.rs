//! Follows the companion's log of the conversation by epoch and sequence number: no event is lost or applied twice.

use std::sync::Arc;

use alongside_protocol::{ChatEvent, ChatState};

use super::transcript::Transcript;

/// Events that are held while the state is being fetched. When there are more, it is fetched again.
const MAX_EARLY_EVENTS: usize = 4096;

#[derive(Default)]
pub(crate) struct Follower {
    pub(crate) shown: Transcript,
    epoch: Option<Arc<str>>,
    sequence: u64,
    early: Vec<ChatEvent>,
    is_fetching: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Applied {
    Next,
    Known,
    Early,
    /// Earlier events are missing: the state must be fetched.
    Gap,
}

impl Follower {
    /// The state is being fetched; events are held back until it arrives.
    pub(crate) fn start_fetch(&mut self) {
        self.is_fetching = true;
        self.early.clear();
    }

    /// Fetching failed: what is shown stays, and the next event causes another fetch.
    pub(crate) fn fetch_failed(&mut self) {
        self.is_fetching = false;
        self.early.clear();
        self.epoch = None;
    }

    /// Applies the fetched state. `false` if the held events do not continue it and it must be fetched again.
    pub(crate) fn apply_state(&mut self, state: &ChatState) -> bool {
        self.is_fetching = false;
        self.epoch = Some(state.epoch.clone());
        self.sequence = state.sequence;
        self.shown = Transcript::default();
        for event in &state.events {
            self.shown.fold(event);
        }
        let early = std::mem::take(&mut self.early);
        early.into_iter().all(|event| self.apply(event) != Applied::Gap)
    }

    pub(crate) fn apply(&mut self, event: ChatEvent) -> Applied {
        if self.is_fetching {
            if self.early.len() < MAX_EARLY_EVENTS {
                self.early.push(event);
            }
            return Applied::Early;
        }
        if self.epoch.as_ref() != Some(&event.epoch) {
            return Applied::Gap;
        }
        if event.sequence <= self.sequence {
            return Applied::Known;
        }
        if event.sequence != self.sequence + 1 {
            return Applied::Gap;
        }
        self.sequence = event.sequence;
        self.shown.fold(&event.event);
        Applied::Next
    }
}

#[cfg(test)]
mod tests {
    use alongside_protocol::chat::AgentEvent;
    use alongside_protocol::{ChatChanged, ChatPhase, ChatWrites};

    use super::*;

    fn event(epoch: &str, sequence: u64) -> ChatEvent {
        ChatEvent {
            epoch: epoch.into(),
            sequence,
            event: Arc::new(AgentEvent::Title {
                title: sequence.to_string(),
            }),
        }
    }

    fn state(sequence: u64) -> ChatState {
        ChatState {
            agents: Vec::new(),
            changed: ChatChanged {
                agent: None,
                phase: ChatPhase::Idle,
                writes: ChatWrites::Review,
            },
            epoch: "e".into(),
            sequence,
            events: Vec::new(),
        }
    }

    #[test]
    fn events_are_applied_once_and_in_order() {
        let mut follower = Follower::default();
        assert_eq!(follower.apply(event("e", 1)), Applied::Gap);
        follower.start_fetch();
        assert_eq!(follower.apply(event("e", 5)), Applied::Early);
        assert!(follower.apply_state(&state(4)));
        assert_eq!(follower.shown.title, "5");
        assert_eq!(follower.apply(event("e", 5)), Applied::Known);
        assert_eq!(follower.apply(event("e", 7)), Applied::Gap);
        assert_eq!(follower.apply(event("other", 6)), Applied::Gap);
        assert_eq!(follower.apply(event("e", 6)), Applied::Next);
    }

    #[test]
    fn held_events_that_do_not_continue_the_state_cause_another_fetch() {
        let mut follower = Follower::default();
        follower.start_fetch();
        follower.apply(event("e", 9));
        assert!(!follower.apply_state(&state(4)));
    }
}
