//! `alongside chat`: one question, its answer on standard output, and what the exit code says.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use alongside_protocol::ChatPhase;
use serde_json::Value;

use super::front::Front;
use alongside_testing::agent;
use alongside_testing::daemon::Reply;

use super::{sandbox, sandbox_with, scripted_command, serve, talking_daemon};
use crate::sandbox::{Sandbox, wait_for};

fn chat(sandbox: &Sandbox, arguments: &[&str]) -> Command {
    let mut command = sandbox.command(&[&["chat", "-p"], arguments].concat());
    command
        .env(agent::VARIABLE, "usual")
        .env("FAKE_API_KEY", "s3cret-key-of-the-agent");
    command
}

fn answered(sandbox: &Sandbox, arguments: &[&str]) -> (Option<i32>, String, String) {
    let Output { status, stdout, stderr } = chat(sandbox, arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code(), text(stdout), text(stderr))
}

#[test]
fn chat_without_a_companion_starts_and_stops_one() {
    let sandbox = sandbox();
    let (code, stdout, stderr) = answered(&sandbox, &["say hello\x1b[2J", "--agent", "scripted"]);
    assert_eq!(
        (code, stdout.as_str()),
        (Some(0), "hello\x1b[2J"),
        "a program gets it raw: {stderr}"
    );
    assert!(sandbox.discovery_files().is_empty());
    let (code, stdout, _) = answered(&sandbox, &["say hello", "--agent", "scripted", "--json"]);
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(
        (code, &answer["answer"], &answer["agent"]),
        (Some(0), &"hello".into(), &"scripted".into())
    );
    assert_eq!(answer["end"]["stopReason"], "end_turn");
}

#[test]
fn running_companion_continues_its_conversation() {
    let sandbox = sandbox();
    let _serving = serve(&sandbox);
    let (code, first, _) = answered(&sandbox, &["pid", "--agent", "scripted"]);
    assert_eq!(code, Some(0));
    let (_, second, _) = answered(&sandbox, &["pid"]);
    assert_eq!(first, second, "it is the same agent");
    let link = sandbox.words(&["chat"]);
    assert!(
        link.starts_with("http://127.0.0.1:") && link.trim_end().ends_with("&view=chat"),
        "{link}"
    );
}

#[test]
fn failures_are_told_by_the_exit_code() {
    let sandbox = sandbox();
    let (code, _, stderr) = answered(&sandbox, &["fail", "--agent", "scripted"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("400 upstream refused"), "{stderr}");
    let (code, _, stderr) = answered(&sandbox, &["hello", "--agent", "nobody"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("unknown agent `nobody`"), "{stderr}");
    let (code, _, stderr) = answered(&sandbox, &["die", "--agent", "scripted"]);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(!stderr.contains("s3cret-key"), "{stderr}");
    assert_eq!(sandbox.output(&["chat", "--yes"]).status.code(), Some(2));
}

/// A failed turn is not a prompt that was never received.
#[test]
fn failure_says_that_the_prompt_was_received() {
    let sandbox = sandbox();
    let (code, _, stderr) = answered(&sandbox, &["fail", "--agent", "scripted"]);
    assert_eq!(code, Some(1));
    assert!(stderr.contains("the agent received the prompt"), "{stderr}");
    let (_, _, stderr) = answered(&sandbox, &["hello", "--agent", "nobody"]);
    assert!(!stderr.contains("received"), "{stderr}");
}

#[test]
fn killed_companion_loses_the_answer_to_a_received_prompt() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let mut child = chat(&sandbox, &[&format!("write {file} two"), "--agent", "scripted"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("is pending"), "{line}");
    serving.kill();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1), "{rest}");
    assert!(
        rest.contains("the agent received the prompt, but its answer was lost"),
        "{rest}"
    );
}

#[test]
fn closed_output_is_not_a_panic() {
    let sandbox = sandbox();
    for (arguments, expected) in [
        (&["count 500", "--agent", "scripted"][..], 3),
        (&["say hello", "--agent", "scripted", "--json"], 3),
        (&["hello", "--agent", "nobody", "--json"], 1),
    ] {
        let mut child = chat(&sandbox, arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop((child.stdout.take(), child.stderr.take()));
        let status = wait_for("its end", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(expected), "{arguments:?}");
    }
    for arguments in [
        &["ask", "--agent", "scripted", "--verbose"][..],
        &["say x", "--agent", "scripted"],
    ] {
        let mut child = chat(&sandbox, arguments)
            .stderr(Stdio::piped())
            .stdout(Stdio::null())
            .spawn()
            .unwrap();
        drop(child.stderr.take());
        let status = wait_for("its end", || child.try_wait().unwrap());
        assert_eq!(status.code(), Some(0), "{arguments:?}");
    }
}

#[test]
fn permission_is_declined_unless_somebody_says_yes() {
    let sandbox = sandbox();
    let (code, stdout, stderr) = answered(&sandbox, &["ask", "--agent", "scripted"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "selected no"));
    assert!(stderr.contains("denied: Edit"), "{stderr}");
    let (_, stdout, stderr) = answered(&sandbox, &["ask", "--agent", "scripted", "--yes"]);
    assert_eq!(stdout, "selected yes", "{stderr}");
}

#[test]
fn change_without_a_reviewer_is_rejected_unless_yes() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let prompt = format!("write {file} two");
    let (_, stdout, stderr) = answered(&sandbox, &[&prompt, "--agent", "scripted"]);
    assert_eq!(stdout, "the user rejected this change", "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\n");
    let (_, stdout, _) = answered(&sandbox, &[&prompt, "--agent", "scripted", "--yes"]);
    assert_eq!(stdout, "written");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
}

#[tokio::test]
async fn change_waits_for_the_reviewer_of_a_running_companion() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let serving = serve(&sandbox);
    let prompt = format!("write {file} two");
    let child = chat(&sandbox, &[&prompt, "--agent", "scripted"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the review", || sandbox.json(&["diff", "list"]).get(0).cloned());
    sandbox.words(&["diff", "accept", "1"]);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "written");
    drop(serving);
}

#[tokio::test]
async fn an_interrupt_cancels_the_answer() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    let mut child = chat(&sandbox, &["wait", "--agent", "scripted"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    front
        .until("the turn", |front| front.of_type("turnStarted").next().is_some())
        .await;
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = wait_for("the end", || child.try_wait().unwrap());
    let mut stderr = String::new();
    child.stderr.take().unwrap().read_to_string(&mut stderr).unwrap();
    assert_eq!(status.code(), Some(3), "{stderr}");
    assert!(stderr.contains("cancelled"), "{stderr}");
}

#[tokio::test]
async fn a_daemon_answers_too() {
    let sandbox = sandbox();
    let daemon = talking_daemon(&sandbox, Duration::from_millis(1)).await;
    let child = chat(&sandbox, &["answer 1 4", "--agent", "daemon"])
        .env("QWEN_IDE_DAEMON_URL", daemon.url())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "t1w0 t1w1 t1w2 t1w3 ");
}

#[tokio::test]
async fn prompt_whose_response_is_lost_is_answered_once() {
    let sandbox = sandbox();
    let daemon = talking_daemon(&sandbox, Duration::from_millis(1)).await;
    daemon.reply("/prompt", Reply::lost());
    let child = chat(&sandbox, &["answer 1 4", "--agent", "daemon"])
        .env("QWEN_IDE_DAEMON_URL", daemon.url())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let output = tokio::task::spawn_blocking(|| child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "t1w0 t1w1 t1w2 t1w3 ");
    assert_eq!(daemon.requests("/prompt").len(), 1);
}

#[tokio::test]
async fn prompt_to_a_stopped_daemon_is_sent_when_it_is_back() {
    let sandbox = sandbox();
    let mut daemon = talking_daemon(&sandbox, Duration::from_millis(1)).await;
    sandbox.write_config(&format!("[daemon]\nenabled = true\nurl = '{}'\n", daemon.url()));
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("daemon").await.unwrap();
    let first = front.prompt("answer 0 3").await.unwrap();
    front.until_ended(&first).await;
    daemon.kill().await;
    front
        .until("it is interrupted", |front| front.phase == ChatPhase::Interrupted)
        .await;
    let mut child = chat(&sandbox, &["answer 1 4"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let reading = tokio::task::spawn_blocking(move || {
        let mut line = String::new();
        stderr.read_line(&mut line).unwrap();
        (line, stderr)
    });
    let (line, mut stderr) = reading.await.unwrap();
    assert!(line.contains("waiting for the agent"), "{line}");
    daemon.revive().await;
    let output = tokio::task::spawn_blocking(|| child.wait_with_output())
        .await
        .unwrap()
        .unwrap();
    let mut rest = String::new();
    stderr.read_to_string(&mut rest).unwrap();
    assert_eq!(output.status.code(), Some(0), "{rest}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "t1w0 t1w1 t1w2 t1w3 ");
    assert_eq!(daemon.requests("/prompt").len(), 2);
}

#[test]
fn edited_change_is_reported_when_it_is_written() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let _serving = serve(&sandbox);
    std::fs::write(sandbox.path("edited"), "mine\n").unwrap();
    let change = serde_json::json!({"path": file, "old": "one", "new": "two"});
    let prompt = format!("edit-as claude {change}");
    let child = chat(&sandbox, &[&prompt, "--agent", "scripted"])
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    wait_for("the review", || sandbox.json(&["diff", "list"]).get(0).cloned());
    let edited = sandbox.path("edited");
    sandbox.words(&["diff", "accept", "1", "--content-file", edited.to_str().unwrap()]);
    let stderr = String::from_utf8(child.wait_with_output().unwrap().stderr).unwrap();
    assert!(stderr.contains("Your edited version of"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "mine\n");
}

/// A sandbox with a second agent.
fn two_agents() -> Sandbox {
    sandbox_with(&format!("[agents.second]\ncommand = {}\n", scripted_command()))
}

/// Asks a second question while the first one is being answered.
fn ask_twice(sandbox: &Sandbox, second: &[&str]) -> (Option<i32>, String, String) {
    let go = sandbox.path("go");
    let first = format!("until {}", go.display());
    let mut child = chat(sandbox, &[&first, "--agent", "scripted"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "waiting\n");
    let answered = answered(sandbox, second);
    std::fs::write(go, "").unwrap();
    line.clear();
    stdout.read_to_string(&mut line).unwrap();
    assert_eq!((child.wait().unwrap().code(), line.as_str()), (Some(0), "done"));
    answered
}

#[test]
fn two_questions_at_once_are_both_answered() {
    let sandbox = two_agents();
    for agent in ["second", "scripted"] {
        let (code, stdout, stderr) = ask_twice(&sandbox, &["say hello", "--agent", agent]);
        assert_eq!((code, stdout.as_str()), (Some(0), "hello"), "{stderr}");
        std::fs::remove_file(sandbox.path("go")).unwrap();
    }
    assert!(sandbox.discovery_files().is_empty());
}

#[test]
fn question_to_another_agent_leaves_a_running_answer_alone() {
    let sandbox = two_agents();
    let _serving = serve(&sandbox);
    let (code, stdout, stderr) = ask_twice(&sandbox, &["say hello", "--agent", "second"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "hello"), "{stderr}");
    assert!(stderr.contains("a conversation of its own"), "{stderr}");
    let (code, stdout, stderr) = answered(&sandbox, &["say idle", "--agent", "second"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "idle"), "{stderr}");
    assert_eq!(stderr, "", "an idle agent is replaced");
}

#[test]
fn slow_start_of_an_agent_is_shown_and_can_be_cancelled() {
    let sandbox = sandbox();
    let mut child = chat(&sandbox, &["say hello", "--agent", "scripted"])
        .env(agent::VARIABLE, "silent")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut line = String::new();
    stderr.read_line(&mut line).unwrap();
    assert!(line.contains("waiting for Scripted to start"), "{line}");
    let pid = child.id().to_string();
    assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    let status = wait_for("its end", || child.try_wait().unwrap());
    assert_eq!(status.code(), Some(3));
}

#[test]
fn separate_messages_are_paragraphs() {
    let sandbox = sandbox();
    let (_, stdout, stderr) = answered(&sandbox, &["messages", "--agent", "scripted"]);
    assert_eq!(stdout, "First message.\n\nSecond message.", "{stderr}");
}

#[test]
fn outcome_of_a_turn_that_the_agent_cancelled_is_not_completed() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let change = serde_json::json!({&file: {"old": "one", "new": "two"}});
    let prompt = format!("edit-as codex {change}");
    let (code, stdout, stderr) = answered(&sandbox, &[&prompt, "--agent", "scripted", "--json"]);
    assert_eq!(code, Some(3), "{stderr}");
    assert!(stderr.contains("rejected: the change to"), "{stderr}");
    let answer: Value = serde_json::from_str(&stdout).unwrap();
    assert_eq!(answer["end"]["outcome"], "cancelled");
    let (code, stdout, stderr) = answered(&sandbox, &[&prompt, "--agent", "scripted", "--yes"]);
    assert_eq!((code, stdout.as_str()), (Some(0), "approved: changed"), "{stderr}");
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two\n");
}
