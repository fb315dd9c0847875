//! A clean stop while an agent has no event stream open: its decision arrives during the stop, or after the restart.

use std::time::Duration;

use serde_json::json;

use crate::sandbox::{Agent, Sandbox, Serving, TIMEOUT, wait_for};

/// Both CLIs wait a second before they open the next stream; half of it leaves room on a busy machine.
const RECONNECT_DELAY: Duration = Duration::from_millis(500);

/// Closes the agent's stream and waits until the companion knows.
fn close_stream(sandbox: &Sandbox, agent: Agent) -> alongside_mcp::client::Client {
    drop(agent.events);
    wait_for("the closed stream", || {
        let status = sandbox.json(&["status"]);
        (status["companions"][0]["agents"][0]["listening"] == false).then_some(())
    });
    agent.client
}

async fn reopen_stream(client: alongside_mcp::client::Client) -> Agent {
    Agent {
        events: client.events(None).await.unwrap(),
        client,
    }
}

/// The companion removes its discovery files first, so it is shutting down once they are gone.
fn begin_shutdown(sandbox: &Sandbox, serving: &Serving) {
    serving.signal("TERM");
    wait_for("the end of the announcement", || {
        sandbox.discovery_files().is_empty().then_some(())
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn agent_between_two_streams_gets_the_rejection_during_the_stop() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    let client = close_stream(&sandbox, agent);
    begin_shutdown(&sandbox, &serving);
    tokio::time::sleep(RECONNECT_DELAY).await;
    let mut agent = reopen_stream(client).await;
    assert_eq!(
        agent.decision().await,
        ("ide/diffRejected".into(), json!({ "filePath": "/a" }))
    );
    let end = async { while agent.events.next().await.unwrap().is_some() {} };
    tokio::time::timeout(TIMEOUT, end).await.unwrap();
    assert_eq!(serving.wait().0, Some(0));
}

#[tokio::test(flavor = "multi_thread")]
async fn decision_undelivered_at_the_stop_is_sent_once_after_the_restart() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    agent.propose("/b", "text").await;
    let client = close_stream(&sandbox, agent);
    sandbox.words(&["diff", "accept", "/a"]);
    serving.signal("TERM");
    serving.wait();
    let serving = sandbox.serve();
    let mut agent = reopen_stream(client).await;
    let accepted = json!({ "filePath": "/a", "content": "text" });
    assert_eq!(agent.decision().await, ("ide/diffAccepted".into(), accepted));
    assert_eq!(
        agent.decision().await,
        ("ide/diffRejected".into(), json!({ "filePath": "/b" }))
    );

    // What was delivered does not come back after another restart.
    serving.signal("TERM");
    serving.wait();
    let _serving = sandbox.serve();
    let mut agent = reopen_stream(agent.client).await;
    agent.propose("/a", "another text").await;
    sandbox.words(&["diff", "reject", "/a"]);
    assert_eq!(
        agent.decision().await,
        ("ide/diffRejected".into(), json!({ "filePath": "/a" }))
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn undelivered_decision_outlives_two_restarts() {
    let sandbox = Sandbox::new();
    let mut serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    let client = close_stream(&sandbox, agent);
    sandbox.words(&["diff", "accept", "/a"]);
    for _ in 0..2 {
        serving.signal("TERM");
        serving.wait();
        serving = sandbox.serve();
    }
    let mut agent = reopen_stream(client).await;
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "text");
}

#[tokio::test(flavor = "multi_thread")]
async fn new_proposal_after_the_restart_supersedes_an_undelivered_decision() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    let client = close_stream(&sandbox, agent);
    sandbox.words(&["diff", "accept", "/a"]);
    serving.signal("TERM");
    serving.wait();
    let _serving = sandbox.serve();
    let propose = json!({ "name": "openDiff", "arguments": { "filePath": "/a", "newContent": "another text" } });
    client.request("tools/call", propose).await.unwrap();
    let mut agent = reopen_stream(client).await;
    sandbox.words(&["diff", "reject", "/a"]);
    assert_eq!(
        agent.decision().await,
        ("ide/diffRejected".into(), json!({ "filePath": "/a" }))
    );
}
