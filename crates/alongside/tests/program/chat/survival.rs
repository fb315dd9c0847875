//! The companion, the daemon or the child ends without a word, and the chat comes back.

use std::time::Duration;

use alongside_journal::{Directory, Log};
use alongside_protocol::ChatPhase;
use alongside_testing::FakeDaemon;
use serde_json::json;

use super::front::Front;
use super::{sandbox, serve, serve_with, talking_daemon};
use crate::sandbox::Sandbox;

const PAUSE: Duration = Duration::from_millis(20);

async fn with_daemon() -> (Sandbox, FakeDaemon) {
    let sandbox = sandbox();
    let daemon = talking_daemon(&sandbox, PAUSE).await;
    sandbox.write_config(&format!("[daemon]\nenabled = true\nurl = '{}'\n", daemon.url()));
    (sandbox, daemon)
}

async fn connected(front: &mut Front) {
    front
        .until("it is connected", |front| front.phase == ChatPhase::Connected)
        .await;
}

fn whole(turn: u32, words: u32) -> (String, String) {
    let answer = (0..words).map(|word| format!("t{turn}w{word} ")).collect::<Vec<_>>();
    (format!("answer {turn} {words}"), answer.concat())
}

#[tokio::test]
async fn killed_companion_catches_up_with_the_daemon_once() {
    let (sandbox, _daemon) = with_daemon().await;
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("daemon").await.unwrap();
    let first = front.prompt("answer 1 3").await.unwrap();
    front.until_ended(&first).await;
    let prompt = front.prompt("answer 2 30").await.unwrap();
    front
        .until("some words", |front| front.answer(&prompt).contains("w5"))
        .await;
    serving.kill();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    assert!(
        front.answer(&prompt).contains("t2w5"),
        "what was shown is there at once: {:#?}",
        front.events
    );
    front.until_ended(&prompt).await;
    assert_eq!(front.end(&prompt).unwrap()["outcome"], "completed");
    assert_eq!(front.turns(), [whole(1, 3), whole(2, 30)]);
    let next = front.prompt("answer 3 3").await.unwrap();
    front.until_ended(&next).await;
    assert_eq!(front.turns(), [whole(1, 3), whole(2, 30), whole(3, 3)]);
}

#[tokio::test]
async fn partial_answer_of_a_killed_daemon_stays() {
    let (sandbox, mut daemon) = with_daemon().await;
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("daemon").await.unwrap();
    let first = front.prompt("answer 1 3").await.unwrap();
    front.until_ended(&first).await;
    let prompt = front.prompt("answer 2 30").await.unwrap();
    front
        .until("some words", |front| front.answer(&prompt).contains("w5"))
        .await;
    daemon.kill().await;
    front
        .until("it is interrupted", |front| front.phase == ChatPhase::Interrupted)
        .await;
    let shown = front.answer(&prompt);
    daemon.revive().await;
    connected(&mut front).await;
    front.until_ended(&prompt).await;
    assert_eq!(front.end(&prompt).unwrap()["outcome"], "failed");
    assert_eq!(front.turns(), [whole(1, 3), ("answer 2 30".to_owned(), shown.clone())]);
    let next = front.prompt("answer 3 3").await.unwrap();
    front.until_ended(&next).await;
    let late = Front::connect(&serving, &sandbox).await;
    let expected = [whole(1, 3), ("answer 2 30".to_owned(), shown), whole(3, 3)];
    assert_eq!((front.turns(), late.turns()), (expected.to_vec(), expected.to_vec()));
}

#[tokio::test]
async fn killed_companion_restarts_its_local_agent() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("scripted").await.unwrap();
    let first = front.prompt("answer 1 3").await.unwrap();
    front.until_ended(&first).await;
    let prompt = front.prompt("answer 2 3000").await.unwrap();
    front
        .until("some words", |front| front.answer(&prompt).contains("w5"))
        .await;
    let seen = front.answer(&prompt);
    serving.kill();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    connected(&mut front).await;
    assert_eq!(front.end(&prompt).unwrap()["outcome"], "failed");
    assert_eq!(front.answer(&first), whole(1, 3).1);
    let kept = front.answer(&prompt);
    assert!(kept.starts_with(&seen) && whole(2, 3000).1.starts_with(&kept), "{kept}");
    let next = front.prompt("answer 3 3").await.unwrap();
    front.until_ended(&next).await;
    let expected = [whole(1, 3), ("answer 2 3000".to_owned(), kept), whole(3, 3)];
    assert_eq!(
        front.turns(),
        expected,
        "what the child tells of its history is shown already"
    );
    assert_eq!(front.of_type("notice").count(), 0);
}

#[tokio::test]
async fn agent_without_its_session_gets_a_notice() {
    let sandbox = sandbox();
    let serving = serve_with(&sandbox, "forgetful");
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("scripted").await.unwrap();
    let first = front.prompt("answer 1 3").await.unwrap();
    front.until_ended(&first).await;
    // The scripted agent gives all its sessions the same id; another one would not.
    let journals = sandbox.path("home/.local/state/alongside/journal");
    serving.kill();
    for entry in std::fs::read_dir(journals).unwrap() {
        let directory = Directory::open(&entry.unwrap().path()).unwrap();
        let (mut log, recovered) = Log::open(&directory, "chat").unwrap();
        let texts = recovered
            .records
            .into_iter()
            .map(|record| String::from_utf8(record).unwrap());
        let changed: Vec<_> = texts
            .map(|text| text.replace("session-1", "session-0").into_bytes())
            .collect();
        log.compact(&changed).unwrap();
    }
    let serving = serve_with(&sandbox, "forgetful");
    let mut front = Front::connect(&serving, &sandbox).await;
    connected(&mut front).await;
    front
        .until("the notice", |front| front.of_type("notice").count() == 1)
        .await;
    assert_eq!(front.turns(), [whole(1, 3)]);
    let next = front.prompt("answer 2 3").await.unwrap();
    front.until_ended(&next).await;
    assert_eq!(front.turns(), [whole(1, 3), whole(2, 3)]);
}

#[tokio::test]
async fn stopped_companion_restores_the_chat_without_connecting() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("scripted").await.unwrap();
    let first = front.prompt("answer 1 3").await.unwrap();
    front.until_ended(&first).await;
    serving.signal("TERM");
    assert_eq!(serving.wait().0, Some(0));
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    assert_eq!(front.phase, ChatPhase::Ended);
    assert_eq!(front.turns(), [whole(1, 3)]);
    let over = front.of_type("disconnected").next().unwrap();
    assert_eq!(over["reopen"], json!("session-1"));
    let reopen = json!({"type": "loadSession", "sessionId": "session-1"});
    front.command(reopen).await.unwrap();
    let next = front.prompt("answer 2 3").await.unwrap();
    front.until_ended(&next).await;
    assert_eq!(
        front.turns(),
        [whole(1, 3), whole(2, 3)],
        "when somebody asks it goes on"
    );
}

#[tokio::test]
async fn repeated_prompt_id_is_sent_once_even_by_the_next_companion() {
    let (sandbox, daemon) = with_daemon().await;
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("daemon").await.unwrap();
    let block = json!({"type": "text", "text": "answer 1 3"});
    let prompt = json!({"type": "prompt", "id": "mine", "blocks": [block]});
    let first = front.command(prompt.clone()).await.unwrap();
    assert_eq!(front.command(prompt.clone()).await.unwrap(), first);
    front.until_ended(first["promptId"].as_str().unwrap()).await;
    serving.kill();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    connected(&mut front).await;
    assert_eq!(front.command(prompt.clone()).await.unwrap(), first);
    assert_eq!(daemon.requests("/prompt").len(), 1);
    let other = json!({"type": "prompt", "id": "other", "blocks": [block]});
    assert_ne!(front.command(other).await.unwrap(), first);
    let long = json!({"type": "prompt", "id": "x".repeat(65), "blocks": [block]});
    let error = front.command(long).await.unwrap_err();
    assert!(error.to_string().contains("64 bytes"), "{error}");
    assert_eq!(daemon.requests("/prompt").len(), 2);
}
