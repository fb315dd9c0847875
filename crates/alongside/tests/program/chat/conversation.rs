//! A conversation, and who sees what of it.

use std::fmt::Write;
use std::time::Duration;

use alongside_front::client::ClientError;
use alongside_protocol::{ChatAgentKind, ChatPhase, Empty, Notification, Texts, requests};
use serde_json::json;

use super::front::Front;
use super::{sandbox, sandbox_with, serve, talking_daemon};
use crate::sandbox::{Agent, TIMEOUT};

fn refused<T: std::fmt::Debug>(result: Result<T, ClientError>) -> (String, String) {
    match result.unwrap_err() {
        ClientError::Rejected(error) => (error.kind.as_str().to_owned(), error.message),
        other => panic!("{other}"),
    }
}

#[tokio::test]
async fn nothing_is_started_before_a_person_asks() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    let state = front.ask().await.unwrap();
    let ids: Vec<&str> = state.agents.iter().map(|agent| agent.id.as_str()).collect();
    assert_eq!(ids, ["qwen", "gemini", "scripted"]);
    assert_eq!((state.changed.agent, state.changed.phase), (None, ChatPhase::Idle));
    assert!(state.events.is_empty());
    let (kind, message) = refused(front.prompt("say hello").await);
    assert_eq!(kind, "notConnected", "{message}");
}

#[tokio::test]
async fn answer_reaches_every_front_end_with_the_chat() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut first = Front::connect(&serving, &sandbox).await;
    let mut second = Front::connect(&serving, &sandbox).await;
    first.choose("scripted").await.unwrap();
    let prompt = first.prompt("say hello there").await.unwrap();
    for front in [&mut first, &mut second] {
        front.until_ended(&prompt).await;
        assert_eq!(front.answer(&prompt), "hello there");
        assert_eq!(front.phase, ChatPhase::Connected);
    }
    let mut late = Front::connect(&serving, &sandbox).await;
    assert_eq!(late.answer(&prompt), "hello there");
    assert_eq!(late.end(&prompt), first.end(&prompt));
    assert!(late.events.len() <= first.events.len());
    late.client.call::<requests::ChatDisconnect>(Empty {}).await.unwrap();
    second
        .until("it is over", |front| front.phase == ChatPhase::Ended)
        .await;
    assert_eq!(second.answer(&prompt), "hello there", "what was said stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn prompt_is_in_the_log_when_it_is_acknowledged() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    let mut other = Front::connect(&serving, &sandbox).await;
    front.choose("scripted").await.unwrap();
    for number in 0..50 {
        let text = format!("say {number}");
        let prompt = front.prompt(&text).await.unwrap();
        let state = other.ask().await.unwrap();
        let events = serde_json::to_value(&state.events).unwrap();
        let is_logged = |event: &serde_json::Value| event["type"] == "promptAccepted" && event["text"] == *text;
        assert!(events.as_array().unwrap().iter().any(is_logged), "{text}: {events:#}");
        front.until_ended(&prompt).await;
    }
}

#[tokio::test]
async fn long_answer_is_complete_and_drops_no_review() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut editor = serving.front_end(&sandbox).await;
    let mut page = Front::connect(&serving, &sandbox).await;
    page.choose("scripted").await.unwrap();
    let command_line = Agent::connect(&serving).await;
    command_line.propose("/a", "text").await;
    let prompt = page.prompt("count 5000").await.unwrap();
    // The page reads nothing while all of it is said.
    let opened = async {
        loop {
            match editor.notification().await.unwrap() {
                Notification::ReviewOpened(review) => return review,
                Notification::ChatEvent(_) | Notification::ChatChanged(_) => panic!("an editor is told the chat"),
                Notification::Resync(_) => panic!("a review was pushed out"),
                _ => {}
            }
        }
    };
    assert_eq!(*tokio::time::timeout(TIMEOUT, opened).await.unwrap().path, *"/a");
    page.until_ended(&prompt).await;
    let mut expected = String::new();
    (0..5000).for_each(|number| write!(expected, "word{number} ").unwrap());
    assert_eq!(page.answer(&prompt), expected);
    let late = Front::connect(&serving, &sandbox).await;
    assert_eq!(late.answer(&prompt), expected);
    assert!(late.events.len() < 30, "{} events", late.events.len());
}

#[tokio::test]
async fn another_session_begins_another_log() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("scripted").await.unwrap();
    let prompt = front.prompt("say one").await.unwrap();
    front.until_ended(&prompt).await;
    let epoch = front.ask().await.unwrap().epoch;
    front
        .command(json!({"type": "loadSession", "sessionId": "old"}))
        .await
        .unwrap();
    front
        .until("the history", |front| front.of_type("historyEnd").next().is_some())
        .await;
    let state = front.ask().await.unwrap();
    assert_ne!(state.epoch, epoch);
    assert_eq!(front.answer(&prompt), "");
    assert_eq!(front.of_type("userMessage").count(), 1);
}

#[tokio::test]
async fn what_cannot_be_done_is_refused_with_a_sentence() {
    let sandbox = sandbox_with("[agents.missing]\ncommand = ['/nowhere/agent']\n");
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    let (kind, message) = refused(front.choose("nobody").await);
    assert_eq!(kind, "unknownAgent");
    assert!(message.contains("qwen, gemini"), "{message}");
    let (kind, message) = refused(front.choose("missing").await);
    assert_eq!(kind, "agentFailed");
    assert!(
        message.contains("cannot start") && message.contains("on your PATH"),
        "{message}"
    );
    front.until("it is over", |front| front.phase == ChatPhase::Ended).await;
    assert!(
        front.of_type("notice").any(|notice| notice["level"] == "warning"),
        "all front ends are told"
    );
    let problem = front
        .ask()
        .await
        .unwrap()
        .agents
        .into_iter()
        .find(|agent| agent.id == "missing");
    assert!(problem.unwrap().problem.is_some());
    front.choose("scripted").await.unwrap();
    assert_eq!(
        refused(front.command(json!({"type": "rename", "title": "x"})).await).0,
        "unsupported"
    );
}

#[tokio::test]
async fn exited_local_agent_fails_its_turn_and_keeps_its_text() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("scripted").await.unwrap();
    let said = front.prompt("say before").await.unwrap();
    front.until_ended(&said).await;
    let prompt = front.prompt("die").await.unwrap();
    front.until("it is over", |front| front.phase == ChatPhase::Ended).await;
    front.until_ended(&prompt).await;
    assert_eq!(front.end(&prompt).unwrap()["outcome"], "failed");
    assert_eq!(front.answer(&said), "before");
    let text = serde_json::to_string(&front.ask().await.unwrap()).unwrap();
    assert!(!text.contains("s3cret-key"), "{text}");
}

#[tokio::test]
async fn daemon_chat_works_and_hides_its_address() {
    let sandbox = sandbox();
    let mut daemon = talking_daemon(&sandbox, Duration::from_millis(1)).await;
    let settings = format!(
        "[daemon]\nenabled = true\nurl = '{}'\ntoken = 's3cret-token'\n",
        daemon.url()
    );
    sandbox.write_config(&settings);
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    let agents = front.ask().await.unwrap().agents;
    assert_eq!(agents[2].kind, ChatAgentKind::Daemon);
    front.choose("daemon").await.unwrap();
    let prompt = front.prompt("answer 1 5").await.unwrap();
    front.until_ended(&prompt).await;
    assert_eq!(front.answer(&prompt), "t1w0 t1w1 t1w2 t1w3 t1w4 ");
    daemon.kill().await;
    front
        .until("it is interrupted", |front| front.of_type("interrupted").count() > 1)
        .await;
    assert_eq!(front.phase, ChatPhase::Interrupted);
    let live = format!("{:?}", front.events);
    let state = front.ask().await.unwrap();
    let text = format!("{}{live}", serde_json::to_string(&state).unwrap());
    for secret in [
        daemon.url().as_str(),
        &daemon.port.to_string(),
        "s3cret-token",
        "client_",
    ] {
        assert!(!text.contains(secret), "{secret}: {text}");
    }
}

#[tokio::test]
async fn texts_are_compared_as_in_a_review() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    let texts = Texts {
        base: "one\ntwo\n".into(),
        proposal: "one\n2\n".into(),
    };
    let answer = front.client.call::<requests::Diff>(texts).await.unwrap();
    assert_eq!((answer.hunks.len(), answer.hunks[0].base.start), (1, 2));
}
