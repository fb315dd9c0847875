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
    wait_until_saved(&sandbox, "edited");
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

/// The writer thread writes reviews a moment after the command has its response.
fn wait_until_saved(sandbox: &Sandbox, text: &str) {
    let reviews = sandbox.path("home/.local/state/alongside/reviews");
    crate::sandbox::wait_for("the review on disk", || {
        let slots = std::fs::read_dir(&reviews).ok()?.flatten();
        let files = slots.flat_map(|slot| std::fs::read_dir(slot.path()).into_iter().flatten().flatten());
        let saved = files.filter_map(|file| std::fs::read_to_string(file.path()).ok());
        saved
            .into_iter()
            .any(|saved| saved.contains(&format!("\"{text}\"")))
            .then_some(())
    });
}
