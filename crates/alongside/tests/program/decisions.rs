//! Changes and decisions, by the commands.

use std::fs;
use std::process::Stdio;

use alongside_core::{ReviewId, TextChange};
use alongside_front::client::ClientError;
use alongside_mcp::client::Client;
use alongside_protocol::{Buffer, Change, Edit, ErrorKind, Notification, requests};
use serde_json::{Value, json};

use crate::sandbox::{Agent, Sandbox, wait_for};

#[tokio::test]
async fn an_edited_change_is_accepted_byte_for_byte() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", "one\r\ntwo\r\n");
    agent.propose(&path, "one\r\n2\r\n").await;
    let list = sandbox.json(&["diff", "list"]);
    assert_eq!(list[0]["path"], path);
    assert_eq!(
        (&list[0]["agent"], &list[0]["agentVersion"]),
        (&json!("Gemini CLI"), &json!("0.61.0"))
    );
    assert_eq!(list[0]["size"], json!({ "added": 1, "removed": 1 }));
    let shown = sandbox.json(&["diff", "show", "a.txt"]);
    assert_eq!(
        (&shown["base"], &shown["draft"]),
        (&json!("one\r\ntwo\r\n"), &json!("one\r\n2\r\n"))
    );
    assert!(sandbox.words(&["diff", "show", "1"]).contains("-two\n+2\n"));

    let edited = "\u{feff}one\r\n2, edited\nno newline";
    fs::write(sandbox.path("edited"), edited).unwrap();
    let file = sandbox.path("edited").to_str().unwrap().to_owned();
    assert_eq!(
        sandbox.json(&["diff", "edit", "1", "--content-file", &file])["edited"],
        true
    );
    let accepted = sandbox.json(&["diff", "accept", "1"]);
    assert_eq!(accepted, json!({ "id": 1, "path": path, "outcome": "accepted" }));
    let told = agent.told("ide/diffAccepted").await;
    assert_eq!(told, json!({ "filePath": path, "content": edited }));
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "one\r\ntwo\r\n",
        "the agent writes, not the companion"
    );
    assert_eq!(sandbox.json(&["diff", "list"]), json!([]));
}

#[tokio::test]
async fn content_is_read_from_a_file_or_stdin() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.workspace().join("new.txt").to_str().unwrap().to_owned();
    agent.propose(&path, "proposed").await;
    fs::write(sandbox.path("content"), "from standard input").unwrap();
    let accepted = sandbox
        .command(&["diff", "accept", &path, "--content-file", "-"])
        .stdin(Stdio::from(fs::File::open(sandbox.path("content")).unwrap()))
        .status();
    assert!(accepted.unwrap().success());
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "from standard input");
}

#[tokio::test]
async fn second_decision_reports_the_first() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    agent.propose("/nowhere/new.txt", "text").await;
    sandbox.words(&["diff", "reject", "/nowhere/new.txt"]);
    assert_eq!(
        agent.told("ide/diffRejected").await,
        json!({ "filePath": "/nowhere/new.txt" })
    );
    let error = sandbox.failure(&["diff", "accept", "1"]);
    assert!(error.contains("review 1 is closed: it was rejected"), "{error}");
}

#[tokio::test]
async fn unknown_or_ambiguous_review_error_lists_candidates() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    assert!(
        sandbox
            .failure(&["diff", "show", "a.txt"])
            .contains("there are no pending changes")
    );
    let one = Agent::connect(&serving).await;
    let two = Agent::connect_as(&serving, "streamable-http-client", "1.0.0").await;
    let path = sandbox.workspace().join("a.txt").to_str().unwrap().to_owned();
    one.propose(&path, "one").await;
    two.propose(&path, "two").await;
    let ambiguous = sandbox.failure(&["diff", "accept", "a.txt"]);
    assert!(ambiguous.contains("more than one") && ambiguous.contains("Gemini CLI") && ambiguous.contains("Qwen Code"));
    let unknown = sandbox.failure(&["diff", "accept", "b.txt"]);
    assert!(
        unknown.contains("no pending change matches `b.txt`; pending changes:") && unknown.contains(&path),
        "{unknown}"
    );
    let as_json = sandbox.output(&["diff", "accept", "7", "--json"]);
    let error: Value = serde_json::from_slice(&as_json.stdout).unwrap();
    assert!(
        error["error"]["message"].as_str().unwrap().contains("pending changes"),
        "{error}"
    );
    assert_eq!(as_json.status.code(), Some(1));
}

#[tokio::test]
async fn decisions_of_two_agents_on_one_file_are_separate() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut one = Agent::connect(&serving).await;
    let mut two = Agent::connect(&serving).await;
    one.propose("/a", "one").await;
    two.propose("/a", "two").await;
    sandbox.words(&["diff", "accept", "2"]);
    sandbox.words(&["diff", "reject", "1"]);
    assert_eq!(
        two.decision().await,
        ("ide/diffAccepted".into(), json!({ "filePath": "/a", "content": "two" }))
    );
    assert_eq!(
        one.decision().await,
        ("ide/diffRejected".into(), json!({ "filePath": "/a" }))
    );
}

#[tokio::test]
async fn decision_in_the_agents_terminal_uses_the_draft() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    fs::write(sandbox.path("edited"), "edited").unwrap();
    sandbox.words(&[
        "diff",
        "edit",
        "1",
        "--content-file",
        sandbox.path("edited").to_str().unwrap(),
    ]);
    let closed = agent
        .call("closeDiff", json!({ "filePath": "/a", "suppressNotification": true }))
        .await;
    assert_eq!(
        closed["content"],
        json!([{ "type": "text", "text": r#"{"content":"edited"}"# }])
    );
    assert_eq!(sandbox.json(&["diff", "list"]), json!([]));
    let nothing = agent.call("closeDiff", json!({ "filePath": "/a" })).await;
    assert_eq!(nothing["content"][0]["text"], "{}");

    let other = Agent::connect_as(&serving, "inspector", "1").await;
    other.propose("/a", "text").await;
    let closed = other.call("closeDiff", json!({ "filePath": "/a" })).await;
    assert_eq!(closed["content"], json!([{ "type": "text", "text": "text" }]));
}

#[tokio::test]
async fn accepting_an_empty_draft_warns() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    fs::write(sandbox.path("empty"), "").unwrap();
    let empty = sandbox.path("empty").to_str().unwrap().to_owned();
    let error = sandbox.failure(&["diff", "accept", "1", "--content-file", &empty]);
    assert!(error.contains("treats an empty text as \"not edited\""), "{error}");
    sandbox.words(&["diff", "accept", "1", "--content-file", &empty, "--even-if-empty"]);
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "");
}

#[tokio::test]
async fn what_cannot_be_reviewed_is_refused_with_a_sentence() {
    let sandbox = Sandbox::new();
    sandbox.write(".alongside.toml", "[review]\noutside-workspace = 'forbid'\n");
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    assert!(agent.refused("a.txt", "").await.contains("not an absolute path"));
    assert!(
        agent
            .refused(sandbox.workspace().to_str().unwrap(), "")
            .await
            .contains("is a directory")
    );
    assert!(
        agent
            .refused("/elsewhere/a.txt", "")
            .await
            .contains("outside the workspace")
    );
    let binary = sandbox.workspace().join("binary");
    fs::write(&binary, b"\xff\xfe\x00").unwrap();
    assert!(agent.refused(binary.to_str().unwrap(), "").await.contains("binary"));
    assert_eq!(sandbox.json(&["diff", "list"]), json!([]));
}

#[tokio::test]
async fn a_large_change_arrives_whole() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let text = "a line of text that is long enough\n".repeat(300_000);
    agent.propose("/large", &text).await;
    sandbox.words(&["diff", "accept", "1"]);
    assert_eq!(agent.told("ide/diffAccepted").await["content"], text);
}

#[tokio::test]
async fn an_agent_that_goes_away_takes_its_review_along() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    agent.client.end().await.unwrap();
    wait_for("the review's end", || {
        (sandbox.json(&["diff", "list"]) == json!([])).then_some(())
    });
    let mut again = Agent::connect(&serving).await;
    assert_eq!(
        again.decision().await.0,
        "ide/diffRejected",
        "a command line that comes back is freed"
    );
}

#[tokio::test]
async fn hunks_are_decided_one_by_one() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", "1\n2\n3\n4\n5\n");
    agent.propose(&path, "one\n2\n3\n4\nfive\n").await;
    let hunks = sandbox.json(&["diff", "show", "1"])["hunks"].clone();
    assert_eq!(hunks.as_array().unwrap().len(), 2);
    let states = sandbox.json(&["diff", "hunk", "1", &hunks[0]["id"].to_string(), "reject"]);
    assert_eq!(states["hunks"][0]["state"], "rejected");
    assert!(sandbox.failure(&["diff", "hunk", "1", "77", "reject"]).contains("77"));
    sandbox.words(&["diff", "accept", "1"]);
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "1\n2\n3\n4\nfive\n");
}

#[tokio::test]
async fn changed_file_is_merged_and_conflicts_need_a_decision() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", "1\n2\n3\n");
    agent.propose(&path, "1\ntwo\n3\n").await;
    let draft = || sandbox.json(&["diff", "show", "1"])["draft"].clone();
    sandbox.write("a.txt", "0\n1\n2\n3\n");
    wait_for("the merge", || (draft() == "0\n1\ntwo\n3\n").then_some(()));
    sandbox.write("a.txt", "0\n1\nzwei\n3\n");
    wait_for("the conflict", || {
        (sandbox.json(&["diff", "list"])[0]["conflicts"] == 1).then_some(())
    });
    let error = sandbox.failure(&["diff", "accept", "1"]);
    assert!(error.contains("hunks conflict"), "{error}");
    let hunk = sandbox.json(&["diff", "show", "1"])["hunks"][0]["id"].to_string();
    sandbox.words(&["diff", "hunk", "1", &hunk, "accept"]);
    sandbox.words(&["diff", "accept", "1"]);
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "0\n1\ntwo\n3\n");
}

#[tokio::test]
async fn all_changes_of_one_agent_are_decided_at_once() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut one = Agent::connect(&serving).await;
    let two = Agent::connect(&serving).await;
    one.propose("/a", "a").await;
    one.propose("/b", "b").await;
    two.propose("/c", "c").await;
    assert_eq!(
        sandbox.json(&["diff", "accept", "1", "--all-of-agent"]),
        json!({ "decided": [1, 2], "refused": [] })
    );
    assert_eq!(one.decision().await.1["content"], "a");
    assert_eq!(one.decision().await.1["content"], "b");
    assert_eq!(sandbox.json(&["diff", "list"])[0]["path"], "/c");
}

#[tokio::test]
async fn proposal_is_compared_with_unsaved_text() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", "saved\n");
    let mut editor = serving.front_end(&sandbox).await;
    let unsaved = Buffer {
        path: path.clone(),
        text: Some("unsaved\n".into()),
    };
    editor.call::<requests::ContextBuffer>(unsaved).await.unwrap();
    agent.propose(&path, "proposed\n").await;
    assert_eq!(sandbox.json(&["diff", "show", "1"])["base"], "unsaved\n");
    let saved = Buffer { path, text: None };
    editor.call::<requests::ContextBuffer>(saved).await.unwrap();
    wait_for("the file on disk to count", || {
        (sandbox.json(&["diff", "show", "1"])["base"] == "saved\n").then_some(())
    });
}

#[tokio::test]
async fn front_ends_stay_in_sync_and_stale_changes_are_refused() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    let mut one = serving.front_end(&sandbox).await;
    let mut two = serving.front_end(&sandbox).await;
    let change = |version, insert: &str| {
        let changes = vec![TextChange {
            from: 0,
            to: 0,
            insert: insert.to_owned(),
        }];
        Change {
            review: ReviewId(1),
            version,
            changes,
        }
    };
    one.call::<requests::ReviewChange>(change(1, "first ")).await.unwrap();
    let heard = loop {
        if let Notification::ReviewEdited(edited) = two.notification().await.unwrap() {
            break edited;
        }
    };
    assert_eq!((heard.version, heard.changes[0].insert.as_str()), (2, "first "));
    let late = two.call::<requests::ReviewChange>(change(1, "late ")).await;
    assert!(matches!(late, Err(ClientError::Rejected(error)) if error.kind == ErrorKind::Stale));
    assert_eq!(sandbox.json(&["diff", "show", "1"])["draft"], "first text");
}

#[tokio::test]
async fn file_that_is_not_utf8_is_reported_and_kept() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.write("latin.txt", "");
    fs::write(&path, b"un caf\xe9\n").unwrap();
    agent.propose(&path, "un caf\u{e9}\n").await;
    let shown = sandbox.json(&["diff", "show", "1"]);
    assert!(shown.get("base").is_none() && shown["newFile"] == false, "{shown}");
    assert!(shown["notes"][0].as_str().unwrap().contains("not UTF-8"), "{shown}");
    sandbox.words(&["diff", "accept", "1"]);
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "un caf\u{e9}\n");
    assert_eq!(fs::read(&path).unwrap(), b"un caf\xe9\n");
}

#[tokio::test]
async fn very_large_edit_causes_a_resync() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    agent.propose("/a", "text").await;
    let mut watching = serving.front_end(&sandbox).await;
    let mut editing = serving.front_end(&sandbox).await;
    let content = "line\n".repeat(300_000);
    let edit = Edit {
        review: ReviewId(1),
        content: content.as_str().into(),
    };
    editing.call::<requests::ReviewEdit>(edit).await.unwrap();
    while !matches!(watching.notification().await.unwrap(), Notification::Resync(_)) {}
    assert_eq!(sandbox.json(&["diff", "show", "1"])["draft"], content);
}

/// An agent that reconnects chooses its session id. It must not be mistaken for one of the chat's own sessions.
#[tokio::test]
async fn mcp_session_id_like_a_chat_session_receives_its_decision() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let client = Client::new("127.0.0.1", serving.port, &serving.token()).unwrap();
    client.resume("chat-1", None).unwrap();
    let events = client.events(None).await.unwrap();
    let mut agent = Agent { client, events };
    agent.propose("/a", "text").await;
    sandbox.words(&["diff", "accept", "1"]);
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "text");
}
