//! The log shows what happened: a small front end that shows everything cannot tell the two apart.

use std::collections::BTreeMap;

use alongside_agent::conversation::{ContentBlock, ToolCall, TurnEnd};
use alongside_agent::{AgentEvent, NoticeLevel};
use proptest::prelude::*;

use super::*;

/// What somebody sees who has heard some events.
#[derive(Clone, Debug, Default, PartialEq)]
struct Shown {
    /// What was said, in order: the kind, whose turn, and the text or the whole.
    said: Vec<(String, Value, Value)>,
    /// Where a card is among what was said.
    cards: BTreeMap<String, usize>,
    approvals: BTreeMap<String, (Value, Value)>,
    queue: Vec<Value>,
    cancelling: Vec<Value>,
    running: Vec<Value>,
    /// The latest of each kind.
    latest: BTreeMap<String, Value>,
    interrupted: bool,
    over: bool,
}

impl Shown {
    fn of<'a>(events: impl IntoIterator<Item = &'a Arc<Value>>) -> Self {
        let mut shown = Self::default();
        events.into_iter().for_each(|event| shown.take(event));
        shown
    }

    fn take(&mut self, event: &Value) {
        let (kind, prompt) = (kind(event).to_owned(), event["promptId"].clone());
        match kind.as_str() {
            "connected" => {
                (self.interrupted, self.over) = (false, false);
                self.latest.insert(kind, event.clone());
            }
            "interrupted" => self.interrupted = true,
            "reconnected" => self.interrupted = false,
            "disconnected" => (self.interrupted, self.over) = (false, true),
            "historyStart" => {
                let latest = std::mem::take(&mut self.latest);
                let (interrupted, over) = (self.interrupted, self.over);
                *self = Self {
                    latest,
                    interrupted,
                    over,
                    ..Self::default()
                };
                self.latest.remove("plan");
                self.latest.remove("suggestion");
            }
            "assistantChunk" | "thinkingChunk" => {
                let text = &event["content"]["text"];
                match self.said.last_mut() {
                    Some((last, whose, Value::String(so_far)))
                        if *last == kind && *whose == prompt && text.is_string() =>
                    {
                        so_far.push_str(text.as_str().unwrap());
                    }
                    _ if text.is_string() => self.said.push((kind, prompt, text.clone())),
                    _ => self.said.push((kind, prompt, event.clone())),
                }
            }
            "toolCall" => {
                let id = event["call"]["id"].as_str().unwrap().to_owned();
                let card = (kind, Value::Null, event.clone());
                if let Some(place) = self.cards.get(&id) {
                    self.said[*place] = card;
                } else {
                    self.cards.insert(id, self.said.len());
                    self.said.push(card);
                }
            }
            "approvalOpened" => {
                let id = event["request"]["requestId"].as_str().unwrap().to_owned();
                self.approvals.insert(id, (event.clone(), Value::Null));
            }
            "approvalProgress" => {
                if let Some(open) = self.approvals.get_mut(event["requestId"].as_str().unwrap()) {
                    open.1 = event.clone();
                }
            }
            "approvalClosed" => {
                self.approvals.remove(event["requestId"].as_str().unwrap());
            }
            "promptQueued" => self.queue.push(event.clone()),
            "promptUnqueued" => {
                self.queue.retain(|queued| queued["promptId"] != prompt);
                if event["removed"] == json!(true) {
                    self.said.push((kind, prompt, event.clone()));
                }
            }
            "cancelRequested" => {
                if !self.cancelling.contains(&prompt) {
                    self.cancelling.push(prompt);
                }
            }
            "turnStarted" => {
                self.running.push(prompt.clone());
                self.said.push((kind, prompt, event.clone()));
            }
            "turnEnded" => {
                let all = prompt.is_null();
                self.running.retain(|id| !all && *id != prompt);
                self.cancelling.retain(|id| !all && *id != prompt && !id.is_null());
                self.said.push((kind, prompt, event.clone()));
            }
            "models" | "modes" => {
                self.latest.remove(&format!("{}Changed", &kind[..kind.len() - 1]));
                self.latest.insert(kind, event.clone());
            }
            "modelChanged" | "modeChanged" | "commands" | "contextUsage" | "tokenUsage" | "title" | "plan"
            | "suggestion" => {
                self.latest.insert(kind, event.clone());
            }
            "historyEnd" => {}
            _ => self.said.push((kind, prompt, event.clone())),
        }
    }
}

fn compacted(events: &[Arc<Value>]) -> Log {
    let mut log = Log::default();
    for event in events {
        log.push(Arc::clone(event));
    }
    log
}

fn event(event: &AgentEvent) -> Arc<Value> {
    Arc::new(serde_json::to_value(event).unwrap())
}

fn said(text: &str) -> Arc<Value> {
    event(&AgentEvent::AssistantChunk {
        prompt_id: Some("p".to_owned()),
        content: ContentBlock::text(text),
    })
}

fn any_event() -> impl Strategy<Value = Arc<Value>> {
    let prompt = prop_oneof![Just(None), "[ab]".prop_map(Some)];
    let text = "[a-zé\"\\\\ ]{0,6}";
    let simple = |value: Value| Just(Arc::new(value));
    let chunk = (
        prop_oneof![Just("assistantChunk"), Just("thinkingChunk")],
        prompt.clone(),
        text,
    )
        .prop_map(|(kind, prompt, text)| {
            Arc::new(json!({"type": kind, "promptId": prompt, "content": {"type": "text", "text": text}}))
        });
    let picture = prompt.clone().prop_map(|prompt| {
        Arc::new(json!({"type": "assistantChunk", "promptId": prompt, "content": {"type": "image", "data": "AA=="}}))
    });
    let of_turn = (
        prop_oneof![
            Just("turnStarted"),
            Just("turnEnded"),
            Just("cancelRequested"),
            Just("userMessage"),
            Just("promptAccepted"),
            Just("promptQueued"),
        ],
        prompt.clone(),
        text,
    )
        .prop_map(|(kind, prompt, text)| Arc::new(json!({"type": kind, "promptId": prompt, "text": text})));
    let unqueued = (prompt.clone(), any::<bool>()).prop_map(|(prompt, removed)| {
        Arc::new(json!({"type": "promptUnqueued", "promptId": prompt, "removed": removed}))
    });
    let card = ("[cd]", prompt, text).prop_map(|(id, prompt, title)| {
        Arc::new(json!({"type": "toolCall", "promptId": prompt, "call": {"id": id, "title": title}}))
    });
    let approval = ("[rs]", 0..3).prop_map(|(id, which)| {
        Arc::new(match which {
            0 => json!({"type": "approvalOpened", "request": {"requestId": id}}),
            1 => json!({"type": "approvalProgress", "requestId": id, "received": 1}),
            _ => json!({"type": "approvalClosed", "requestId": id}),
        })
    });
    let latest = (
        prop_oneof![
            Just("models"),
            Just("modelChanged"),
            Just("modes"),
            Just("modeChanged"),
            Just("commands"),
            Just("contextUsage"),
            Just("tokenUsage"),
            Just("title"),
            Just("plan"),
            Just("suggestion"),
            Just("notice"),
            Just("modelChangeFailed"),
        ],
        text,
    )
        .prop_map(|(kind, text)| Arc::new(json!({"type": kind, "text": text})));
    prop_oneof![
        8 => chunk,
        1 => picture,
        4 => of_turn,
        1 => unqueued,
        3 => card,
        2 => approval,
        4 => latest,
        1 => simple(json!({"type": "connected", "sessionId": "s"})),
        1 => simple(json!({"type": "interrupted", "reason": "r"})),
        1 => simple(json!({"type": "reconnected"})),
        1 => simple(json!({"type": "disconnected", "reason": "r"})),
        1 => simple(json!({"type": "historyStart", "reason": "loaded"})),
        1 => simple(json!({"type": "historyEnd"})),
    ]
}

/// The same approval is never opened twice while it is open, nor the same prompt queued; agents do not do that.
fn sensible(events: Vec<Arc<Value>>) -> Vec<Arc<Value>> {
    let mut shown = Shown::default();
    let possible = |shown: &Shown, event: &Value| match kind(event) {
        "approvalOpened" => !shown
            .approvals
            .contains_key(event["request"]["requestId"].as_str().unwrap()),
        "approvalProgress" => shown.approvals.contains_key(event["requestId"].as_str().unwrap()),
        _ => true,
    };
    let mut kept = Vec::new();
    for event in events {
        if possible(&shown, &event) {
            shown.take(&event);
            kept.push(event);
        }
    }
    kept
}

proptest! {
    #[test]
    fn the_compacted_log_shows_what_the_whole_one_shows(events in prop::collection::vec(any_event(), 0..60).prop_map(sensible)) {
        let log = compacted(&events);
        prop_assert_eq!(Shown::of(log.events()), Shown::of(&events));
        let bytes: usize = log.events().map(|event| size(event)).sum();
        prop_assert_eq!(log.bytes, bytes);
    }

    #[test]
    fn whoever_comes_in_the_middle_sees_the_same_in_the_end(
        events in prop::collection::vec(any_event(), 0..60).prop_map(sensible),
        middle in 0_usize..60,
    ) {
        let middle = middle.min(events.len());
        let log = compacted(&events[..middle]);
        let late: Vec<_> = log.events().chain(&events[middle..]).cloned().collect();
        prop_assert_eq!(Shown::of(&late), Shown::of(&events));
        prop_assert_eq!(Shown::of(compacted(&late).events()), Shown::of(&events), "a log can be read back into a log");
    }

    #[test]
    fn once_it_is_settled_nothing_goes_on(events in prop::collection::vec(any_event(), 0..60).prop_map(sensible)) {
        let mut log = compacted(&events);
        for event in log.settle("it ended") {
            log.push(Arc::new(event));
        }
        let shown = Shown::of(log.events());
        prop_assert!(shown.approvals.is_empty() && shown.queue.is_empty() && shown.running.is_empty());
        prop_assert_eq!(log.settle("again"), Vec::<Value>::new());
    }
}

#[test]
fn the_rules_go_by_the_names_that_events_really_have() {
    let card = |title: &str| AgentEvent::ToolCall {
        prompt_id: None,
        call: Box::new(ToolCall {
            id: "c".to_owned(),
            title: title.to_owned(),
            ..ToolCall::default()
        }),
    };
    let queued = AgentEvent::PromptQueued {
        prompt_id: "p".to_owned(),
        text: "later".to_owned(),
    };
    let unqueued = AgentEvent::PromptUnqueued {
        prompt_id: "p".to_owned(),
        removed: false,
    };
    let cancel = AgentEvent::CancelRequested {
        prompt_id: Some("p".to_owned()),
    };
    let ended = AgentEvent::TurnEnded {
        prompt_id: Some("p".to_owned()),
        end: TurnEnd::Completed {
            stop_reason: "end_turn".to_owned(),
        },
    };
    let events: Vec<_> = [
        event(&queued),
        event(&unqueued),
        said("one "),
        event(&AgentEvent::ContextUsage { used: 1, size: 2 }),
        said("two"),
        event(&card("first")),
        event(&card("last")),
        event(&cancel),
        event(&ended),
        event(&AgentEvent::ContextUsage { used: 2, size: 2 }),
    ]
    .into();
    let log = compacted(&events);
    let kept: Vec<&str> = log.events().map(|event| kind(event)).collect();
    assert_eq!(kept, ["assistantChunk", "toolCall", "turnEnded", "contextUsage"]);
    let events: Vec<_> = log.events().collect();
    assert_eq!(events[0]["content"]["text"], "one two");
    assert_eq!(events[1]["call"]["title"], "last");
    assert_eq!(events[3]["used"], 2);
    let notice = event(&AgentEvent::Notice {
        level: NoticeLevel::Information,
        message: DROPPED.to_owned(),
    });
    assert_eq!(
        *notice,
        json!({"type": "notice", "level": "information", "message": DROPPED})
    );
}

#[test]
fn a_full_log_drops_its_oldest_turns_and_says_so() {
    let mut log = Log::default();
    log.push(Arc::new(json!({"type": "connected", "sessionId": "s"})));
    let answer = "word ".repeat(100_000);
    for turn in 0..40 {
        let id = format!("p{turn}");
        log.push(event(&AgentEvent::PromptAccepted {
            prompt_id: id.clone(),
            text: "go on".to_owned(),
        }));
        log.push(Arc::new(json!({"type": "turnStarted", "promptId": id})));
        for piece in answer.as_bytes().chunks(10_000) {
            let content = ContentBlock::text(String::from_utf8(piece.to_vec()).unwrap());
            let prompt_id = Some(id.clone());
            log.push(event(&AgentEvent::AssistantChunk { prompt_id, content }));
        }
        if turn < 39 {
            log.push(Arc::new(json!({"type": "turnEnded", "promptId": id})));
        }
        assert!(log.bytes <= MOST_BYTES);
    }
    let kinds: Vec<&str> = log.events().map(|event| kind(event)).collect();
    assert_eq!(
        kinds.iter().filter(|kind| **kind == "notice").count(),
        1,
        "it is said once"
    );
    assert_eq!(
        kinds[..3],
        ["notice", "connected", "promptAccepted"],
        "a turn is dropped whole"
    );
    assert_eq!(log.running(), [json!("p39")]);
    let bytes: usize = log.events().map(|event| size(event)).sum();
    assert_eq!(bytes, log.bytes);
}

#[test]
fn a_turn_that_does_not_fit_loses_its_beginning() {
    let mut log = Log::default();
    log.push(Arc::new(
        json!({"type": "promptAccepted", "promptId": "p", "text": "go on"}),
    ));
    log.push(Arc::new(json!({"type": "turnStarted", "promptId": "p"})));
    let piece = "word ".repeat(20_000);
    for _ in 0..200 {
        log.push(said(&piece));
        assert!(log.bytes <= MOST_BYTES);
    }
    assert_eq!(log.running(), [json!("p")], "and goes on");
}
