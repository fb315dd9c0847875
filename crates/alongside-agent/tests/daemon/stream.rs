//! The events of a session arrive in order and each once, whatever happens to the connection.

use std::time::Duration;

use crate::fake::{FakeDaemon, Reply, SESSION, frame, ids, read_until};
use alongside_agent::daemon::{Cursor, DaemonError, EventKind, StreamItem};
use serde_json::{Value, json};

fn is_event(item: &StreamItem, id: u64) -> bool {
    matches!(item, StreamItem::Event(event) if event.id == Some(id))
}

fn is_replay_complete(item: &StreamItem) -> bool {
    matches!(item, StreamItem::Event(event) if matches!(event.kind, EventKind::ReplayComplete { .. }))
}

fn rebuilt(items: &[StreamItem]) -> Vec<(&str, usize)> {
    items
        .iter()
        .filter_map(|item| match item {
            StreamItem::Rebuilt { reason, history } => Some((reason.as_str(), history.len())),
            _ => None,
        })
        .collect()
}

fn event(id: u64) -> Value {
    json!({"v": 1, "id": id, "type": "session_update", "data": crate::fake::chunk("agent_message_chunk", &format!("é{id} "))})
}

#[tokio::test]
async fn cut_at_any_byte_loses_and_repeats_nothing() {
    const EVENTS: u64 = 4;
    let wire = (1..=EVENTS).map(|id| frame(&event(id))).collect::<Vec<_>>().concat();
    let longest = wire.len() + 200;
    let mut running = tokio::task::JoinSet::new();
    for cut in 0..longest {
        if running.len() >= 64 {
            running.join_next().await.unwrap().unwrap();
        }
        running.spawn(async move {
            let daemon = FakeDaemon::start().await;
            daemon.with(|state| state.cuts.push_back(Some(cut)));
            for id in 1..=EVENTS {
                daemon.say(&format!("é{id} "));
            }
            let session = daemon.session().await;
            let mut events = session.events().unwrap();
            let items = read_until(&mut events, |item| is_event(item, EVENTS)).await;
            assert_eq!(ids(&items), [1, 2, 3, 4], "cut after {cut} bytes");
        });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
}

#[tokio::test]
async fn cuts_while_publishing_lose_and_repeat_nothing() {
    let daemon = FakeDaemon::start().await;
    daemon.with(|state| state.cuts.extend((0..60).map(|cut| Some(700 + cut * 37))));
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let publisher = async {
        for number in 0..300 {
            daemon.say(&format!("word{number} "));
            tokio::task::yield_now().await;
        }
    };
    let (items, ()) = tokio::join!(read_until(&mut events, |item| is_event(item, 300)), publisher);
    assert_eq!(ids(&items), (1..=300).collect::<Vec<_>>());
    assert!(daemon.requests("/events").len() > 5, "the connection was never cut");
}

#[tokio::test]
async fn reconnect_sends_last_event_id_and_epoch() {
    let daemon = FakeDaemon::start().await;
    daemon.say("one");
    let first = "retry: 3000\n\n".len() + frame(&daemon.with(|state| state.ring[0].clone())).len();
    daemon.say("two");
    daemon.with(|state| state.cuts.push_back(Some(first + 40)));
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let items = read_until(&mut events, |item| is_event(item, 2)).await;
    assert!(items.iter().any(|item| matches!(item, StreamItem::Interrupted { .. })));
    let requests = daemon.requests("/events");
    assert_eq!(requests[0].header("last-event-id"), Some("0"));
    assert_eq!(requests[1].header("last-event-id"), Some("1"));
    assert_eq!(requests[1].header("x-qwen-event-epoch"), Some("epoch-1"));
    assert_eq!(requests[1].header("x-qwen-client-id"), Some(crate::fake::CLIENT));
}

#[tokio::test]
async fn cursor_moves_with_the_next_read() {
    let daemon = FakeDaemon::start().await;
    daemon.say("one");
    daemon.say("two");
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    read_until(&mut events, |item| is_event(item, 1)).await;
    assert_eq!(
        session.cursor().last_event_id,
        Some(0),
        "what is being handled is not handled"
    );
    read_until(&mut events, |item| is_event(item, 2)).await;
    assert_eq!(session.cursor().last_event_id, Some(1));
    events.commit();
    assert_eq!(
        session.cursor(),
        Cursor {
            last_event_id: Some(2),
            epoch: Some("epoch-1".to_owned())
        }
    );
}

#[tokio::test]
async fn repeated_and_reordered_events_are_fixed() {
    let daemon = FakeDaemon::start().await;
    for _ in 1..=6 {
        daemon.say("x");
    }
    // While it is replayed the order is mended on the spot; a gap in what is live is asked for again.
    let complete = json!({"v": 1, "type": "replay_complete", "data": {"replayedCount": 3}});
    let order = [1, 1, 3, 2, 3, 1];
    let replay: String = order.iter().map(|&id| frame(&event(id))).collect();
    let live: String = [5, 4].iter().map(|&id| frame(&event(id))).collect();
    daemon.with(|state| {
        state
            .raw_streams
            .push_back(format!("{replay}{}{live}", frame(&complete)));
    });
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let items = read_until(&mut events, |item| is_event(item, 6)).await;
    assert_eq!(ids(&items), [1, 2, 3, 4, 5, 6]);
    assert_eq!(daemon.requests("/events")[1].header("last-event-id"), Some("3"));
}

#[tokio::test]
async fn nonexistent_event_id_is_skipped() {
    let daemon = FakeDaemon::start().await;
    let complete = json!({"v": 1, "type": "replay_complete", "data": {}});
    let replay = format!("{}{}{}", frame(&event(1)), frame(&event(3)), frame(&complete));
    daemon.with(|state| state.raw_streams.push_back(replay));
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let items = read_until(&mut events, is_replay_complete).await;
    assert_eq!(ids(&items), [1, 3]);
}

#[tokio::test]
async fn malformed_event_is_ignored() {
    let daemon = FakeDaemon::start().await;
    let odd = "data: {\"v\":1,\"type\":\"x\",\"id\":\ndata: }\n\ndata: [1]\n\ndata: {\"v\":2,\"type\":\"x\"}\n\n";
    let complete = json!({"v": 1, "type": "replay_complete", "data": {}});
    let raw = format!("{}{odd}{}{}", frame(&event(1)), frame(&event(2)), frame(&complete));
    daemon.with(|state| state.raw_streams.push_back(raw));
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let items = read_until(&mut events, is_replay_complete).await;
    assert_eq!(ids(&items), [1, 2]);
}

#[tokio::test]
async fn wrapped_ring_loads_the_session() {
    let daemon = FakeDaemon::start().await;
    daemon.with(|state| {
        state.first = 14;
        state.ring = (14..20).map(event).collect();
        state.history = vec![event(19)];
    });
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let items = read_until(&mut events, is_replay_complete).await;
    assert_eq!(rebuilt(&items), [("ring_evicted", 1)]);
    assert_eq!(
        ids(&items),
        Vec::<u64>::new(),
        "what is in the loaded history must not come again"
    );
    daemon.say("next");
    let items = read_until(&mut events, |item| is_event(item, 20)).await;
    assert_eq!(ids(&items), [20]);
    assert_eq!(daemon.requests("/events").len(), 1, "the connection stays good");
}

#[tokio::test]
async fn restarted_daemon_with_live_session_is_reread() {
    let daemon = FakeDaemon::start().await;
    daemon.say("one");
    daemon.say("two");
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    read_until(&mut events, is_replay_complete).await;
    daemon.restart(true);
    daemon.with(|state| {
        state.ring = vec![event(1), event(2), event(3)];
        state.history = vec![event(1), event(2), event(3)];
    });
    let items = read_until(&mut events, is_replay_complete).await;
    assert_eq!(rebuilt(&items), [("epoch_reset", 3)]);
    daemon.say("four");
    let items = read_until(&mut events, |item| is_event(item, 4)).await;
    assert_eq!(ids(&items), [4]);
    events.commit();
    assert_eq!(session.cursor().epoch.as_deref(), Some("epoch-1'"));
}

#[tokio::test]
async fn restarted_daemon_reloads_the_session() {
    let daemon = FakeDaemon::start().await;
    daemon.say("one");
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    read_until(&mut events, |item| is_event(item, 1)).await;
    read_until(&mut events, is_replay_complete).await;
    daemon.with(|state| state.history = vec![event(1)]);
    daemon.reply("/load", Reply::json(503, &json!({"code": "acp_channel_unavailable"})));
    daemon.restart(false);
    let items = read_until(&mut events, |item| matches!(item, StreamItem::Rebuilt { .. })).await;
    assert_eq!(rebuilt(&items), [("session_reopened", 1)]);
    daemon.say("fresh");
    let items = read_until(&mut events, |item| is_event(item, 1)).await;
    assert_eq!(ids(&items), [1]);
    assert_ne!(
        session.client_id().as_deref(),
        Some(crate::fake::CLIENT),
        "the daemon has issued another id"
    );
}

#[tokio::test]
async fn session_closed_while_disconnected_stays_closed() {
    let daemon = FakeDaemon::start().await;
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    read_until(&mut events, is_replay_complete).await;
    daemon.with(|state| state.live = false);
    let error = loop {
        match events.next().await.unwrap() {
            Ok(_) => {}
            Err(error) => break error,
        }
    };
    assert!(error.is_session_gone());
    assert!(events.next().await.is_none());
    assert_eq!(daemon.requests("/load").len(), 0);
}

#[tokio::test]
async fn stream_ends_only_with_its_own_session() {
    let daemon = FakeDaemon::start().await;
    daemon.publish("session_died", &json!({"sessionId": "another", "reason": "x"}));
    daemon.publish("session_died", &json!({"reason": "x"}));
    daemon.publish(
        "session_died",
        &json!({"sessionId": SESSION, "reason": "channel_closed"}),
    );
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let items = read_until(&mut events, |item| is_event(item, 3)).await;
    assert_eq!(ids(&items), [1, 2, 3]);
    assert!(events.next().await.is_none());
    assert_eq!(session.cursor().last_event_id, Some(3));
}

#[tokio::test]
async fn transient_error_is_retried() {
    let daemon = FakeDaemon::start().await;
    let limit =
        json!({"error": "EventBus subscriber limit reached (64)", "code": "subscriber_limit_exceeded", "limit": 64});
    daemon.reply("/events", Reply::json(429, &limit));
    daemon.reply("/events", Reply::html(503));
    daemon.say("one");
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let items = read_until(&mut events, |item| is_event(item, 1)).await;
    let interruptions = items
        .iter()
        .filter(|item| matches!(item, StreamItem::Interrupted { .. }))
        .count();
    assert_eq!((interruptions, ids(&items)), (2, vec![1]));
}

#[tokio::test]
async fn requested_retry_delay_is_honored() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("/events", Reply::html(503).with("Retry-After", "5"));
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let Some(Ok(StreamItem::Interrupted { retry_in, .. })) = events.next().await else {
        panic!("no interruption")
    };
    assert!(retry_in >= Duration::from_secs(5), "{retry_in:?}");
}

#[tokio::test]
async fn permanent_error_ends_the_stream() {
    for (status, body) in [
        (401, json!({"error": "Unauthorized"})),
        (400, json!({"code": "invalid_max_queued"})),
    ] {
        let daemon = FakeDaemon::start().await;
        daemon.reply("/events", Reply::json(status, &body));
        let session = daemon.session().await;
        let mut events = session.events().unwrap();
        let error = events.next().await.unwrap().unwrap_err();
        assert_eq!(error.status(), Some(status));
        assert!(events.next().await.is_none());
    }
}

#[tokio::test]
async fn html_response_is_not_an_event_stream() {
    let daemon = FakeDaemon::start().await;
    daemon.reply("/events", Reply::html(200));
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let error = events.next().await.unwrap().unwrap_err();
    assert!(matches!(error, DaemonError::NotADaemon(_)), "{error}");
}

#[tokio::test]
async fn forgotten_client_id_is_renewed_by_the_stream() {
    let daemon = FakeDaemon::start().await;
    let forgotten = json!({"error": "Client id is not registered", "code": "invalid_client_id"});
    daemon.reply("/events", Reply::json(400, &forgotten));
    daemon.say("one");
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    read_until(&mut events, |item| is_event(item, 1)).await;
    let requests = daemon.requests("/events");
    assert_eq!(requests[0].header("x-qwen-client-id"), Some("client_1"));
    assert_eq!(requests[1].header("x-qwen-client-id"), Some("client_2"));
}

#[tokio::test]
async fn second_stream_is_refused() {
    let daemon = FakeDaemon::start().await;
    let session = daemon.session().await;
    let events = session.events().unwrap();
    assert!(matches!(session.events(), Err(DaemonError::AlreadySubscribed)));
    drop(events);
    assert!(session.events().is_ok());
}

#[tokio::test]
async fn cancelled_read_loses_nothing() {
    let daemon = FakeDaemon::start().await;
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    let mut items = Vec::new();
    for id in 1..=20 {
        // Each wait is dropped at another moment, before the event or with it half way.
        let _ = tokio::time::timeout(Duration::from_micros(id * 50), events.next())
            .await
            .map(|item| items.extend(item));
        daemon.say("x");
    }
    let items: Vec<StreamItem> = items.into_iter().map(Result::unwrap).collect();
    let mut read = ids(&items);
    if read.last() != Some(&20) {
        read.extend(ids(&read_until(&mut events, |item| is_event(item, 20)).await));
    }
    assert_eq!(read, (1..=20).collect::<Vec<_>>());
}

#[tokio::test]
async fn attaching_requests_the_event_position() {
    let daemon = FakeDaemon::start().await;
    daemon.say("before");
    daemon.with(|state| state.attached = true);
    let session = daemon.session().await;
    assert_eq!(session.cursor().last_event_id, Some(1));
    let mut events = session.events().unwrap();
    daemon.say("after");
    let items = read_until(&mut events, |item| is_event(item, 2)).await;
    assert_eq!(ids(&items), [2]);
}

#[tokio::test]
async fn evicted_slow_reader_loses_nothing() {
    let daemon = FakeDaemon::start().await;
    // The real daemon throws a slow reader out in the middle of an event, without a word.
    daemon.with(|state| state.cuts.push_back(Some(3_000_001)));
    let session = daemon.session().await;
    let mut events = session.events().unwrap();
    read_until(&mut events, is_replay_complete).await;
    let long = "x".repeat(4000);
    for _ in 0..2000 {
        daemon.say(&long);
    }
    let items = read_until(&mut events, |item| is_event(item, 2000)).await;
    assert_eq!(ids(&items), (1..=2000).collect::<Vec<_>>());
    assert!(items.iter().any(|item| matches!(item, StreamItem::Interrupted { .. })));
}
