//! How a proposed change appears in a real Vim: `g:alongside_open`.

use std::time::Instant;

use alongside_e2e::{Sandbox, TIMEOUT};

use crate::agent::{Agent, announced, wait_for_no_announcement};
use crate::vim_driver::Vim;

const VIEW: &str = "let g:alongside_open = 'view'";

#[tokio::test]
async fn change_opens_to_the_side_of_a_terminal_without_taking_the_focus() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let vim = Vim::start_with(&sandbox, &path, "");
    let agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    vim.run("terminal ++curwin bash --norc --noprofile");
    vim.terminal.type_text("echo before");
    vim.terminal.wait_for_text("echo before", TIMEOUT);
    agent.propose(&path, "two\n").await;
    vim.terminal.wait_for_text("+two", TIMEOUT);
    vim.terminal.type_line(" and after");
    vim.terminal.wait_for("the output of the shell", TIMEOUT, |screen| {
        screen.lines().any(|line| line.starts_with("before and after"))
    });
    vim.terminal.wait_for("the diff and its key", TIMEOUT, |screen| {
        screen.contains("-one") && screen.contains("<F8>")
    });
    vim.terminal.press("F8");
    vim.terminal.wait_for("the review in its tab", TIMEOUT, |screen| {
        screen.contains("a.txt (review)") && screen.contains("a.txt (file)")
    });
    vim.wait_for("&buftype ==# 'acwrite' && mode() ==# 'n'");
    agent.withdraw(&path).await;
    vim.terminal.wait_for("the shell alone", TIMEOUT, |screen| {
        screen.contains("before and after") && !screen.contains("(review)")
    });
}

#[tokio::test]
async fn quiet_user_sees_the_change_with_the_selection_kept() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "some text\n");
    let vim = Vim::start_with(&sandbox, &path, "set showmode");
    let agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    vim.terminal.type_text("ve");
    vim.terminal.wait_for_text("-- VISUAL --", TIMEOUT);
    // The user was typing a moment ago; propose again until that is long enough ago.
    let start = Instant::now();
    for number in 1.. {
        assert!(start.elapsed() < TIMEOUT, "the change never opened to the side");
        agent.propose(&path, &format!("proposal {number}\n")).await;
        let line = format!("+proposal {number}");
        let screen = vim.terminal.wait_for("the change or a notice", TIMEOUT, |screen| {
            screen.contains(&line) || screen.contains("a.txt to review: <F8>")
        });
        if screen.contains(&line) {
            break;
        }
        agent.withdraw(&path).await;
        vim.terminal
            .wait_for("no notice", TIMEOUT, |screen| !screen.contains("to review: <F8>"));
    }
    vim.terminal.type_text("c");
    vim.terminal.type_text("new");
    vim.terminal.press("Escape");
    vim.wait_for("getline(1) ==# 'new text'");
}

#[tokio::test]
async fn typing_user_gets_a_notice() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "");
    let vim = Vim::start_with(&sandbox, &path, "");
    let agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    vim.run("call timer_start(10, {-> feedkeys('x', 't')}, {'repeat': 2000})");
    vim.terminal.type_text("i");
    vim.terminal.wait_for_text("xxxx", TIMEOUT);
    agent.propose(&path, "2\n").await;
    let screen = vim.terminal.wait_for_text("a.txt to review: <F8>", TIMEOUT);
    assert!(!screen.contains("+2"), "{screen}");
    agent.withdraw(&path).await;
    vim.terminal
        .wait_for("no notice", TIMEOUT, |screen| !screen.contains("to review: <F8>"));
}

#[tokio::test]
async fn several_changes_share_one_view_and_the_key_reaches_the_next() {
    let sandbox = Sandbox::new();
    let vim = Vim::start_with(&sandbox, &sandbox.file("open.txt"), VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        agent.propose(&sandbox.file(name), &format!("text of {name}\n")).await;
    }
    vim.terminal.wait_for("one change and a notice", TIMEOUT, |screen| {
        screen.contains("+text of a.txt") && screen.contains("2 changes to review: <F8>")
    });
    vim.wait_for("winnr('$') == 2");
    agent.withdraw(&sandbox.file("a.txt")).await;
    vim.terminal.wait_for("the next change", TIMEOUT, |screen| {
        screen.contains("+text of b.txt") && screen.contains("c.txt to review: <F8>")
    });
    vim.terminal.press("F8");
    vim.wait_for("&buftype ==# 'acwrite' && bufname() =~# 'b.txt (review)$'");
    vim.terminal.type_text("Amy ");
    vim.wait_for("getline(1) ==# 'text of b.txtmy '");
    vim.terminal.press("F8");
    vim.wait_for("&buftype ==# 'acwrite' && bufname() =~# 'c.txt (review)$' && tabpagenr('$') == 2");
    vim.terminal.press("F8");
    vim.wait_for("&buftype ==# 'acwrite' && bufname() =~# 'b.txt (review)$'");
    vim.run("write");
    let decision = agent.decision().await;
    assert_eq!(decision["params"]["content"], "text of b.txtmy \n", "edits are kept");
    vim.terminal
        .wait_for("the last change", TIMEOUT, |screen| screen.contains("+text of c.txt"));
    vim.wait_for("tabpagenr('$') == 1 && bufname() =~# 'open.txt$'");
}

#[tokio::test]
async fn closed_view_leaves_the_change_pending_and_a_withdrawn_one_the_layout() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let vim = Vim::start_with(&sandbox, &path, VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    vim.run("split | resize 5 | vsplit | vertical resize 20");
    vim.wait_for("winnr('$') == 3");
    let layout = vim.eval("winrestcmd() .. win_getid()");
    agent.propose(&path, "2\n").await;
    vim.wait_for("winnr('$') == 4");
    agent.withdraw(&path).await;
    vim.wait_for("winnr('$') == 3");
    assert_eq!(vim.eval("winrestcmd() .. win_getid()"), layout);

    agent.propose(&path, "3\n").await;
    vim.wait_for("winnr('$') == 4");
    vim.run("only");
    vim.terminal.wait_for_text("a.txt to review: <F8>", TIMEOUT);
    vim.terminal.press("F8");
    vim.wait_for("&buftype ==# 'acwrite' && &diff");
    let decision = agent.decision_by(|| vim.run("AlongsideReject")).await;
    assert_eq!(decision["method"], "ide/diffRejected");
}

#[tokio::test]
async fn decision_is_made_in_the_view_too() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let vim = Vim::start_with(&sandbox, &path, VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    agent.propose(&path, "2\n").await;
    vim.terminal.wait_for_text("+2", TIMEOUT);
    agent.propose(&path, "3\n").await;
    vim.terminal.wait_for_text("+3", TIMEOUT);
    vim.run("wincmd b");
    vim.wait_for("bufname() =~# 'a.txt (diff)$'");
    let decision = agent.decision_by(|| vim.run("AlongsideAccept")).await;
    assert_eq!(decision["params"]["content"], "3\n");
    vim.wait_for("winnr('$') == 1 && bufname() =~# 'a.txt$'");
}

#[tokio::test]
async fn command_being_typed_is_finished_before_a_window_opens() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let vim = Vim::start_with(&sandbox, &path, VIEW);
    let agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    vim.terminal.type_text(":let typed = 'yes");
    vim.terminal.wait_for_text(":let typed = 'yes", TIMEOUT);
    agent.propose(&path, "2\n").await;
    let screen = vim.terminal.wait_for_text("a.txt to review: <F8>", TIMEOUT);
    assert!(!screen.contains("+2"), "{screen}");
    vim.terminal.type_line("'");
    vim.terminal.wait_for_text("+2", TIMEOUT);
    vim.wait_for("winnr('$') == 2 && typed ==# 'yes'");
}

#[tokio::test]
async fn focus_leaves_insert_mode_and_only_the_first_change_takes_it() {
    let sandbox = Sandbox::new();
    let vim = Vim::start_with(&sandbox, &sandbox.file("open.txt"), "let g:alongside_open = 'focus'");
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    vim.terminal.type_text("itext");
    vim.terminal.wait_for_text("text", TIMEOUT);
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    vim.terminal.wait_for("the review", TIMEOUT, |screen| {
        screen.contains("a.txt (review)") && !screen.contains("-- INSERT --")
    });
    agent.propose(&sandbox.file("b.txt"), "b\n").await;
    vim.terminal.wait_for_text("b.txt to review: <F8>", TIMEOUT);
    let decision = agent.decision_by(|| vim.run("AlongsideAccept")).await;
    assert_eq!(decision["params"]["content"], "a\n");
    // A second `:w` must not accept the next one.
    vim.terminal.wait_for_text("+b", TIMEOUT);
    vim.wait_for("tabpagenr('$') == 1 && getline(1) ==# 'text'");
}

#[tokio::test]
async fn two_vims_on_one_folder_have_reviews_of_their_own() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let (one, other) = (
        Vim::start_with(&sandbox, &sandbox.file("one.txt"), VIEW),
        Vim::start_with(&sandbox, &sandbox.file("other.txt"), VIEW),
    );
    let (first, second) = (announced(&sandbox, one.pid()), announced(&sandbox, other.pid()));
    assert_ne!(first.0, second.0);
    let (mut agent, mut neighbor) = (Agent::connect(&first).await, Agent::connect(&second).await);
    agent.propose(&path, "2\n").await;
    one.terminal.wait_for_text("+2", TIMEOUT);
    other.wait_for("winnr('$') == 1 && execute('messages') !~# 'a.txt'");
    neighbor.propose(&path, "3\n").await;
    other.terminal.wait_for_text("+3", TIMEOUT);
    other.terminal.press("F8");
    other.wait_for("&buftype ==# 'acwrite'");
    other.run("quitall!");
    assert_eq!(neighbor.decision().await["method"], "ide/diffRejected");
    one.terminal.press("F8");
    one.wait_for("&buftype ==# 'acwrite'");
    let decision = agent.decision_by(|| one.run("write")).await;
    assert_eq!(decision["params"]["content"], "2\n");
}

#[tokio::test]
async fn review_in_several_windows_is_decided_once() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let vim = Vim::start(&sandbox, &path);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    vim.run("split | vsplit");
    vim.wait_for("winnr('$') == 3");
    agent.propose(&path, "2\n").await;
    vim.show_review();
    // The draft in two windows of its tab: closing one of them decides nothing.
    vim.run("split");
    vim.wait_for("winnr('$') == 3 && len(win_findbuf(bufnr())) == 2");
    vim.run("close");
    vim.wait_for("winnr('$') == 2 && &buftype ==# 'acwrite'");
    // And in a window of the other tab.
    vim.run("let draft = bufnr()");
    vim.run("tabfirst | execute 'sbuffer ' .. draft");
    vim.wait_for("tabpagenr() == 1 && bufnr() == draft && winnr('$') == 4");
    vim.terminal.type_text("ggAmore");
    vim.wait_for("getline(1) ==# '2more'");
    let decision = agent.decision_by(|| vim.run("write")).await;
    assert_eq!(decision["params"]["content"], "2more\n");
    vim.wait_for("tabpagenr('$') == 1 && winnr('$') == 3 && !bufexists(draft)");
    vim.wait_for("&buftype ==# '' && bufname() =~# 'a.txt$'");
}

#[tokio::test]
async fn review_buffers_end_in_the_file_name_and_never_collide() {
    let sandbox = Sandbox::new();
    let settings = "let g:alongside_open = 'notify'\nsyntax on\nset hidden";
    let vim = Vim::start_with(&sandbox, &sandbox.file("open.txt"), settings);
    let agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    for name in ["one/a.rs", "other/a.rs"] {
        agent.propose(&sandbox.file(name), "fn main() {}\n").await;
    }
    vim.terminal.wait_for_text("2 changes to review", TIMEOUT);
    for name in ["one/a.rs", "other/a.rs", "one/a.rs"] {
        vim.terminal.press("F8");
        vim.wait_for(&format!(
            "bufname() =~# '^alongside://.*{name} (review)$' && &syntax ==# 'rust' && &filetype ==# ''"
        ));
    }
    vim.terminal.wait_for("the name on the tab", TIMEOUT, |screen| {
        screen.lines().next().is_some_and(|tabs| tabs.contains("a.rs (review)"))
    });
}

#[tokio::test]
async fn quitting_the_last_other_window_exits() {
    let sandbox = Sandbox::new();
    let vim = Vim::start_with(&sandbox, &sandbox.file("open.txt"), VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, vim.pid())).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    vim.terminal.wait_for_text("+a", TIMEOUT);
    vim.run("quit");
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    wait_for_no_announcement(&sandbox);
}
