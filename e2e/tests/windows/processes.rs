//! The processes of an agent in the chat: they end with the agent and with the companion.

use std::fs;
use std::process::{Child, Stdio};

use alongside_e2e::wine::{WineProcess, finished, interrupt};
use alongside_e2e::{TIMEOUT, Wine, eventually};

/// What the agent's script starts. It does not notice that its stdin is closed.
const INNER: &str = "serve --json --name inner";

/// A command as npm installs it: a script, which starts the program that does the work.
fn install_command(wine: &Wine) {
    let script = format!("@C:\\alongside.exe {INNER} --workspace C:\\npm >nul\r\n");
    fs::write(wine.drive("npm/mine.cmd"), script).expect("write a script");
}

/// A companion with an agent that is connecting.
fn with_agent(wine: &Wine) -> (WineProcess, Child) {
    install_command(wine);
    let settings = wine.drive("users/root/AppData/Roaming/alongside");
    fs::create_dir_all(&settings).expect("create a directory");
    fs::write(settings.join("config.toml"), "[agents.mine]\ncommand = ['mine']\n").expect("write settings");
    let companion = wine.serve();
    let mut chat = wine.command(r"C:\alongside.exe");
    chat.args(["chat", "-p", "hello", "--agent", "mine"])
        .stdout(Stdio::null());
    let chat = chat.spawn().expect("start the chat");
    let started = eventually(TIMEOUT, || (wine.running(INNER).len() == 1).then_some(()));
    assert!(started.is_some(), "the agent does not start");
    (companion, chat)
}

fn all_ended(wine: &Wine) -> bool {
    let left = || [wine.running(INNER), wine.running("mine.cmd")].concat();
    let ended = eventually(TIMEOUT, || left().is_empty().then_some(()));
    // For the next test.
    left().into_iter().for_each(interrupt);
    ended.is_some()
}

#[test]
fn agent_ends_with_all_its_processes_when_the_companion_stops() {
    let wine = Wine::new();
    let (mut companion, chat) = with_agent(&wine);
    companion.interrupt();
    assert_eq!(companion.wait(), Some(0));
    assert!(all_ended(&wine), "the agent is still running");
    finished(chat);
}

#[test]
fn agent_ends_with_all_its_processes_when_the_companion_is_killed() {
    let wine = Wine::new();
    let (mut companion, chat) = with_agent(&wine);
    companion.kill();
    assert!(all_ended(&wine), "the agent is still running");
    finished(chat);
}

/// It does not speak MCP, and doctor gives up on it.
#[test]
fn program_that_doctor_tries_ends_with_all_its_processes() {
    let wine = Wine::new();
    install_command(&wine);
    let command = [
        "set TERM_PROGRAM=vscode",
        r"set GEMINI_CLI_IDE_WORKSPACE_PATH=C:\proj",
        "set GEMINI_CLI_IDE_SERVER_STDIO_COMMAND=mine",
        r"C:\alongside.exe doctor",
    ];
    let mut doctor = wine.command("cmd");
    doctor.args(["/d", "/c", &command.join("& ")]).stdout(Stdio::piped());
    let doctor = doctor.spawn().expect("start doctor");
    let started = eventually(TIMEOUT, || (wine.running(INNER).len() == 1).then_some(()));
    let printed = doctor.wait_with_output().expect("doctor ends").stdout;
    let printed = String::from_utf8_lossy(&printed);
    assert!(started.is_some() && printed.contains("did not respond"), "{printed}");
    assert!(all_ended(&wine), "the program is still running");
}
