//! The companion of an editor that speaks the language server protocol.

mod drafts;
mod editor;
mod workspaces;

use std::fs;
use std::io::{Read, Write};
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::sandbox::{Agent, Sandbox, wait_for};
use editor::{Editor, address, at, span};

fn connection(sandbox: &Sandbox) -> (u16, String) {
    let file = wait_for("a discovery file", || sandbox.discovery_files().pop());
    let file: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let port = u16::try_from(file["port"].as_u64().unwrap()).unwrap();
    (port, file["authToken"].as_str().unwrap().to_owned())
}

async fn agent(sandbox: &Sandbox) -> Agent {
    let (port, token) = connection(sandbox);
    Agent::connect_to(port, &token).await
}

/// Accepts until it counts: a key that comes too soon does not.
async fn wait_for_decision(editor: &mut Editor, agent: &mut Agent, path: &str) -> Value {
    loop {
        editor.act(path, &at(0, 0), "Accept change");
        let decision = tokio::time::timeout(std::time::Duration::from_millis(500), agent.decision()).await;
        if let Ok((method, decision)) = decision {
            assert_eq!(method, "ide/diffAccepted");
            return decision;
        }
    }
}

#[tokio::test]
async fn what_an_editor_opens_and_selects_reaches_agents() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a b.md", "one\n🦀 two\n");
    let mut editor = Editor::open(&sandbox);
    let mut agent = agent(&sandbox).await;
    editor.open_file(&path, "one\n🦀 two\n");
    agent.sees_active(&path).await;
    let document = json!({ "uri": address(Path::new(&path)) });
    let hover = json!({ "textDocument": document, "position": { "line": 1, "character": 3 } });
    assert_eq!(editor.ask("textDocument/hover", &hover)["result"], Value::Null);
    let seen = agent.told("ide/contextUpdate").await;
    let file = &seen["workspaceState"]["openFiles"][0];
    assert_eq!(file["cursor"], json!({ "line": 2, "character": 4 }));
    editor.act(&path, &span((1, 3), (1, 6)), "Send selection");
    let seen = agent.told("ide/contextUpdate").await;
    assert_eq!(seen["workspaceState"]["openFiles"][0]["selectedText"], "two");
    let said = editor.wait_for_method("window/showMessage");
    assert_eq!(
        said["params"]["message"],
        "Agents will see 1 line of a b.md with your next message."
    );
    editor.tell("textDocument/didClose", &json!({ "textDocument": document }));
    let seen = agent.told("ide/contextUpdate").await;
    assert_eq!(seen["workspaceState"]["openFiles"], json!([]));
    assert_eq!(editor.shut_down(), Some(0));
    wait_for("no discovery files", || {
        sandbox.discovery_files().is_empty().then_some(())
    });
}

#[tokio::test]
async fn keys_of_helix_that_overtake_each_other_do_not_scramble_the_text() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let mut editor = Editor::open(&sandbox);
    let mut agent = agent(&sandbox).await;
    editor.open_file(&path, "one\n");
    agent.sees_active(&path).await;
    for (version, character, text) in [(3, 1, "b"), (2, 0, "a"), (4, 2, "c")] {
        let change = json!({ "range": span((0, character), (0, character)), "text": text });
        let document = json!({ "uri": address(Path::new(&path)), "version": version });
        let changed = json!({ "textDocument": document, "contentChanges": [change] });
        editor.tell("textDocument/didChange", &changed);
    }
    // Answered in its order: then the changes have been taken note of.
    editor.actions(&path, &at(0, 0));
    agent.propose(&path, "abcone\ntwo\n").await;
    let hints = editor.wait_for_hints(&path, 1);
    let shown = hints[0]["message"].as_str().unwrap();
    assert!(shown.contains("+ two") && !shown.contains("one"), "{hints:?}");
}

#[tokio::test]
async fn proposal_is_shown_as_hints_and_decided_by_hunk() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\ntwo\nthree\n");
    let mut editor = Editor::open(&sandbox);
    let mut agent = agent(&sandbox).await;
    editor.open_file(&path, "one\ntwo\nthree\n");
    let change = json!({ "range": span((0, 0), (0, 0)), "text": "unsaved\n" });
    let document = json!({ "uri": address(Path::new(&path)), "version": 2 });
    let changed = json!({ "textDocument": document, "contentChanges": [change] });
    editor.tell("textDocument/didChange", &changed);
    agent.sees_active(&path).await;
    // Answered in its order: then the change has been taken note of.
    editor.actions(&path, &at(0, 0));
    agent.propose(&path, "unsaved\nONE\ntwo\nthree\nfour\n").await;
    let hints = editor.wait_for_hints(&path, 2);
    assert_eq!(hints[0]["range"], span((1, 0), (1, 3)));
    assert_eq!(hints[0]["severity"], 4);
    assert!(hints[0]["message"].as_str().unwrap().contains("+ ONE"), "{hints:?}");
    editor.act(&path, &at(1, 0), "Reject hunk");
    let hints = editor.wait_for_hints(&path, 2);
    assert!(
        hints[0]["message"].as_str().unwrap().contains("You rejected"),
        "{hints:?}"
    );
    let decision = wait_for_decision(&mut editor, &mut agent, &path).await;
    assert_eq!(decision["content"], "unsaved\none\ntwo\nthree\nfour\n");
    editor.wait_for_hints(&path, 0);
}

#[tokio::test]
async fn new_change_opens_as_a_diff_with_the_option() {
    for (how, take_focus) in [("view", false), ("focus", true)] {
        let sandbox = Sandbox::new();
        let path = sandbox.write("a.md", "one\n");
        let mut editor = Editor::open_with(&sandbox, &["--open", how], "helix", &json!({}));
        let agent = agent(&sandbox).await;
        agent.propose(&path, "two\n").await;
        let shown = editor.wait_for_method("window/showDocument");
        assert_eq!(shown["params"]["takeFocus"], take_focus);
        let file = shown["params"]["uri"]
            .as_str()
            .unwrap()
            .strip_prefix("file://")
            .unwrap();
        assert!(fs::read_to_string(file).unwrap().contains("-one\n+two"));
        // Others wait until it is decided, and the command reaches them.
        agent.propose(&sandbox.write("b.md", ""), "b\n").await;
        let said = editor.wait(|message| {
            message["params"]["message"]
                .as_str()
                .is_some_and(|text| text.contains("b.md"))
        });
        assert_eq!(said["method"], "window/showMessage");
        let command = json!({ "command": "alongside.show" });
        for name in ["b.md.diff", "a.md.diff"] {
            editor.ask("workspace/executeCommand", &command);
            let shown = editor.wait_for_method("window/showDocument");
            assert!(shown["params"]["uri"].as_str().unwrap().ends_with(name), "{shown}");
            assert_eq!(shown["params"]["takeFocus"], true);
        }
    }
}

#[tokio::test]
async fn new_change_is_only_a_message_by_default() {
    let sandbox = Sandbox::new();
    let mut editor = Editor::open(&sandbox);
    let command = json!({ "command": "alongside.show", "arguments": [] });
    editor.ask("workspace/executeCommand", &command);
    let said = editor.wait_for_method("window/showMessage");
    assert_eq!(said["params"]["message"], "No pending changes.");
    let agent = agent(&sandbox).await;
    agent.propose(&sandbox.write("a.md", "one\n"), "two\n").await;
    let seen = editor.wait(|message| {
        message["method"]
            .as_str()
            .is_some_and(|method| method.starts_with("window/"))
    });
    assert_eq!(seen["method"], "window/showMessage");
    editor.ask("workspace/executeCommand", &command);
    let shown = editor.wait_for_method("window/showDocument");
    assert_eq!(shown["params"]["takeFocus"], true);
}

#[tokio::test]
async fn decision_right_after_review_opens_is_ignored() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let mut editor = Editor::open(&sandbox);
    let agent = agent(&sandbox).await;
    editor.open_file(&path, "one\n");
    agent.propose(&path, "two\n").await;
    editor.wait_for_hints(&path, 1);
    editor.act(&path, &at(0, 0), "Accept change");
    let said = editor.wait(|message| message["params"]["type"] == 1);
    assert!(
        said["params"]["message"].as_str().unwrap().contains("only just"),
        "{said}"
    );
}

#[tokio::test]
async fn automatic_action_requests_are_empty_without_reviews() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one two\n");
    let literals = json!({ "codeAction": { "codeActionLiteralSupport": {} } });
    let mut editor = Editor::open_as(&sandbox, &json!({ "textDocument": literals }));
    let agent = agent(&sandbox).await;
    editor.open_file(&path, "one two\n");
    let mut titles = |context: Value| -> Vec<String> {
        let document = json!({ "uri": address(Path::new(&path)) });
        let params = json!({ "textDocument": document, "range": span((0, 0), (0, 7)), "context": context });
        let answer = editor.ask("textDocument/codeAction", &params);
        let actions = answer["result"].as_array().unwrap();
        assert!(actions.iter().all(|action| action["kind"] == "quickfix"), "{answer}");
        actions
            .iter()
            .map(|action| action["title"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(titles(json!({ "triggerKind": 1 })), ["Send selection to agents"]);
    assert_eq!(titles(json!({ "triggerKind": 2 })), [""; 0]);
    assert_eq!(titles(json!({ "only": ["source.organizeImports"] })), [""; 0]);
    agent.propose(&path, "ONE two\n").await;
    let all = wait_for("the actions", || {
        let all = titles(json!({ "triggerKind": 2, "only": ["quickfix"] }));
        (!all.is_empty()).then_some(all)
    });
    assert_eq!(all.len(), 5, "{all:?}");
    assert_eq!(all[0], "Reject hunk");
    let document = json!({ "textDocument": { "uri": address(Path::new(&path)) } });
    let lenses = editor.ask("textDocument/codeLens", &document);
    let titles: Vec<&str> = lenses["result"]
        .as_array()
        .unwrap()
        .iter()
        .map(|lens| lens["command"]["title"].as_str().unwrap())
        .collect();
    assert_eq!(titles, ["Accept change", "Reject change", "Show change", "Reject hunk"]);
}

#[tokio::test]
async fn question_is_asked_but_not_required() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let window = json!({ "window": { "showMessage": { "messageActionItem": {} } } });
    let mut editor = Editor::open_named(&sandbox, "Some Editor", &window);
    let mut agent = agent(&sandbox).await;
    agent.propose(&path, "two\n").await;
    let asked = editor.wait_for_method("window/showMessageRequest");
    assert_eq!(
        asked["params"]["actions"][0]["title"], "Show change",
        "what a stray key chooses is harmless"
    );
    let error = json!({ "code": -32601, "message": "never heard of it" });
    editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "error": error }));
    agent.propose(&path, "three\n").await;
    let asked = editor.wait_for_method("window/showMessageRequest");
    editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "title": "Show change" } }));
    let shown = editor.wait_for_method("window/showDocument");
    let uri = shown["params"]["uri"].as_str().unwrap().to_owned();
    assert!(uri.ends_with("/a.md.diff"), "{uri}");
    let difference = fs::read_to_string(uri.strip_prefix("file://").unwrap()).unwrap();
    assert!(difference.contains("-one\n+three\n"), "{difference}");
    editor.send(&json!({ "jsonrpc": "2.0", "id": shown["id"], "result": { "success": false } }));
    let said = editor.wait(|message| message["method"] == "window/showMessage");
    assert!(
        said["params"]["message"]
            .as_str()
            .unwrap()
            .contains("a.md.diff to view"),
        "{said}"
    );
    // Long after, and after somebody else decided.
    let review = sandbox.json(&["diff", "list"])[0]["id"].to_string();
    sandbox.words(&["diff", "reject", &review]);
    assert_eq!(agent.decision().await.0, "ide/diffRejected");
    editor.send(&json!({ "jsonrpc": "2.0", "id": asked["id"], "result": { "title": "Accept change" } }));
    assert_eq!(
        editor.ask("textDocument/hover", &json!({}))["error"]["code"],
        -32602,
        "it is still there"
    );
}

#[tokio::test]
async fn page_opens_through_a_private_file_and_no_message_has_the_link() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let mut editor = Editor::open(&sandbox);
    let agent = agent(&sandbox).await;
    editor.open_file(&path, "one\n");
    agent.propose(&path, "two\n").await;
    editor.wait_for_hints(&path, 1);
    editor.act(&path, &at(0, 0), "Review changes in the browser");
    let shown = editor.wait_for_method("window/showDocument");
    assert_eq!(shown["params"]["external"], true);
    let uri = shown["params"]["uri"].as_str().unwrap();
    let redirect = fs::read_to_string(uri.strip_prefix("file://").unwrap()).unwrap();
    assert!(redirect.contains("url=http://127.0.0.1:"), "{redirect}");
    let error = json!({ "code": -32601, "message": "unknown" });
    editor.send(&json!({ "jsonrpc": "2.0", "id": shown["id"], "error": error }));
    let said = editor.wait(|message| {
        message["params"]["message"]
            .as_str()
            .is_some_and(|text| text.contains("alongside page"))
    });
    assert!(!said.to_string().contains("http"), "{said}");
}

#[tokio::test]
async fn file_of_an_agent_is_shown_without_the_focus() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\ntwo\n");
    let mut editor = Editor::open(&sandbox);
    let arguments = json!({ "path": path, "line": 2 });
    let call = json!({
        "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "openFile", "arguments": arguments },
    });
    let mut server = sandbox.command(&["mcp-stdio", "--tools"]);
    let mut server = server.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    writeln!(server.stdin.take().unwrap(), "{call}").unwrap();
    let output = server.wait_with_output().unwrap();
    let response: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(response["result"]["isError"], false, "{response}");
    let shown = editor.wait_for_method("window/showDocument");
    assert!(shown["params"]["uri"].as_str().unwrap().ends_with("/a.txt"), "{shown}");
    assert_eq!(shown["params"]["takeFocus"], false);
    assert_eq!(
        shown["params"]["selection"]["start"],
        json!({ "line": 1, "character": 0 })
    );
}

#[tokio::test]
async fn range_of_a_code_action_is_not_always_a_selection() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\ntwo\nthree\n");
    for (name, range, selected) in [
        ("Kate", span((1, 0), (2, 0)), None),
        ("Kate", span((1, 0), (3, 0)), Some("two\nthree\n")),
        ("Qt Creator", span((0, 0), (3, 0)), None),
    ] {
        let mut editor = Editor::open_named(&sandbox, name, &json!({}));
        let mut agent = agent(&sandbox).await;
        editor.open_file(&path, "one\ntwo\nthree\n");
        editor.actions(&path, &range);
        let document = json!({ "uri": address(Path::new(&path)) });
        let params = json!({ "textDocument": document, "position": { "line": 1, "character": 1 } });
        editor.ask("textDocument/documentHighlight", &params);
        let cursor = json!({ "line": 2, "character": 2 });
        let seen = loop {
            let seen = agent.sees_active(&path).await["workspaceState"]["openFiles"][0].take();
            if seen["cursor"] == cursor {
                break seen;
            }
        };
        assert_eq!(seen.get("selectedText").and_then(Value::as_str), selected, "{name}");
        assert_eq!(editor.shut_down(), Some(0));
    }
}

#[test]
fn nonsense_is_answered_and_does_no_harm() {
    let sandbox = Sandbox::new();
    // Without a folder, requests before the first file have no workspace to be about.
    let folder = sandbox.workspace();
    let mut editor = Editor::start(&sandbox, &["--workspace", folder.to_str().unwrap()]);
    editor.send_raw(b"{");
    assert_eq!(editor.wait(|message| message["id"].is_null())["error"]["code"], -32700);
    assert_eq!(editor.ask("textDocument/hover", &json!({}))["error"]["code"], -32002);
    let initialized = editor.ask("initialize", &json!({ "rootUri": 7, "capabilities": [] }));
    assert_eq!(initialized["result"]["capabilities"]["positionEncoding"], "utf-16");
    assert_eq!(editor.ask("initialize", &json!({}))["error"]["code"], -32600);
    assert_eq!(editor.ask("textDocument/hover", &json!({}))["error"]["code"], -32602);
    assert_eq!(
        editor.ask("textDocument/formatting", &json!({}))["error"]["code"],
        -32601
    );
    editor.tell("textDocument/didChange", &json!({ "textDocument": 3 }));
    let elsewhere =
        json!({ "textDocument": { "uri": "file:///never/opened" }, "position": { "line": 9, "character": 9 } });
    assert_eq!(editor.ask("textDocument/hover", &elsewhere)["result"], Value::Null);
    let command = json!({ "command": "alongside.accept", "arguments": [{ "review": 7, "revision": 1 }] });
    editor.ask("workspace/executeCommand", &command);
    let said = editor.wait_for_method("window/showMessage");
    assert!(
        said["params"]["message"].as_str().unwrap().contains("No review 7"),
        "{said}"
    );
    let unknown = editor.ask("workspace/executeCommand", &json!({ "command": "rm" }));
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn unusable_folder_is_refused_with_a_reason() {
    let sandbox = Sandbox::new();
    let mut editor = Editor::start(&sandbox, &["--workspace", "/does/not/exist"]);
    let answer = editor.ask("initialize", &json!({ "capabilities": {} }));
    assert!(
        answer["error"]["message"].as_str().unwrap().contains("/does/not/exist"),
        "{answer}"
    );
    let status = wait_for("its end", || editor.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1));
}

#[tokio::test]
async fn disconnected_editor_leaves_nothing_behind() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let mut editor = Editor::open(&sandbox);
    let mut agent = agent(&sandbox).await;
    agent.propose(&path, "two\n").await;
    editor.wait_for_hints(&path, 1);
    drop(editor.input.take());
    assert_eq!(agent.decision().await.0, "ide/diffRejected");
    let status = wait_for("its end", || editor.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1), "it did not say goodbye");
    assert_eq!(sandbox.discovery_files().len(), 0);
    let drafts = sandbox.path("home/.local/state/alongside/drafts");
    assert_eq!(fs::read_dir(drafts).unwrap().count(), 0);
    let mut errors = String::new();
    editor.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
    assert_eq!(errors, "");
}
