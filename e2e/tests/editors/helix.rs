//! The language server in a real Helix, in a terminal, installed as a user installs it.

use std::fs;
use std::path::Path;
use std::time::Duration;

use alongside_e2e::{
    Capability, Cli, FakeModel, Prompt, Sandbox, TIMEOUT, Terminal, editor, eventually, proves, version,
};
use serde_json::json;

use crate::agent::{Agent, announced, discovery_files, wait_for_no_announcement};

/// How the titles of code actions begin.
const TITLES: [&str; 9] = [
    "Accept hunk",
    "Reject hunk",
    "Keep hunk",
    "Accept change",
    "Reject change",
    "Show change",
    "Edit change",
    "Send selection",
    "Review changes",
];

/// Types keys and reads the screen.
pub(crate) struct Helix {
    pub(crate) terminal: Terminal,
    pid: u32,
}

impl Helix {
    /// Installs the server for Helix, and opens a file with it.
    pub(crate) fn start(sandbox: &Sandbox, file: &Path) -> Self {
        Self::start_with(sandbox, file, |languages| languages)
    }

    /// The same with changes to the settings that the installer wrote.
    fn start_with(sandbox: &Sandbox, file: &Path, change: impl FnOnce(String) -> String) -> Self {
        let terminal = Terminal::open(sandbox, "helix", &sandbox.workspace(), &[]);
        terminal.type_line("alongside install helix");
        terminal.wait_for_text("languages.toml", TIMEOUT);
        terminal.clear();
        let languages = sandbox.path("home/.config/helix/languages.toml");
        let installed = fs::read_to_string(&languages).expect("read the settings");
        fs::write(&languages, change(installed)).expect("write the settings");
        // As documented.
        let key = "[keys.normal]\nF8 = \":lsp-workspace-command alongside.show\"\n";
        fs::write(languages.with_file_name("config.toml"), key).expect("write the keys");
        terminal.type_line(&format!("'{}' '{}'", editor("hx").display(), file.display()));
        let announcement = eventually(TIMEOUT, || discovery_files(sandbox).pop());
        let Some(announcement) = announcement else {
            terminal.fail("the companion never announced itself")
        };
        let name = announcement.to_string_lossy().into_owned();
        let pid = name.split('-').rev().nth(1).expect("its name has the process in it");
        let pid = pid.parse().expect("a process id");
        Self { terminal, pid }
    }

    /// Returns to normal mode. An Escape immediately followed by another key would be read as one key.
    fn go_to_normal_mode(&self) {
        let reached = eventually(TIMEOUT, || {
            let is_normal = self.terminal.screen().contains(" NOR ");
            if !is_normal {
                self.terminal.press("Escape");
            }
            is_normal.then_some(())
        });
        if reached.is_none() {
            self.terminal.fail("never in normal mode");
        }
    }

    /// Runs a typable command.
    pub(crate) fn run(&self, line: &str) {
        self.go_to_normal_mode();
        self.terminal.type_line(&format!(":{line}"));
    }

    /// The screen with the menu of code actions, if that has an entry with this title.
    fn open_menu(&self, title: &str) -> Option<String> {
        self.terminal.type_text(" a");
        let screen = || Some(self.terminal.screen()).filter(|screen| screen.contains(title));
        eventually(Duration::from_secs(10), screen)
    }

    /// Picks the code action whose title starts with this.
    pub(crate) fn act(&self, title: &str) {
        let mut screen = self.open_menu(title);
        for _ in 0..10 {
            if screen.is_some() {
                break;
            }
            // A server that has only just started may not have known of the change.
            self.terminal.escape();
            screen = self.open_menu(title);
        }
        let screen = screen.unwrap_or_else(|| self.terminal.fail(&format!("there is no action {title:?}")));
        // The first line of the menu is selected; count the lines down to the wanted one.
        let menu = screen
            .lines()
            .filter(|line| TITLES.iter().any(|title| line.contains(title)));
        let down = menu.take_while(|line| !line.contains(title)).count();
        for _ in 0..down {
            self.terminal.press("Down");
        }
        self.terminal.press("Enter");
    }

    pub(crate) fn wait_for_text(&self, text: &str) {
        self.terminal.wait_for_text(text, TIMEOUT);
    }
}

fn proven(capabilities: &[Capability]) {
    for capability in capabilities {
        proves("Helix", &version(&editor("hx")), *capability);
    }
}

#[tokio::test]
async fn open_files_and_sent_selection_reach_agents() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a b.md", "first\n🦀 second ü\nthird\n");
    let other = sandbox.write("other.md", "other\n");
    let helix = Helix::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, helix.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    helix.terminal.type_text("jx");
    helix.act("Send selection");
    helix.wait_for_text("Agents will see 1 line of a b.md");
    agent
        .sees(|file| {
            file["selectedText"]
                .as_str()
                .is_some_and(|text| text.trim_end() == "🦀 second ü")
        })
        .await;
    helix.terminal.type_text("gg k");
    let cursor = json!({ "line": 1, "character": 1 });
    agent
        .sees(|file| file["cursor"] == cursor && file.get("selectedText").is_none())
        .await;
    helix.run(&format!("open {}", other.display()));
    agent.sees(|file| file["path"] == json!(other)).await;
    helix.run("buffer-close");
    agent.sees(|file| file["path"] == json!(path)).await;
    proven(&[Capability::Context]);
}

#[tokio::test]
async fn edited_draft_keeps_untouched_bytes() {
    let sandbox = Sandbox::new();
    let base = "\u{feff}one\r\ntwo\r\nthree";
    let path = sandbox.write("dir with space/ünï.md", base);
    let helix = Helix::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, helix.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "\u{feff}one\r\nTWO 🦀\r\nthree").await;
    helix.wait_for_text("proposed a change to ünï.md (+1 −1)");
    helix.act("Edit change");
    helix.wait_for_text("TWO 🦀");
    helix.terminal.type_text("ggjA edited");
    helix.wait_for_text("TWO 🦀 edited");
    helix.run("write");
    helix.wait_for_text("written");
    let decision = agent.decision_by(|| helix.act("Accept change")).await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(decision["params"]["content"], "\u{feff}one\r\nTWO 🦀 edited\r\nthree");
    helix.wait_for_text("accepted; the agent is writing it");
    assert_eq!(
        fs::read_to_string(&path).expect("read"),
        base,
        "the agent writes the file"
    );
    proven(&[Capability::Edit]);
}

#[tokio::test]
async fn hunks_are_shown_and_decided_in_place() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\ntwo\nthree\n");
    let helix = Helix::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, helix.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    // Unsaved: proposals are compared with the text on the screen.
    helix.terminal.type_text("Ounsaved");
    agent.sees(|file| file["cursor"]["character"] == 8).await;
    helix.go_to_normal_mode();
    agent.propose(&path, "unsaved\nONE\ntwo\nTHREE\n").await;
    helix.wait_for_text("proposed a change to a.md (+2 −2)");
    helix.terminal.type_text("ggj");
    helix.wait_for_text("proposes to replace this with:");
    helix.act("Reject hunk");
    helix.wait_for_text("You rejected this change");
    let decision = agent.decision_by(|| helix.act("Accept change")).await;
    assert_eq!(decision["params"]["content"], "unsaved\none\ntwo\nTHREE\n");

    agent.propose(&path, "unwanted\n").await;
    helix.wait_for_text("+1 −4");
    helix.act("Show change");
    helix.wait_for_text("+unwanted");
    let decision = agent.decision_by(|| helix.act("Reject change")).await;
    assert_eq!(decision["method"], "ide/diffRejected");
    proven(&[Capability::Review, Capability::Hunk]);
}

#[tokio::test]
async fn hunk_rejected_in_the_draft_file_leaves_the_buffer() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\ntwo\nthree\n");
    let helix = Helix::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, helix.pid)).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "ONE\ntwo\nTHREE\n").await;
    helix.wait_for_text("proposed a change to a.md (+2 −2)");
    helix.act("Edit change");
    helix.wait_for_text("Replaces:");
    helix.act("Reject hunk");
    helix.wait_for_text("Unchanged; you rejected");
    let is_rejected = |screen: &str| screen.contains("  one") && screen.contains("  THREE");
    helix.terminal.wait_for("the draft", TIMEOUT, is_rejected);
    helix.terminal.type_text("geA!");
    helix.wait_for_text("THREE!");
    helix.go_to_normal_mode();
    let decision = agent.decision_by(|| helix.act("Accept change")).await;
    assert_eq!(
        decision["params"]["content"], "one\ntwo\nTHREE!\n",
        "it need not be saved"
    );
}

#[tokio::test]
async fn agent_is_notified_when_helix_exits() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let helix = Helix::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, helix.pid)).await;
    agent.propose(&path, "two\n").await;
    helix.wait_for_text("proposed a change");
    helix.run("quit-all!");
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    wait_for_no_announcement(&sandbox);
    let drafts = fs::read_dir(sandbox.path("home/.local/state/alongside/drafts")).expect("list drafts");
    assert_eq!(drafts.count(), 0);
}

alongside_e2e::for_both_agents!(selection_reaches_the_model_and_edits_are_written);
fn selection_reaches_the_model_and_edits_are_written(cli: Cli) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("open file.md", "one\ntwo words\nthree\n");
    let model = FakeModel::start();
    let helix = Helix::start(&sandbox, &path);
    let agent = alongside_e2e::Agent::start(&sandbox, cli, &model);
    let status = agent.wait_until_connected();
    assert!(status.contains("Connected to Helix"), "{status}");
    helix.terminal.type_text("jx");
    helix.act("Send selection");
    helix.wait_for_text("Agents will see 1 line");
    let received = eventually(TIMEOUT, || {
        let mark = model.mark();
        agent.prompt("Describe what I see.");
        let request = model
            .wait_for_message(mark, "Describe what I see.", TIMEOUT)
            .to_string();
        agent.wait_until_idle();
        (request.contains("two words") && request.contains("open file.md")).then_some(())
    });
    assert!(received.is_some(), "the selection never reached the model");

    let new = sandbox.file("new.md");
    agent.prompt(&Prompt::WriteFile(&new.to_string_lossy(), "hello\r\nworld").to_string());
    agent.wait_for_question();
    helix.wait_for_text("proposed a change to new.md");
    helix.act("Edit change to new.md");
    helix.wait_for_text("world");
    helix.terminal.type_text("geA, edited 🦀");
    helix.wait_for_text("world, edited 🦀");
    helix.run("write");
    helix.wait_for_text("written");
    let written = eventually(TIMEOUT, || {
        helix.act("Accept change");
        eventually(std::time::Duration::from_secs(2), || fs::read(&new).ok())
    });
    assert_eq!(written.as_deref(), Some("hello\r\nworld, edited 🦀".as_bytes()));
    proven(&[Capability::Install]);
}

#[tokio::test]
async fn key_shows_a_pending_change_and_then_the_next() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("open.md", "text\n");
    let helix = Helix::start(&sandbox, &path);
    let agent = Agent::connect(&announced(&sandbox, helix.pid)).await;
    agent.propose(&sandbox.file("a.md"), "text of a\n").await;
    agent.propose(&sandbox.file("b.md"), "text of b\n").await;
    helix.wait_for_text("proposed a change to b.md");
    helix.terminal.press("F8");
    helix.wait_for_text("+text of a");
    helix.terminal.press("F8");
    helix.wait_for_text("+text of b");
}

#[tokio::test]
async fn change_opens_in_a_split_if_wanted() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("open.md", "text\n");
    let helix = Helix::start_with(&sandbox, &path, |languages| {
        languages.replace(r#""lsp"]"#, r#""lsp", "--open", "view"]"#)
    });
    let agent = Agent::connect(&announced(&sandbox, helix.pid)).await;
    agent.propose(&sandbox.file("a.md"), "text of a\n").await;
    helix.terminal.wait_for("the file and the diff", TIMEOUT, |screen| {
        screen.contains("+text of a") && screen.contains(" text ")
    });
    agent.propose(&sandbox.file("b.md"), "text of b\n").await;
    let screen = helix.terminal.wait_for_text("proposed a change to b.md", TIMEOUT);
    assert!(!screen.contains("+text of b"), "one at a time: {screen}");
}

/// Kills the language server of a Helix in which the user has edited a draft.
async fn kill_server_after_an_edit(helix: &Helix, agent: &mut Agent, path: &Path) {
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(path, "two\n").await;
    helix.wait_for_text("proposed a change to a.md");
    helix.act("Edit change");
    // The first line of the draft's file; the text alone is also in the message about the change.
    helix.wait_for_text(" 1  two");
    helix.terminal.type_text("geA, edited");
    helix.wait_for_text("two, edited");
    helix.go_to_normal_mode();
    let server = server(&helix.terminal).to_string();
    let killed = std::process::Command::new("kill").args(["-KILL", &server]).status();
    assert!(killed.is_ok_and(|status| status.success()));
    helix.wait_for_text("Language server exited");
}

#[tokio::test]
async fn killed_server_is_restarted_by_a_command_and_nothing_is_lost() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    // Helix restarts nothing if another server of the language is not installed.
    let helix = Helix::start_with(&sandbox, &path, |languages| languages.replace("\"marksman\", ", ""));
    let before = announced(&sandbox, helix.pid);
    let mut agent = Agent::connect(&before).await;
    kill_server_after_an_edit(&helix, &mut agent, &path).await;
    helix.run(&format!("open {}", path.display()));
    helix.run("lsp-restart");
    agent.reconnect().await;
    assert_eq!(announced(&sandbox, helix.pid), before);
    agent.sees(|file| file["path"] == json!(path)).await;
    let decision = agent.decision_by(|| helix.act("Accept change")).await;
    assert_eq!(decision["params"]["content"], "two, edited\n");
}

#[tokio::test]
async fn killed_server_starts_again_with_the_next_file() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.md", "one\n");
    let helix = Helix::start(&sandbox, &path);
    let before = announced(&sandbox, helix.pid);
    let mut agent = Agent::connect(&before).await;
    kill_server_after_an_edit(&helix, &mut agent, &path).await;
    helix.run(&format!("open {}", sandbox.write("next.md", "next\n").display()));
    agent.reconnect().await;
    assert_eq!(announced(&sandbox, helix.pid), before);
    let decision = agent.decision_by(|| helix.act("Accept change to a.md")).await;
    assert_eq!(decision["params"]["content"], "two, edited\n");
}

/// The language server in a terminal.
fn server(terminal: &Terminal) -> u32 {
    let processes = terminal.processes().into_iter();
    let mut servers = processes.filter(|pid| {
        let arguments = fs::read_to_string(format!("/proc/{pid}/cmdline")).unwrap_or_default();
        arguments.contains("alongside\0lsp")
    });
    servers.next().expect("a language server is running")
}
