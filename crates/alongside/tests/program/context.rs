//! What agents see.

use std::fs;

use serde_json::json;

use crate::sandbox::{Agent, Sandbox};

#[tokio::test]
async fn what_a_person_looks_at_reaches_the_agent() {
    let sandbox = Sandbox::new();
    let (a, b) = (sandbox.write("a.txt", "a"), sandbox.write("b.txt", "b"));
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    sandbox.words(&["context", "open", "a.txt"]);
    sandbox.words(&[
        "context",
        "focus",
        "b.txt",
        "--line",
        "3",
        "--character",
        "4",
        "--select",
        "chosen",
    ]);
    let context = agent.sees_active(&b).await;
    let files = context["workspaceState"]["openFiles"].as_array().unwrap();
    assert_eq!(files[0]["cursor"], json!({ "line": 3, "character": 4 }));
    assert_eq!(files[0]["selectedText"], "chosen");
    assert_eq!(files[1]["path"], a);
    assert!(context["workspaceState"].get("isTrusted").is_none());
    assert_eq!(sandbox.json(&["context", "show"]), context);
    sandbox.words(&["context", "close", "b.txt"]);
    agent.sees_active(&a).await;
}

#[tokio::test]
async fn an_agent_that_connects_later_is_told_too() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a.txt", "a");
    let serving = sandbox.serve();
    sandbox.words(&["context", "focus", "a.txt"]);
    Agent::connect(&serving).await.sees_active(&file).await;
}

#[tokio::test]
async fn a_secret_never_leaves_and_the_person_sees_why() {
    let sandbox = Sandbox::new();
    sandbox.write(".env", "PASSWORD=1");
    sandbox.write("notes.draft", "later");
    let last = sandbox.write("last.txt", "");
    sandbox.write_config("[privacy]\nhide = ['*.draft']\n");
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    sandbox.words(&["context", "focus", ".env", "--select", "PASSWORD=1"]);
    let words = sandbox.words(&["context", "focus", "notes.draft"]);
    assert!(
        words.contains("hidden by `*.draft` in") && words.contains("in the built-in list of secrets"),
        "{words}"
    );
    sandbox.words(&["context", "focus", "last.txt"]);
    let context = agent.sees_active(&last).await;
    assert_eq!(
        context["workspaceState"]["openFiles"].as_array().unwrap().len(),
        1,
        "{context}"
    );
}

#[tokio::test]
async fn new_ignore_file_applies_immediately() {
    let sandbox = Sandbox::new();
    let (a, b) = (sandbox.write("a.txt", ""), sandbox.write("b.txt", ""));
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    sandbox.words(&["context", "focus", "a.txt"]);
    sandbox.words(&["context", "focus", "b.txt"]);
    agent.sees_active(&b).await;
    fs::write(sandbox.workspace().join(".qwenignore"), "b.*\n").unwrap();
    agent.sees_active(&a).await;
    fs::remove_file(sandbox.workspace().join(".qwenignore")).unwrap();
    agent.sees_active(&b).await;
}

#[test]
fn settings_error_names_file_and_line() {
    let sandbox = Sandbox::new();
    sandbox.write_config("[privacy]\nhides = []\n");
    let error = sandbox.failure(&["serve"]);
    assert!(
        error.contains("config.toml, line 2") && error.contains("did you mean `privacy.hide`?"),
        "{error}"
    );
    sandbox.write_config("");
    sandbox.write(".alongside.toml", "[companion]\nname = 'x'\n");
    assert!(
        sandbox
            .failure(&["serve"])
            .contains("`companion.name` cannot be set by a workspace")
    );
    sandbox.write(".alongside.toml", "[privacy]\nhide = ['a{b']\n");
    assert!(sandbox.failure(&["serve"]).contains("invalid pattern"));
}

/// The paths of the next context in which `path` is open, or is not.
async fn sees_open(agent: &mut Agent, path: &str, is_open: bool) {
    loop {
        let context = agent.told("ide/contextUpdate").await;
        let files = context["workspaceState"]["openFiles"].as_array().unwrap();
        if files.iter().any(|file| file["path"] == path) == is_open {
            return;
        }
    }
}

#[tokio::test]
async fn file_that_disappears_on_disk_leaves_the_context_until_it_is_back() {
    let sandbox = Sandbox::new();
    // In another directory, so that the workspace folder itself has no open file.
    fs::create_dir_all(sandbox.workspace().join("src/deep")).unwrap();
    fs::create_dir(sandbox.workspace().join("docs")).unwrap();
    let (other, file) = (
        sandbox.write("docs/other.txt", ""),
        sandbox.write("src/deep/a.txt", "a"),
    );
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    sandbox.words(&["context", "open", "docs/other.txt"]);
    sandbox.words(&["context", "focus", "src/deep/a.txt"]);
    agent.sees_active(&file).await;
    // The file itself, the directory it is in, and one further up.
    for name in ["src/deep/a.txt", "src/deep", "src"] {
        let (place, elsewhere) = (sandbox.workspace().join(name), sandbox.workspace().join("elsewhere"));
        fs::rename(&place, &elsewhere).unwrap();
        sees_open(&mut agent, &file, false).await;
        fs::rename(&elsewhere, &place).unwrap();
        sees_open(&mut agent, &file, true).await;
    }
    fs::remove_dir_all(sandbox.workspace().join("src")).unwrap();
    agent.sees_active(&other).await;
    fs::create_dir_all(sandbox.workspace().join("src/deep")).unwrap();
    fs::write(&file, "a").unwrap();
    agent.sees_active(&file).await;
}

#[tokio::test]
async fn save_by_rename_sends_no_context_without_the_file() {
    let sandbox = Sandbox::new();
    let (file, last) = (sandbox.write("a.txt", "a"), sandbox.write("last.txt", ""));
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    sandbox.words(&["context", "focus", "a.txt"]);
    agent.sees_active(&file).await;
    for _ in 0..5 {
        // As Vim and Emacs do.
        fs::rename(&file, sandbox.workspace().join("a.txt~")).unwrap();
        fs::write(&file, "b").unwrap();
        sandbox.words(&["context", "show"]);
    }
    sandbox.words(&["context", "focus", "last.txt"]);
    loop {
        let context = agent.told("ide/contextUpdate").await;
        let files = context["workspaceState"]["openFiles"].as_array().unwrap();
        assert!(files.iter().any(|open| open["path"] == file), "{context}");
        if files[0]["path"] == last {
            break;
        }
    }
}
