//! The terminal reviewer: the real program in a real pseudo-terminal, whose output a terminal emulator reads.

use std::io::{Read, Write};
use std::sync::{Arc, Condvar, Mutex};

use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use serde_json::json;

use crate::sandbox::{Agent, Sandbox, TIMEOUT, wait_for};

const ROWS: u16 = 30;
const COLUMNS: u16 = 100;

/// What a terminal received, and what it shows.
struct Received {
    parser: vt100::Parser,
    bytes: Vec<u8>,
}

fn size(cells: u16) -> std::num::NonZero<u16> {
    cells.try_into().unwrap()
}

fn emulator(rows: u16, columns: u16) -> vt100::Parser {
    vt100::Parser::new(size(rows), size(columns), 0)
}

/// A program in a terminal; killed when dropped.
struct Terminal {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    keys: Box<dyn Write + Send>,
    received: Arc<(Mutex<Received>, Condvar)>,
}

impl Terminal {
    fn start(sandbox: &Sandbox, arguments: &[&str]) -> Self {
        Self::start_program(sandbox, env!("CARGO_BIN_EXE_alongside"), arguments)
    }

    fn start_program(sandbox: &Sandbox, program: &str, arguments: &[&str]) -> Self {
        let size = PtySize {
            rows: ROWS,
            cols: COLUMNS,
            pixel_width: 0,
            pixel_height: 0,
        };
        let pair = native_pty_system().openpty(size).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(arguments);
        command.env_clear();
        for (name, value) in sandbox.environment() {
            command.env(name, value);
        }
        command.env("TERM", "xterm-256color");
        command.env("VISUAL", "sed -i s/TWO/zwei/");
        command.cwd(sandbox.workspace());
        let child = pair.slave.spawn_command(command).unwrap();
        drop(pair.slave);
        let received = Arc::new((
            Mutex::new(Received {
                parser: emulator(ROWS, COLUMNS),
                bytes: Vec::new(),
            }),
            Condvar::new(),
        ));
        let mut reader = pair.master.try_clone_reader().unwrap();
        let shared = received.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(length) = reader.read(&mut buffer)
                && length > 0
            {
                let mut received = shared.0.lock().unwrap();
                received.parser.process(&buffer[..length]);
                received.bytes.extend_from_slice(&buffer[..length]);
                shared.1.notify_all();
            }
        });
        Self {
            child,
            keys: pair.master.take_writer().unwrap(),
            master: pair.master,
            received,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    fn text(&self) -> String {
        self.received.0.lock().unwrap().parser.screen().contents()
    }

    /// Waits until the screen is as wanted. Each change of the screen wakes it.
    fn wait_for(&self, what: &str, wanted: impl Fn(&vt100::Screen) -> bool) {
        let received = self.received.0.lock().unwrap();
        let outcome = self
            .received
            .1
            .wait_timeout_while(received, TIMEOUT, |received| !wanted(received.parser.screen()));
        let (received, timeout) = outcome.unwrap();
        assert!(
            !timeout.timed_out(),
            "waited too long for {what}; the terminal shows:\n{}",
            received.parser.screen().contents()
        );
    }

    fn wait_for_text(&self, text: &str) {
        self.wait_for(text, |screen| screen.contents().contains(text));
    }

    /// Waits until decisions are possible.
    fn wait_until_armed(&self) {
        self.wait_for("the armed state", |screen| {
            screen
                .contents()
                .lines()
                .next()
                .is_some_and(|line| line.trim_start().starts_with('●'))
        });
    }

    fn exit_code(&mut self) -> u32 {
        let status = wait_for("the end of the reviewer", || self.child.try_wait().unwrap());
        status.exit_code()
    }

    /// The terminal is as it was before.
    fn assert_restored(&self) {
        self.wait_for("the restored terminal", |screen| {
            !screen.alternate_screen() && !screen.hide_cursor() && !screen.bracketed_paste()
        });
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

const BASE: &str = "one\n2\n3\n4\n5\n6\n7\ntwo\n9\n10\n11\n12\n13\n14\nthree\n";

fn proposal() -> String {
    BASE.replace("one", "ONE")
        .replace("two", "TWO")
        .replace("three", "THREE")
}

#[tokio::test]
async fn hunks_are_decided_and_edited_in_a_terminal() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", BASE);
    let mut terminal = Terminal::start(&sandbox, &["review"]);
    terminal.wait_for_text("No pending changes.");
    agent.propose(&path, &proposal()).await;
    terminal.wait_for_text("hunk 1/3");
    terminal.wait_until_armed();
    terminal.press("a");
    terminal.wait_for_text("hunk 2/3");
    terminal.press("i");
    terminal.wait_for_text("editing");
    terminal.press("mine ");
    terminal.wait_for_text("mine TWO");
    terminal.press("\x1b");
    terminal.wait_for_text("edited");
    terminal.press("nr");
    terminal.wait_for_text("✗ rejected");
    terminal.press("A");
    let told = agent.told("ide/diffAccepted").await;
    let expected = BASE.replace("one", "ONE").replace("two", "mine TWO");
    assert_eq!(told, json!({ "filePath": path, "content": expected }));
    terminal.wait_for_text("was accepted.");
    terminal.press("q");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[tokio::test]
async fn own_editor_changes_the_draft() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let mut agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", BASE);
    let mut terminal = Terminal::start(&sandbox, &["review"]);
    agent.propose(&path, &proposal()).await;
    terminal.wait_for_text("hunk 1/3");
    // The variable has arguments: `sed -i s/TWO/zwei/`.
    terminal.press("e");
    terminal.wait_for_text("zwei");
    terminal.wait_until_armed();
    terminal.press("A");
    let told = agent.told("ide/diffAccepted").await;
    assert_eq!(told["content"], proposal().replace("TWO", "zwei"));
}

#[tokio::test]
async fn reviewer_survives_a_restart_of_the_companion() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", BASE);
    let mut terminal = Terminal::start(&sandbox, &["review"]);
    agent.propose(&path, &proposal()).await;
    terminal.wait_for_text("hunk 1/3");
    serving.kill();
    terminal.wait_for_text("reconnecting…");
    let serving = sandbox.serve();
    terminal.wait_for_text("Connected again.");
    terminal.wait_until_armed();
    terminal.press("r");
    terminal.wait_for_text("✗ rejected");
    assert_eq!(
        sandbox.json(&["diff", "show", "1"])["draft"],
        proposal().replace("ONE", "one")
    );
    drop(serving);
}

#[tokio::test]
async fn signal_restores_the_terminal() {
    for signal in ["TERM", "HUP", "INT"] {
        let sandbox = Sandbox::new();
        let _serving = sandbox.serve();
        let mut terminal = Terminal::start(&sandbox, &["review"]);
        terminal.wait_for_text("No pending changes.");
        let pid = terminal.child.process_id().unwrap().to_string();
        let sent = std::process::Command::new("kill")
            .args([&format!("-{signal}"), &pid])
            .status();
        assert!(sent.unwrap().success());
        terminal.exit_code();
        terminal.assert_restored();
    }
}

#[tokio::test]
async fn reviewer_is_suspended_and_resumed() {
    let sandbox = Sandbox::new();
    let _serving = sandbox.serve();
    let mut terminal = Terminal::start_program(&sandbox, "bash", &["--norc", "--noprofile", "-i"]);
    terminal.press(&format!("{} review\n", env!("CARGO_BIN_EXE_alongside")));
    terminal.wait_for_text("No pending changes.");
    terminal.press("\x1a");
    terminal.wait_for("the shell", |screen| {
        !screen.alternate_screen() && screen.contents().contains("Stopped")
    });
    terminal.press("fg\n");
    terminal.wait_for("the reviewer", |screen| {
        screen.alternate_screen() && screen.contents().contains("No pending changes.")
    });
    terminal.press("q");
    terminal.wait_for("the shell", |screen| !screen.alternate_screen());
    terminal.press("exit\n");
    terminal.exit_code();
}

#[tokio::test]
async fn resize_is_followed() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", BASE);
    let terminal = Terminal::start(&sandbox, &["review"]);
    agent.propose(&path, &proposal()).await;
    terminal.wait_for_text("hunk 1/3");
    let smaller = PtySize {
        rows: 12,
        cols: 40,
        pixel_width: 0,
        pixel_height: 0,
    };
    terminal
        .received
        .0
        .lock()
        .unwrap()
        .parser
        .screen_mut()
        .set_size(size(12), size(40));
    terminal.master.resize(smaller).unwrap();
    terminal.wait_for("the smaller screen", |screen| {
        let text = screen.contents();
        text.lines().count() == 12 && text.lines().last().is_some_and(|line| line.contains("1 pending"))
    });
}

#[tokio::test]
async fn hostile_proposal_writes_nothing_to_the_terminal() {
    let sandbox = Sandbox::new();
    let serving = sandbox.serve();
    let agent = Agent::connect(&serving).await;
    let path = sandbox.write("a.txt", "quiet\n");
    let mut terminal = Terminal::start(&sandbox, &["review"]);
    let hostile = "\x1b]0;owned\x07\x1b[2J\x1b[31;1H\x1b]52;c;AAAA\x07\u{9b}5i\u{202e}\x0e evil\n";
    agent.propose(&path, hostile).await;
    terminal.wait_for_text("^[]0;owned^G^[[2J");
    terminal.wait_until_armed();
    terminal.press("i");
    terminal.wait_for_text("editing");
    terminal.press("\x1b");
    terminal.wait_for_text("hunk 1/1");
    let received = terminal.received.0.lock().unwrap();
    for forbidden in ["\x1b]0", "\x1b]52", "\u{9b}", "\u{202e}", "\x0e"] {
        let bytes = forbidden.as_bytes();
        let found = received.bytes.windows(bytes.len()).any(|window| window == bytes);
        assert!(!found, "{forbidden:?} reached the terminal");
    }
}

#[test]
fn serve_shows_the_reviewer_in_a_terminal_and_stops_with_it() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &["serve"]);
    terminal.wait_for_text("No pending changes.");
    assert_eq!(sandbox.words(&["status", "--line"]), "alongside: no agents\n");
    terminal.press("q");
    terminal.wait_for_text("Stop the companion?");
    terminal.press("y");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
    assert!(terminal.text().contains("Shutting down."));
    assert_eq!(sandbox.words(&["status", "--line"]), "");
}

#[test]
fn plain_companion_prints_what_happens() {
    let sandbox = Sandbox::new();
    let mut terminal = Terminal::start(&sandbox, &["serve", "--plain"]);
    terminal.wait_for_text("Press Ctrl-C to stop.");
    terminal.press("\x03");
    assert_eq!(terminal.exit_code(), 0);
    assert!(!terminal.received.0.lock().unwrap().bytes.starts_with(b"\x1b[?1049h"));
}

#[test]
fn chat_opens_in_a_terminal() {
    let sandbox = Sandbox::new();
    let _serving = sandbox.serve();
    let mut terminal = Terminal::start(&sandbox, &["chat"]);
    terminal.wait_for_text("Press Ctrl-O to choose one.");
    terminal.press("\x0f");
    terminal.wait_for_text("Connect to an agent");
    terminal.press("\x1b");
    terminal.wait_for("the closed panel", |screen| {
        !screen.contents().contains("Connect to an agent")
    });
    terminal.press("\x03");
    assert_eq!(terminal.exit_code(), 0);
    terminal.assert_restored();
}

#[test]
fn reviewer_without_a_terminal_or_a_companion_is_an_error() {
    let sandbox = Sandbox::new();
    assert!(sandbox.failure(&["review"]).contains("needs a terminal"));
    let mut terminal = Terminal::start(&sandbox, &["review"]);
    terminal.wait_for_text("no companion is running");
    assert_eq!(terminal.exit_code(), 1);
}
