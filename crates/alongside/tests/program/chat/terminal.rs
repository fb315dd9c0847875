//! `alongside chat -p` in a real terminal: what the agent asks is shown, and answered by typing.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};

use alongside_testing::agent;

use super::front::Front;
use super::{sandbox, serve};
use crate::sandbox::{Sandbox, wait_for};

/// The program in a pseudoterminal of its own.
struct Terminal {
    child: Child,
    screen: Arc<Mutex<String>>,
    /// What was waited for so far.
    seen: usize,
}

impl Terminal {
    /// Starts a shell command, in which `$ALONGSIDE` is the program.
    fn start(sandbox: &Sandbox, line: &str) -> Self {
        let mut command: Command = (**sandbox).command("script");
        let mut child = command
            .args(["-qefc", line, "/dev/null"])
            .env("SHELL", "/bin/sh")
            .env("ALONGSIDE", env!("CARGO_BIN_EXE_alongside"))
            .env(agent::VARIABLE, "usual")
            .env("FAKE_API_KEY", "s3cret-key-of-the-agent")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let screen = Arc::new(Mutex::new(String::new()));
        let mut output = child.stdout.take().unwrap();
        std::thread::spawn({
            let screen = screen.clone();
            move || {
                let mut bytes = [0; 4096];
                while let Ok(count @ 1..) = output.read(&mut bytes) {
                    screen
                        .lock()
                        .unwrap()
                        .push_str(&String::from_utf8_lossy(&bytes[..count]));
                }
            }
        });
        Self { child, screen, seen: 0 }
    }

    /// Waits until this is shown, after what was waited for before.
    fn shows(&mut self, text: &str) -> &mut Self {
        let found = wait_for(text, || {
            let screen = self.screen.lock().unwrap();
            screen[self.seen..].find(text)
        });
        self.seen += found + text.len();
        self
    }

    fn types(&mut self, text: &str) -> &mut Self {
        self.child.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
        self
    }

    fn code(&mut self) -> Option<i32> {
        wait_for("its end", || self.child.try_wait().unwrap()).code()
    }
}

const ENTER: &str = "\r";
const INTERRUPT: &str = "\x03";

#[test]
fn permission_is_granted_by_its_number() {
    let sandbox = sandbox();
    let mut terminal = Terminal::start(&sandbox, "exec $ALONGSIDE chat -p 'edit /a.txt' --agent scripted");
    terminal.shows("permission: Edit").shows("-one").shows("+two");
    terminal.shows("1) Yes").shows("2) No").shows("Enter for 2: ");
    terminal.types("7\r").shows("Type a number from 1 to 2.");
    terminal.types("1\r").shows("selected yes");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn enter_alone_denies() {
    let sandbox = sandbox();
    let mut terminal = Terminal::start(&sandbox, "exec $ALONGSIDE chat -p ask --agent scripted");
    terminal.shows("Enter for 2: ").types(ENTER).shows("selected no");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn question_is_answered_even_if_the_prompt_came_from_stdin() {
    let sandbox = sandbox();
    let mut terminal = Terminal::start(&sandbox, "printf question | $ALONGSIDE chat -p - --agent scripted");
    terminal
        .shows("The agent asks: ")
        .shows("Which?")
        .shows("1) Blue")
        .shows("to decline: ");
    terminal.types("1\r").shows("selected yes").shows("Blue");
    assert_eq!(terminal.code(), Some(0));
}

#[test]
fn change_is_reviewed_at_the_terminal() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\n");
    let prompt = format!("exec $ALONGSIDE chat -p 'write {file} two' --agent scripted");
    let mut terminal = Terminal::start(&sandbox, &prompt);
    terminal
        .shows("proposes the change to")
        .shows("-one")
        .shows("+two")
        .shows("Enter for 2: ");
    terminal.types("1\r").shows("written");
    assert_eq!(terminal.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "two");
}

#[test]
fn permission_for_a_change_is_a_review_at_the_terminal() {
    let sandbox = sandbox();
    let file = sandbox.write("a.txt", "one\ntwo\n");
    let change = serde_json::json!({"path": file, "old": "two", "new": "TWO"});
    let prompt = format!("exec $ALONGSIDE chat -p 'edit-as copilot {change}' --agent scripted");
    let mut terminal = Terminal::start(&sandbox, &prompt);
    terminal
        .shows("proposes the change to")
        .shows(" one")
        .shows("-two")
        .shows("+TWO");
    terminal
        .shows("Enter for 2: ")
        .types("1\r")
        .shows("allow_once: changed");
    assert_eq!(terminal.code(), Some(0));
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "one\nTWO\n");
}

#[test]
fn interrupt_cancels_a_question() {
    let sandbox = sandbox();
    let mut terminal = Terminal::start(&sandbox, "exec $ALONGSIDE chat -p ask --agent scripted");
    terminal.shows("Enter for 2: ").types(INTERRUPT).shows("cancelled");
    assert_eq!(terminal.code(), Some(3));
}

#[tokio::test(flavor = "multi_thread")]
async fn question_answered_elsewhere_is_withdrawn() {
    let sandbox = sandbox();
    let serving = serve(&sandbox);
    let mut front = Front::connect(&serving, &sandbox).await;
    let mut terminal = Terminal::start(&sandbox, "exec $ALONGSIDE chat -p ask --agent scripted");
    terminal.shows("Enter for 2: ");
    front
        .until("the request", |front| front.of_type("approvalOpened").next().is_some())
        .await;
    let request = front.of_type("approvalOpened").next().unwrap()["request"]["requestId"].clone();
    let decision = serde_json::json!({"decision": "select", "optionId": "yes"});
    let answer = serde_json::json!({"type": "answer", "requestId": request, "decision": decision});
    front.command(serde_json::from_value(answer).unwrap()).await.unwrap();
    terminal.shows("answered elsewhere").shows("selected yes");
    assert_eq!(terminal.code(), Some(0));
}
