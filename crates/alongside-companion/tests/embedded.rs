//! A companion inside another program: started, used and stopped without the binary.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::Path;
use std::time::Duration;

use alongside_companion::places::Places;
use alongside_companion::{Options, RunningCompanion};
use alongside_core::dialect::ClientInfo;
use alongside_discovery::Environment;
use alongside_mcp::client::Client;
use alongside_protocol::{Empty, requests};
use serde_json::json;

const TIMEOUT: Duration = Duration::from_secs(30);

/// Everything below one directory: nothing is read from or written to the user's own.
fn options(directory: &Path) -> Options {
    let temporary = directory.join("tmp");
    let workspace = directory.join("workspace");
    for directory in [&temporary, &workspace] {
        std::fs::create_dir_all(directory).unwrap();
    }
    let environment = Environment::new(directory.join("home"), &workspace).with("TMPDIR", temporary.to_str().unwrap());
    Options {
        workspace: vec![workspace],
        places: Some(Places {
            configuration: directory.join("config"),
            state: directory.join("state"),
        }),
        environment: Some(environment),
        reconnect_grace: Some(Duration::from_millis(10)),
        ..Options::default()
    }
}

async fn connect_agent(running: &RunningCompanion) -> Client {
    let announcement = running.announcement();
    let client = Client::connect("127.0.0.1", announcement.port, announcement.token.reveal())
        .await
        .unwrap();
    let info = ClientInfo {
        name: "test".to_owned(),
        version: "1".to_owned(),
    };
    client.initialize(&info).await.unwrap();
    client
}

#[tokio::test]
async fn companion_starts_serves_a_front_end_and_stops() {
    let scratch = tempfile::tempdir().unwrap();
    let running = RunningCompanion::start(options(scratch.path())).await.unwrap();
    let files = running.companion().announce_report().files;
    assert!(
        !files.is_empty()
            && files
                .iter()
                .all(|file| file.starts_with(scratch.path()) && file.exists())
    );

    let _agent = connect_agent(&running).await;
    let mut front_end = running.record().connect(false).await.unwrap();
    let status = front_end.call::<requests::Status>(Empty {}).await.unwrap();
    assert_eq!(status.port, running.announcement().port);
    assert_eq!(status.agents.len(), 1);

    front_end.call::<requests::Stop>(Empty {}).await.unwrap();
    tokio::time::timeout(TIMEOUT, running.stop_requested()).await.unwrap();
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();
    assert!(!files.iter().any(|file| file.exists()));
}

#[tokio::test]
async fn decision_without_a_stream_reaches_the_agent_through_the_next_companion() {
    let scratch = tempfile::tempdir().unwrap();
    let running = RunningCompanion::start(options(scratch.path())).await.unwrap();
    let agent = connect_agent(&running).await;
    let proposal = json!({ "name": "openDiff", "arguments": { "filePath": "/a", "newContent": "text" } });
    agent.request("tools/call", proposal).await.unwrap();
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();

    let running = RunningCompanion::start(options(scratch.path())).await.unwrap();
    let mut events = agent.events(None).await.unwrap();
    let decision = async {
        loop {
            let event = events.next().await.unwrap().unwrap();
            if event["method"] == "ide/diffRejected" {
                return event["params"].clone();
            }
        }
    };
    let decision = tokio::time::timeout(TIMEOUT, decision).await.unwrap();
    assert_eq!(decision, json!({ "filePath": "/a" }));
    tokio::time::timeout(TIMEOUT, running.stop()).await.unwrap();
}
