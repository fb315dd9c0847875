//! What was shown and what a daemon remembers, put together.
//!
//! A daemon that was killed in the middle of an answer may not have recorded what it had said, and a person has read it already. So when
//! its history takes the place of what was shown, turns are matched by what was said to begin them, and of each the one with more of
//! the answer stays; what only one of the two has stays too.

use serde_json::{Value, json};

use super::log::kind;

/// How many turns at the end are matched with each other; before that the history is taken as it is.
const MOST_TURNS: usize = 1000;

/// What is said about an answer that was cut off.
const CUT_OFF: &str = "the daemon restarted before the answer was complete";

/// A turn: what was said to begin it, and everything since.
#[derive(Clone, Debug, Default)]
struct Turn {
    prompt: String,
    id: Value,
    answer: String,
    events: Vec<Value>,
}

/// Puts together the events of a conversation that were shown and those of its history.
pub(super) fn merge(shown: Vec<Value>, history: Vec<Value>) -> Vec<Value> {
    let (before_shown, shown) = turns(shown);
    let (before, history) = turns(history);
    let mut merged = if before.is_empty() { before_shown } else { before };
    // The beginning is the same nearly always.
    let same = shown
        .iter()
        .zip(&history)
        .take_while(|(shown, history)| shown.prompt == history.prompt && shown.answer == history.answer)
        .count();
    let (mut shown, mut history) = (shown, history);
    merged.extend(history.drain(..same).flat_map(|turn| turn.events));
    shown.drain(..same);
    let unmatched = history.len().saturating_sub(MOST_TURNS);
    merged.extend(history.drain(..unmatched).flat_map(|turn| turn.events));
    shown.drain(..shown.len().saturating_sub(MOST_TURNS));
    let pairs = align(&shown, &history);
    let mut shown = shown.into_iter().map(Some).collect::<Vec<_>>();
    let mut history = history.into_iter().map(Some).collect::<Vec<_>>();
    for (one, other) in pairs {
        let one = one.and_then(|place| shown[place].take());
        let other = other.and_then(|place| history[place].take());
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
    /// The turn as it was shown. It does not go on.
    fn ended(mut self) -> Vec<Value> {
        if !self.events.iter().any(|event| kind(event) == "turnEnded") {
            let end = json!({"outcome": "failed", "message": CUT_OFF, "code": null});
            self.events
                .push(json!({"type": "turnEnded", "promptId": self.id, "end": end}));
        }
        self.events
    }
}

/// What comes before the first turn, and the turns.
fn turns(events: Vec<Value>) -> (Vec<Value>, Vec<Turn>) {
    let (mut before, mut turns) = (Vec::new(), Vec::<Turn>::new());
    for event in events {
        let begins = matches!(kind(&event), "userMessage" | "promptAccepted");
        let id = event["promptId"].clone();
        let goes_on = |turn: &Turn| turn.id == id && !id.is_null();
        if begins && !turns.last().is_some_and(goes_on) {
            let text = event["text"].as_str().or_else(|| event["content"]["text"].as_str());
            turns.push(Turn {
                prompt: text.unwrap_or_default().to_owned(),
                id,
                ..Turn::default()
            });
        }
        // What is said in a turn may come after the next was asked for.
        let place = turns
            .iter()
            .rposition(|turn| turn.id == event["promptId"] && !turn.id.is_null());
        let place = place.or_else(|| turns.len().checked_sub(1));
        let Some(turn) = place.map(|place| &mut turns[place]) else {
            before.push(event);
            continue;
        };
        if kind(&event) == "assistantChunk" {
            turn.answer
                .push_str(event["content"]["text"].as_str().unwrap_or_default());
        }
        turn.events.push(event);
    }
    (before, turns)
}

/// Matches turns in their order: as many as can be whose beginnings are the same, and rather those whose answers fit too.
fn align(shown: &[Turn], history: &[Turn]) -> Vec<(Option<usize>, Option<usize>)> {
    let worth = |one: &Turn, other: &Turn| -> u32 {
        let (own, told) = (one.answer.trim_end(), other.answer.trim_end());
        match one.prompt.trim() == other.prompt.trim() {
            false => 0,
            true if told.starts_with(own) || own.starts_with(told) => 3,
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

    fn accepted(id: &str, text: &str) -> Value {
        json!({"type": "promptAccepted", "promptId": id, "text": text})
    }

    fn told(text: &str) -> Value {
        json!({"type": "userMessage", "promptId": null, "content": {"type": "text", "text": text}})
    }

    fn answer(id: Option<&str>, text: &str) -> Value {
        json!({"type": "assistantChunk", "promptId": id, "content": {"type": "text", "text": text}})
    }

    fn end(id: &str) -> Value {
        json!({"type": "turnEnded", "promptId": id, "end": {"outcome": "completed"}})
    }

    /// What was said, turn by turn.
    fn said(events: Vec<Value>) -> Vec<(String, String)> {
        let turns = turns(events).1.into_iter();
        turns.map(|turn| (turn.prompt, turn.answer)).collect()
    }

    #[test]
    fn a_partial_answer_that_was_not_recorded_stays_and_has_failed() {
        let shown = vec![
            accepted("1", "a"),
            answer(Some("1"), "A"),
            end("1"),
            accepted("2", "b"),
            answer(Some("2"), "half"),
        ];
        let history = vec![told("a"), answer(None, "A"), told("b")];
        let merged = merge(shown, history);
        assert_eq!(
            said(merged.clone()),
            [("a".into(), "A".into()), ("b".into(), "half".into())]
        );
        assert_eq!(merged.last().unwrap()["end"]["outcome"], "failed");
    }

    #[test]
    fn what_the_daemon_said_meanwhile_is_told_whole_and_once() {
        let shown = vec![accepted("1", "a"), answer(Some("1"), "half ")];
        let history = vec![
            told("a"),
            answer(None, "half and half"),
            told("from elsewhere"),
            answer(None, "B"),
        ];
        let expected = [
            ("a".into(), "half and half".into()),
            ("from elsewhere".into(), "B".into()),
        ];
        assert_eq!(said(merge(shown, history)), expected);
    }

    #[test]
    fn the_same_words_twice_are_two_turns() {
        let shown = vec![
            accepted("1", "go on"),
            answer(Some("1"), "A"),
            end("1"),
            accepted("2", "go on"),
            answer(Some("2"), "B"),
        ];
        let one = vec![told("go on"), answer(None, "A")];
        let expected: [(String, String); 2] = [("go on".into(), "A".into()), ("go on".into(), "B".into())];
        assert_eq!(said(merge(shown.clone(), one)), expected);
        let last = vec![told("go on"), answer(None, "B")];
        assert_eq!(said(merge(shown, last)), expected);
    }

    proptest! {
        /// The daemon may have lost any part of any answer, and whole turns; what was shown is in the end all there, once.
        #[test]
        fn nothing_that_was_shown_is_lost_or_doubled(
            turns in prop::collection::vec((0_usize..6, 0_usize..6, any::<bool>()), 0..12),
        ) {
            let (mut shown, mut history, mut expected) = (Vec::new(), Vec::new(), Vec::new());
            for (number, (seen, recorded, lost)) in turns.iter().enumerate() {
                let (id, text) = (format!("p{number}"), format!("ask {number}"));
                let words = |count: usize| (0..count).map(|word| format!("t{number}w{word} ")).collect::<Vec<_>>().concat();
                shown.extend([accepted(&id, &text), answer(Some(&id), &words(*seen)), end(&id)]);
                if !lost {
                    history.extend([told(&text), answer(None, &words(*recorded))]);
                }
                expected.push((text, words(if *lost { *seen } else { *seen.max(recorded) })));
            }
            prop_assert_eq!(said(merge(shown, history)), expected);
        }
    }
}
