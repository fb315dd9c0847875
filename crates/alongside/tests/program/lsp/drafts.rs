//! Drafts, which an editor opens as files.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::editor::{Editor, address, at, span};
use super::{agent, wait_for_decision};
use crate::sandbox::{Sandbox, wait_for};

#[tokio::test]
async fn draft_is_edited_as_a_private_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\r\ntwo");
    let mut editor = Editor::open(&sandbox);
    let mut agent = agent(&sandbox).await;
    editor.open_file(&path, "one\r\ntwo");
    agent.propose(&path, "one\r\nTWO").await;
    editor.wait_for_hints(&path, 1);
    editor.act(&path, &at(1, 0), "Edit change");
    let shown = editor.wait_for_method("window/showDocument");
    editor.send(&json!({ "jsonrpc": "2.0", "id": shown["id"], "result": { "success": true } }));
    let uri = shown["params"]["uri"].as_str().unwrap();
    let file = uri.strip_prefix("file://").unwrap().to_owned();
    assert_eq!(fs::read_to_string(&file).unwrap(), "one\r\nTWO");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let file = Path::new(&file);
        assert_eq!((mode(file), mode(file.ancestors().nth(2).unwrap())), (0o600, 0o700));
    }
    // Saved by an editor that does not tell us of this file, with the newline that many add.
    fs::write(&file, "one\r\nTWO, edited\r\n").unwrap();
    let hints = editor.wait_for_hints(&path, 1);
    assert!(
        hints[0]["message"].as_str().unwrap().contains("TWO, edited"),
        "{hints:?}"
    );
    // Opened and typed into, not saved.
    editor.open_file(&file, "one\r\nTWO, edited\r\n");
    let change = json!({ "range": span((1, 11), (1, 11)), "text": " 🦀" });
    let document = json!({ "uri": uri, "version": 2 });
    editor.tell(
        "textDocument/didChange",
        &json!({ "textDocument": document, "contentChanges": [change] }),
    );
    editor.wait_for_hints(&file, 1);
    let decision = wait_for_decision(&mut editor, &mut agent, &file).await;
    assert_eq!(decision["content"], "one\r\nTWO, edited 🦀");
    wait_for("the file to be gone", || (!Path::new(&file).exists()).then_some(()));
    let seen = sandbox.json(&["context", "show"]);
    assert!(
        !seen.to_string().contains("drafts"),
        "agents are not told of drafts: {seen}"
    );
}

/// The one file somewhere below a directory.
fn only_file_in(directory: &Path) -> String {
    let mut path = directory.to_owned();
    while path.is_dir() {
        path = fs::read_dir(&path).unwrap().next().unwrap().unwrap().path();
    }
    path.to_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_draft_that_is_closed_without_saving_is_kept() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("[id] (a).md", "one\n");
    let mut editor = Editor::open(&sandbox);
    let mut agent = agent(&sandbox).await;
    editor.open_file(&path, "one\n");
    agent.propose(&path, "two\n").await;
    editor.wait_for_hints(&path, 1);
    editor.act(&path, &at(0, 0), "Edit change");
    let shown = editor.wait_for_method("window/showDocument");
    // Not every client writes the address as we do.
    assert!(
        shown["params"]["uri"]
            .as_str()
            .unwrap()
            .ends_with("/%5Bid%5D%20%28a%29.md")
    );
    let file = only_file_in(&sandbox.path("home/.local/state/alongside/drafts"));
    editor.open_file(&file, "two\n");
    let document = json!({ "uri": address(Path::new(&file)), "version": 2 });
    let changes = json!([{ "text": "typed\n" }]);
    editor.tell(
        "textDocument/didChange",
        &json!({ "textDocument": document, "contentChanges": changes }),
    );
    editor.tell("textDocument/didClose", &json!({ "textDocument": document }));
    wait_for("the file", || {
        (fs::read_to_string(&file).unwrap() == "typed\n").then_some(())
    });
    let decision = wait_for_decision(&mut editor, &mut agent, &path).await;
    assert_eq!(decision["content"], "typed\n");
    // The agent may receive the decision first.
    editor.wait(|message| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("accepted;"))
    });
    editor.open_file(&file, "typed\n");
    let is_warned = |message: &Value| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("have no effect"))
    };
    editor.wait(is_warned);
}

#[tokio::test]
async fn hunk_decision_updates_the_draft_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\ntwo\nthree\n");
    let capabilities = json!({ "workspace": { "workspaceEdit": { "documentChanges": true } } });
    let mut editor = Editor::open_as(&sandbox, &capabilities);
    let mut agent = agent(&sandbox).await;
    agent.propose(&path, "ONE\ntwo\nTHREE\n").await;
    editor.wait_for_hints(&path, 2);
    let other = sandbox.write("b.md", "");
    editor.open_file(&other, "");
    editor.act(&other, &at(0, 0), "Edit change to a.md");
    let shown = editor.wait_for_method("window/showDocument");
    let uri = shown["params"]["uri"].as_str().unwrap().to_owned();
    let file = uri.strip_prefix("file://").unwrap().to_owned();
    editor.open_file(&file, "ONE\ntwo\nTHREE\n");
    editor.wait_for_hints(&file, 2);
    editor.act(&file, &at(0, 0), "Reject hunk");
    let asked = editor.wait_for_method("workspace/applyEdit");
    let edit = &asked["params"]["edit"]["documentChanges"][0];
    assert_eq!(edit["textDocument"], json!({ "uri": uri, "version": 1 }));
    assert_eq!(
        edit["edits"],
        json!([{ "range": span((0, 0), (0, 3)), "newText": "one" }])
    );
    editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "applied": true } }));
    // That it says so proves nothing: the person types on, in the text as it was.
    let change = json!({ "range": span((2, 5), (2, 5)), "text": "!" });
    let document = json!({ "uri": uri, "version": 2 });
    let changed = json!({ "textDocument": document, "contentChanges": [change] });
    editor.tell("textDocument/didChange", &changed);
    let decision = wait_for_decision(&mut editor, &mut agent, &file).await;
    assert_eq!(decision["content"], "one\ntwo\nTHREE!\n", "both are kept");
}

#[tokio::test]
async fn action_for_a_replaced_proposal_does_nothing() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let mut editor = Editor::open(&sandbox);
    let mut agent = agent(&sandbox).await;
    editor.open_file(&path, "one\n");
    agent.propose(&path, "two\n").await;
    editor.wait_for_hints(&path, 1);
    let actions = editor.actions(&path, &at(0, 0));
    agent.propose(&path, "something else\n").await;
    let hints = editor.wait_for_hints(&path, 1);
    assert!(
        hints[0]["message"].as_str().unwrap().contains("something else"),
        "{hints:?}"
    );
    editor.choose(&actions, "Accept change");
    let said = editor.wait(|message| message["params"]["type"] == 1);
    assert!(
        said["params"]["message"]
            .as_str()
            .unwrap()
            .contains("since revised this change"),
        "{said}"
    );
    let decision = wait_for_decision(&mut editor, &mut agent, &path).await;
    assert_eq!(decision["content"], "something else\n");
}
