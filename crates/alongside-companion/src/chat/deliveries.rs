//! The prompts that front ends gave an id, so that a repeated one is not sent twice.

use std::collections::VecDeque;

use alongside_protocol::chat::{AgentEvent, ContentBlock};
use serde::{Deserialize, Serialize};

use super::log::Log;

/// How many prompts are remembered.
const MAX_DELIVERIES: usize = 64;

/// What became of a prompt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Delivery {
    /// The front end's.
    pub(super) id: String,
    #[serde(flatten)]
    pub(super) outcome: Outcome,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "outcome", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(super) enum Outcome {
    /// The prompt may have been received. `after` is the last prompt in the log before it.
    Unknown {
        after: Option<String>,
    },
    Accepted {
        prompt_id: String,
    },
    /// The prompt was not received.
    Failed,
}

#[derive(Debug, Default)]
#[cfg_attr(test, derive(PartialEq))]
pub(super) struct Deliveries {
    recent: VecDeque<Delivery>,
}

impl Deliveries {
    pub(super) fn set(&mut self, delivery: Delivery) {
        self.recent.retain(|known| known.id != delivery.id);
        if delivery.outcome == Outcome::Failed {
            return;
        }
        if self.recent.len() == MAX_DELIVERIES {
            self.recent.pop_front();
        }
        self.recent.push_back(delivery);
    }

    pub(super) fn get(&self, id: &str) -> Option<&Outcome> {
        let found = self.recent.iter().find(|known| known.id == id);
        found.map(|known| &known.outcome)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Delivery> {
        self.recent.iter()
    }
}

/// The prompts that the log got last, including those that it no longer has: a queued message that is removed, or sent during the
/// turn, takes its event along.
#[derive(Debug, Default)]
pub(super) struct RecentPrompts(VecDeque<String>);

impl RecentPrompts {
    pub(super) fn add(&mut self, prompt_id: &str) {
        if self.0.len() == MAX_DELIVERIES {
            self.0.pop_front();
        }
        self.0.push_back(prompt_id.to_owned());
    }

    pub(super) fn contain(&self, prompt_id: &str) -> bool {
        self.0.iter().any(|recent| recent == prompt_id)
    }
}

fn accepted(log: &Log) -> impl Iterator<Item = (&str, &str)> {
    log.events().rev().filter_map(|event| match &**event {
        AgentEvent::PromptAccepted { prompt_id, text } => Some((prompt_id.as_str(), text.as_str())),
        AgentEvent::MidTurnMessage {
            message_id: Some(id),
            blocks,
            own: true,
            ..
        } => Some((
            id.as_str(),
            blocks.first().and_then(ContentBlock::as_text).unwrap_or_default(),
        )),
        _ => None,
    })
}

/// The last prompt in the log.
pub(super) fn last_accepted(log: &Log) -> Option<String> {
    accepted(log).next().map(|(prompt_id, _)| prompt_id.to_owned())
}

/// The prompt with this content that the log has after the prompt `after`.
pub(super) fn find_accepted(log: &Log, after: Option<&str>, blocks: &[ContentBlock]) -> Option<String> {
    let first = blocks.first().and_then(ContentBlock::as_text).unwrap_or_default();
    let whole = ContentBlock::text_of_all(blocks);
    let mut found = None;
    for (prompt_id, text) in accepted(log) {
        if Some(prompt_id) == after {
            return found;
        }
        if text == first || text == whole {
            found = Some(prompt_id.to_owned());
        }
    }
    // The log no longer has `after`, so an older prompt could be the one that was found.
    found.filter(|_| after.is_none())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn delivery(id: &str, outcome: Outcome) -> Delivery {
        let id = id.to_owned();
        Delivery { id, outcome }
    }

    #[test]
    fn recent_deliveries_are_bounded_and_failed_ones_forgotten() {
        let mut deliveries = Deliveries::default();
        for number in 0..=MAX_DELIVERIES {
            deliveries.set(delivery(&number.to_string(), Outcome::Unknown { after: None }));
        }
        assert_eq!(deliveries.get("0"), None);
        let prompt_id = "p".to_owned();
        deliveries.set(delivery("1", Outcome::Accepted { prompt_id }));
        assert!(matches!(deliveries.get("1"), Some(Outcome::Accepted { .. })));
        deliveries.set(delivery("1", Outcome::Failed));
        assert_eq!(deliveries.get("1"), None);
        assert_eq!(deliveries.iter().count(), MAX_DELIVERIES - 1);
    }

    #[test]
    fn accepted_prompt_is_found_after_the_previous_one_only() {
        let mut log = Log::default();
        for (prompt_id, text) in [("1", "same"), ("2", "other"), ("3", "same")] {
            let (prompt_id, text) = (prompt_id.to_owned(), text.to_owned());
            log.push(Arc::new(AgentEvent::PromptAccepted { prompt_id, text }));
        }
        let find = |after, text: &str| find_accepted(&log, after, &[text.into()]);
        assert_eq!(find(Some("2"), "same").as_deref(), Some("3"));
        assert_eq!(find(Some("3"), "same"), None);
        assert_eq!(find(Some("trimmed"), "same"), None);
        assert_eq!(find(None, "other").as_deref(), Some("2"));
        assert_eq!(last_accepted(&log).as_deref(), Some("3"));
    }
}
