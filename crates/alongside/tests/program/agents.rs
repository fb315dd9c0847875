//! Agents that this program starts or simulates.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use alongside_front::client::Client;
use alongside_protocol::{Hello, Notification, requests};
use serde_json::{Value, json};

use crate::bridge::Plugin;
use crate::sandbox::{Sandbox, Serving, wait_for};

#[test]
fn run_sets_the_agents_variables_and_forwards_its_exit_code() {
    let sandbox = Sandbox::new();
    let print = "env | grep -E '^(GEMINI|QWEN)' | sort; exit 7";
    let without = sandbox.output(&["run", "sh", "-c", print]);
    assert_eq!(without.status.code(), Some(7));
    assert!(sandbox.discovery_files().is_empty(), "its own companion ends with it");
    let names = |words: &[u8]| -> Vec<String> {
        let words = String::from_utf8_lossy(words);
        words
            .lines()
            .map(|line| line.split('=').next().unwrap().to_owned())
            .collect()
    };
    let expected = [
        "GEMINI_CLI_IDE_AUTH_TOKEN",
        "GEMINI_CLI_IDE_PID",
        "GEMINI_CLI_IDE_SERVER_PORT",
        "GEMINI_CLI_IDE_WORKSPACE_PATH",
        "QWEN_CODE_IDE_SERVER_PORT",
        "QWEN_CODE_IDE_WORKSPACE_PATH",
    ];
    assert_eq!(names(&without.stdout), expected);

    let serving = sandbox.serve();
    let with = sandbox.output(&["run", "sh", "-c", print]);
    assert_eq!(with.status.code(), Some(7));
    assert_eq!(names(&with.stdout), expected);
    assert!(String::from_utf8_lossy(&with.stdout).contains(&format!("QWEN_CODE_IDE_SERVER_PORT={}", serving.port)));
}

#[test]
fn run_serves_while_the_agent_runs_and_forwards_signals() {
    let sandbox = Sandbox::new();
    let script = "trap 'exit 9' TERM; echo '{\"port\":1,\"files\":[]}'; while :; do sleep 0.05; done";
    // The agent's first line stands for the companion's.
    let running = Serving::start(sandbox.command(&["run", "sh", "-c", script]));
    assert_eq!(sandbox.discovery_files().len(), 5);
    running.signal("TERM");
    assert_eq!(running.wait().0, Some(9));
    assert!(sandbox.discovery_files().is_empty());
}

/// In the mode in which they start, Claude Code and Qwen Code change files without showing it.
#[test]
#[cfg(unix)]
fn run_has_agents_show_their_changes() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = Sandbox::new();
    let programs = sandbox.path("bin");
    std::fs::create_dir_all(&programs).unwrap();
    for name in ["claude", "qwen", "opencode"] {
        let program = programs.join(name);
        std::fs::write(&program, "#!/bin/sh\nprintf '%s\\n' \"$@\"\n").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let run = |line: &[&str]| -> (Vec<String>, String) {
        let mut command = sandbox.command(&[&["run"], line].concat());
        let output = command.env("PATH", &path).output().unwrap();
        assert!(output.status.success(), "{output:?}");
        let arguments = String::from_utf8(output.stdout).unwrap();
        let lines = arguments.lines().filter(|line| !line.is_empty()).map(str::to_owned);
        (lines.collect(), String::from_utf8(output.stderr).unwrap())
    };
    let _serving = sandbox.serve();
    let (claude, _) = run(&["claude", "--continue"]);
    assert_eq!((claude[0].as_str(), claude[2].as_str()), ("--settings", "--continue"));
    let settings: Value = serde_json::from_str(&claude[1]).unwrap();
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    assert!(command.contains("alongside' hook claude"), "{command}");
    assert_eq!(run(&["qwen"]).0, ["--approval-mode", "default"]);
    let (arguments, stderr) = run(&["opencode"]);
    assert_eq!(arguments, Vec::<String>::new());
    assert!(stderr.contains("alongside install opencode"), "{stderr}");

    sandbox.words(&["install", "claude", "qwen", "opencode"]);
    for agent in ["claude", "qwen", "opencode"] {
        assert_eq!(run(&[agent]), (Vec::new(), String::new()), "{agent}");
    }
}

#[test]
fn run_with_a_missing_agent_is_an_error() {
    let sandbox = Sandbox::new();
    for serving in [None, Some(sandbox.serve())] {
        let error = sandbox.failure(&["run", "no-such-agent"]);
        assert!(
            error.contains("cannot start `no-such-agent`; is it installed"),
            "{error}"
        );
        drop(serving);
    }
}

#[test]
fn mcp_stdio_relays_to_the_companion() {
    let sandbox = Sandbox::new();
    assert!(sandbox.failure(&["mcp-stdio"]).contains("no companion is running"));
    let _serving = sandbox.serve();
    let mut relay = sandbox
        .command(&["mcp-stdio"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = relay.stdin.take().unwrap();
    let mut lines = BufReader::new(relay.stdout.take().unwrap()).lines();
    let mut send = |message: Value| writeln!(input, "{message}").unwrap();
    let mut receive = || -> Value { serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap() };
    let client = json!({ "name": "stdio-client", "version": "0.61.0" });
    let hello = json!({ "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client });
    send(json!({ "jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello }));
    assert_eq!(receive()["result"]["protocolVersion"], "2025-06-18");
    send(json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }));
    assert_eq!(receive()["method"], "ide/contextUpdate");
    let call = json!({ "name": "openDiff", "arguments": { "filePath": "/a", "newContent": "text" } });
    send(json!({ "jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call }));
    let mut receive_until = |wanted: &dyn Fn(&Value) -> bool| loop {
        let message = receive();
        if wanted(&message) {
            return message;
        }
    };
    assert_eq!(
        receive_until(&|message| message["id"] == 2)["result"],
        json!({ "content": [] })
    );
    sandbox.words(&["diff", "accept", "/a"]);
    assert_eq!(
        receive_until(&|message| message["method"] == "ide/diffAccepted")["params"]["content"],
        "text"
    );
    drop(input);
    assert!(wait_for("the relay's end", || relay.try_wait().unwrap()).success());
}

/// Gemini CLI and Qwen Code start it like any MCP server.
#[tokio::test]
async fn mcp_stdio_serves_tools_for_the_model() {
    let sandbox = Sandbox::new();
    let mut server = sandbox
        .command(&["mcp-stdio", "--tools"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = server.stdin.take().unwrap();
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let mut request = |method: &str, params: Value| -> Value {
        writeln!(
            input,
            "{}",
            json!({ "jsonrpc": "2.0", "id": 1, "method": method, "params": params })
        )
        .unwrap();
        serde_json::from_str(&lines.next().unwrap().unwrap()).unwrap()
    };
    let listed = request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap().iter();
    let names: Vec<&str> = tools.map(|tool| tool["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["getDiagnostics", "getOpenFiles", "getSelection", "openFile"]);
    let mut call = |name: &str, arguments: Value| -> Result<Value, String> {
        let response = request("tools/call", json!({ "name": name, "arguments": arguments }));
        let text = response["result"]["content"][0]["text"].as_str().unwrap().to_owned();
        if response["result"]["isError"] == true {
            return Err(text);
        }
        Ok(serde_json::from_str(&text).unwrap_or(Value::String(text)))
    };
    // It may start before the companion.
    assert!(
        call("getOpenFiles", json!({}))
            .unwrap_err()
            .contains("no companion is running")
    );

    let serving = sandbox.serve();
    // Gemini CLI accepts no JSON but objects.
    assert_eq!(call("getSelection", json!({})), Ok(json!({})));
    let (file, secret) = (sandbox.write("a.txt", "text"), sandbox.write(".env", "secret"));
    for path in [&secret, &file] {
        sandbox.words(&["context", "focus", path, "--line", "2", "--select", "chosen"]);
    }
    assert_eq!(
        call("getOpenFiles", json!({})),
        Ok(json!({ "files": [{ "path": file, "active": true }] }))
    );
    let selection = json!({ "path": file, "cursor": { "line": 2, "character": 1 }, "selectedText": "chosen" });
    assert_eq!(call("getSelection", json!({})), Ok(selection));
    assert!(
        call("openFile", json!({ "path": "a.txt" }))
            .unwrap_err()
            .contains("no editor is connected")
    );

    let (port, token) = serving.people(&sandbox);
    let hello = Hello {
        watch: true,
        opens_files: true,
        ..Hello::new("editor")
    };
    let (mut editor, _) = Client::connect_as(port, &token, hello).await.unwrap();
    let found = json!({
        "start": { "line": 1, "character": 1 }, "end": { "line": 1, "character": 5 },
        "severity": "error", "message": "wrong",
    });
    for path in [&secret, &file] {
        let report = json!({ "path": path, "diagnostics": [found] });
        let report = serde_json::from_value(report).unwrap();
        editor.call::<requests::ContextDiagnostics>(report).await.unwrap();
    }
    let expected = Ok(json!({ "files": [{ "path": file, "diagnostics": [found] }] }));
    assert_eq!(call("getDiagnostics", json!({})), expected);
    assert_eq!(call("getDiagnostics", json!({ "path": "a.txt" })), expected);
    assert_eq!(
        call("getDiagnostics", json!({ "path": ".env" })),
        Ok(json!({ "files": [] }))
    );
    call("openFile", json!({ "path": "a.txt", "line": 3 })).unwrap();
    let shown = loop {
        if let Notification::FileShow(target) = editor.notification().await.unwrap() {
            break target;
        }
    };
    assert_eq!((shown.path, shown.line), (file, Some(3)));
    assert!(
        call("openFile", json!({ "path": "/etc/hosts" }))
            .unwrap_err()
            .contains("not in the workspace")
    );
    drop(input);
    assert!(server.wait().unwrap().success());
}

/// Runs a demo and accepts its change.
fn accept_demo(sandbox: &Sandbox, arguments: &[&str], name: &str) {
    let demo = sandbox
        .command(&[&["demo", "--json"], arguments].concat())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let review = wait_for("the demo's proposal", || {
        let output = sandbox.output(&["diff", "list", "--json"]);
        let list: Value = serde_json::from_slice(&output.stdout).ok()?;
        list.get(0).cloned()
    });
    assert_eq!(review["agent"], name);
    sandbox.words(&["diff", "accept", "1"]);
    let output = demo.wait_with_output().unwrap();
    let result: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(result["outcome"], "accepted");
    assert!(result["content"].as_str().unwrap().contains("rye bread"));
    assert!(sandbox.discovery_files().is_empty());
}

#[test]
fn demo_shows_the_whole_loop() {
    for (agent, name) in [
        (None, "demo-agent"),
        (Some("gemini"), "Gemini CLI"),
        (Some("qwen"), "Qwen Code"),
        (Some("claude"), "Claude Code"),
        #[cfg(unix)]
        (Some("copilot"), "Copilot CLI"),
    ] {
        let arguments: Vec<&str> = agent.into_iter().flat_map(|agent| ["--agent", agent]).collect();
        accept_demo(&Sandbox::new(), &arguments, name);
    }
}

/// P1: Copilot CLI connects only if its directory itself is announced.
#[test]
#[cfg(unix)]
fn run_announces_its_directory_to_copilot() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let deep = sandbox.workspace().join("deep");
    std::fs::create_dir(&deep).unwrap();
    let lock = serving
        .files
        .iter()
        .find(|file| file.starts_with(sandbox.path("home/.copilot")))
        .unwrap();
    let folders = || -> Value {
        serde_json::from_slice::<Value>(&std::fs::read(lock).unwrap()).unwrap()["workspaceFolders"].clone()
    };
    assert_eq!(folders(), json!([sandbox.workspace()]));
    let ended = sandbox.command(&["run", "true"]).current_dir(&deep).status().unwrap();
    assert!(ended.success());
    wait_for("its directory in the lock file", || {
        (folders() == json!([sandbox.workspace(), deep])).then_some(())
    });
}

/// As after Ctrl-C: 0xC000013A.
#[test]
#[cfg(windows)]
fn run_exits_with_an_exit_code_of_32_bits() {
    let sandbox = Sandbox::new();
    let run = || {
        let ended = sandbox.command(&["run", "cmd", "/C", "exit -1073741510"]).status();
        ended.unwrap().code()
    };
    assert_eq!(run(), Some(-1_073_741_510), "with a companion of its own");
    let _serving = sandbox.serve();
    assert_eq!(run(), Some(-1_073_741_510), "with another's");
}

#[test]
#[cfg(unix)]
fn demo_of_an_agent_without_reviews_shows_its_context() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("notes.md", "one\ntwo\n");
    let _serving = sandbox.serve();
    sandbox.words(&["context", "focus", &file, "--line", "2", "--select", "two"]);
    let opencode = sandbox.json(&["demo", "--agent", "opencode"]);
    assert_eq!(opencode["context"]["filePath"], file);
    assert_eq!(opencode["context"]["text"], "two");
    let codex = sandbox.json(&["demo", "--agent", "codex"]);
    assert_eq!(codex["context"]["activeFile"]["path"], "notes.md");
}

/// No companion is running, and no file is open.
#[test]
#[cfg(unix)]
fn demo_of_an_agent_without_reviews_brings_its_own_file() {
    for (agent, file) in [("opencode", "/filePath"), ("codex", "/activeFile/path")] {
        let sandbox = Sandbox::new();
        let shown = sandbox.json(&["demo", "--agent", agent]);
        let path = shown["context"].pointer(file).and_then(Value::as_str);
        assert!(
            path.is_some_and(|path| path.ends_with("shopping.md")),
            "{agent}: {shown}"
        );
        assert!(sandbox.discovery_files().is_empty());
    }
}

#[test]
#[cfg(unix)]
fn doctor_connects_as_every_installed_agent_would() {
    use std::os::unix::fs::PermissionsExt;

    let sandbox = Sandbox::new();
    let programs = sandbox.path("bin");
    std::fs::create_dir_all(&programs).unwrap();
    for name in ["claude", "opencode", "codex", "qwen"] {
        std::fs::write(programs.join(name), "").unwrap();
        std::fs::set_permissions(programs.join(name), std::fs::Permissions::from_mode(0o755)).unwrap();
    }
    let path = format!("{}:{}", programs.display(), std::env::var("PATH").unwrap());
    let doctor = || {
        let output = sandbox
            .command(&["doctor", "--json"])
            .env("PATH", &path)
            .output()
            .unwrap();
        let diagnosis: Value = serde_json::from_slice(&output.stdout).unwrap();
        let agents = diagnosis["agents"].as_array().unwrap().clone();
        let found = |name: &str| agents.iter().find(|agent| agent["agent"] == name).unwrap().clone();
        (
            diagnosis.clone(),
            found("claude"),
            found("opencode"),
            found("codex"),
            found("qwen"),
        )
    };
    let (diagnosis, claude, ..) = doctor();
    assert_eq!((&diagnosis["ok"], &claude["connects"]), (&json!(false), &json!(false)));
    let _serving = sandbox.serve();
    // Codex's socket is one that other editors share, so the companion is ready before it listens there.
    let (_, claude, opencode, codex, qwen) = wait_for("all agents to connect", || {
        Some(doctor()).filter(|(diagnosis, ..)| diagnosis["ok"] == true)
    });
    assert!(claude["step"].as_str().unwrap().contains("/ide"), "{claude}");
    assert!(
        claude["advice"][0]["hint"]
            .as_str()
            .unwrap()
            .contains("alongside install claude"),
        "{claude}"
    );
    let qwen = qwen["advice"][0]["hint"].as_str().unwrap();
    assert!(qwen.contains("alongside install qwen"), "{qwen}");
    assert_eq!((&opencode["connects"], &opencode["step"]), (&json!(true), &Value::Null));
    assert!(codex["step"].as_str().unwrap().contains("/ide"), "{codex}");
    let words = sandbox.command(&["status"]).env("PATH", &path).output().unwrap();
    let words = String::from_utf8(words.stdout).unwrap();
    assert!(
        words.contains("Gemini CLI, Qwen Code, Claude Code and opencode started here"),
        "{words}"
    );
}

/// The directories of demos that exist now.
fn demo_directories(sandbox: &Sandbox) -> usize {
    let entries = std::fs::read_dir(sandbox.path("tmp")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name());
    names
        .filter(|name| name.to_str().unwrap().starts_with("alongside-demo-"))
        .count()
}

#[test]
fn front_end_starts_one_demo_at_a_time_and_nothing_is_left_of_it() {
    let sandbox = Sandbox::new();
    let mine = sandbox.write("shopping.md", "mine");
    let mut editor = Plugin::start_with(&sandbox, &[]);
    editor.hello();
    let mut start = || editor.ask("demo/start", &json!({}))["result"]["review"].clone();
    let first = start();
    assert_eq!(start(), first, "it is still pending");
    let list = sandbox.json(&["diff", "list"]);
    assert_eq!(
        (list.as_array().unwrap().len(), &list[0]["agent"]),
        (1, &json!("demo-agent"))
    );
    assert_ne!(list[0]["path"], mine);
    assert_eq!(demo_directories(&sandbox), 1);
    sandbox.words(&["diff", "accept", &first.to_string()]);
    wait_for("the demo's end", || (demo_directories(&sandbox) == 0).then_some(()));
    assert_eq!(std::fs::read_to_string(&mine).unwrap(), "mine");

    let second = start();
    assert_ne!(second, first);
    sandbox.words(&["stop"]);
    assert!(wait_for("the companion's end", || editor.bridge.try_wait().unwrap()).success());
    assert_eq!(demo_directories(&sandbox), 0);
}
