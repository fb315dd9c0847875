//! Traffic of a real daemon, played back. The files are excerpts of what `qwen serve` 0.24.4 sent.

use alongside_agent::AgentEvent;
use alongside_agent::conversation::TurnEnd;
use alongside_agent::conversation::{Source, Translator};
use alongside_agent::daemon::{DaemonEvent, EventKind};
use alongside_wire::sse::SseReader;

const PROMPT_AND_SWITCHES: &str = include_str!("recorded/prompt-and-switches.sse");
const QUEUE_AND_APPROVALS: &str = include_str!("recorded/queue-permissions-question.sse");
const AGENT_KILLED: &str = include_str!("recorded/agent-killed.sse");
const RING_EVICTED: &str = include_str!("recorded/ring-evicted.sse");
const PLAN_AND_CONSENSUS: &str = include_str!("recorded/plan-and-consensus.sse");

const CLOSED_WITH_QUEUE: &str = include_str!("recorded/closed-with-queue.sse");
const DECIDED_ELSEWHERE: &str = include_str!("recorded/decided-elsewhere.sse");

/// Who sent the prompts.
const PROMPTER: &str = "client_2d6a2e1e-acd6-46c0-b5db-02d9cf323916";

fn events(recorded: &str) -> Vec<DaemonEvent> {
    let mut reader = SseReader::new(1 << 20);
    // In odd pieces, as a connection brings them.
    recorded
        .as_bytes()
        .chunks(977)
        .for_each(|piece| reader.push(piece).unwrap());
    std::iter::from_fn(|| reader.pop())
        .map(|event| DaemonEvent::parse(&event.data).unwrap())
        .collect()
}

fn told(recorded: &str, own: Option<&str>) -> Vec<AgentEvent> {
    let mut translator = Translator::default();
    let own: Vec<String> = own.map(str::to_owned).into_iter().collect();
    events(recorded)
        .into_iter()
        .flat_map(|event| translator.translate(event, Source::Stream, &own))
        .collect()
}

/// The names of events, each once in a row.
fn outline(told: &[AgentEvent]) -> Vec<String> {
    let names = told.iter().map(|event| {
        serde_json::to_value(event).unwrap()["type"]
            .as_str()
            .unwrap()
            .to_owned()
    });
    let mut names: Vec<String> = names.collect();
    names.dedup();
    names
}

#[test]
fn recorded_events_are_all_known() {
    for recorded in [
        PROMPT_AND_SWITCHES,
        QUEUE_AND_APPROVALS,
        AGENT_KILLED,
        RING_EVICTED,
        PLAN_AND_CONSENSUS,
        CLOSED_WITH_QUEUE,
        DECIDED_ELSEWHERE,
    ] {
        for event in events(recorded) {
            if let EventKind::Unknown { name, .. } = &event.kind {
                assert!(matches!(name.as_str(), "settings_changed"), "{event:?}");
            }
        }
    }
}

#[test]
fn prompt_thinking_and_answer_are_in_order() {
    let told = told(PROMPT_AND_SWITCHES, Some(PROMPTER));
    let first = told
        .iter()
        .position(|event| matches!(event, AgentEvent::TurnEnded { .. }))
        .unwrap();
    assert_eq!(
        outline(&told[..=first]),
        [
            "commands",
            "promptAccepted",
            "turnStarted",
            "thinkingChunk",
            "assistantChunk",
            "tokenUsage",
            "contextUsage",
            "turnEnded"
        ]
    );
    let answer: String = told[..first]
        .iter()
        .filter_map(|event| match event {
            AgentEvent::AssistantChunk { content, .. } => content.as_text().map(str::to_owned),
            _ => None,
        })
        .collect();
    assert_eq!(answer, "Echo(fake-a): </system-reminder> hello there THINKHARD");
}

#[test]
fn switches_are_reported_with_failures() {
    let told = told(PROMPT_AND_SWITCHES, Some(PROMPTER));
    assert!(told.contains(&AgentEvent::ModeChanged {
        mode_id: "default".to_owned()
    }));
    assert!(told.contains(&AgentEvent::ModelChanged {
        model_id: "fake-b(openai)".to_owned()
    }));
    assert!(told.iter().any(|event| matches!(event,
        AgentEvent::ModelChangeFailed { model_id, message } if model_id == "no-such-model" && message.contains("not found"))));
    let failed = told.iter().find_map(|event| match event {
        AgentEvent::TurnEnded {
            end: TurnEnd::Failed { message, code },
            ..
        } => Some((message.as_str(), code.as_deref())),
        _ => None,
    });
    assert_eq!(failed, Some(("400 fake upstream refused", Some("-32603"))));
}

#[test]
fn cancel_request_does_not_end_the_turn() {
    let told = told(PROMPT_AND_SWITCHES, Some(PROMPTER));
    let asked = told
        .iter()
        .position(|event| matches!(event, AgentEvent::CancelRequested { .. }))
        .unwrap();
    assert!(matches!(told[asked + 1], AgentEvent::TurnEnded { .. }));
}

#[test]
fn requests_and_question_open_and_close() {
    let told = told(QUEUE_AND_APPROVALS, Some(PROMPTER));
    let mut open = Vec::new();
    let mut questions = 0;
    for event in &told {
        match event {
            AgentEvent::ApprovalOpened { request } => {
                questions += usize::from(request.is_question());
                open.push(request.request_id.clone());
            }
            AgentEvent::ApprovalClosed { request_id, .. } => {
                let index = open.iter().position(|open| open == request_id);
                open.remove(index.expect("an approval that was not open was closed"));
            }
            _ => {}
        }
    }
    assert!(open.is_empty(), "{open:?}");
    assert_eq!(questions, 1);
}

#[test]
fn removed_prompt_is_reported() {
    let told = told(QUEUE_AND_APPROVALS, Some(PROMPTER));
    let queued = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::PromptQueued { .. }))
        .count();
    let removed = told
        .iter()
        .filter(|event| matches!(event, AgentEvent::PromptUnqueued { removed: true, .. }))
        .count();
    assert!(queued > 0);
    assert_eq!(removed, 1);
    // The daemon also reports the end of its turn, which never started.
    let ended = told.iter().filter_map(|event| match event {
        AgentEvent::TurnEnded { prompt_id, .. } => prompt_id.clone(),
        _ => None,
    });
    let removed = told.iter().find_map(|event| match event {
        AgentEvent::PromptUnqueued {
            prompt_id,
            removed: true,
        } => Some(prompt_id.clone()),
        _ => None,
    });
    assert_eq!(ended.filter(|ended| Some(ended) == removed.as_ref()).count(), 0);
}

#[test]
fn edit_card_has_its_diff() {
    let told = told(QUEUE_AND_APPROVALS, Some(PROMPTER));
    let card = told.iter().rev().find_map(|event| match event {
        AgentEvent::ToolCall { call, .. }
            if call.tool_name.as_deref() == Some("write_file") && call.status.as_str() == "completed" =>
        {
            Some(call)
        }
        _ => None,
    });
    let card = card.unwrap();
    assert!(card.title.starts_with("Writing to"), "{card:?}");
    assert_eq!(card.content.len(), 1);
}

#[test]
fn killed_agent_ends_turn_and_session() {
    let events = events(AGENT_KILLED);
    assert!(events.last().unwrap().is_terminal());
    let told = told(AGENT_KILLED, None);
    assert!(told.iter().any(|event| matches!(
        event,
        AgentEvent::TurnEnded {
            end: TurnEnd::Failed { .. },
            ..
        }
    )));
}

#[test]
fn wrapped_ring_is_reported_first() {
    let events = events(RING_EVICTED);
    assert!(matches!(&events[0].kind, EventKind::StateResyncRequired { reason } if reason == "ring_evicted"));
    assert!(matches!(events.last().unwrap().kind, EventKind::ReplayComplete { .. }));
}

#[test]
fn plan_and_partial_votes_are_reported() {
    let told = told(PLAN_AND_CONSENSUS, None);
    assert!(
        told.iter()
            .any(|event| matches!(event, AgentEvent::Plan { entries } if entries.len() == 2))
    );
    assert!(told.iter().any(|event| matches!(
        event,
        AgentEvent::ApprovalProgress {
            received: 1,
            needed: 1,
            ..
        }
    )));
}

/// How the turns ended: the reason to stop, or the code of the failure.
fn ends(told: &[AgentEvent]) -> Vec<String> {
    let end = |event: &AgentEvent| match event {
        AgentEvent::TurnEnded { end, .. } => Some(match end {
            TurnEnd::Completed { stop_reason } | TurnEnd::Cancelled { stop_reason } => stop_reason.clone(),
            TurnEnd::Failed { code, .. } => code.clone().unwrap_or_default(),
        }),
        _ => None,
    };
    told.iter().filter_map(end).collect()
}

#[test]
fn closed_session_ends_running_and_queued_turns() {
    let told = told(CLOSED_WITH_QUEUE, None);
    assert_eq!(ends(&told), ["cancelled", "-32602", "-32602", "-32602"]);
    assert!(matches!(
        events(CLOSED_WITH_QUEUE).last().unwrap().kind,
        EventKind::SessionClosed { .. }
    ));
}

#[test]
fn request_is_resolved_by_policy_and_timeout() {
    const DESIGNATED: &str = "client_29c5cab8-5385-44f6-851a-b18a268aedec";
    const OTHER: &str = "client_558e73c6-a387-41e0-9bec-0f261c2bc5ae";
    let closed = |told: &[AgentEvent]| -> Vec<(Option<String>, bool)> {
        let closed = told.iter().filter_map(|event| match event {
            AgentEvent::ApprovalClosed { option_id, own, .. } => Some((option_id.clone(), *own)),
            _ => None,
        });
        closed.collect()
    };
    let notices = |told: &[AgentEvent]| {
        let notices = told.iter().filter(|event| matches!(event, AgentEvent::Notice { .. }));
        notices.count()
    };
    let once = Some("proceed_once".to_owned());
    let mine = told(DECIDED_ELSEWHERE, Some(DESIGNATED));
    assert_eq!(
        closed(&mine),
        [(once.clone(), true), (None, false)],
        "the second one ran out of time, and closed once"
    );
    assert_eq!(notices(&mine), 0);
    let others = told(DECIDED_ELSEWHERE, Some(OTHER));
    assert_eq!(closed(&others), [(once, false), (None, false)]);
    assert_eq!(notices(&others), 1, "who was not let is told so");
    let deadline = "prompt_deadline_exceeded";
    assert_eq!(ends(&mine), [deadline, "end_turn", deadline]);
    // The daemon cancels a turn that took too long, and says so after its end.
    assert!(
        !mine
            .iter()
            .any(|event| matches!(event, AgentEvent::CancelRequested { .. }))
    );
}
