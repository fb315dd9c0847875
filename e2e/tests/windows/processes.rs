//! The processes of an agent in the chat, which end with the agent and with the companion, and those of other commands that are given up.

use std::fs;
use std::process::{Child, Stdio};

use alongside_e2e::wine::{WineProcess, finished, interrupt};
use alongside_e2e::{TIMEOUT, Wine, eventually};

/// What the agent's script starts. It does not notice that its stdin is closed.
const INNER: &str = "serve --json --name inner";

/// A command as npm installs it: a script, which starts the program that does the work.
fn install_command(wine: &Wine, name: &str) {
    let script = format!("@C:\\alongside.exe {INNER} --workspace C:\\npm >nul\r\n");
    fs::write(wine.drive("npm").join(name), script).expect("write a script");
}

/// A companion with an agent that is connecting.
fn with_agent(wine: &Wine) -> (WineProcess, Child) {
    install_command(wine, "mine.cmd");
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
    let left = || [INNER, "mine.cmd", "code.cmd"].map(|part| wine.running(part)).concat();
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
    install_command(&wine, "mine.cmd");
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

/// The editor's command is in a console of its own, which Ctrl-C does not reach.
#[test]
fn editors_command_ends_with_all_its_processes_when_install_is_interrupted() {
    let wine = Wine::new();
    install_command(&wine, "code.cmd");
    // It passes the exit code on, and only the program's command line has its arguments.
    fs::write(wine.drive("npm/setup.cmd"), "@C:\\alongside.exe install vscode\r\n").expect("write a script");
    let mut setup = wine.command("cmd");
    setup.args(["/d", "/c", "setup"]).stdout(Stdio::null());
    let setup = setup.spawn().expect("start the installation");
    let started = eventually(TIMEOUT, || (wine.running(INNER).len() == 1).then_some(()));
    let installing = wine.running("alongside.exe install");
    installing.iter().copied().for_each(interrupt);
    let ended = all_ended(&wine);
    assert!(started.is_some() && installing.len() == 1, "{installing:?}");
    assert!(ended, "the editor's command is still running");
    assert_eq!(finished(setup).status.code(), Some(130));
}
