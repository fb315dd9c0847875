//! The companion of an editor that speaks the language server protocol.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};
use std::sync::mpsc::{self, Receiver};

use serde_json::{Value, json};

use crate::sandbox::{Agent, PATIENCE, Sandbox, wait_for};

/// A pretend editor.
struct Editor {
    child: Child,
    input: Option<ChildStdin>,
    messages: Receiver<Value>,
    kept: Vec<Value>,
    last_id: u64,
}

impl Editor {
    /// Starts the server, without a word.
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        let mut command = sandbox.command(&[&["lsp"], arguments].concat());
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let (tell, messages) = mpsc::channel();
        std::thread::spawn(move || {
            while let Some(message) = next(&mut output) {
                if tell.send(message).is_err() {
                    break;
                }
            }
        });
        let input = child.stdin.take();
        Self {
            child,
            input,
            messages,
            kept: Vec::new(),
            last_id: 0,
        }
    }

    /// Starts the server and introduces itself, as Helix does.
    fn open(sandbox: &Sandbox) -> Self {
        Self::open_as(sandbox, &json!({}))
    }

    fn open_as(sandbox: &Sandbox, capabilities: &Value) -> Self {
        let mut editor = Self::start(sandbox, &[]);
        let params = json!({
            "processId": std::process::id(),
            "clientInfo": { "name": "helix" },
            "rootUri": address(&sandbox.workspace()),
            "capabilities": capabilities,
        });
        let answer = editor.ask("initialize", &params);
        assert_eq!(answer["result"]["serverInfo"]["name"], "alongside", "{answer}");
        editor.tell("initialized", &json!({}));
        editor
    }

    fn send(&mut self, message: &Value) {
        self.send_raw(message.to_string().as_bytes());
    }

    fn send_raw(&mut self, body: &[u8]) {
        let input = self.input.as_mut().unwrap();
        write!(input, "Content-Length: {}\r\n\r\n", body.len()).unwrap();
        input.write_all(body).unwrap();
        input.flush().unwrap();
    }

    fn tell(&mut self, method: &str, params: &Value) {
        self.send(&json!({ "jsonrpc": "2.0", "method": method, "params": params }));
    }

    /// Asks and gives the whole answer, past whatever else comes.
    fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last_id += 1;
        let id = self.last_id;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }));
        self.wait(|message| message["id"] == id && message.get("method").is_none())
    }

    /// Waits for a message; what comes before it is kept for later.
    fn wait(&mut self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(position) = self.kept.iter().position(&is_wanted) {
            return self.kept.remove(position);
        }
        loop {
            let message = self.messages.recv_timeout(PATIENCE);
            let message = message.unwrap_or_else(|_| panic!("not among {:#?}", self.kept));
            if is_wanted(&message) {
                return message;
            }
            self.kept.push(message);
        }
    }

    fn wait_for_method(&mut self, method: &str) -> Value {
        self.wait(|message| message["method"] == method)
    }

    /// The hints of a file, once there are as many.
    fn wait_for_hints(&mut self, path: &str, count: usize) -> Vec<Value> {
        let uri = address(Path::new(path));
        let message = self.wait(|message| {
            let hints = message["params"]["diagnostics"].as_array();
            message["params"]["uri"] == uri && hints.is_some_and(|hints| hints.len() == count)
        });
        message["params"]["diagnostics"].as_array().unwrap().clone()
    }

    fn open_file(&mut self, path: &str, text: &str) {
        let document = json!({ "uri": address(Path::new(path)), "languageId": "x", "version": 1, "text": text });
        self.tell("textDocument/didOpen", &json!({ "textDocument": document }));
    }

    fn actions(&mut self, path: &str, range: &Value) -> Vec<Value> {
        let document = json!({ "uri": address(Path::new(path)) });
        let params = json!({ "textDocument": document, "range": range, "context": { "diagnostics": [] } });
        let answer = self.ask("textDocument/codeAction", &params);
        answer["result"]
            .as_array()
            .unwrap_or_else(|| panic!("{answer}"))
            .clone()
    }

    /// Chooses the action whose title begins so.
    fn act(&mut self, path: &str, range: &Value, title: &str) {
        let actions = self.actions(path, range);
        let is_wanted = |action: &&Value| action["title"].as_str().unwrap().starts_with(title);
        let action = actions
            .iter()
            .find(is_wanted)
            .unwrap_or_else(|| panic!("{title}: {actions:?}"));
        let command = if action["command"].is_object() {
            &action["command"]
        } else {
            action
        };
        let params = json!({ "command": command["command"], "arguments": command["arguments"] });
        let answer = self.ask("workspace/executeCommand", &params);
        assert_eq!(answer["result"], Value::Null, "{answer}");
    }

    fn shut_down(mut self) -> Option<i32> {
        self.ask("shutdown", &Value::Null);
        self.tell("exit", &Value::Null);
        wait_for("its end", || self.child.try_wait().unwrap()).code()
    }
}

impl Drop for Editor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn next(output: &mut impl BufRead) -> Option<Value> {
    let mut header = String::new();
    output.read_line(&mut header).ok().filter(|count| *count > 0)?;
    let length = header.strip_prefix("Content-Length: ").expect("nothing but messages");
    let mut body = vec![0; length.trim().parse::<usize>().unwrap() + 2];
    output.read_exact(&mut body).ok()?;
    Some(serde_json::from_slice(&body[2..]).unwrap())
}

fn address(path: &Path) -> String {
    format!("file://{}", path.display()).replace(' ', "%20")
}

fn at(line: usize, character: usize) -> Value {
    span((line, character), (line, character))
}

fn span(start: (usize, usize), end: (usize, usize)) -> Value {
    json!({
        "start": { "line": start.0, "character": start.1 },
        "end": { "line": end.0, "character": end.1 },
    })
}

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
        "Agents see 1 line of a b.md with your next message."
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
async fn a_proposal_is_compared_with_the_buffer_shown_as_hints_and_decided_hunk_by_hunk() {
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
    editor.act(&path, &at(1, 0), "Accept change");
    // A key that came too soon does not decide; the next one does.
    let decision = tokio::time::timeout(std::time::Duration::from_secs(1), agent.decision()).await;
    let (method, decision) = match decision {
        Ok(decision) => decision,
        Err(_) => {
            editor.act(&path, &at(1, 0), "Accept change");
            agent.decision().await
        }
    };
    assert_eq!(method, "ide/diffAccepted");
    assert_eq!(decision["content"], "unsaved\none\ntwo\nthree\nfour\n");
    editor.wait_for_hints(&path, 0);
}

#[tokio::test]
async fn a_decision_in_the_moment_in_which_a_change_appears_does_not_count() {
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
async fn a_draft_is_edited_as_a_file_in_a_private_directory() {
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
async fn a_hunk_decided_in_the_file_of_a_draft_changes_that_file() {
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

#[test]
fn nonsense_is_answered_and_does_no_harm() {
    let sandbox = Sandbox::new();
    let mut editor = Editor::start(&sandbox, &[]);
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
        said["params"]["message"].as_str().unwrap().contains("no review 7"),
        "{said}"
    );
    let unknown = editor.ask("workspace/executeCommand", &json!({ "command": "rm" }));
    assert_eq!(unknown["error"]["code"], -32601);
    assert_eq!(editor.shut_down(), Some(0));
}

#[test]
fn a_folder_that_cannot_be_served_is_refused_in_a_sentence() {
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
async fn an_editor_that_hangs_up_leaves_nothing_behind_and_nobody_waiting() {
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
