//! The language server in a real Kakoune with kakoune-lsp, in a terminal, installed as a user installs it.

use std::fs;
use std::path::{Path, PathBuf};

use alongside_e2e::{Capability, Sandbox, TIMEOUT, Terminal, editor, eventually, kill, plugin, proves, version};
use serde_json::json;

use crate::agent::{Agent, announced, discovery_files, wait_for_no_announcement};

/// Types keys and reads the screen.
struct Kakoune {
    terminal: Terminal,
    pid: u32,
    home: PathBuf,
}

/// kakoune-lsp runs outside the terminal, and stays when Kakoune is killed.
impl Drop for Kakoune {
    fn drop(&mut self) {
        for pid in processes(&self.home, "kak-lsp\0--daemonize") {
            kill(pid);
        }
    }
}

impl Kakoune {
    /// Opens a file in a Kakoune whose user has kakoune-lsp and has installed the server.
    fn start(sandbox: &Sandbox, file: &Path) -> Self {
        let settings = sandbox.path("home/.config/kak");
        fs::create_dir_all(&settings).expect("make the directory of the settings");
        let lines = format!("evaluate-commands %sh{{kak-lsp}}\nlsp-enable\n{}\n", documented_key());
        fs::write(settings.join("kakrc"), lines).expect("write the settings");
        let editors = editor("kak-lsp");
        let editors = editors.parent().expect("it is in a directory").display().to_string();
        let mut environment = sandbox.environment();
        for (name, value) in &mut environment {
            if name == "PATH" {
                value.push_str(&format!(":{editors}"));
            }
        }
        let terminal = Terminal::open(sandbox, "kakoune", &sandbox.workspace(), &environment);
        terminal.type_line("alongside install kakoune");
        terminal.wait_for_text("kakrc", TIMEOUT);
        terminal.clear();
        terminal.type_line(&format!("kak '{}'", file.display()));
        let announcement = eventually(TIMEOUT, || discovery_files(sandbox).pop());
        let Some(announcement) = announcement else {
            terminal.fail("the companion never announced itself")
        };
        let name = announcement.to_string_lossy().into_owned();
        let pid = name.split('-').rev().nth(1).expect("its name has the process in it");
        let pid = pid.parse().expect("a process id");
        let home = sandbox.path("home");
        Self { terminal, pid, home }
    }

    /// Returns to normal mode. An Escape immediately followed by another key would be read as one key.
    fn go_to_normal_mode(&self) {
        let reached = eventually(TIMEOUT, || {
            let screen = self.terminal.screen();
            let status = screen.lines().rfind(|line| !line.trim().is_empty()).unwrap_or_default();
            let is_normal = !status.contains(" insert ") && !status.contains(" prompt ") && status.contains(" sel ");
            if !is_normal {
                self.terminal.press("Escape");
            }
            is_normal.then_some(())
        });
        if reached.is_none() {
            self.terminal.fail("never in normal mode");
        }
    }

    fn run(&self, line: &str) {
        self.go_to_normal_mode();
        self.terminal.type_line(&format!(":{line}"));
    }

    /// Picks the code action whose title starts with this.
    fn act(&self, title: &str) {
        self.run("lsp-code-actions");
        self.terminal.wait_for_text(title, TIMEOUT);
        self.terminal.type_line(title);
    }

    fn wait_for_text(&self, text: &str) {
        self.terminal.wait_for_text(text, TIMEOUT);
    }
}

/// The lines of docs/EDITORS.md that map a key.
fn documented_key() -> String {
    let documentation = plugin("").join("../docs/EDITORS.md");
    let documentation = fs::read_to_string(documentation).expect("read the documentation");
    let at = documentation
        .find("define-command -override alongside-show")
        .expect("it has the lines");
    let lines = documentation[at..].split("```").next().expect("a block ends");
    lines.to_owned()
}

/// Kakoune does not report its version.
fn proven(capabilities: &[Capability]) {
    for capability in capabilities {
        proves("Kakoune with kakoune-lsp", &version(&editor("kak-lsp")), *capability);
    }
}

#[tokio::test]
async fn cursor_and_selection_reach_agents_automatically() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a b.md", "first\n🦀 second ü\nthird\n");
    let kakoune = Kakoune::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, kakoune.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    kakoune.terminal.type_text("jllw");
    agent.sees(|file| file["selectedText"] == "second ").await;
    kakoune.terminal.type_text("gg");
    let cursor = json!({ "line": 1, "character": 1 });
    agent
        .sees(|file| file["cursor"] == cursor && file.get("selectedText").is_none())
        .await;
    proven(&[Capability::Context, Capability::Install]);
}

#[tokio::test]
async fn hunks_and_changes_are_accepted_and_rejected() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\ntwo\nthree\n");
    let kakoune = Kakoune::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, kakoune.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "ONE\ntwo\nTHREE\n").await;
    // The hints: a message disappears with the next key.
    kakoune.wait_for_text("-three");
    kakoune.terminal.type_text("gg");
    kakoune.act("Reject hunk");
    let decision = agent.decision_by(|| kakoune.act("Accept change")).await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(decision["params"]["content"], "one\ntwo\nTHREE\n");

    agent.propose(&path, "unwanted\n").await;
    kakoune.wait_for_text("proposed a change to a.md (+1 −3)");
    let decision = agent.decision_by(|| kakoune.act("Reject change")).await;
    assert_eq!(decision["method"], "ide/diffRejected");
    proven(&[Capability::Review, Capability::Hunk]);
}

#[tokio::test]
async fn draft_is_edited_in_its_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "\u{feff}one\r\ntwo");
    let kakoune = Kakoune::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, kakoune.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "\u{feff}one\r\nTWO").await;
    kakoune.wait_for_text("-two");
    kakoune.act("Edit change");
    let screen = kakoune.terminal.wait_for_text("to edit the change", TIMEOUT);
    let at = screen.find("Open /").expect("the message names the file");
    let file = screen[at + 5..].split_whitespace().next().expect("a path").to_owned();
    kakoune.run(&format!("edit {file}"));
    kakoune.wait_for_text("TWO");
    kakoune.terminal.type_text("gjA, edited");
    kakoune.wait_for_text("TWO, edited");
    kakoune.run("write");
    let decision = agent.decision_by(|| kakoune.act("Accept change")).await;
    assert_eq!(decision["params"]["content"], "\u{feff}one\r\nTWO, edited");
    proven(&[Capability::Edit]);
}

#[tokio::test]
async fn agent_is_notified_when_kakoune_exits() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let kakoune = Kakoune::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, kakoune.pid)).await;
    agent.propose(&path, "two\n").await;
    kakoune.wait_for_text("-one");
    kakoune.run("quit!");
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    wait_for_no_announcement(&sandbox);
}

#[tokio::test]
async fn killed_server_comes_back_with_the_next_request_and_nothing_is_lost() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n2\n3\n");
    let kakoune = Kakoune::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, kakoune.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "ONE\n2\n3\ntwo\n").await;
    kakoune.wait_for_text("-one");
    kakoune.act("Edit change");
    let screen = kakoune.terminal.wait_for_text("to edit the change", TIMEOUT);
    let at = screen.find("Open /").expect("the message names the file");
    let file = screen[at + 5..].split_whitespace().next().expect("a path").to_owned();
    kakoune.run(&format!("edit {file}"));
    kakoune.wait_for_text("two");
    kakoune.terminal.type_text("geA, edited");
    kakoune.wait_for_text("two, edited");
    kakoune.run("write");
    kakoune.run("buffer a.md");
    kakoune.wait_for_text("-one");
    let servers = processes(&kakoune.home, "alongside\0lsp");
    assert_eq!(servers.len(), 1, "{servers:?}");
    kill(servers[0]);
    kakoune.terminal.type_text("gg");
    kakoune.act("Reject hunk");
    agent.reconnect().await;
    agent.sees(|file| file["path"] == json!(path)).await;
    let decision = agent.decision_by(|| kakoune.act("Accept change")).await;
    assert_eq!(decision["params"]["content"], "one\n2\n3\ntwo, edited\n");
}

/// The processes of this user with these arguments.
fn processes(home: &Path, arguments: &str) -> Vec<u32> {
    let home = home.display().to_string();
    let processes = fs::read_dir("/proc").expect("list processes").flatten();
    let matching = processes.filter_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let command = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let variables = fs::read(entry.path().join("environ")).ok()?;
        let is_ours = String::from_utf8_lossy(&variables).contains(&home);
        (command.contains(arguments) && is_ours).then_some(pid)
    });
    matching.collect()
}

#[tokio::test]
async fn key_shows_all_pending_changes() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("open.md", "text\n");
    let kakoune = Kakoune::start(&sandbox, &path);
    let agent = Agent::connect(&announced(&sandbox, kakoune.pid)).await;
    agent.propose(&sandbox.file("a.md"), "text of a\n").await;
    agent.propose(&sandbox.file("b.md"), "text of b\n").await;
    kakoune.terminal.type_text("i");
    kakoune.wait_for_text("insert");
    kakoune.terminal.press("F8");
    kakoune.terminal.wait_for("both diffs", TIMEOUT, |screen| {
        screen.contains("+text of a") && screen.contains("+text of b")
    });
}
