//! What a child writes is reviewed like the change of any other agent.

use alongside_protocol::{
    Buffer, ChatPhase, ChatWrites, ChatWritesChoice, Empty, Notification, ReviewSummary, requests,
};
use serde_json::json;

use super::front::Front;
use super::{sandbox, serve};
use crate::sandbox::{Sandbox, Serving, TIMEOUT, wait_for};

/// A front end that is connected to the scripted agent.
async fn connected(serving: &Serving, sandbox: &Sandbox) -> Front {
    let mut front = Front::connect(serving, sandbox).await;
    front.choose("scripted").await.unwrap();
    front
}

/// Waits until a review is there, as an editor hears of it.
async fn review(serving: &Serving, sandbox: &Sandbox) -> ReviewSummary {
    let mut editor = serving.front_end(sandbox).await;
    let wait = async {
        loop {
            let list = editor.call::<requests::ReviewList>(Empty {}).await.unwrap();
            if let Some(review) = list.into_iter().next() {
                return review;
            }
            editor.notification().await.unwrap();
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap()
}

async fn closed(serving: &Serving, sandbox: &Sandbox) {
    let mut editor = serving.front_end(sandbox).await;
    let wait = async {
        loop {
            let list = editor.call::<requests::ReviewList>(Empty {}).await.unwrap();
            if list.is_empty() {
                return;
            }
            while !matches!(editor.notification().await.unwrap(), Notification::ReviewClosed(_)) {}
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap();
}

#[tokio::test]
async fn local_agents_change_is_written_as_accepted() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    // The companion hears of the connection a moment later, and only then knows the agent's name.
    wait_for("the agent in the list", || {
        let listed = sandbox.json(&["status"]);
        listed["companions"][0]["agents"][0].is_object().then_some(())
    });
    let prompt = front.prompt(&format!("write {file} two")).await.unwrap();
    let review = review(&serving, &sandbox).await;
    assert_eq!(
        (review.agent_identity().to_string().as_str(), &*review.path),
        ("Fake Agent 1.2.3", file.as_str())
    );
    let listed = sandbox.json(&["status"]);
    let agent = &listed["companions"][0]["agents"][0];
    assert_eq!(
        (&agent["name"], &agent["version"]),
        (&json!("Fake Agent"), &json!("1.2.3"))
    );
    std::fs::write(sandbox.path("edited"), "two, edited\n").unwrap();
    let edited = sandbox.path("edited");
    sandbox.words(&["diff", "accept", "1", "--content-file", edited.to_str().unwrap()]);
    front.until_ended(&prompt).await;
    assert_eq!(front.answer(&prompt), "written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two, edited\n");
}

#[tokio::test]
async fn a_rejected_change_is_refused_to_the_child() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let prompt = front.prompt(&format!("write {file} two")).await.unwrap();
    review(&serving, &sandbox).await;
    sandbox.words(&["diff", "reject", "1"]);
    front.until_ended(&prompt).await;
    assert_eq!(front.answer(&prompt), "the user rejected this change");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
}

#[tokio::test]
async fn review_closes_when_its_turn_or_agent_ends() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let prompt = front.prompt(&format!("write {file} two")).await.unwrap();
    review(&serving, &sandbox).await;
    front.command(json!({"type": "cancel"})).await.unwrap();
    closed(&serving, &sandbox).await;
    front.until_ended(&prompt).await;
    assert_eq!(front.end(&prompt).unwrap()["stopReason"], "cancelled");

    let asked = front.prompt("pid").await.unwrap();
    front.until_ended(&asked).await;
    let pid = front.answer(&asked);
    let prompt = front.prompt(&format!("write {file} three")).await.unwrap();
    review(&serving, &sandbox).await;
    let killed = std::process::Command::new("kill").args(["-KILL", &pid]).status();
    assert!(killed.unwrap().success());
    closed(&serving, &sandbox).await;
    front.until("it is over", |front| front.phase == ChatPhase::Ended).await;
    assert_eq!(front.end(&prompt).unwrap()["outcome"], "failed");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    assert_eq!(sandbox.json(&["status"])["companions"][0]["agents"], json!([]));
}

#[tokio::test]
async fn local_agents_review_does_not_outlive_the_companion() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    front.prompt(&format!("write {file} two")).await.unwrap();
    review(&serving, &sandbox).await;
    serving.kill();
    let _serving = serve(&sandbox);
    assert_eq!(sandbox.json(&["diff", "list"]), json!([]), "nobody waits for it");
}

#[tokio::test]
async fn local_agent_reads_unsaved_text() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "saved\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let buffer = Buffer {
        path: file.clone(),
        text: Some("unsaved\n".into()),
    };
    front.client.call::<requests::ContextBuffer>(buffer).await.unwrap();
    let prompt = front.prompt(&format!("read {file}")).await.unwrap();
    front.until_ended(&prompt).await;
    assert_eq!(front.answer(&prompt), "unsaved\n");
    front.prompt(&format!("write {file} new")).await.unwrap();
    let review = review(&serving, &sandbox).await;
    let shown = sandbox.words(&["diff", "show", &review.id.to_string()]);
    assert!(shown.contains("-unsaved"), "{shown}");
}

#[tokio::test]
async fn allowing_writes_is_saved_for_the_workspace() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let choice = ChatWritesChoice {
        writes: ChatWrites::Allow,
    };
    front.client.call::<requests::ChatWrites>(choice).await.unwrap();
    let prompt = front.prompt(&format!("write {file} two")).await.unwrap();
    front.until_ended(&prompt).await;
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
    serving.kill();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    assert_eq!(front.ask().await.unwrap().changed.writes, ChatWrites::Allow);
}

#[tokio::test]
async fn local_agent_cannot_read_what_is_hidden_from_agents() {
    let sandbox = sandbox();
    sandbox.write(".geminiignore", "private/\n");
    let shown = sandbox.write("shown.txt", "shown\n");
    let hidden = [
        sandbox.write(".env", "TOKEN=1\n"),
        sandbox.write("private/notes.txt", "notes\n"),
    ];
    let link = sandbox.file("link.txt");
    #[cfg(unix)]
    std::os::unix::fs::symlink(sandbox.file(".env"), &link).unwrap();
    #[cfg(windows)]
    std::os::windows::fs::symlink_file(sandbox.file(".env"), &link).unwrap();
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let unsaved = Buffer {
        path: hidden[0].clone(),
        text: Some("TOKEN=2\n".into()),
    };
    front.client.call::<requests::ContextBuffer>(unsaved).await.unwrap();
    for file in hidden.iter().map(String::as_str).chain([link.to_str().unwrap()]) {
        let prompt = front.prompt(&format!("read {file}")).await.unwrap();
        front.until_ended(&prompt).await;
        let answer = front.answer(&prompt);
        assert!(answer.contains("is hidden from agents"), "{file}: {answer}");
    }
    let prompt = front.prompt(&format!("read {shown}")).await.unwrap();
    front.until_ended(&prompt).await;
    assert_eq!(front.answer(&prompt), "shown\n");
}
