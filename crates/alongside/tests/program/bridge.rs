//! The companion of an editor, whose plugin speaks on standard input and output.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc;

use alongside_front::client::{Client, ClientError};
use alongside_protocol::{Empty, ErrorKind, Notification, requests};
use serde_json::{Value, json};

use crate::sandbox::{Agent, Sandbox, TIMEOUT, wait_for};

/// A pretend editor: a process that is only there, and a conversation.
pub(crate) struct Plugin {
    pub(crate) editor: Child,
    pub(crate) bridge: Child,
    input: Option<ChildStdin>,
    lines: mpsc::Receiver<Value>,
    last: u64,
}

impl Plugin {
    pub(crate) fn start(sandbox: &Sandbox) -> Self {
        Self::start_with(sandbox, &[])
    }

    pub(crate) fn start_with(sandbox: &Sandbox, further: &[&str]) -> Self {
        let editor = Command::new("sleep").arg("600").spawn().unwrap();
        let pid = editor.id().to_string();
        let arguments = ["bridge", "--name", "ed", "--display-name", "The Editor", "--pid", &pid];
        let mut bridge = sandbox
            .command(&[&arguments, further].concat())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = read(bridge.stdout.take().unwrap());
        Self {
            input: bridge.stdin.take(),
            editor,
            bridge,
            lines,
            last: 0,
        }
    }

    pub(crate) fn send(&mut self, line: &str) {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
    }

    pub(crate) fn ask(&mut self, method: &str, params: &Value) -> Value {
        self.last += 1;
        let id = self.last;
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }).to_string());
        self.hear(|message| message["id"] == id)
    }

    pub(crate) fn hello(&mut self) -> Value {
        self.ask("hello", &json!({ "protocol": 1, "name": "ed", "watch": true }))
    }

    fn hear(&self, is_wanted: impl Fn(&Value) -> bool) -> Value {
        loop {
            let message = self.lines.recv_timeout(TIMEOUT).unwrap();
            if is_wanted(&message) {
                return message;
            }
        }
    }

    fn token(&mut self) -> (u16, String) {
        let status = self.ask("status", &json!({}));
        let file = status["result"]["files"][0].as_str().unwrap().to_owned();
        let file: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
        let port = u16::try_from(file["port"].as_u64().unwrap()).unwrap();
        (port, file["authToken"].as_str().unwrap().to_owned())
    }

    /// Another front end of the same companion.
    async fn other_front_end(&self, sandbox: &Sandbox, watch: bool) -> Client {
        let companions = sandbox.path("home/.local/state/alongside/companions");
        let record = fs::read(companions.join(format!("{}.json", self.bridge.id()))).unwrap();
        let record: Value = serde_json::from_slice(&record).unwrap();
        let port = u16::try_from(record["frontPort"].as_u64().unwrap()).unwrap();
        let token = alongside_core::Secret::parse(record["frontToken"].as_str().unwrap()).unwrap();
        Client::connect(port, &token, "other", watch).await.unwrap().0
    }

    fn ended(&mut self) -> Option<i32> {
        wait_for("the bridge's end", || self.bridge.try_wait().unwrap()).code()
    }
}

impl Drop for Plugin {
    fn drop(&mut self) {
        for child in [&mut self.editor, &mut self.bridge] {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn read(output: ChildStdout) -> mpsc::Receiver<Value> {
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for line in BufReader::new(output).lines().map_while(Result::ok) {
            // Whatever is printed there has to be a message.
            let _ = tell.send(serde_json::from_str(&line).unwrap());
        }
    });
    told
}

#[tokio::test]
async fn a_bridge_is_the_companion_of_its_editor() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a b \"ü\".txt", "one\n");
    let mut plugin = Plugin::start(&sandbox);
    let hello = plugin.hello();
    assert_eq!(hello["result"]["workspace"], json!([sandbox.workspace()]));
    let editor = format!("-{}-", plugin.editor.id());
    let files = sandbox.discovery_files();
    assert_eq!(files.len(), 5);
    let named = files.iter().filter(|file| file.to_str().unwrap().contains(&editor));
    assert_eq!(named.count(), 2, "named after the editor: {files:?}");

    let (port, token) = plugin.token();
    let mut agent = Agent::connect_to(port, &token).await;
    let cursor = json!({ "line": 1, "character": 2 });
    let focus = json!({ "path": file, "cursor": cursor, "selectedText": "n" });
    assert_eq!(plugin.ask("context/focus", &focus)["result"], json!({}));
    let seen = agent.sees_active(&file).await;
    assert_eq!(seen["workspaceState"]["openFiles"][0]["cursor"], cursor);

    agent.propose(&file, "one\r\ntwo").await;
    let opened = plugin.hear(|message| message["method"] == "review/opened");
    let review = &opened["params"]["id"];
    let accept = json!({ "review": review, "content": "one\r\n2" });
    assert_eq!(plugin.ask("review/accept", &accept)["result"]["outcome"], "accepted");
    assert_eq!(agent.told("ide/diffAccepted").await["content"], "one\r\n2");
}

#[tokio::test]
async fn terminal_variables_and_leaving_are_for_the_editor_only() {
    let sandbox = Sandbox::new();
    let mut plugin = Plugin::start(&sandbox);
    plugin.hello();
    let (port, token) = plugin.token();
    let variables = &plugin.ask("terminal/environment", &json!({}))["result"]["variables"];
    assert_eq!(variables["GEMINI_CLI_IDE_SERVER_PORT"], port.to_string());
    assert_eq!(variables["QWEN_CODE_IDE_SERVER_PORT"], port.to_string());
    assert_eq!(variables["GEMINI_CLI_IDE_AUTH_TOKEN"], token);
    assert_eq!(variables["GEMINI_CLI_IDE_PID"], plugin.editor.id().to_string());

    let mut other = plugin.other_front_end(&sandbox, false).await;
    let is_refused =
        |error: &ClientError| matches!(error, ClientError::Rejected(error) if error.kind == ErrorKind::BridgeOnly);
    let refused = other.call::<requests::TerminalEnvironment>(Empty {}).await;
    assert!(refused.as_ref().is_err_and(is_refused), "{refused:?}");
    let refused = other.call::<requests::Leaving>(Empty {}).await;
    assert!(refused.as_ref().is_err_and(is_refused), "{refused:?}");
    let refused = other.call::<requests::HandOver>(Empty {}).await;
    assert!(matches!(&refused, Err(ClientError::Rejected(_))), "{refused:?}");
}

#[tokio::test]
async fn bridge_exits_with_input_editor_or_signal_and_rejects() {
    let hang_up: fn(&mut Plugin) = |plugin| plugin.input = None;
    let end_the_editor: fn(&mut Plugin) = |plugin| {
        plugin.editor.kill().unwrap();
        plugin.editor.wait().unwrap();
    };
    let signal: fn(&mut Plugin) = |plugin| {
        let pid = plugin.bridge.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
    };
    let ask: fn(&mut Plugin) = |plugin| {
        plugin.ask("stop", &json!({}));
    };
    for end in [hang_up, end_the_editor, signal, ask] {
        let sandbox = Sandbox::new();
        let mut plugin = Plugin::start(&sandbox);
        plugin.hello();
        let (port, token) = plugin.token();
        let mut agent = Agent::connect_to(port, &token).await;
        agent.propose("/a", "text").await;
        plugin.hear(|message| message["method"] == "review/opened");
        end(&mut plugin);
        assert_eq!(agent.decision().await.0, "ide/diffRejected");
        assert_eq!(plugin.ended(), Some(0));
        assert!(sandbox.discovery_files().is_empty());
    }
}

#[test]
fn invalid_message_is_refused_and_the_bridge_continues() {
    let sandbox = Sandbox::new();
    let mut plugin = Plugin::start(&sandbox);
    plugin.send("nonsense");
    assert_eq!(plugin.hear(|_| true)["error"]["code"], -32700);
    let early = plugin.ask("review/list", &json!({}));
    assert_eq!(early["error"]["data"]["kind"], "noHello");
    plugin.hello();
    let relative = plugin.ask("context/focus", &json!({ "path": "a" }));
    assert_eq!(relative["error"]["data"]["kind"], "notAbsolute");
}

#[tokio::test]
async fn killed_bridge_restarts_with_its_port_and_reviews() {
    let sandbox = Sandbox::new();
    let mut plugin = Plugin::start(&sandbox);
    plugin.hello();
    let before = plugin.token();
    let agent = Agent::connect_to(before.0, &before.1).await;
    agent.propose("/a", "text").await;
    plugin.bridge.kill().unwrap();
    plugin.bridge.wait().unwrap();
    drop(plugin);
    let mut plugin = Plugin::start(&sandbox);
    plugin.hello();
    assert_eq!(plugin.token(), before);
    assert_eq!(plugin.ask("review/list", &json!({}))["result"][0]["path"], "/a");
}

impl Plugin {
    /// With a pending review of `/a`.
    async fn start_with_a_review(sandbox: &Sandbox) -> (Self, Agent, (u16, String)) {
        let mut plugin = Self::start(sandbox);
        plugin.hello();
        let (port, token) = plugin.token();
        let agent = Agent::connect_to(port, &token).await;
        agent.propose("/a", "text").await;
        plugin.hear(|message| message["method"] == "review/opened");
        (plugin, agent, (port, token))
    }

    fn leave(&mut self) {
        assert_eq!(self.ask("leaving", &json!({}))["result"], json!({}));
    }

    fn hang_up(&mut self) {
        self.input = None;
    }

    fn signal(&self, name: &str) {
        let pid = self.bridge.id().to_string();
        assert!(Command::new("kill").args([name, &pid]).status().unwrap().success());
    }

    fn paths_of_reviews(&mut self) -> Vec<String> {
        let reviews = self.ask("review/list", &json!({}));
        let reviews = reviews["result"].as_array().unwrap().iter();
        reviews
            .map(|review| review["path"].as_str().unwrap().to_owned())
            .collect()
    }
}

// The client notices the end of the first bridge while the test waits for the next one.
#[tokio::test(flavor = "multi_thread")]
async fn editor_that_was_leaving_comes_back_to_its_pending_changes() {
    let sandbox = Sandbox::new();
    let (mut plugin, agent, before) = Plugin::start_with_a_review(&sandbox).await;
    plugin.leave();
    plugin.hang_up();
    plugin.editor.kill().unwrap();
    plugin.editor.wait().unwrap();
    let mut returned = Plugin::start(&sandbox);
    returned.hello();
    assert_eq!(plugin.ended(), Some(1), "it exited without stopping");
    assert_eq!(returned.token(), before);
    assert_eq!(returned.paths_of_reviews(), ["/a"]);
    assert_eq!(
        returned.ask("review/accept", &json!({ "review": 1 }))["result"]["outcome"],
        "accepted"
    );
    let mut agent = Agent {
        events: agent.client.events(None).await.unwrap(),
        client: agent.client,
    };
    assert_eq!(
        agent.decision().await,
        (
            "ide/diffAccepted".into(),
            json!({ "filePath": "/a", "content": "text" })
        )
    );
}

#[tokio::test]
async fn editor_that_was_leaving_and_stays_away_has_its_changes_rejected() {
    let sandbox = Sandbox::new();
    let (mut plugin, mut agent, _) = Plugin::start_with_a_review(&sandbox).await;
    plugin.leave();
    plugin.hang_up();
    assert_eq!(agent.decision().await.0, "ide/diffRejected");
    assert_eq!(plugin.ended(), Some(0));
    assert!(sandbox.discovery_files().is_empty());
}

#[tokio::test]
async fn editor_in_use_is_no_longer_leaving() {
    let sandbox = Sandbox::new();
    let (mut plugin, mut agent, _) = Plugin::start_with_a_review(&sandbox).await;
    plugin.leave();
    plugin.ask("context/close", &json!({ "path": sandbox.write("a", "") }));
    plugin.ask("window/focus", &json!({}));
    let mut other = Plugin::start(&sandbox);
    other.hello();
    assert!(other.paths_of_reviews().is_empty(), "the first one is still in use");
    assert_eq!(plugin.paths_of_reviews(), ["/a"]);
    plugin.hang_up();
    assert_eq!(agent.decision().await.0, "ide/diffRejected");
    assert_eq!(plugin.ended(), Some(0));
}

#[tokio::test]
async fn files_closed_while_leaving_do_not_cancel_it() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("a", "");
    let (mut plugin, _agent, _) = Plugin::start_with_a_review(&sandbox).await;
    plugin.leave();
    plugin.ask("context/buffer", &json!({ "path": file }));
    plugin.ask("context/diagnostics", &json!({ "path": file, "diagnostics": [] }));
    plugin.ask("context/close", &json!({ "path": file }));
    // As Emacs does to the programs that it started.
    plugin.signal("-HUP");
    plugin.hang_up();
    let mut returned = Plugin::start(&sandbox);
    returned.hello();
    assert_eq!(returned.paths_of_reviews(), ["/a"]);
}

#[tokio::test]
async fn exit_of_the_editor_does_not_overtake_its_last_message() {
    let sandbox = Sandbox::new();
    let (mut plugin, _agent, _) = Plugin::start_with_a_review(&sandbox).await;
    // It is read after the signal and the editor's end.
    plugin.signal("-STOP");
    plugin.editor.kill().unwrap();
    plugin.editor.wait().unwrap();
    plugin.signal("-HUP");
    plugin.send(r#"{"jsonrpc":"2.0","method":"leaving"}"#);
    plugin.hang_up();
    plugin.signal("-CONT");
    wait_for("the mark of an expected return", || {
        let journals = fs::read_dir(sandbox.path("home/.local/state/alongside/journal")).unwrap();
        journals
            .flatten()
            .any(|entry| entry.file_name().to_string_lossy().ends_with(".leaving"))
            .then_some(())
    });
    let mut returned = Plugin::start(&sandbox);
    returned.hello();
    assert_eq!(returned.paths_of_reviews(), ["/a"]);
}

#[tokio::test]
async fn each_window_that_was_leaving_comes_back_to_its_own_bridge() {
    let sandbox = Sandbox::new();
    let mut first = Plugin::start(&sandbox);
    first.hello();
    let (mut second, _agent, before) = Plugin::start_with_a_review(&sandbox).await;
    let mut third = Plugin::start(&sandbox);
    third.hello();
    let untouched = third.token();
    // Its place is free, and not the one to come back to.
    first.hang_up();
    assert_eq!(first.ended(), Some(0));
    second.leave();
    second.hang_up();
    let mut returned = Plugin::start(&sandbox);
    returned.hello();
    assert_eq!(returned.token(), before);
    assert_eq!(returned.paths_of_reviews(), ["/a"]);
    assert_eq!(third.token(), untouched);
    let mut fourth = Plugin::start(&sandbox);
    fourth.hello();
    assert!(fourth.paths_of_reviews().is_empty());
}

#[tokio::test]
async fn bridge_killed_while_its_editor_was_leaving_is_continued() {
    let sandbox = Sandbox::new();
    let mut first = Plugin::start(&sandbox);
    first.hello();
    let (mut plugin, _agent, before) = Plugin::start_with_a_review(&sandbox).await;
    first.hang_up();
    assert_eq!(first.ended(), Some(0));
    plugin.leave();
    plugin.hang_up();
    plugin.bridge.kill().unwrap();
    plugin.bridge.wait().unwrap();
    let mut returned = Plugin::start(&sandbox);
    returned.hello();
    assert_eq!(returned.token(), before);
    assert_eq!(returned.paths_of_reviews(), ["/a"]);
}

#[tokio::test]
async fn stopped_bridge_rejects_although_its_editor_was_leaving() {
    let sandbox = Sandbox::new();
    let (mut plugin, mut agent, _) = Plugin::start_with_a_review(&sandbox).await;
    plugin.leave();
    plugin.hang_up();
    plugin.signal("-TERM");
    assert_eq!(agent.decision().await.0, "ide/diffRejected");
    assert_eq!(plugin.ended(), Some(0));
    let mut next = Plugin::start(&sandbox);
    next.hello();
    assert!(next.paths_of_reviews().is_empty());
}

#[tokio::test]
async fn edit_names_its_request_to_the_front_end_that_sent_it() {
    let sandbox = Sandbox::new();
    let (mut plugin, _agent, _) = Plugin::start_with_a_review(&sandbox).await;
    let mut other = plugin.other_front_end(&sandbox, true).await;
    let edited = |message: &Value| message["method"] == "review/edited";
    let edit = |id: &Value, content: &str| {
        let params = json!({ "review": 1, "content": content });
        json!({ "jsonrpc": "2.0", "id": id, "method": "review/edit", "params": params }).to_string()
    };
    let mut heard_by_other = async || loop {
        if let Notification::ReviewEdited(edited) = other.notification().await.unwrap() {
            return edited;
        }
    };
    for (id, content) in [(json!(1000), "one"), (json!("a b"), "two")] {
        plugin.send(&edit(&id, content));
        assert_eq!(plugin.hear(edited)["params"]["request"], id);
        assert_eq!(heard_by_other().await.request, None);
    }
    let hunk = json!({ "review": 1, "hunk": 0, "decision": "reject" });
    other
        .call::<requests::ReviewHunk>(serde_json::from_value(hunk).unwrap())
        .await
        .unwrap();
    assert_eq!(plugin.hear(edited)["params"].get("request"), None);
}
