//! A small front end that shows everything cannot tell the compacted log from the whole one.

use std::collections::BTreeMap;

use alongside_protocol::chat::{
    Abilities, DisconnectKind, Locality, Models, Modes, PermissionRequest, TokenUsage, ToolCall,
};
use proptest::prelude::*;
use serde_json::{Value, json};

use super::*;

/// What a front end shows.
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
    fn of<'a>(events: impl IntoIterator<Item = &'a Arc<AgentEvent>>) -> Self {
        let mut shown = Self::default();
        events.into_iter().for_each(|event| shown.take(event));
        shown
    }

    fn is_queued(&self, id: &Value) -> bool {
        self.queue.iter().any(|queued| queued["promptId"] == *id)
    }

    /// Queued prompts are shown in the queue, not in the conversation. The last is the one that counts.
    fn take_accepted(&mut self, id: &Value) -> Value {
        let is_accepted = |said: &(String, Value, Value)| said.0 == "promptAccepted" && said.1 == *id;
        let last = self.said.iter().rev().find(|said| is_accepted(said)).cloned();
        self.remove_said(|_, said| is_accepted(said));
        last.map_or(Value::Null, |(_, _, event)| event)
    }

    fn unqueue(&mut self, id: &Value, removed: bool) {
        let Some(place) = self.queue.iter().position(|queued| queued["promptId"] == *id) else {
            return;
        };
        let accepted = self.queue.remove(place)["accepted"].take();
        if !removed && !accepted.is_null() {
            self.said.push(("promptAccepted".to_owned(), id.clone(), accepted));
        }
    }

    fn remove_said(&mut self, is_removed: impl Fn(usize, &(String, Value, Value)) -> bool) {
        let said = std::mem::take(&mut self.said);
        self.cards.clear();
        for (index, said) in said.into_iter().enumerate() {
            if is_removed(index, &said) {
                continue;
            }
            // An answer that was interrupted by what is removed is one again.
            if let Some((kind, prompt, Value::String(so_far))) = self.said.last_mut()
                && (&*kind, &*prompt) == (&said.0, &said.1)
                && let Value::String(more) = &said.2
            {
                so_far.push_str(more);
                continue;
            }
            if said.0 == "toolCall" {
                let id = said.2["call"]["id"].as_str().unwrap().to_owned();
                self.cards.insert(id, self.said.len());
            }
            self.said.push(said);
        }
    }

    fn rewind(&mut self, turn: usize) {
        let read = |said: &(String, Value, Value)| match said.2.as_str() {
            // A chunk is kept as its text.
            Some(text) => AgentEvent::AssistantChunk {
                prompt_id: None,
                content: ContentBlock::text(text),
            },
            None => serde_json::from_value(said.2.clone()).unwrap(),
        };
        let events: Vec<AgentEvent> = self.said.iter().map(read).collect();
        let Some(&start) = turn_starts(&events).get(turn) else {
            return;
        };
        self.remove_said(|index, _| index >= start);
        self.approvals.clear();
        self.cancelling.clear();
        self.running.clear();
        for (kind, prompt, _) in &self.said {
            match kind.as_str() {
                "turnStarted" => self.running.push(prompt.clone()),
                "turnEnded" => self.running.retain(|id| !prompt.is_null() && id != prompt),
                _ => {}
            }
        }
        self.latest.remove("plan");
        self.latest.remove("suggestion");
    }

    /// Reads the JSON, as a page does.
    fn take(&mut self, event: &AgentEvent) {
        let event = &json!(event);
        let (kind, prompt) = (event["type"].as_str().unwrap().to_owned(), event["promptId"].clone());
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
            "promptQueued" if !self.is_queued(&prompt) => {
                let accepted = self.take_accepted(&prompt);
                self.queue
                    .push(json!({"promptId": prompt, "text": event["text"], "accepted": accepted}));
            }
            "promptUnqueued" => self.unqueue(&prompt, event["removed"] == json!(true)),
            "midTurnMessage" => {
                let id = &event["messageId"];
                if !id.is_null() {
                    self.unqueue(id, true);
                    self.take_accepted(id);
                }
                self.said.push((kind, prompt, event.clone()));
            }
            "rewound" => self.rewind(usize::try_from(event["turn"].as_u64().unwrap()).unwrap()),
            "cancelRequested" => {
                if !self.cancelling.contains(&prompt) {
                    self.cancelling.push(prompt);
                }
            }
            "turnStarted" => {
                self.unqueue(&prompt, false);
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
            // Queued twice, or nothing to show.
            "promptQueued" | "historyEnd" => {}
            _ => self.said.push((kind, prompt, event.clone())),
        }
    }
}

/// A recorded log. The page's tests read the same files.
#[derive(serde::Deserialize)]
struct Recording {
    events: Vec<AgentEvent>,
    /// What the log keeps of them.
    log: Vec<AgentEvent>,
    shown: Value,
}

impl Shown {
    /// As the recordings describe it, and the page's tests too.
    fn summary(&self) -> Value {
        let said = self.said.iter().filter_map(|(kind, _, what)| {
            Some(match kind.as_str() {
                "promptAccepted" => format!("user {}", what["text"].as_str()?),
                "midTurnMessage" => format!("user {}", what["blocks"][0]["text"].as_str()?),
                "userMessage" => format!("user {}", what["content"]["text"].as_str()?),
                "assistantChunk" => format!("answer {}", what.as_str()?),
                "toolCall" => format!("tool {}", what["call"]["id"].as_str()?),
                "notice" => "notice".to_owned(),
                "turnEnded" if what["end"]["outcome"] == "failed" => "notice".to_owned(),
                _ => return None,
            })
        });
        let queue = self.queue.iter().map(|queued| &queued["promptId"]);
        json!({
            "said": said.collect::<Vec<_>>(),
            "running": !self.running.is_empty(),
            "approvals": self.approvals.keys().collect::<Vec<_>>(),
            "queue": queue.collect::<Vec<_>>(),
            "over": self.over,
            "interrupted": self.interrupted,
        })
    }
}

#[test]
fn recorded_logs_are_kept_and_shown_as_the_page_shows_them() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/logs");
    let mut count = 0;
    for file in std::fs::read_dir(folder).unwrap() {
        let file = file.unwrap().path();
        let name = file.display();
        let recording: Recording = serde_json::from_slice(&std::fs::read(&file).unwrap()).unwrap();
        let events: Vec<_> = recording.events.into_iter().map(Arc::new).collect();
        let log = compacted(&events);
        let kept: Vec<AgentEvent> = log.events().map(|event| AgentEvent::clone(event)).collect();
        assert_eq!(kept, recording.log, "{name}");
        assert_eq!(Shown::of(&events).summary(), recording.shown, "{name}: events");
        assert_eq!(Shown::of(log.events()).summary(), recording.shown, "{name}: log");
        count += 1;
    }
    assert!(count > 0);
}

fn compacted(events: &[Arc<AgentEvent>]) -> Log {
    let mut log = Log::default();
    for event in events {
        log.push(Arc::clone(event));
    }
    log
}

fn kind(event: &AgentEvent) -> String {
    json!(event)["type"].as_str().unwrap().to_owned()
}

fn said(text: &str) -> Arc<AgentEvent> {
    Arc::new(AgentEvent::AssistantChunk {
        prompt_id: Some("p".to_owned()),
        content: ContentBlock::text(text),
    })
}

fn connected() -> AgentEvent {
    AgentEvent::Connected(ConnectedSession {
        session_id: SessionId::new("s"),
        agent: "Qwen Code".to_owned(),
        agent_version: None,
        attached: false,
        resumed: false,
        workspace: "/w".to_owned(),
        abilities: Abilities::default(),
        locality: Locality::Child,
    })
}

fn started(id: &str) -> Arc<AgentEvent> {
    Arc::new(AgentEvent::TurnStarted {
        prompt_id: id.to_owned(),
    })
}

fn ended(prompt_id: Option<String>) -> AgentEvent {
    let stop_reason = "end_turn".to_owned();
    let end = TurnEnd::Completed { stop_reason };
    AgentEvent::TurnEnded { prompt_id, end }
}

fn card(id: &str, prompt_id: Option<String>, title: &str) -> AgentEvent {
    AgentEvent::ToolCall {
        prompt_id,
        call: Box::new(ToolCall {
            id: id.to_owned(),
            title: title.to_owned(),
            ..ToolCall::default()
        }),
    }
}

#[expect(clippy::too_many_lines, reason = "one line per event")]
fn any_event() -> impl Strategy<Value = Arc<AgentEvent>> {
    let prompt = prop_oneof![Just(None), "[ab]".prop_map(Some)];
    let text = "[a-zé\"\\\\ ]{0,6}";
    let chunk = (any::<bool>(), prompt.clone(), text).prop_map(|(thought, prompt_id, text)| {
        let content = ContentBlock::text(text);
        if thought {
            AgentEvent::ThinkingChunk { prompt_id, content }
        } else {
            AgentEvent::AssistantChunk { prompt_id, content }
        }
    });
    let picture = prompt.clone().prop_map(|prompt_id| AgentEvent::AssistantChunk {
        prompt_id,
        content: ContentBlock::Image {
            data: "AA==".to_owned(),
            mime_type: "image/png".to_owned(),
        },
    });
    let of_turn = (0..8, "[ab]", prompt.clone(), text).prop_map(|(which, id, prompt_id, text)| match which {
        0 => AgentEvent::TurnStarted { prompt_id: id },
        1 => ended(prompt_id),
        2 => AgentEvent::CancelRequested { prompt_id },
        3 => AgentEvent::UserMessage {
            prompt_id,
            content: text.as_str().into(),
        },
        4 => AgentEvent::PromptAccepted { prompt_id: id, text },
        5 => AgentEvent::MidTurnMessage {
            prompt_id,
            message_id: Some(id),
            blocks: vec![text.as_str().into()],
            own: true,
        },
        6 => AgentEvent::Rewound {
            turn: usize::from(id == "a"),
        },
        _ => AgentEvent::PromptQueued { prompt_id: id, text },
    });
    let unqueued =
        ("[ab]", any::<bool>()).prop_map(|(prompt_id, removed)| AgentEvent::PromptUnqueued { prompt_id, removed });
    let tool_call = ("[cd]", prompt, text).prop_map(|(id, prompt, title)| card(&id, prompt, &title));
    let approval = ("[rs]", 0..3).prop_map(|(request_id, which)| match which {
        0 => AgentEvent::ApprovalOpened {
            request: Box::new(PermissionRequest {
                request_id,
                prompt_id: None,
                tool_call: ToolCall::default(),
                options: Vec::new(),
                questions: Vec::new(),
            }),
        },
        1 => AgentEvent::ApprovalProgress {
            request_id,
            received: 1,
            needed: 2,
        },
        _ => AgentEvent::ApprovalClosed {
            request_id,
            option_id: None,
            own: true,
        },
    });
    let latest = (0..12, 0_u64..3, text).prop_map(|(which, number, text)| match which {
        0 => AgentEvent::Models(Models {
            current: Some(text),
            available: Vec::new(),
        }),
        1 => AgentEvent::ModelChanged { model_id: text },
        2 => AgentEvent::Modes(Modes {
            current: Some(text),
            available: Vec::new(),
        }),
        3 => AgentEvent::ModeChanged { mode_id: text },
        4 => AgentEvent::Commands {
            commands: Vec::new(),
            skills: vec![text],
        },
        5 => AgentEvent::ContextUsage { used: number, size: 9 },
        6 => AgentEvent::TokenUsage(TokenUsage {
            input_tokens: number,
            ..TokenUsage::default()
        }),
        7 => AgentEvent::Title { title: text },
        8 => AgentEvent::Plan { entries: Vec::new() },
        9 => AgentEvent::Suggestion { text },
        10 => AgentEvent::Notice {
            level: NoticeLevel::Warning,
            message: text,
        },
        _ => AgentEvent::ModelChangeFailed {
            model_id: "m".to_owned(),
            message: text,
        },
    });
    let reason = || "r".to_owned();
    let any = prop_oneof![
        8 => chunk,
        1 => picture,
        4 => of_turn,
        1 => unqueued,
        3 => tool_call,
        2 => approval,
        4 => latest,
        1 => Just(connected()),
        1 => Just(AgentEvent::Interrupted { reason: reason(), retry_in_milliseconds: 1 }),
        1 => Just(AgentEvent::Reconnected),
        1 => Just(AgentEvent::Disconnected { kind: DisconnectKind::Died, reason: reason(), reopen: None }),
        1 => Just(AgentEvent::HistoryStart { reason: reason() }),
        1 => Just(AgentEvent::HistoryEnd),
    ];
    any.prop_map(Arc::new)
}

/// The same approval is never opened twice while it is open, nor the same prompt accepted or queued twice, and nothing is
/// rewound while a prompt is queued; agents do not do that.
fn sensible(events: Vec<Arc<AgentEvent>>) -> Vec<Arc<AgentEvent>> {
    let mut shown = Shown::default();
    let possible = |shown: &Shown, event: &AgentEvent| match event {
        AgentEvent::ApprovalOpened { request } => !shown.approvals.contains_key(&request.request_id),
        AgentEvent::ApprovalProgress { request_id, .. } => shown.approvals.contains_key(request_id),
        AgentEvent::Rewound { .. } => shown.queue.is_empty(),
        AgentEvent::PromptAccepted { prompt_id, .. } => {
            let is_known = |said: &(String, Value, Value)| said.0 == "promptAccepted" && said.1 == json!(prompt_id);
            !shown.is_queued(&json!(prompt_id)) && !shown.said.iter().any(is_known)
        }
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
    fn compacted_log_shows_the_same(events in prop::collection::vec(any_event(), 0..60).prop_map(sensible)) {
        let log = compacted(&events);
        prop_assert_eq!(Shown::of(log.events()), Shown::of(&events));
        let bytes: usize = log.events().map(|event| json_len(&**event)).sum();
        prop_assert_eq!(log.bytes, bytes);
    }

    #[test]
    fn late_front_end_shows_the_same(
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
    fn settled_log_has_nothing_pending(events in prop::collection::vec(any_event(), 0..60).prop_map(sensible)) {
        let mut log = compacted(&events);
        for event in log.settle("it ended") {
            log.push(Arc::new(event));
        }
        let shown = Shown::of(log.events());
        prop_assert!(shown.approvals.is_empty() && shown.queue.is_empty() && shown.running.is_empty());
        prop_assert_eq!(log.settle("again"), Vec::new());
    }
}

/// The companion may be killed between any two events of a prompt: accepted, queued, taken from the queue, started.
#[test]
fn accepted_prompt_that_never_started_has_failed() {
    let accepted = |id: &str| {
        Arc::new(AgentEvent::PromptAccepted {
            prompt_id: id.to_owned(),
            text: id.to_owned(),
        })
    };
    let failed = |events: &[Arc<AgentEvent>]| -> Vec<String> {
        let settled = compacted(events).settle("it ended");
        let failed = settled.into_iter().filter_map(|event| match event {
            AgentEvent::TurnEnded {
                prompt_id,
                end: TurnEnd::Failed { .. },
            } => prompt_id,
            _ => None,
        });
        failed.collect()
    };
    let queued = Arc::new(AgentEvent::PromptQueued {
        prompt_id: "q".to_owned(),
        text: "q".to_owned(),
    });
    let unqueued = Arc::new(AgentEvent::PromptUnqueued {
        prompt_id: "q".to_owned(),
        removed: false,
    });
    let end = |id: &str| Arc::new(ended(Some(id.to_owned())));
    let history_end = Arc::new(AgentEvent::HistoryEnd);
    let mut events = vec![accepted("p")];
    assert_eq!(failed(&events), ["p"]);
    events.push(started("p"));
    assert_eq!(failed(&events), ["p"], "once");
    events.push(accepted("q"));
    assert_eq!(failed(&events), ["p", "q"]);
    events.push(queued);
    assert_eq!(
        failed(&events),
        ["p"],
        "a queued prompt is returned to the user instead"
    );
    events.extend([end("p"), unqueued]);
    assert_eq!(failed(&events), ["q"]);
    events.extend([started("q"), end("q")]);
    assert!(failed(&events).is_empty());
    assert!(
        failed(&[accepted("old"), history_end]).is_empty(),
        "a history has no open turns"
    );
}

#[test]
fn obsolete_events_are_dropped() {
    let p = || "p".to_owned();
    let events = [
        Arc::new(AgentEvent::PromptQueued {
            prompt_id: p(),
            text: "later".to_owned(),
        }),
        Arc::new(AgentEvent::PromptUnqueued {
            prompt_id: p(),
            removed: false,
        }),
        said("one "),
        Arc::new(AgentEvent::ContextUsage { used: 1, size: 2 }),
        said("two"),
        Arc::new(card("c", None, "first")),
        Arc::new(card("c", None, "last")),
        Arc::new(AgentEvent::CancelRequested { prompt_id: Some(p()) }),
        Arc::new(ended(Some(p()))),
        Arc::new(AgentEvent::ContextUsage { used: 2, size: 2 }),
    ];
    let log = compacted(&events);
    let kept: Vec<AgentEvent> = log.events().map(|event| AgentEvent::clone(event)).collect();
    let expected = [
        AgentEvent::clone(&said("one two")),
        card("c", None, "last"),
        ended(Some(p())),
        AgentEvent::ContextUsage { used: 2, size: 2 },
    ];
    assert_eq!(kept, expected);
}

#[test]
fn full_log_drops_its_oldest_turns_with_a_notice() {
    let mut log = Log::default();
    log.push(Arc::new(connected()));
    let answer = "word ".repeat(100_000);
    for turn in 0..40 {
        let id = format!("p{turn}");
        log.push(Arc::new(AgentEvent::PromptAccepted {
            prompt_id: id.clone(),
            text: "go on".to_owned(),
        }));
        log.push(started(&id));
        for piece in answer.as_bytes().chunks(10_000) {
            let content = ContentBlock::text(String::from_utf8(piece.to_vec()).unwrap());
            let prompt_id = Some(id.clone());
            log.push(Arc::new(AgentEvent::AssistantChunk { prompt_id, content }));
        }
        if turn < 39 {
            log.push(Arc::new(ended(Some(id))));
        }
        assert!(log.bytes <= MAX_BYTES);
    }
    let kinds: Vec<String> = log.events().map(|event| kind(event)).collect();
    assert_eq!(kinds.iter().filter(|kind| *kind == "notice").count(), 1, "one notice");
    assert_eq!(
        kinds[..3],
        ["notice", "connected", "promptAccepted"],
        "a turn is dropped whole"
    );
    assert_eq!(log.running(), ["p39"]);
    let bytes: usize = log.events().map(|event| json_len(&**event)).sum();
    assert_eq!(bytes, log.bytes);
}

#[test]
fn turn_that_does_not_fit_loses_its_beginning() {
    let mut log = Log::default();
    log.push(Arc::new(AgentEvent::PromptAccepted {
        prompt_id: "p".to_owned(),
        text: "go on".to_owned(),
    }));
    log.push(started("p"));
    let piece = "word ".repeat(20_000);
    for _ in 0..200 {
        log.push(said(&piece));
        assert!(log.bytes <= MAX_BYTES);
    }
    assert_eq!(log.running(), ["p"], "and continues");
}
