//! The Windows program, under wine. `cargo xtask platforms` prepares and runs these tests.
#![allow(missing_docs, clippy::expect_used, clippy::panic, clippy::print_stdout)]

mod npm;
mod paths;
mod processes;

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::mpsc;
use std::thread;

use alongside_e2e::wine::WineProcess;
use alongside_e2e::{Cli, TIMEOUT, Wine, eventually, for_both_agents};
use serde_json::{Value, json};

for_both_agents!(agents_own_code_connects_and_gets_the_decision);

/// The agent's shipped code, in Node for Windows, finds the discovery file, connects and proposes a change.
fn agents_own_code_connects_and_gets_the_decision(agent: Cli) {
    let wine = Wine::new();
    let companion = wine.serve();
    let asking = wine.ask(agent, Some("two\r\n"));
    let listed = eventually(TIMEOUT, || {
        let listed = wine.alongside(&["diff", "list", "--json"]);
        let reviews: Value = serde_json::from_slice(&listed.stdout).ok()?;
        reviews.to_string().contains("a.txt").then_some(())
    });
    assert!(listed.is_some(), "no review is listed");
    let accepted = wine.alongside(&["diff", "accept", r"C:\proj\a.txt"]);
    assert!(accepted.status.success(), "{accepted:?}");
    let answer = asking.get();
    assert_eq!(answer["platform"], "win32");
    assert_eq!(answer["state"]["status"], "connected", "{answer}");
    assert_eq!(answer["diff"]["status"], "accepted", "{answer}");
    assert_eq!(answer["diff"]["content"], "two\r\n", "{answer}");
    assert_eq!(companion.first_line["workspace"], json!([r"C:\proj"]));
}

/// Copilot CLI's own program for Windows cannot be run here. Node connects as it does.
#[test]
fn copilot_is_served_on_a_named_pipe() {
    let wine = Wine::new();
    let mut companion = wine.serve();
    let answer = wine.ask_as_copilot().get();
    assert_eq!(answer["scheme"], "pipe", "{answer}");
    assert_eq!(answer["refused"], 401, "{answer}");
    assert_eq!(answer["accepted"]["status"], 200, "{answer}");
    let text = answer["accepted"]["text"].as_str().unwrap_or_default();
    assert!(text.contains("serverInfo"), "{answer}");
    companion.interrupt();
    assert_eq!(companion.wait(), Some(0));
    assert!(wine.discovery_files().is_empty());
}

#[test]
fn doctor_finds_what_the_agents_find() {
    let wine = Wine::new();
    let _companion = wine.serve();
    let doctor = wine.alongside(&["doctor", "--json"]);
    let text = String::from_utf8_lossy(&doctor.stdout);
    assert!(doctor.status.success(), "{text}");
}

#[test]
fn ctrl_c_removes_the_discovery_files() {
    let wine = Wine::new();
    let mut companion = wine.serve();
    assert!(!wine.discovery_files().is_empty());
    companion.interrupt();
    assert_eq!(companion.wait(), Some(0));
    assert!(wine.discovery_files().is_empty());
}

#[test]
fn stop_ends_the_companion() {
    let wine = Wine::new();
    let mut companion = wine.serve();
    let stopped = wine.alongside(&["stop"]);
    assert!(stopped.status.success(), "{}", String::from_utf8_lossy(&stopped.stdout));
    assert_eq!(companion.wait(), Some(0));
    assert!(wine.discovery_files().is_empty());
}

#[test]
fn leftovers_of_a_killed_companion_are_swept() {
    let wine = Wine::new();
    let mut killed = wine.serve();
    killed.kill();
    let leftovers = wine.discovery_files();
    assert!(!leftovers.is_empty());
    let mut next = wine.serve();
    next.interrupt();
    assert_eq!(next.wait(), Some(0));
    assert!(wine.discovery_files().is_empty(), "{:?}", wine.discovery_files());
}

/// As if another program had the companion's PID now.
#[test]
fn record_of_a_reused_pid_is_removed() {
    let wine = Wine::new();
    let _companion = wine.serve();
    let companions = wine.drive("users/root/AppData/Local/alongside/companions");
    let mut entries = fs::read_dir(companions).expect("there are records");
    let file = entries.next().expect("there is a record").expect("read it").path();
    let count = || {
        let status = wine.alongside(&["status", "--json"]);
        let status: Value = serde_json::from_slice(&status.stdout).expect("it prints JSON");
        status["companions"].as_array().map(Vec::len)
    };
    assert_eq!(count(), Some(1));
    let mut record: Value = serde_json::from_slice(&fs::read(&file).expect("read it")).expect("it is JSON");
    assert!(record["started"].is_string(), "{record}");
    record["started"] = json!("1");
    fs::write(&file, record.to_string()).expect("change the record");
    assert_eq!(count(), Some(0));
    assert!(!file.exists());
}

#[test]
fn companion_ends_with_its_editor() {
    let wine = Wine::new();
    // Any process that stays will do for an editor.
    let mut companion = wine.serve();
    let pid = companion.first_line["pid"].to_string();
    let mut follower = wine.command(r"C:\alongside.exe");
    follower.args(["serve", "--json", "--pid", &pid]);
    let mut follower = WineProcess::start(follower);
    companion.kill();
    assert_eq!(follower.wait(), Some(0), "it ends with its editor");
}

#[test]
fn command_script_of_npm_is_run_with_the_companions_variables() {
    let wine = Wine::new();
    // As npm installs it: a script for Unix shells with the bare name, and one for Windows.
    fs::write(wine.drive("npm/qwen"), "#!/bin/sh\nexit 1\n").expect("write a script");
    let script =
        "@echo port=%QWEN_CODE_IDE_SERVER_PORT% folder=%QWEN_CODE_IDE_WORKSPACE_PATH% first=%1\r\n@exit /b 7\r\n";
    fs::write(wine.drive("npm/qwen.cmd"), script).expect("write a script");
    let run = wine.alongside(&["run", "qwen", "hello"]);
    let printed = String::from_utf8_lossy(&run.stdout);
    assert_eq!(run.status.code(), Some(7), "{printed}");
    assert!(printed.contains(r"folder=C:\proj first=hello"), "{printed}");
    assert!(!printed.contains("port= "), "{printed}");
}

#[test]
fn state_is_not_part_of_a_roaming_profile() {
    let wine = Wine::new();
    let _companion = wine.serve();
    assert!(wine.drive("users/root/AppData/Local/alongside/companions").is_dir());
    assert!(!wine.drive("users/root/AppData/Roaming/alongside/companions").exists());
}

#[test]
fn one_file_in_several_spellings_is_open_once() {
    let wine = Wine::new();
    let _companion = wine.serve();
    for path in [r"C:\proj\a.txt", r"c:\proj\a.txt", "c:/proj/a.txt", r"C:\PROJ\A.TXT"] {
        let focused = wine.alongside(&["context", "focus", path]);
        assert!(focused.status.success(), "{path}: {focused:?}");
    }
    let shown = wine.alongside(&["context", "show", "--json"]);
    let text = String::from_utf8_lossy(&shown.stdout);
    let context: Value = serde_json::from_str(&text).expect("it is JSON");
    let files = &context["workspaceState"]["openFiles"];
    assert_eq!(files.as_array().map(Vec::len), Some(1), "{text}");
    assert_eq!(files[0]["path"], r"C:\proj\a.txt", "{text}");
}

#[test]
fn language_server_reads_windows_uris() {
    let wine = Wine::new();
    let mut server = wine.command(r"C:\alongside.exe");
    let mut server = server
        .arg("lsp")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .map(LanguageServer)
        .expect("start the language server");
    let mut input = server.0.stdin.take().expect("it has a stdin");
    let output = messages(server.0.stdout.take().expect("it has a stdout"));
    let folder = json!([{ "uri": "file:///c%3A/proj", "name": "proj" }]);
    let parameters =
        json!({ "processId": null, "capabilities": {}, "rootUri": "file:///c%3A/proj", "workspaceFolders": folder });
    send(
        &mut input,
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters }),
    );
    response(&output, 1);
    send(
        &mut input,
        &json!({ "jsonrpc": "2.0", "method": "initialized", "params": {} }),
    );
    let document = json!({ "uri": "file:///c%3A/proj/a.txt", "languageId": "text", "version": 1, "text": "one\r\n" });
    send(
        &mut input,
        &json!({ "jsonrpc": "2.0", "method": "textDocument/didOpen", "params": { "textDocument": document } }),
    );
    let seen = eventually(TIMEOUT, || {
        let shown = wine.alongside(&["context", "show", "--json"]);
        let context: Value = serde_json::from_slice(&shown.stdout).ok()?;
        let files = &context["workspaceState"]["openFiles"];
        (files[0]["path"] == r"C:\proj\a.txt").then_some(())
    });
    assert!(seen.is_some(), "the document is not in the context");
    send(&mut input, &json!({ "jsonrpc": "2.0", "id": 2, "method": "shutdown" }));
    response(&output, 2);
    send(&mut input, &json!({ "jsonrpc": "2.0", "method": "exit" }));
    let ended = eventually(TIMEOUT, || server.0.try_wait().expect("it is our child"));
    assert_eq!(ended.expect("it exits").code(), Some(0));
    assert!(wine.discovery_files().is_empty());
}

/// Killed if the test fails.
struct LanguageServer(Child);

impl Drop for LanguageServer {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn send(input: &mut ChildStdin, message: &Value) {
    let text = message.to_string();
    write!(input, "Content-Length: {}\r\n\r\n{text}", text.len()).expect("send a message");
    input.flush().expect("send a message");
}

/// Waits for the response to a request; requests and notifications of the server are skipped.
fn response(output: &mpsc::Receiver<Value>, id: u64) -> Value {
    loop {
        let message = output.recv_timeout(TIMEOUT).expect("it responds and does not exit");
        if message["id"] == id && message.get("method").is_none() {
            return message;
        }
    }
}

/// The messages of a language server, read by a thread that ends with it.
fn messages(output: ChildStdout) -> mpsc::Receiver<Value> {
    let (send, received) = mpsc::channel();
    let mut output = BufReader::new(output);
    thread::spawn(move || {
        while let Some(message) = message(&mut output) {
            let _ = send.send(message);
        }
    });
    received
}

/// `None` if the server has exited.
fn message(output: &mut impl BufRead) -> Option<Value> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if output.read_line(&mut line).ok()? == 0 {
            return None;
        }
        match line.trim_end().split_once(": ") {
            Some(("Content-Length", value)) => length = value.parse().ok()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    output.read_exact(&mut body).ok()?;
    serde_json::from_slice(&body).ok()
}
