//! The plugin in a real Vim 9, in a terminal.

use std::path::Path;

use alongside_e2e::{Capability, PATIENCE, Sandbox, Terminal, eventually, plugin, proves, version};
use serde_json::json;

use crate::agent::{Agent, announced, discovery_files, wait_for_no_announcement};

/// Types as a person does, and lets Vim say what it has in files of the sandbox.
struct Vim<'a> {
    sandbox: &'a Sandbox,
    terminal: Terminal,
}

impl<'a> Vim<'a> {
    fn start(sandbox: &'a Sandbox, file: &Path) -> Self {
        let terminal = Terminal::open(sandbox, "vim", &sandbox.workspace(), &[]);
        let settings = sandbox.path("vimrc");
        let lines = format!(
            "set nocompatible encoding=utf-8 ttimeoutlen=5 runtimepath^={}\n",
            plugin("vim").display()
        );
        std::fs::write(&settings, lines).expect("write Vim's settings");
        terminal.type_line(&format!(
            "vim -u '{}' -i NONE -n '{}'",
            settings.display(),
            file.display()
        ));
        let vim = Self { sandbox, terminal };
        let there = eventually(PATIENCE, || (!discovery_files(sandbox).is_empty()).then_some(()));
        if there.is_none() {
            vim.terminal.fail("the companion never announced itself");
        }
        vim
    }

    fn pid(&self) -> u32 {
        let file = discovery_files(self.sandbox).pop().expect("a discovery file");
        let name = file.file_name().expect("it has a name").to_string_lossy().into_owned();
        let pid = name.split('-').rev().nth(1).expect("its name has the process in it");
        pid.parse().expect("a process id")
    }

    fn run(&self, line: &str) {
        self.terminal.press("Escape");
        self.terminal.type_line(&format!(":{line}"));
    }

    /// Waits until an expression is true.
    fn wait_for(&self, expression: &str) {
        let answer = self.sandbox.path("answer");
        let reached = eventually(PATIENCE, || {
            self.run(&format!(
                "silent call writefile([{expression}], '{}')",
                answer.display()
            ));
            (std::fs::read_to_string(&answer).ok()?.trim() == "1").then_some(())
        });
        if reached.is_none() {
            self.terminal.fail(&format!("{expression} never became true"));
        }
    }

    fn show_review(&self) {
        self.terminal.wait_for_text("AlongsideReview shows it", PATIENCE);
        self.run("AlongsideReview");
        self.wait_for("&buftype ==# 'acwrite' && &diff");
    }
}

#[tokio::test]
async fn context_arrives_and_changes_are_edited_accepted_and_rejected_in_a_diff_split() {
    let sandbox = Sandbox::new();
    let base = "\u{feff}one\r\ntwo\r\nthree";
    let path = sandbox.write("a b.txt", "first\n🦀 second\n");
    let changed = sandbox.write("dir with space/changed.txt", base);
    let vim = Vim::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    vim.terminal.type_text("jllve");
    agent.sees(|file| file["selectedText"] == "second").await;
    vim.terminal.press("Escape");
    let cursor = json!({ "line": 2, "character": 9 });
    agent.sees(|file| file["cursor"] == cursor).await;

    agent.propose(&changed, "\u{feff}one\r\nTWO\r\nthree").await;
    vim.show_review();
    vim.terminal.type_text("ggjA edited");
    vim.run("write");
    let decision = agent.decision().await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(decision["params"]["content"], "\u{feff}one\r\nTWO edited\r\nthree");
    vim.wait_for("tabpagenr('$') == 1");

    agent.propose(&changed, "unwanted").await;
    vim.run("messages clear");
    vim.wait_for("&buftype ==# ''");
    vim.run("AlongsideReview");
    vim.wait_for("&buftype ==# 'acwrite'");
    vim.run("tabclose");
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    for capability in [Capability::Context, Capability::Review, Capability::Edit] {
        proves("Vim", &version(Path::new("vim")), capability);
    }
}

#[tokio::test]
async fn single_hunks_are_rejected_by_a_key_or_by_the_usual_diff_command() {
    let sandbox = Sandbox::new();
    let lines = |changed: &[usize]| -> String {
        let line = |number: usize| {
            let new = if changed.contains(&number) { "new " } else { "" };
            format!("{new}{number}\n")
        };
        (1..=30).map(line).collect()
    };
    let path = sandbox.write("a.txt", &lines(&[]));
    let vim = Vim::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    agent.propose(&path, &lines(&[3, 12, 25])).await;
    vim.show_review();
    vim.wait_for("line('.') == 3");
    vim.terminal.type_text("\\a");
    vim.wait_for("line('.') == 12");
    vim.terminal.type_text("\\r");
    vim.wait_for("getline(12) ==# '12' && line('.') == 25");
    vim.terminal.type_text("\\A");
    let decision = agent.decision().await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(decision["params"]["content"], lines(&[3, 25]));
    vim.wait_for("tabpagenr('$') == 1");

    agent.propose(&path, &lines(&[3, 12])).await;
    vim.wait_for("&buftype ==# ''");
    vim.run("AlongsideReview");
    vim.wait_for("&buftype ==# 'acwrite' && line('.') == 3");
    vim.terminal.type_text("do");
    vim.wait_for("getline(3) ==# '3'");
    vim.terminal.type_text("\\A");
    assert_eq!(agent.decision().await["params"]["content"], lines(&[12]));
    proves("Vim", &version(Path::new("vim")), Capability::Hunk);
}

#[tokio::test]
async fn a_killed_companion_is_started_again_on_the_same_port_and_a_killed_vim_tells_the_agent() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "text\n");
    let vim = Vim::start(&sandbox, &path);
    let pid = vim.pid();
    let before = announced(&sandbox, pid);
    let mut agent = Agent::connect(&before).await;
    let bridges = vim.terminal.processes();
    let bridge = bridges.last().expect("the companion runs below Vim").to_string();
    let kill = |pid: &str| {
        let killed = std::process::Command::new("kill").args(["-KILL", pid]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    };
    kill(&bridge);
    vim.terminal.wait_for_text("was started again", PATIENCE);
    assert_eq!(announced(&sandbox, pid), before);
    agent.reconnect().await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "other\n").await;
    vim.show_review();
    kill(&pid.to_string());
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    wait_for_no_announcement(&sandbox);
}
