//! A companion that stops and is started again.

use serde_json::json;

use crate::sandbox::{Agent, Sandbox, TIMEOUT};

#[tokio::test]
async fn clean_stop_rejects_pending_changes_and_ends_streams() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    serving.signal("TERM");
    assert_eq!(
        agent.decision().await,
        ("ide/diffRejected".into(), json!({ "filePath": "/a" }))
    );
    let end = tokio::time::timeout(TIMEOUT, agent.events.next()).await.unwrap();
    assert!(matches!(end, Ok(None)), "the stream ends without an error: {end:?}");
    assert_eq!(serving.wait().0, Some(0));
}

#[tokio::test]
async fn restarted_companion_has_the_same_port_and_token_and_knows_its_agents() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    let (port, token) = (serving.port, serving.token());
    serving.signal("TERM");
    serving.wait();
    let serving = sandbox.serve();
    assert_eq!((serving.port, serving.token()), (port, token));
    let mut agent = Agent {
        events: agent.client.events(None).await.unwrap(),
        client: agent.client,
    };
    agent.propose("/a", "text").await;
    let review = &sandbox.json(&["diff", "list"])[0];
    assert_eq!(
        (review["agent"].as_str(), review["agentVersion"].as_str()),
        (Some("Gemini CLI"), Some("0.61.0")),
        "its name is remembered"
    );
    sandbox.words(&["diff", "accept", "1"]);
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "text");
}

// The client notices the killed companion while the test waits for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn review_survives_a_crash_and_its_decision_reaches_the_agent() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    std::fs::write(sandbox.path("edited"), "edited").unwrap();
    sandbox.words(&[
        "diff",
        "edit",
        "1",
        "--content-file",
        sandbox.path("edited").to_str().unwrap(),
    ]);
    serving.kill();
    let _serving = sandbox.serve();
    let restored = sandbox.json(&["diff", "list"]);
    assert_eq!(
        (&restored[0]["path"], &restored[0]["edited"]),
        (&json!("/a"), &json!(true)),
        "{restored}"
    );
    sandbox.words(&["diff", "accept", "1"]);
    let mut agent = Agent {
        events: agent.client.events(None).await.unwrap(),
        client: agent.client,
    };
    assert_eq!(
        agent.told("ide/diffAccepted").await,
        json!({ "filePath": "/a", "content": "edited" })
    );
}

#[test]
fn second_companion_does_not_replace_the_first() {
    let sandbox = Sandbox::new();
    let first = sandbox.serve();
    let second = sandbox.serve();
    assert_ne!(first.port, second.port);
    assert_ne!(first.token(), second.token());
    second.signal("TERM");
    second.wait();
    crate::sandbox::wait_for("the files of the first", || {
        first.files.iter().all(|file| file.exists()).then_some(())
    });
    assert_eq!(sandbox.json(&["status"])["companions"].as_array().unwrap().len(), 1);
}

/// Reconnects as Gemini CLI and Qwen Code do, with the id of the last event.
async fn reconnect(agent: Agent) -> Agent {
    let last = agent.events.last_event_id().map(str::to_owned);
    Agent {
        events: agent.client.events(last.as_deref()).await.unwrap(),
        client: agent.client,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn decision_acknowledged_without_a_stream_survives_a_kill() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    drop(agent.events);
    sandbox.words(&["diff", "accept", "1"]);
    serving.kill();
    let _serving = sandbox.serve();
    let mut agent = Agent {
        events: agent.client.events(None).await.unwrap(),
        client: agent.client,
    };
    assert_eq!(
        agent.told("ide/diffAccepted").await,
        json!({ "filePath": "/a", "content": "text" })
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn proposal_is_on_disk_when_it_is_acknowledged() {
    let sandbox = Sandbox::new();
    let large = "x".repeat(5_000_000);
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/large", &large).await;
    agent.propose("/a", "text").await;
    serving.kill();
    let _serving = sandbox.serve();
    let paths: Vec<_> = sandbox
        .json(&["diff", "list"])
        .as_array()
        .unwrap()
        .iter()
        .map(|review| review["path"].clone())
        .collect();
    assert_eq!(paths, ["/large", "/a"]);
}

#[cfg(target_os = "linux")]
#[tokio::test(flavor = "multi_thread")]
async fn limit_on_the_size_of_files_refuses_proposals_and_stops_nothing() {
    use rustix::process::{Pid, Resource, Rlimit, prlimit};

    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let pid = Pid::from_raw(i32::try_from(serving.pid()).unwrap());
    let set_limit = |bytes| {
        let (current, maximum) = (bytes, None);
        prlimit(pid, Resource::Fsize, Rlimit { current, maximum }).unwrap();
    };
    let agent = Agent::connect(&serving).await;
    set_limit(Some(0));
    let refusal = agent.refused("/a", "text").await;
    assert!(refusal.contains("cannot be reviewed now"), "{refusal}");
    let has_warning = || sandbox.words(&["status"]).contains("warning:");
    assert!(has_warning());
    let doctor = sandbox.output(&["doctor"]);
    assert!(!doctor.status.success());
    assert!(String::from_utf8_lossy(&doctor.stdout).contains("warning: the journal cannot be written"));
    set_limit(None);
    crate::sandbox::wait_for("the end of the problem", || (!has_warning()).then_some(()));
    assert_eq!(sandbox.json(&["doctor"])["problems"], json!([]));
    agent.propose("/a", "text").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn delivered_decision_is_not_pending_after_a_kill_and_not_repeated() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    sandbox.words(&["diff", "accept", "1"]);
    agent.told("ide/diffAccepted").await;
    serving.kill();
    let _serving = sandbox.serve();
    assert_eq!(sandbox.json(&["diff", "list"]), json!([]));
    assert!(sandbox.failure(&["diff", "reject", "1"]).contains("accepted"));
    let mut agent = reconnect(agent).await;
    agent.propose("/b", "text").await;
    assert_eq!(sandbox.json(&["diff", "list"])[0]["id"], 2, "numbers are not reused");
    sandbox.words(&["diff", "reject", "2"]);
    assert_eq!(
        agent.decision().await,
        ("ide/diffRejected".into(), json!({ "filePath": "/b" })),
        "the first decision is not sent again"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn reviews_rejected_by_a_clean_stop_are_not_pending_again() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    for number in 0..100 {
        agent.propose(&format!("/{number}"), "text").await;
    }
    serving.signal("TERM");
    serving.wait();
    let _serving = sandbox.serve();
    assert_eq!(sandbox.json(&["diff", "list"]), json!([]));
}

#[test]
fn port_and_token_do_not_come_back_when_the_time_is_up() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let token = serving.token();
    serving.signal("TERM");
    serving.wait();
    sandbox.write_config("[sessions]\nresume-after-stop = 0\n");
    let serving = sandbox.serve();
    assert_ne!(serving.token(), token);
    let token = serving.token();
    serving.kill();
    assert_eq!(sandbox.serve().token(), token, "after a crash another limit applies");
}

/// P4: Copilot CLI connects to a restarted companion only if its lock has another name.
#[test]
#[cfg(unix)]
fn restarted_companion_has_another_lock_for_copilot() {
    let sandbox = Sandbox::new();
    let locks = || -> Vec<_> {
        let entries = std::fs::read_dir(sandbox.path("home/.copilot/ide")).unwrap();
        entries.map(|entry| entry.unwrap().file_name()).collect()
    };
    let serving = sandbox.serve();
    let before = locks();
    serving.kill();
    assert_eq!(locks(), before, "it could not remove its lock");
    let _again = sandbox.serve();
    let after = locks();
    assert_eq!((before.len(), after.len()), (1, 1), "{before:?} {after:?}");
    assert_ne!(before, after);
}
