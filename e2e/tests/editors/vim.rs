//! The plugin in a real Vim 9, in a terminal.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use alongside_e2e::{Capability, Sandbox, TIMEOUT, alongside, eventually, plugin, proves, version};
use serde_json::json;

use crate::agent::{Agent, announced, wait_for_no_announcement};
use crate::vim_driver::Vim;

#[tokio::test]
async fn context_arrives_and_changes_are_edited_accepted_and_rejected() {
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
async fn single_hunks_are_rejected_by_key_or_diffget() {
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
async fn killed_companion_restarts_on_the_same_port_and_killed_vim_rejects() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "text\n");
    let vim = Vim::start(&sandbox, &path);
    let pid = vim.pid();
    let before = announced(&sandbox, pid);
    let mut agent = Agent::connect(&before).await;
    let bridges = vim.terminal.processes();
    let bridge = bridges.last().expect("the companion is a child of Vim").to_string();
    let kill = |pid: &str| {
        let killed = Command::new("kill").args(["-KILL", pid]).status();
        assert!(killed.is_ok_and(|status| status.success()));
    };
    kill(&bridge);
    vim.terminal.wait_for_text("was restarted", TIMEOUT);
    assert_eq!(announced(&sandbox, pid), before);
    agent.reconnect().await;
    agent.sees(|file| file["path"] == json!(path)).await;
    agent.propose(&path, "other\n").await;
    vim.show_review();
    kill(&pid.to_string());
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    wait_for_no_announcement(&sandbox);
}

#[tokio::test]
async fn selection_stays_on_the_command_line() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "some text\n");
    let vim = Vim::start(&sandbox, &path);
    let companion = announced(&sandbox, vim.pid());
    let mut agent = Agent::connect(&companion).await;
    agent.sees(|file| file["path"] == json!(path)).await;
    vim.terminal.type_text("vee:");
    agent.sees(|file| file["selectedText"] == "some text").await;
    vim.terminal.wait_for_text(":'<,'>", TIMEOUT);
    let mut newcomer = Agent::connect(&companion).await;
    newcomer.sees(|file| file["selectedText"] == "some text").await;
}

#[tokio::test]
async fn edits_and_decisions_from_elsewhere_are_shown() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n2\n3\n4\n5\nsix\n");
    let vim = Vim::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    agent.propose(&path, "ONE\n2\n3\n4\n5\nSIX\n").await;
    vim.show_review();
    let better = sandbox.path("better");
    fs::write(&better, "ONE\n2\n3\n4\n5\nBETTER\n").expect("write");
    diff(
        &sandbox,
        &["edit", "a.txt", "--content-file", &better.to_string_lossy()],
    );
    vim.wait_for("getline(1, '$') ==# ['ONE', '2', '3', '4', '5', 'BETTER']");
    // The file changes under the review.
    fs::write(&path, "one\n2\n3\nfresh\n4\n5\nsix\n").expect("write");
    vim.wait_for("getline(1, '$') ==# ['ONE', '2', '3', 'fresh', '4', '5', 'BETTER']");
    vim.wait_for("getbufline(winbufnr(1), 1, '$') ==# ['one', '2', '3', 'fresh', '4', '5', 'six']");
    // An edit here is accepted elsewhere.
    vim.terminal.type_text("ggIMY ");
    vim.wait_for("getline(1) ==# 'MY ONE'");
    let shared = eventually(TIMEOUT, || {
        diff(&sandbox, &["show", "a.txt"]).contains("MY ONE").then_some(())
    });
    assert!(shared.is_some(), "the edit never reached the companion");
    diff(&sandbox, &["accept", "a.txt"]);
    let decision = agent.decision().await;
    assert_eq!(decision["params"]["content"], "MY ONE\n2\n3\nfresh\n4\n5\nBETTER\n");
    vim.wait_for("tabpagenr('$') == 1");
    vim.wait_for("execute('messages') =~# 'a.txt: accepted'");
}

#[tokio::test]
async fn revision_replaces_the_open_draft_and_conflicts_are_reported() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\ntwo\n");
    let vim = Vim::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    agent.propose(&path, "ONE\ntwo\n").await;
    vim.show_review();
    agent.propose(&path, "first\ntwo\n").await;
    vim.wait_for("getline(1) ==# 'first'");
    vim.wait_for("execute('messages') =~# 'the agent revised its change to a.txt'");
    fs::write(&path, "1\ntwo\n").expect("write");
    vim.wait_for("getbufline(winbufnr(1), 1) ==# ['1']");
    vim.wait_for("execute('messages') =~# 'the file changed in the same place'");
    vim.run("AlongsideReject");
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
}

#[test]
fn own_tests_pass() {
    let sandbox = Sandbox::new();
    let report = sandbox.path("report");
    let status = Command::new("vim")
        .args(["--not-a-term", "-u", "NONE", "-i", "NONE", "-n", "-N", "--cmd"])
        .arg(format!("set runtimepath^={}", plugin("vim").display()))
        .args(["-S", "test/run.vim"])
        .env_clear()
        .envs(sandbox.environment())
        .envs([("TERM", "dumb"), ("REPORT", &report.to_string_lossy())])
        .current_dir(plugin("vim"))
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .expect("run Vim");
    let report = fs::read_to_string(report).unwrap_or_default();
    assert!(status.success() && report.contains("all passed"), "{status}: {report}");
}

/// Runs `alongside diff`, as a user in another terminal.
fn diff(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let output = Command::new(alongside())
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(sandbox.workspace())
        .arg("diff")
        .args(arguments)
        .output()
        .expect("run alongside");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
