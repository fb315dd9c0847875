//! A local agent's processes end with whatever started them, also if the agent ignores the end of its stdin and its child every signal.

use std::io::{BufRead, BufReader};
use std::process::{Command, Stdio};

use alongside_testing::agent;

use super::front::Front;
use super::{sandbox, serve_with};
use crate::sandbox::{Sandbox, wait_for};

const HOW: &str = "stubborn";

fn chat(sandbox: &Sandbox, prompt: &str) -> Command {
    let mut command = sandbox.command(&["chat", "-p", prompt, "--agent", "scripted"]);
    command.env(agent::VARIABLE, HOW);
    command
}

/// The process ids of the agent and of its child.
fn pids(text: &str) -> Vec<u32> {
    let pids: Vec<u32> = text.split_whitespace().map(|pid| pid.parse().unwrap()).collect();
    assert_eq!(pids.len(), 2, "{text}");
    pids
}

/// A zombie has ended; in a container, its new parent may never look at it.
fn is_running(pid: u32) -> bool {
    let output = Command::new("ps")
        .args(["-o", "stat=", "-p", &pid.to_string()])
        .output();
    let state = String::from_utf8(output.unwrap().stdout).unwrap();
    !state.trim().is_empty() && !state.trim().starts_with('Z')
}

fn wait_until_ended(pids: &[u32]) {
    wait_for("the end of its processes", || {
        (!pids.iter().copied().any(is_running)).then_some(())
    });
}

#[test]
fn agent_and_its_children_have_ended_when_chat_exits() {
    let sandbox = sandbox();
    let output = chat(&sandbox, "pids").output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let pids = pids(&String::from_utf8(output.stdout).unwrap());
    assert!(!pids.iter().copied().any(is_running), "{pids:?}");
}

#[test]
fn agent_and_its_children_end_with_a_killed_chat() {
    let sandbox = sandbox();
    let mut child = chat(&sandbox, "pids wait").stdout(Stdio::piped()).spawn().unwrap();
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().unwrap());
    stdout.read_line(&mut line).unwrap();
    let pids = pids(&line);
    assert!(pids.iter().copied().all(is_running), "{pids:?}");
    child.kill().unwrap();
    child.wait().unwrap();
    wait_until_ended(&pids);
}

#[tokio::test]
async fn agent_and_its_children_end_with_the_companion() {
    for signal in ["TERM", "KILL"] {
        let sandbox = sandbox();
        let serving = serve_with(&sandbox, HOW);
        let mut front = Front::connect(&serving, &sandbox).await;
        front.choose("scripted").await.unwrap();
        let prompt = front.prompt("pids").await.unwrap();
        front.until_ended(&prompt).await;
        let pids = pids(&front.answer(&prompt));
        serving.signal(signal);
        serving.wait();
        if signal == "TERM" {
            assert!(!pids.iter().copied().any(is_running), "{pids:?}");
        }
        wait_until_ended(&pids);
    }
}

#[tokio::test]
async fn agent_and_its_children_end_with_the_chat() {
    let sandbox = sandbox();
    let serving = serve_with(&sandbox, HOW);
    let mut front = Front::connect(&serving, &sandbox).await;
    front.choose("scripted").await.unwrap();
    let prompt = front.prompt("pids").await.unwrap();
    front.until_ended(&prompt).await;
    let pids = pids(&front.answer(&prompt));
    front.choose("scripted").await.unwrap();
    wait_until_ended(&pids);
}
