//! Windows and companions that end and come back.

use std::time::{Duration, Instant};

use alongside_e2e::mcp_agent::Agent;
use serde_json::json;

use crate::case::Case;

#[tokio::test]
async fn edited_review_survives_a_killed_companion() {
    let case = Case::new();
    let path = case.write("a.txt", "one\ntwo\nthree\n");
    let window = case.open();
    let mut agent = case.agent().await;
    window.open_file(&path, 3, 6);
    window.type_text(" unsaved");
    agent.propose(&path, "one\n2\nthree unsaved\n").await;
    window.show_review();
    window.type_after("2", " edited");
    let killed = case.companion();
    killed.kill();
    agent.reconnect().await;
    assert_eq!(case.companion().port_and_token, killed.port_and_token);
    window.wait_for_states(&["Edited"]);
    window.type_after("2 edited", " again");
    assert_eq!(window.accept(&mut agent).await, "one\n2 edited again\nthree unsaved\n");
}

/// How long a companion waits for its window, minus what this test does besides reloading.
const GRACE: Duration = Duration::from_secs(10);

#[tokio::test]
async fn reload_keeps_reviews_with_their_edits() {
    let case = Case::new();
    let path = case.write("a.txt", "one\ntwo\n");
    let window = case.open();
    let mut agent = case.agent().await;
    for _ in 0..5 {
        agent.propose(&path, "one\n2\n").await;
        window.show_review();
        window.type_after("2", " edited");
        window.wait_for_states(&["Edited"]);
        let left = case.companion();
        let start = Instant::now();
        window.ask("reload");
        let took = start.elapsed();
        // It answers until the next window's companion takes its place.
        left.wait_until_exited();
        agent.reconnect().await;
        let pending = json!({"text": "1 change", "timeout": 5000});
        if window.try_call("statusWith", &pending).is_ok() {
            window.show_review();
            window.wait_for_draft_line("2 edited");
            assert_eq!(window.accept(&mut agent).await, "one\n2 edited\n");
            return;
        }
        // A busy machine may need longer to load the window. Then the change is rejected.
        assert!(took > GRACE, "a reload of {took:.1?} rejected the change");
        agent.decision().await;
    }
    panic!("the window never came back in time");
}

#[tokio::test]
async fn killed_extension_host_leaves_no_companion_behind() {
    let case = Case::new();
    let path = case.write("a.txt", "one\n");
    let window = case.open();
    let killed = case.companion();
    let mut agent = Agent::connect(&killed.port_and_token).await;
    agent.propose(&path, "two\n").await;
    window.show_review();
    killed.kill_parent();
    let decision = agent.decision().await;
    assert_eq!(decision["method"], "ide/diffRejected", "{decision}");
    killed.wait_until_exited();
    // VS Code starts another extension host, and that another companion.
    assert_ne!(case.companion().pid, killed.pid);
    let mut agent = case.agent().await;
    agent.propose(&path, "three\n").await;
    window.show_review();
    assert_eq!(window.accept(&mut agent).await, "three\n");
}

#[tokio::test]
async fn two_windows_on_one_folder_have_their_own_agents_and_reviews() {
    let case = Case::new();
    let path = case.write("a.txt", "one\n");
    let other_path = case.write("b.txt", "one\n");
    let window = case.open();
    let companion = case.companion();
    let mut agent = Agent::connect(&companion.port_and_token).await;
    let other_window = case.open();
    let mut companions = case.companions(2);
    companions.retain(|other| other.pid != companion.pid);
    let mut other_agent = Agent::connect(&companions[0].port_and_token).await;

    agent.propose(&path, "two\n").await;
    other_agent.propose(&other_path, "three\n").await;
    window.show_review();
    window.wait_for_draft_line("two");
    other_window.show_review();
    other_window.wait_for_draft_line("three");
    assert_eq!(other_window.accept(&mut other_agent).await, "three\n");
    drop(other_window);
    // The closed window's companion ends, and the other one stays.
    assert_eq!(case.companion().pid, companion.pid);
    assert_eq!(window.accept(&mut agent).await, "two\n");
}
