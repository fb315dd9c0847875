//! A permission request for changes is decided in reviews, with the messages of the real agents.

use alongside_protocol::{ChatWrites, ChatWritesChoice, Empty, ReviewSummary, requests};
use serde_json::{Value, json};

use super::front::Front;
use super::{sandbox, serve};
use crate::sandbox::{Sandbox, Serving, TIMEOUT};

/// Each agent that asks and then writes itself, with its options for "yes" and "no".
const AGENTS: &[(&str, &str, &str)] = &[
    ("opencode", "once", "reject"),
    ("claude", "allow", "reject"),
    ("copilot", "allow_once", "reject_once"),
    ("hermes", "allow_once", "deny"),
];

async fn connected(serving: &Serving, sandbox: &Sandbox) -> Front {
    let mut front = Front::connect(serving, sandbox).await;
    front.choose("scripted").await.unwrap();
    front
}

/// Waits for this many reviews.
async fn reviews(serving: &Serving, sandbox: &Sandbox, count: usize) -> Vec<ReviewSummary> {
    let mut editor = serving.front_end(sandbox).await;
    let wait = async {
        loop {
            let list = editor.call::<requests::ReviewList>(Empty {}).await.unwrap();
            if list.len() == count {
                return list;
            }
            editor.notification().await.unwrap();
        }
    };
    tokio::time::timeout(TIMEOUT, wait).await.unwrap()
}

async fn edit(front: &mut Front, agent: &str, change: &Value) -> String {
    front.prompt(&format!("edit-as {agent} {change}")).await.unwrap()
}

async fn answer(front: &mut Front, prompt: &str) -> String {
    front.until_ended(prompt).await;
    front.answer(prompt)
}

/// What the agent got with its next prompt besides the user's message.
async fn note(front: &mut Front) -> String {
    let prompt = front.prompt("note").await.unwrap();
    answer(front, &prompt).await
}

fn read(file: &str) -> String {
    std::fs::read_to_string(file).unwrap()
}

#[tokio::test]
async fn accepted_change_is_allowed_once_and_written_by_the_agent() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\ntwo\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    for (agent, allow, _) in AGENTS {
        std::fs::write(&file, "one\ntwo\n").unwrap();
        let prompt = edit(&mut front, agent, &json!({"path": file, "old": "two", "new": "TWO"})).await;
        let review = reviews(&serving, &sandbox, 1).await.remove(0);
        let shown = sandbox.words(&["diff", "show", &review.id.to_string()]);
        assert!(shown.contains(" one\n-two\n+TWO\n"), "{agent}: {shown}");
        sandbox.words(&["diff", "accept", &review.id.to_string()]);
        assert_eq!(answer(&mut front, &prompt).await, format!("{allow}: changed"));
        assert_eq!(read(&file), "one\nTWO\n");
    }
    assert_eq!(front.of_type("approvalOpened").count(), 0, "nothing is asked twice");
    assert_eq!(note(&mut front).await, "");
    let list = sandbox.json(&["diff", "list"]);
    assert_eq!(list, json!([]));
}

#[tokio::test]
async fn rejected_change_is_denied_and_the_next_prompt_has_the_reason() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    for (agent, _, reject) in AGENTS {
        let prompt = edit(&mut front, agent, &json!({"path": file, "old": "one", "new": "ONE"})).await;
        let review = reviews(&serving, &sandbox, 1).await.remove(0);
        sandbox.words(&["diff", "reject", &review.id.to_string(), "--reason", "keep it small"]);
        assert_eq!(answer(&mut front, &prompt).await, format!("{reject}: not allowed"));
        assert_eq!(read(&file), "one\n");
        let note = note(&mut front).await;
        assert!(
            note.contains(&file) && note.contains("keep it small"),
            "{agent}: {note}"
        );
    }
    assert_eq!(note(&mut front).await, "", "once");
}

#[tokio::test]
async fn edited_change_is_written_in_place_of_the_agents() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    std::fs::write(sandbox.path("edited"), "one, edited\n").unwrap();
    let edited = sandbox.path("edited");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    for (agent, _, reject) in AGENTS {
        std::fs::write(&file, "one\n").unwrap();
        let prompt = edit(&mut front, agent, &json!({"path": file, "old": "one", "new": "ONE"})).await;
        let review = reviews(&serving, &sandbox, 1).await.remove(0).id.to_string();
        sandbox.words(&["diff", "accept", &review, "--content-file", edited.to_str().unwrap()]);
        assert_eq!(answer(&mut front, &prompt).await, format!("{reject}: not allowed"));
        assert_eq!(read(&file), "one, edited\n");
        let notice = front.of_type("notice").next_back().unwrap()["message"].clone();
        assert!(notice.as_str().unwrap().contains("edited version"), "{notice}");
        let note = note(&mut front).await;
        assert!(note.contains("edited version was written"), "{agent}: {note}");
    }
}

#[tokio::test]
async fn new_file_is_reviewed_whole() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    for (agent, ..) in AGENTS {
        let file = sandbox.file(&format!("{agent}.txt")).display().to_string();
        let prompt = edit(&mut front, agent, &json!({"path": file, "new": "new\n"})).await;
        let review = reviews(&serving, &sandbox, 1).await.remove(0);
        sandbox.words(&["diff", "accept", &review.id.to_string()]);
        assert!(answer(&mut front, &prompt).await.ends_with(": changed"), "{agent}");
        assert_eq!(read(&file), "new\n");
    }
}

/// A patch of every kind of change, as Codex sends it.
fn patch(sandbox: &Sandbox) -> (Value, [String; 4]) {
    let missing = |name: &str| sandbox.file(name).display().to_string();
    let (added, moved) = (missing("added.txt"), missing("moved.txt"));
    let deleted = sandbox.write("deleted.txt", "gone\n");
    let source = sandbox.write("source.txt", "1\n2\n");
    let patch = json!({&added: {"add": "new\n"}, &deleted: {"delete": true},
        &source: {"old": "2", "new": "two", "to": &moved}});
    (patch, [added, deleted, source, moved])
}

#[tokio::test]
async fn accepted_patch_adds_deletes_and_moves() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let (patch, [added, deleted, source, moved]) = patch(&sandbox);
    let prompt = edit(&mut front, "codex", &patch).await;
    for review in reviews(&serving, &sandbox, 4).await {
        sandbox.words(&["diff", "accept", &review.id.to_string()]);
    }
    assert_eq!(answer(&mut front, &prompt).await, "approved: changed");
    assert_eq!(
        (read(&added), read(&moved)),
        ("new\n".to_owned(), "1\ntwo\n".to_owned())
    );
    assert!(!std::fs::exists(deleted).unwrap() && !std::fs::exists(source).unwrap());
}

#[tokio::test]
async fn partly_accepted_patch_is_carried_out_for_the_agent() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let (patch, [added, deleted, source, moved]) = patch(&sandbox);
    let prompt = edit(&mut front, "codex", &patch).await;
    for review in reviews(&serving, &sandbox, 4).await {
        let verb = if *review.path == *added { "reject" } else { "accept" };
        sandbox.words(&["diff", verb, &review.id.to_string()]);
    }
    front.until_ended(&prompt).await;
    assert_eq!(front.answer(&prompt), "abort: not allowed");
    assert_eq!(front.end(&prompt).unwrap()["outcome"], "cancelled");
    assert_eq!(read(&moved), "1\ntwo\n");
    for missing in [&added, &deleted, &source] {
        assert!(!std::fs::exists(missing).unwrap(), "{missing}");
    }
    let note = note(&mut front).await;
    assert!(note.contains(&format!("change to {added} was not made")), "{note}");
    assert!(note.contains(&format!("change to {moved} was accepted")), "{note}");
}

#[tokio::test]
async fn change_that_does_not_fit_the_file_is_an_ordinary_question() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let prompt = edit(&mut front, "claude", &json!({"path": file, "old": "other", "new": "x"})).await;
    front
        .until("the question", |front| front.of_type("approvalOpened").next().is_some())
        .await;
    let request = front.of_type("approvalOpened").next().unwrap()["request"].clone();
    assert_eq!(request["toolCall"]["content"][0]["oldText"], "other", "with its diff");
    let decision = json!({"decision": "select", "optionId": "reject"});
    let answered = json!({"type": "answer", "requestId": request["requestId"], "decision": decision});
    front.command(answered).await.unwrap();
    assert_eq!(answer(&mut front, &prompt).await, "reject: not allowed");
}

#[tokio::test]
async fn allowed_writes_need_no_review() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let choice = ChatWritesChoice {
        writes: ChatWrites::Allow,
    };
    front.client.call::<requests::ChatWrites>(choice).await.unwrap();
    let prompt = edit(&mut front, "claude", &json!({"path": file, "old": "one", "new": "two"})).await;
    assert_eq!(answer(&mut front, &prompt).await, "allow: changed");
    assert_eq!(read(&file), "two\n");
}

#[tokio::test]
async fn review_of_a_request_closes_with_its_turn() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut front = connected(&serving, &sandbox).await;
    let prompt = edit(
        &mut front,
        "copilot",
        &json!({"path": file, "old": "one", "new": "two"}),
    )
    .await;
    reviews(&serving, &sandbox, 1).await;
    front.command(json!({"type": "cancel"})).await.unwrap();
    assert_eq!(answer(&mut front, &prompt).await, "cancelled: not allowed");
    assert_eq!(front.end(&prompt).unwrap()["outcome"], "cancelled");
    reviews(&serving, &sandbox, 0).await;
    assert_eq!(read(&file), "one\n");
}
