//! Rules of the outbox: what is due, held, proven, and what order it leaves in.

use proptest::prelude::*;

use super::*;

fn rejected(file_path: &str) -> Outgoing {
    Decision::rejected(file_path).into()
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

fn next(outbox: &mut Outbox, limits: &Limits) -> Option<(Event, Vec<DeliveryId>)> {
    let has_event = outbox.has_event();
    let next = outbox.next_event(limits);
    assert_eq!(next.is_some(), has_event);
    next
}

fn written(outbox: &mut Outbox, limits: &Limits) -> Vec<String> {
    std::iter::from_fn(|| next(outbox, limits))
        .map(|(event, _)| String::from_utf8(event.encode().unwrap().to_vec()).unwrap())
        .map(|event| event.trim_end().replace("\ndata: ", " "))
        .collect()
}

fn paths(outbox: &mut Outbox, limits: &Limits) -> Vec<String> {
    let path = |(event, _): (Event, _)| match event.payload {
        Payload::Decision(decision) => decision.path().to_string(),
        Payload::Message(_) => "context".to_owned(),
        Payload::Diagnostics(_) => "diagnostics".to_owned(),
    };
    std::iter::from_fn(|| next(outbox, limits)).map(path).collect()
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
        outbox.end_hold();
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
    outbox.end_hold();
    assert!(paths(&mut outbox, &limits).is_empty());
}

#[test]
fn held_decision_waits_until_the_request_under_way_is_carried_out() {
    let limits = Limits::default();
    let mut outbox = outbox();
    outbox.set_requesting(true);
    outbox.push(repeated(1, "/a"), &limits).unwrap();
    outbox.end_hold();
    outbox.push(repeated(2, "/b"), &limits).unwrap();
    assert!(paths(&mut outbox, &limits).is_empty());
    outbox.set_requesting(false);
    assert_eq!(paths(&mut outbox, &limits), ["/a", "/b"]);
}

/// It may have arrived on an earlier stream, whose id the agent forgot.
#[test]
fn id_of_an_event_neither_confirms_nor_releases_what_was_held() {
    let limits = Limits::default();
    let orphan = Outgoing {
        delivery: None,
        ..repeated(1, "/a")
    };
    for decision in [repeated(1, "/a"), orphan, numbered(1, "/a")] {
        let mut outbox = outbox();
        outbox.push(decision, &limits).unwrap();
        paths(&mut outbox, &limits);
        outbox.reopen(None);
        outbox.set_context(Bytes::from_static(b"{}"));
        let context = written(&mut outbox, &limits).remove(0);
        let (id, _) = context.strip_prefix("id: ").unwrap().split_once(' ').unwrap();
        assert!(outbox.reopen(Some(id)).is_empty());
        assert!(paths(&mut outbox, &limits).is_empty());
        outbox.end_hold();
        assert_eq!(paths(&mut outbox, &limits), ["/a"]);
    }
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
    outbox.end_hold();
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
    after.end_hold();
    assert_eq!(paths(&mut after, &limits), ["/b"]);

    // In the other order.
    let mut after = Outbox::new("epoch".into(), "other");
    after.push(repeated(3, "/a"), &limits).unwrap();
    after.push(repeated(4, "/b"), &limits).unwrap();
    assert_eq!(after.reopen(Some("epoch-3-box-1")), [DeliveryId(3)]);
    after.end_hold();
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
    outbox.end_hold();
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
                    Payload::Decision(decision) => (event.id.number, Some(decision.path().to_string())),
                    Payload::Message(_) | Payload::Diagnostics(_) => (event.id.number, None),
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

#[test]
fn excess_mention_is_refused() {
    let mut outbox = Outbox::new("epoch".into(), "1");
    for _ in 0..MAX_MENTIONS {
        outbox.push_mention(Bytes::from_static(b"{}")).unwrap();
    }
    assert_eq!(outbox.push_mention(Bytes::new()), Err(OutboxFull));
    outbox.next_event(&Limits::default()).unwrap();
    outbox.push_mention(Bytes::new()).unwrap();
}
