//! Each agent works offline with the fake model before the companion is involved, so that a later failure is the
//! companion's.

use std::fs;
use std::time::Instant;

use alongside_e2e::{FakeModel, Native, NativeAgent, Prompt, Sandbox, TIMEOUT, eventually};

#[test]
fn claude_answers_and_writes() {
    answers_and_writes(Native::Claude);
}

#[test]
fn opencode_answers_and_writes() {
    answers_and_writes(Native::Opencode);
}

#[test]
fn copilot_answers_and_writes() {
    answers_and_writes(Native::Copilot);
}

#[test]
fn codex_answers_and_writes() {
    answers_and_writes(Native::Codex);
}

fn answers_and_writes(native: Native) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let start = Instant::now();
    let agent = NativeAgent::start(&sandbox, native, &model);
    println!("ready after {:?}", start.elapsed());
    agent.prompt(&Prompt::Say("the fake answers").to_string());
    agent.terminal.wait_for_text("the fake answers", TIMEOUT);
    agent.wait_until_idle();
    println!("answered after {:?}", start.elapsed());

    let path = sandbox.file("new.txt");
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), "one\ntwo\n").to_string());
    if matches!(native, Native::Claude | Native::Copilot) {
        agent.decide("Enter");
    }
    let written = eventually(TIMEOUT, || {
        (fs::read_to_string(&path).ok()? == "one\ntwo\n").then_some(())
    });
    if written.is_none() {
        agent.terminal.fail("the file was not written");
    }
    println!("written after {:?}", start.elapsed());
}
