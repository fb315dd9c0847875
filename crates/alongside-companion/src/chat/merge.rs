//! Merges the shown conversation with the history of a restarted daemon.
//!
//! A daemon that was killed during an answer may not have recorded what it had sent, although the user has read it. So when its history
//! replaces what was shown, turns are matched by their prompt, and the longer answer of each stays. A turn that only one side has
//! stays too.

use alongside_protocol::chat::{AgentEvent, TurnEnd};

/// How many turns at the end are matched; before that, the history is used as it is.
const MAX_TURNS: usize = 1000;

/// The error of an answer that was cut off.
const CUT_OFF: &str = "the daemon restarted before the answer was complete";

/// A prompt and everything until the next one.
#[derive(Clone, Debug, Default)]
struct Turn {
    prompt: String,
    id: Option<String>,
    answer: String,
    events: Vec<AgentEvent>,
}

pub(super) fn merge(shown: Vec<AgentEvent>, history: Vec<AgentEvent>) -> Vec<AgentEvent> {
    let (before_shown, shown) = turns(shown);
    let (before, history) = turns(history);
    let mut merged = if before.is_empty() { before_shown } else { before };
    // Nearly always, the beginning is the same.
    let same = shown
        .iter()
        .zip(&history)
        .take_while(|(shown, history)| shown.prompt == history.prompt && shown.answer == history.answer)
        .count();
    let (mut shown, mut history) = (shown, history);
    merged.extend(history.drain(..same).flat_map(|turn| turn.events));
    shown.drain(..same);
    let unmatched = history.len().saturating_sub(MAX_TURNS);
    merged.extend(history.drain(..unmatched).flat_map(|turn| turn.events));
    shown.drain(..shown.len().saturating_sub(MAX_TURNS));
    let pairs = align(&shown, &history);
    let mut shown = shown.into_iter().map(Some).collect::<Vec<_>>();
    let mut history = history.into_iter().map(Some).collect::<Vec<_>>();
    for (one, other) in pairs {
        let one = one.and_then(|index| shown[index].take());
        let other = other.and_then(|index| history[index].take());
        let events = match (one, other) {
            (Some(shown), Some(history)) if shown.answer.trim_end().len() > history.answer.trim_end().len() => {
                shown.ended()
            }
            (_, Some(history)) => history.events,
            (Some(shown), None) => shown.ended(),
            (None, None) => Vec::new(),
        };
        merged.extend(events);
    }
    merged
}

impl Turn {
    /// The turn as it was shown, ended: nothing continues it.
    fn ended(mut self) -> Vec<AgentEvent> {
        let has_ended = |event: &AgentEvent| matches!(event, AgentEvent::TurnEnded { .. });
        if !self.events.iter().any(has_ended) {
            self.events.push(AgentEvent::TurnEnded {
                prompt_id: self.id,
                end: TurnEnd::Failed {
                    message: CUT_OFF.to_owned(),
                    code: None,
                },
            });
        }
        self.events
    }
}

/// The events before the first turn, and the turns.
fn turns(events: Vec<AgentEvent>) -> (Vec<AgentEvent>, Vec<Turn>) {
    let (mut before, mut turns) = (Vec::new(), Vec::<Turn>::new());
    for event in events {
        let id = event.prompt_id();
        let prompt = match &event {
            AgentEvent::PromptAccepted { text, .. } => Some(text.as_str()),
            AgentEvent::UserMessage { content, .. } => Some(content.as_text().unwrap_or_default()),
            _ => None,
        };
        // A message of several parts is several events with the same id.
        let continues = |turn: &Turn| id.is_some() && turn.id.as_deref() == id;
        if let Some(prompt) = prompt.filter(|_| !turns.last().is_some_and(continues)) {
            turns.push(Turn {
                prompt: prompt.to_owned(),
                id: id.map(str::to_owned),
                ..Turn::default()
            });
        }
        // Events of a turn may arrive after the next prompt.
        let index = turns.iter().rposition(continues).or_else(|| turns.len().checked_sub(1));
        let Some(turn) = index.map(|index| &mut turns[index]) else {
            before.push(event);
            continue;
        };
        if let AgentEvent::AssistantChunk { content, .. } = &event {
            turn.answer.push_str(content.as_text().unwrap_or_default());
        }
        turn.events.push(event);
    }
    (before, turns)
}

/// Matches turns in order: as many equal prompts as possible, preferring those whose answers fit too.
fn align(shown: &[Turn], history: &[Turn]) -> Vec<(Option<usize>, Option<usize>)> {
    let worth = |one: &Turn, other: &Turn| -> u32 {
        let (one_answer, other_answer) = (one.answer.trim_end(), other.answer.trim_end());
        match one.prompt.trim() == other.prompt.trim() {
            false => 0,
            true if other_answer.starts_with(one_answer) || one_answer.starts_with(other_answer) => 3,
            true => 2,
        }
    };
    let width = history.len() + 1;
    let mut best = vec![0_u32; (shown.len() + 1) * width];
    for one in (0..shown.len()).rev() {
        for other in (0..history.len()).rev() {
            let worth = worth(&shown[one], &history[other]);
            let matched = if worth > 0 {
                worth + best[(one + 1) * width + other + 1]
            } else {
                0
            };
            let skipped = best[(one + 1) * width + other].max(best[one * width + other + 1]);
            best[one * width + other] = matched.max(skipped);
        }
    }
    let (mut one, mut other, mut pairs) = (0, 0, Vec::new());
    while one < shown.len() || other < history.len() {
        let here = best[one * width + other];
        if one == shown.len() {
            pairs.push((None, Some(other)));
            other += 1;
        } else if other == history.len() {
            pairs.push((Some(one), None));
            one += 1;
        } else {
            let worth = worth(&shown[one], &history[other]);
            if worth > 0 && here == worth + best[(one + 1) * width + other + 1] {
                pairs.push((Some(one), Some(other)));
                (one, other) = (one + 1, other + 1);
            } else if here == best[(one + 1) * width + other] {
                pairs.push((Some(one), None));
                one += 1;
            } else {
                pairs.push((None, Some(other)));
                other += 1;
            }
        }
    }
    pairs
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn accepted(id: &str, text: &str) -> AgentEvent {
        AgentEvent::PromptAccepted {
            prompt_id: id.to_owned(),
            text: text.to_owned(),
        }
    }

    fn message(text: &str) -> AgentEvent {
        AgentEvent::UserMessage {
            prompt_id: None,
            content: text.into(),
        }
    }

    fn answer(id: Option<&str>, text: &str) -> AgentEvent {
        AgentEvent::AssistantChunk {
            prompt_id: id.map(str::to_owned),
            content: text.into(),
        }
    }

    fn end(id: &str) -> AgentEvent {
        AgentEvent::TurnEnded {
            prompt_id: Some(id.to_owned()),
            end: TurnEnd::Completed {
                stop_reason: "end_turn".to_owned(),
            },
        }
    }

    /// Prompt and answer of each turn.
    fn said(events: Vec<AgentEvent>) -> Vec<(String, String)> {
        let turns = turns(events).1.into_iter();
        turns.map(|turn| (turn.prompt, turn.answer)).collect()
    }

    #[test]
    fn unrecorded_partial_answer_stays_as_failed() {
        let shown = vec![
            accepted("1", "a"),
            answer(Some("1"), "A"),
            end("1"),
            accepted("2", "b"),
            answer(Some("2"), "half"),
        ];
        let history = vec![message("a"), answer(None, "A"), message("b")];
        let merged = merge(shown, history);
        assert_eq!(
            said(merged.clone()),
            [("a".into(), "A".into()), ("b".into(), "half".into())]
        );
        assert!(matches!(
            merged.last(),
            Some(AgentEvent::TurnEnded {
                end: TurnEnd::Failed { .. },
                ..
            })
        ));
    }

    #[test]
    fn longer_answer_of_the_daemon_replaces_the_shown_one() {
        let shown = vec![accepted("1", "a"), answer(Some("1"), "half ")];
        let history = vec![
            message("a"),
            answer(None, "half and half"),
            message("from elsewhere"),
            answer(None, "B"),
        ];
        let expected = [
            ("a".into(), "half and half".into()),
            ("from elsewhere".into(), "B".into()),
        ];
        assert_eq!(said(merge(shown, history)), expected);
    }

    #[test]
    fn equal_prompts_are_separate_turns() {
        let shown = vec![
            accepted("1", "go on"),
            answer(Some("1"), "A"),
            end("1"),
            accepted("2", "go on"),
            answer(Some("2"), "B"),
        ];
        let one = vec![message("go on"), answer(None, "A")];
        let expected: [(String, String); 2] = [("go on".into(), "A".into()), ("go on".into(), "B".into())];
        assert_eq!(said(merge(shown.clone(), one)), expected);
        let last = vec![message("go on"), answer(None, "B")];
        assert_eq!(said(merge(shown, last)), expected);
    }

    proptest! {
        /// The daemon may have lost any part of any answer, and whole turns.
        #[test]
        fn shown_turns_are_neither_lost_nor_duplicated(
            turns in prop::collection::vec((0_usize..6, 0_usize..6, any::<bool>()), 0..12),
        ) {
            let (mut shown, mut history, mut expected) = (Vec::new(), Vec::new(), Vec::new());
            for (number, (seen, recorded, lost)) in turns.iter().enumerate() {
                let (id, text) = (format!("p{number}"), format!("ask {number}"));
                let words = |count: usize| (0..count).map(|word| format!("t{number}w{word} ")).collect::<Vec<_>>().concat();
                shown.extend([accepted(&id, &text), answer(Some(&id), &words(*seen)), end(&id)]);
                if !lost {
                    history.extend([message(&text), answer(None, &words(*recorded))]);
                }
                expected.push((text, words(if *lost { *seen } else { *seen.max(recorded) })));
            }
            prop_assert_eq!(said(merge(shown, history)), expected);
        }
    }
}
