//! Hooks: the program as an agent starts it, with a real companion.

use std::fs;
use std::io::{Read, Write};
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;

use serde_json::{Value, json};

use crate::sandbox::{Agent, Sandbox, Serving, TIMEOUT, wait_for};

/// A hook process; killed when dropped.
struct Hook {
    child: Child,
}

impl Hook {
    fn start(sandbox: &Sandbox, agent: &str, stdin: &Value) -> Self {
        Self::spawn(sandbox.command(&["hook", agent]), stdin)
    }

    fn spawn(mut command: Command, stdin: &Value) -> Self {
        let command = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut input = child.stdin.take().unwrap();
        let stdin = stdin.to_string();
        std::thread::spawn(move || input.write_all(stdin.as_bytes()));
        Self { child }
    }

    fn output(mut self) -> Output {
        let pid = self.child.id();
        let (mut stdout, mut stderr) = (self.child.stdout.take().unwrap(), self.child.stderr.take().unwrap());
        let (send, receive) = mpsc::channel();
        std::thread::spawn(move || {
            let (mut printed, mut errors) = (Vec::new(), Vec::new());
            stdout.read_to_end(&mut printed).unwrap();
            stderr.read_to_end(&mut errors).unwrap();
            send.send((printed, errors))
        });
        let (stdout, stderr) = receive
            .recv_timeout(TIMEOUT)
            .unwrap_or_else(|_| panic!("hook {pid} does not end"));
        let status = self.child.wait().unwrap();
        Output { status, stdout, stderr }
    }

    /// What it prints when it succeeds.
    fn printed(self) -> Value {
        let output = self.output();
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(
            output.status.success() && printed.is_ascii(),
            "{printed}{}",
            String::from_utf8_lossy(&output.stderr)
        );
        serde_json::from_str(&printed).unwrap_or_else(|error| panic!("{error}: {printed}"))
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args([&format!("-{name}"), &self.child.id().to_string()])
            .status();
        assert!(sent.unwrap().success());
    }
}

impl Drop for Hook {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn reviews(sandbox: &Sandbox, count: usize) -> Vec<Value> {
    wait_for("the reviews", || {
        let list = sandbox.json(&["diff", "list"]);
        let list = list.as_array().unwrap().clone();
        (list.len() == count).then_some(list)
    })
}

fn claude(sandbox: &Sandbox, mode: &str, path: &str, content: &str) -> Value {
    json!({
        "session_id": "s", "cwd": sandbox.workspace(), "permission_mode": mode, "hook_event_name": "PreToolUse",
        "tool_name": "Write", "tool_input": { "file_path": path, "content": content }, "tool_use_id": "t",
    })
}

fn gemini(sandbox: &Sandbox, path: &str, content: &str) -> Value {
    json!({
        "session_id": "s", "cwd": sandbox.workspace(), "hook_event_name": "BeforeTool", "tool_name": "write_file",
        "tool_input": { "file_path": path, "content": content },
    })
}

fn qwen(sandbox: &Sandbox, event: &str, path: &str, old: &str, new: &str) -> Value {
    json!({
        "session_id": "s", "cwd": sandbox.workspace(), "hook_event_name": event, "permission_mode": "default",
        "prompt_id": "p", "tool_name": "edit",
        "tool_input": { "file_path": path, "old_string": old, "new_string": new },
    })
}

fn started() -> (Sandbox, Serving) {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    (sandbox, serving)
}

#[test]
fn accepted_edited_and_rejected_changes_reach_the_agent() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    let start = || Hook::start(&sandbox, "claude", &claude(&sandbox, "acceptEdits", &path, "two\n"));

    let hook = start();
    let review = reviews(&sandbox, 1).remove(0);
    assert_eq!(
        (&review["agent"], &review["takesReason"]),
        (&json!("Claude Code"), &json!(true))
    );
    assert_eq!(review["path"], path);
    sandbox.words(&["diff", "accept", "a.txt"]);
    let output = hook.printed()["hookSpecificOutput"].clone();
    assert_eq!(
        (&output["permissionDecision"], output.get("updatedInput")),
        (&json!("allow"), None)
    );

    let hook = start();
    reviews(&sandbox, 1);
    fs::write(sandbox.path("edited"), "2\n").unwrap();
    let edited = sandbox.path("edited").to_str().unwrap().to_owned();
    sandbox.words(&["diff", "accept", "a.txt", "--content-file", &edited]);
    let output = hook.printed()["hookSpecificOutput"].clone();
    assert_eq!(output["updatedInput"], json!({ "file_path": path, "content": "2\n" }));

    let hook = start();
    reviews(&sandbox, 1);
    sandbox.words(&["diff", "reject", "a.txt", "--reason", "Keep one."]);
    let output = hook.printed()["hookSpecificOutput"].clone();
    assert_eq!(output["permissionDecision"], "deny");
    assert_eq!(
        output["permissionDecisionReason"],
        "The user rejected this change: Keep one."
    );
    assert_eq!(
        fs::read_to_string(&path).unwrap(),
        "one\n",
        "the agent writes, not the hook"
    );
    assert_eq!(
        sandbox.json(&["status"])["companions"][0]["agents"],
        json!([]),
        "its session ended"
    );
}

#[test]
fn long_text_with_other_characters_arrives_unharmed() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "short\n");
    let long = "é€𝄞\n".repeat(60_000);
    let hook = Hook::start(
        &sandbox,
        "gemini",
        &gemini(&sandbox, &path, &format!("{long}proposed\n")),
    );
    reviews(&sandbox, 1);
    fs::write(sandbox.path("edited"), &long).unwrap();
    let edited = sandbox.path("edited").to_str().unwrap().to_owned();
    sandbox.words(&["diff", "accept", "a.txt", "--content-file", &edited]);
    let output = hook.printed();
    assert!(output["hookSpecificOutput"]["tool_input"]["content"] == long.as_str());
}

#[test]
fn hook_that_ends_takes_its_review_with_it() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    for signal in ["TERM", "HUP", "KILL"] {
        let hook = Hook::start(&sandbox, "claude", &claude(&sandbox, "acceptEdits", &path, "two\n"));
        reviews(&sandbox, 1);
        hook.signal(signal);
        let output = hook.output();
        assert!(!output.status.success() && output.stdout.is_empty(), "{signal}");
        reviews(&sandbox, 0);
    }
}

#[test]
fn change_that_is_made_without_a_decision_is_reported_with_the_previous_text() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    let hook = Hook::start(&sandbox, "claude", &claude(&sandbox, "acceptEdits", &path, "two\n"));
    reviews(&sandbox, 1);
    hook.signal("KILL");
    reviews(&sandbox, 0);
    // As an agent does whose hook was killed without the installed command.
    fs::write(&path, "two\n").unwrap();
    let problem = wait_for("the report", || {
        let status = sandbox.json(&["status"]);
        let problems = status["companions"][0]["problems"].as_array().unwrap().clone();
        problems.first().map(|problem| problem.as_str().unwrap().to_owned())
    });
    let start = format!("Claude Code changed {path} although its hook ended before you decided");
    assert!(problem.starts_with(&start), "{problem}");
    let (_, kept) = problem.split_once("the previous text is in ").unwrap();
    assert_eq!(fs::read_to_string(kept).unwrap(), "one\n");
}

#[test]
fn review_closes_when_the_agent_is_killed() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    // The agent; the hook is not its child.
    let mut agent = Command::new("sleep").arg("600").spawn().unwrap();
    let mut command = sandbox.command(&["hook", "claude"]);
    command.env("CLAUDE_PID", agent.id().to_string());
    let hook = Hook::spawn(command, &claude(&sandbox, "acceptEdits", &path, "two\n"));
    reviews(&sandbox, 1);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert_eq!(hook.output().status.code(), Some(2));
    reviews(&sandbox, 0);
}

#[test]
fn companion_that_is_killed_denies_the_change() {
    let (sandbox, serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    let hook = Hook::start(
        &sandbox,
        "codex",
        &codex(&sandbox, "*** Update File: a.txt\n@@\n-one\n+two\n"),
    );
    reviews(&sandbox, 1);
    serving.kill();
    let output = hook.printed()["hookSpecificOutput"].clone();
    assert_eq!(output["permissionDecision"], "deny");
    let reason = output["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("The companion stopped"), "{reason}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\n");
}

#[test]
fn without_a_companion_a_change_is_denied_unless_the_settings_say_so() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let output = |agent: &str, stdin: &Value| Hook::start(&sandbox, agent, stdin).output();
    let call = claude(&sandbox, "acceptEdits", &path, "two\n");
    let denied: Value = serde_json::from_slice(&output("claude", &call).stdout).unwrap();
    let reason = denied["hookSpecificOutput"]["permissionDecisionReason"]
        .as_str()
        .unwrap();
    assert!(
        reason.contains("run `alongside`") && reason.contains("alongside uninstall claude"),
        "{reason}"
    );
    let copilot = json!({ "sessionId": "s", "cwd": sandbox.workspace(), "toolName": "create",
        "toolArgs": { "path": path, "file_text": "two\n" } });
    let asked = output("copilot", &copilot);
    assert!(
        asked.status.success() && asked.stdout.is_empty(),
        "its own dialog follows"
    );
    let settings = sandbox.path("home/.config/alongside/config.toml");
    fs::create_dir_all(settings.parent().unwrap()).unwrap();
    fs::write(settings, "[hooks]\nwithout-companion = 'ask'\n").unwrap();
    let asked = output("claude", &call);
    assert!(asked.status.success() && asked.stdout.is_empty());
}

#[test]
fn two_hooks_at_once_are_two_sessions() {
    let (sandbox, _serving) = started();
    let (one, two) = (sandbox.write("a.txt", "a\n"), sandbox.write("b.txt", "b\n"));
    let first = Hook::start(&sandbox, "claude", &claude(&sandbox, "auto", &one, "A\n"));
    let second = Hook::start(&sandbox, "claude", &claude(&sandbox, "auto", &two, "B\n"));
    let found = reviews(&sandbox, 2);
    assert_ne!(found[0]["session"], found[1]["session"]);
    sandbox.words(&["diff", "reject", "a.txt"]);
    assert_eq!(first.printed()["hookSpecificOutput"]["permissionDecision"], "deny");
    sandbox.words(&["diff", "accept", "b.txt"]);
    assert_eq!(second.printed()["hookSpecificOutput"]["permissionDecision"], "allow");
}

fn codex(sandbox: &Sandbox, sections: &str) -> Value {
    json!({
        "session_id": "s", "turn_id": "t", "cwd": sandbox.workspace(), "hook_event_name": "PreToolUse",
        "permission_mode": "default", "tool_name": "apply_patch", "tool_use_id": "u",
        "tool_input": { "command": format!("*** Begin Patch\n{sections}*** End Patch\n") },
    })
}

#[test]
fn files_of_a_patch_are_decided_separately_or_together() {
    let (sandbox, _serving) = started();
    sandbox.write("a.txt", "one\n");
    sandbox.write("old.txt", "old\n");
    let sections = "*** Update File: a.txt\n@@\n-one\n+two\n*** Add File: new.txt\n+new\n*** Delete File: old.txt\n";
    let hook = Hook::start(&sandbox, "codex", &codex(&sandbox, sections));
    reviews(&sandbox, 3);
    sandbox.words(&["diff", "accept", "a.txt"]);
    sandbox.words(&["diff", "reject", "new.txt", "--reason", "Not needed."]);
    sandbox.words(&["diff", "accept", "old.txt"]);
    let output = hook.printed()["hookSpecificOutput"].clone();
    assert_eq!(
        output["updatedInput"]["command"],
        "*** Begin Patch\n*** Update File: a.txt\n@@\n-one\n+two\n*** Delete File: old.txt\n*** End Patch\n"
    );
    let note = output["additionalContext"].as_str().unwrap();
    assert!(
        note.contains("new.txt: The user rejected this change: Not needed."),
        "{note}"
    );

    let hook = Hook::start(&sandbox, "codex", &codex(&sandbox, sections));
    reviews(&sandbox, 3);
    sandbox.words(&["diff", "accept", "a.txt", "--all-of-agent"]);
    let output = hook.printed()["hookSpecificOutput"].clone();
    assert_eq!(
        (&output["permissionDecision"], output.get("updatedInput")),
        (&json!("allow"), None)
    );
}

#[tokio::test]
async fn gemini_is_not_asked_twice_for_one_change() {
    let (sandbox, serving) = started();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", "one\n");
    let hook = Hook::start(&sandbox, "gemini", &gemini(&sandbox, "a.txt", "two\n"));
    reviews(&sandbox, 1);
    sandbox.words(&["diff", "accept", "a.txt"]);
    assert_eq!(hook.printed(), json!({ "decision": "allow" }));
    agent.propose(&path, "two\n").await;
    let expected = json!({ "filePath": path, "content": "two\n" });
    assert_eq!(agent.told("ide/diffAccepted").await, expected);
    agent.propose(&path, "two\n").await;
    assert_eq!(reviews(&sandbox, 1)[0]["path"], path, "only once");
}

#[tokio::test]
async fn connected_claude_proposes_over_its_connection_in_the_default_mode() {
    let (sandbox, serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    let _agent = Agent::connect_as(&serving, "claude-code", "2.1.325").await;
    let output = Hook::start(&sandbox, "claude", &claude(&sandbox, "default", &path, "two\n")).output();
    assert!(output.status.success() && output.stdout.is_empty());
    let _hook = Hook::start(&sandbox, "claude", &claude(&sandbox, "acceptEdits", &path, "two\n"));
    reviews(&sandbox, 1);
}

#[test]
fn qwen_is_asked_once_and_its_edited_change_is_written_by_the_hook() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    let permission = qwen(&sandbox, "PermissionRequest", &path, "one", "two");
    let hook = Hook::start(&sandbox, "qwen", &permission);
    reviews(&sandbox, 1);
    sandbox.words(&["diff", "accept", "a.txt"]);
    let decision = hook.printed()["hookSpecificOutput"]["decision"].clone();
    assert_eq!(decision, json!({ "behavior": "allow" }));
    let tool = qwen(&sandbox, "PreToolUse", &path, "one", "two");
    let output = Hook::start(&sandbox, "qwen", &tool).printed()["hookSpecificOutput"].clone();
    assert_eq!(output["permissionDecision"], "allow", "decided a moment ago");

    let hook = Hook::start(&sandbox, "qwen", &tool);
    reviews(&sandbox, 1);
    fs::write(sandbox.path("edited"), "2\n").unwrap();
    let edited = sandbox.path("edited").to_str().unwrap().to_owned();
    sandbox.words(&["diff", "accept", "a.txt", "--content-file", &edited]);
    let output = hook.printed()["hookSpecificOutput"].clone();
    assert_eq!(output["permissionDecision"], "deny");
    let reason = output["permissionDecisionReason"].as_str().unwrap();
    assert!(reason.contains("Do not repeat this call"), "{reason}");
    assert_eq!(fs::read_to_string(&path).unwrap(), "2\n");
}

#[test]
fn next_prompt_ends_what_the_user_cancelled() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    let hook = Hook::start(&sandbox, "qwen", &qwen(&sandbox, "PreToolUse", &path, "one", "two"));
    reviews(&sandbox, 1);
    let prompt =
        json!({ "session_id": "s", "cwd": sandbox.workspace(), "hook_event_name": "UserPromptSubmit", "prompt": "p" });
    assert!(Hook::start(&sandbox, "qwen", &prompt).output().stdout.is_empty());
    assert_eq!(hook.printed()["hookSpecificOutput"]["permissionDecision"], "deny");
    reviews(&sandbox, 0);
}

#[test]
fn prompt_hook_prints_the_editor_context() {
    let (sandbox, serving) = started();
    let path = sandbox.write("a.txt", "one\ntwo\n");
    sandbox.words(&["context", "focus", &path, "--line", "2", "--select", "two"]);
    let run = |agent: &str, event: &str| {
        let stdin = json!({ "session_id": "s", "cwd": sandbox.workspace(), "hook_event_name": event, "prompt": "p" });
        Hook::start(&sandbox, agent, &stdin).output()
    };
    for (agent, event) in [
        ("claude", "UserPromptSubmit"),
        ("codex", "UserPromptSubmit"),
        ("qwen", "UserPromptSubmit"),
        ("gemini", "BeforeAgent"),
    ] {
        let output: Value = serde_json::from_slice(&run(agent, event).stdout).unwrap();
        assert_eq!(output["hookSpecificOutput"]["hookEventName"], event);
        let context = output["hookSpecificOutput"]["additionalContext"].as_str().unwrap();
        assert!(
            context.contains(&format!("{path}, with the cursor on line 2")),
            "{context}"
        );
        assert!(context.contains("The selected text is:\ntwo\n"), "{context}");
    }
    serving.kill();
    let output = run("claude", "UserPromptSubmit");
    assert!(
        output.status.success() && output.stdout.is_empty(),
        "no companion, no context"
    );
}

#[test]
fn call_that_is_no_change_is_not_reviewed() {
    let (sandbox, _serving) = started();
    let path = sandbox.write("a.txt", "one\n");
    let plan = claude(&sandbox, "plan", &path, "two\n");
    let mut bash = claude(&sandbox, "acceptEdits", &path, "two\n");
    bash["tool_name"] = json!("Bash");
    for stdin in [plan, bash] {
        let output = Hook::start(&sandbox, "claude", &stdin).output();
        assert!(output.status.success() && output.stdout.is_empty());
    }
    let invalid = Hook::start(&sandbox, "claude", &json!([])).output();
    assert_eq!(invalid.status.code(), Some(2), "which every agent reads as a denial");
    assert!(!invalid.stderr.is_empty());
}

#[test]
fn path_outside_the_workspace_is_shown_in_full() {
    let (sandbox, _serving) = started();
    let outside = sandbox.path("outside.txt");
    fs::write(&outside, "one\n").unwrap();
    let hook = Hook::start(&sandbox, "claude", &claude(&sandbox, "auto", "../outside.txt", "two\n"));
    let review = reviews(&sandbox, 1).remove(0);
    assert_eq!(review["path"], json!(alongside_platform::path::real(&outside).unwrap()));
    drop(hook);
    reviews(&sandbox, 0);
}

/// The command that `install` writes, in a shell as the agent starts it.
fn installed_command(sandbox: &Sandbox) -> Command {
    let settings = fs::read(sandbox.path("home/.claude/settings.json")).unwrap();
    let settings: Value = serde_json::from_slice(&settings).unwrap();
    let command = settings["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
        .as_str()
        .unwrap();
    let mut shell = sandbox.0.command("sh");
    shell.args(["-c", command]);
    shell
}

#[test]
fn installed_hook_reviews_and_denies_when_it_is_killed() {
    let (sandbox, _serving) = started();
    let report = sandbox.json(&["install", "claude"])["hooks"][0].clone();
    assert_eq!(
        (&report["agent"], &report["outcome"]),
        (&json!("claude"), &json!("done"))
    );
    assert_eq!(
        sandbox.json(&["install", "claude", "--status"])["hooks"][0]["state"],
        "installed"
    );
    let path = sandbox.write("a.txt", "one\n");
    let start = || Hook::spawn(installed_command(&sandbox), &claude(&sandbox, "auto", &path, "two\n"));

    let hook = start();
    reviews(&sandbox, 1);
    sandbox.words(&["diff", "accept", "a.txt"]);
    assert_eq!(hook.printed()["hookSpecificOutput"]["permissionDecision"], "allow");

    let hook = start();
    reviews(&sandbox, 1);
    let killed = Command::new("pkill")
        .args(["-KILL", "-P", &hook.child.id().to_string()])
        .status();
    assert!(killed.unwrap().success());
    let output = hook.output();
    assert_eq!((output.status.code(), output.stdout.as_slice()), (Some(2), &b""[..]));
    assert!(
        String::from_utf8(output.stderr)
            .unwrap()
            .contains("nothing was written")
    );
    reviews(&sandbox, 0);

    sandbox.words(&["uninstall", "claude"]);
    // The companion's own lock file is in that directory.
    assert!(!sandbox.path("home/.claude/settings.json").exists());
}
