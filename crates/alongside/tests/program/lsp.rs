//! The companion of an editor that speaks the language server protocol.

mod editor;

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
async fn folders_are_followed_but_not_those_of_drafts() {
    let sandbox = Sandbox::new();
    let other = sandbox.path("other");
    fs::create_dir_all(other.join(".git/refs")).unwrap();
    fs::create_dir_all(other.join("crates/one")).unwrap();
    let mut editor = Editor::open(&sandbox);
    let drafts = sandbox.path("home/.local/state/alongside/drafts");
    let added: Vec<Value> = [&drafts, &other.join("crates/one")]
        .map(|folder| json!({ "uri": address(folder), "name": "x" }))
        .into();
    let event = json!({ "event": { "added": added, "removed": [] } });
    editor.tell("workspace/didChangeWorkspaceFolders", &event);
    let expected = format!("{}:{}", sandbox.workspace().display(), other.display());
    wait_for("the folder in the discovery file", || {
        let file: Value = serde_json::from_slice(&fs::read(sandbox.discovery_files().pop()?).ok()?).ok()?;
        (file["workspacePath"] == expected).then_some(())
    });
}

/// Starts a server in `/`, as a desktop does, for a client that names this folder, or none.
fn open_without_a_project(sandbox: &Sandbox, arguments: &[&str], root: &Value) -> Editor {
    let mut editor = Editor::start_in(Path::new("/"), sandbox, arguments);
    let answer = editor.ask("initialize", &json!({ "rootUri": root, "capabilities": {} }));
    assert_eq!(answer["result"]["serverInfo"]["name"], "alongside", "{answer}");
    editor.tell("initialized", &json!({}));
    editor
}

/// Responds in order: then everything before it was handled.
fn hover(editor: &mut Editor, path: &str) -> Value {
    let document = json!({ "uri": address(Path::new(path)) });
    let params = json!({ "textDocument": document, "position": { "line": 0, "character": 0 } });
    editor.ask("textDocument/hover", &params)
}

fn announced(sandbox: &Sandbox) -> Value {
    // A file that is just being written has another name until it is whole.
    wait_for("a discovery file", || {
        let file = sandbox.discovery_files().pop()?;
        serde_json::from_slice(&fs::read(file).ok()?).ok()
    })
}

#[test]
fn nothing_is_announced_before_the_first_file_of_a_client_without_a_project() {
    let home = |sandbox: &Sandbox| json!(address(&sandbox.path("home")));
    let roots: [fn(&Sandbox) -> Value; 3] = [|_| Value::Null, |_| json!("file:///"), home];
    for root in roots {
        let sandbox = Sandbox::new();
        let repository = sandbox.path("a repository");
        fs::create_dir_all(repository.join(".git/refs")).unwrap();
        fs::create_dir_all(repository.join("src")).unwrap();
        let file = repository.join("src/a.txt");
        fs::write(&file, "one\n").unwrap();
        let file = file.to_str().unwrap();
        let mut editor = open_without_a_project(&sandbox, &[], &root(&sandbox));
        assert_eq!(hover(&mut editor, file)["result"], Value::Null);
        assert!(sandbox.discovery_files().is_empty());
        editor.open_file(file, "one\n");
        assert_eq!(announced(&sandbox)["workspacePath"], repository.to_str().unwrap());
        assert_eq!(editor.shut_down(), Some(0));
    }
}

#[tokio::test]
async fn file_outside_a_repository_has_its_directory_as_workspace_but_not_the_home_directory() {
    let sandbox = Sandbox::new();
    let (in_home, elsewhere) = (sandbox.path("home/notes.txt"), sandbox.path("elsewhere/a.txt"));
    fs::create_dir_all(elsewhere.parent().unwrap()).unwrap();
    fs::write(&in_home, "one\n").unwrap();
    fs::write(&elsewhere, "two\n").unwrap();
    let mut editor = open_without_a_project(&sandbox, &[], &Value::Null);
    editor.open_file(in_home.to_str().unwrap(), "one\n");
    hover(&mut editor, in_home.to_str().unwrap());
    assert!(sandbox.discovery_files().is_empty());
    editor.open_file(elsewhere.to_str().unwrap(), "two\n");
    let announced = announced(&sandbox);
    assert_eq!(
        announced["workspacePath"],
        elsewhere.parent().unwrap().to_str().unwrap()
    );
    let mut agent = agent(&sandbox).await;
    let seen = agent.sees_active(elsewhere.to_str().unwrap()).await;
    let open = seen["workspaceState"]["openFiles"].as_array().unwrap();
    assert!(
        open.iter().any(|file| file["path"] == in_home.to_str().unwrap()),
        "{seen}"
    );
}

#[test]
fn home_directory_is_a_workspace_if_the_user_names_it() {
    let sandbox = Sandbox::new();
    let home = sandbox.path("home");
    let arguments = ["--workspace", home.to_str().unwrap()];
    let _editor = open_without_a_project(&sandbox, &arguments, &Value::Null);
    assert_eq!(announced(&sandbox)["workspacePath"], home.to_str().unwrap());
}

#[test]
fn folder_that_a_client_adds_first_is_the_workspace() {
    let sandbox = Sandbox::new();
    let mut editor = open_without_a_project(&sandbox, &[], &Value::Null);
    let added: Vec<Value> = [sandbox.path("home"), sandbox.workspace()]
        .map(|folder| json!({ "uri": address(&folder), "name": "x" }))
        .into();
    let event = json!({ "event": { "added": added, "removed": [] } });
    editor.tell("workspace/didChangeWorkspaceFolders", &event);
    assert_eq!(
        announced(&sandbox)["workspacePath"],
        sandbox.workspace().to_str().unwrap()
    );
}

#[test]
fn client_without_a_project_can_shut_down_or_disconnect() {
    let sandbox = Sandbox::new();
    assert_eq!(open_without_a_project(&sandbox, &[], &Value::Null).shut_down(), Some(0));
    let mut editor = open_without_a_project(&sandbox, &[], &Value::Null);
    drop(editor.input.take());
    let status = wait_for("its end", || editor.child.try_wait().unwrap());
    assert_eq!(status.code(), Some(1), "it did not say goodbye");
}

#[cfg(unix)]
#[test]
fn client_without_a_name_is_called_by_its_process() {
    for (program, name, display_name) in [
        ("kate", "kate", "Kate"),
        ("qtcreator", "qtcreator", "Qt Creator"),
        ("My_Editor", "my-editor", "My_Editor"),
        ("bash", "lsp", "an editor"),
    ] {
        let sandbox = Sandbox::new();
        let path = sandbox.path(program);
        std::os::unix::fs::symlink("/bin/sleep", &path).unwrap();
        let mut process = std::process::Command::new(&path).arg("600").spawn().unwrap();
        let mut editor = Editor::start(&sandbox, &[]);
        let root = address(&sandbox.workspace());
        editor.ask(
            "initialize",
            &json!({ "processId": process.id(), "rootUri": root, "capabilities": {} }),
        );
        let announced = announced(&sandbox);
        process.kill().unwrap();
        process.wait().unwrap();
        assert_eq!(
            (&announced["ideInfo"]["name"], &announced["ideInfo"]["displayName"]),
            (&json!(name), &json!(display_name)),
        );
    }
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
