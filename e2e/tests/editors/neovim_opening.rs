//! How a proposed change appears in a real Neovim: the option `open`.

use alongside_e2e::{Sandbox, TIMEOUT, Terminal, editor, plugin};

use crate::agent::{Agent, announced, discovery_files, wait_for_no_announcement};
use crate::nvim::Neovim;

const DEFAULT: &str = "let g:alongside = {}";
const VIEW: &str = "let g:alongside = {'open': 'view'}";

/// The windows in the current tab that are not floating.
const WINDOWS: &str = "len(filter(nvim_tabpage_list_wins(0), {_, w -> nvim_win_get_config(w).relative == ''}))";

/// Whether the notice in the corner contains a text.
fn notice(text: &str) -> String {
    format!(
        "match(mapnew(filter(nvim_tabpage_list_wins(0), {{_, w -> nvim_win_get_config(w).relative == 'editor'}}), \
         {{_, w -> getbufline(winbufnr(w), 1)[0]}}), '{text}') >= 0"
    )
}

/// Whether the diff to the side contains a line.
fn diff_shows(line: &str) -> String {
    format!(
        "match(mapnew(filter(range(1, winnr('$')), {{_, w -> bufname(winbufnr(w)) =~# ' (diff)$'}}), \
         {{_, w -> join(getbufline(winbufnr(w), 1, '$'), ';')}}), '{line}') >= 0"
    )
}

#[tokio::test]
async fn change_opens_to_the_side_of_a_terminal_without_taking_the_focus() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let terminal = Terminal::open(&sandbox, "neovim", &sandbox.workspace(), &[]);
    terminal.type_line(&format!(
        "'{}' --clean --cmd 'set runtimepath^={}'",
        editor("nvim").display(),
        plugin("neovim").display()
    ));
    let announcement = alongside_e2e::eventually(TIMEOUT, || discovery_files(&sandbox).pop()).expect("announced");
    let name = announcement.to_string_lossy().into_owned();
    let pid = name
        .split('-')
        .rev()
        .nth(1)
        .and_then(|pid| pid.parse().ok())
        .expect("a PID");
    let agent = Agent::connect(&announced(&sandbox, pid)).await;
    terminal.type_line(":terminal bash --norc --noprofile");
    terminal.type_text("i");
    terminal.wait_for_text("-- TERMINAL --", TIMEOUT);
    terminal.type_text("echo before");
    terminal.wait_for_text("echo before", TIMEOUT);
    agent.propose(&path, "two\n").await;
    terminal.wait_for_text("+two", TIMEOUT);
    terminal.type_line(" and after");
    terminal.wait_for("the output of the shell", TIMEOUT, |screen| {
        screen
            .lines()
            .any(|line| line.trim_start().starts_with("before and after"))
    });
    terminal.wait_for("the diff and its key", TIMEOUT, |screen| {
        screen.contains("-- TERMINAL --") && screen.contains("-one") && screen.contains("<F8>")
    });
    terminal.press("F8");
    terminal.wait_for("the review in its tab", TIMEOUT, |screen| {
        !screen.contains("-- TERMINAL --") && screen.contains("a.txt (review)") && screen.contains("a.txt (file)")
    });
    agent.withdraw(&path).await;
    terminal.wait_for("the shell alone", TIMEOUT, |screen| {
        screen.contains("before and after") && !screen.contains("(review)")
    });
}

#[tokio::test]
async fn quiet_user_sees_the_change_and_a_typing_one_a_notice() {
    let sandbox = Sandbox::new();
    let (one, other) = (sandbox.write("one.txt", "1\n"), sandbox.write("other.txt", "1\n"));
    let neovim = Neovim::start_with(&sandbox, DEFAULT);
    let agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    let window = neovim.eval("win_getid()");
    agent.propose(&one, "2\n").await;
    neovim.wait_for(&diff_shows("+2"));
    assert_eq!(neovim.eval("win_getid()"), window, "it does not take the focus");
    agent.withdraw(&one).await;
    neovim.wait_for(&format!("{WINDOWS} == 1"));

    neovim.eval("timer_start(10, {-> feedkeys('x', 't')}, {'repeat': -1})");
    neovim.press("i");
    neovim.wait_for("mode() == 'i' && getline(1) =~ 'xx'");
    agent.propose(&other, "2\n").await;
    neovim.wait_for(&notice("other.txt to review: <F8>"));
    assert_eq!(neovim.eval(WINDOWS), "1");
    neovim.wait_for("mode() == 'i' && execute('messages') =~ 'other.txt.*review with <F8>'");
    neovim.eval("timer_stopall()");
    agent.withdraw(&other).await;
    neovim.wait_for(&format!("!({})", notice("review")));
}

#[tokio::test]
async fn several_changes_share_one_view_and_the_key_reaches_the_next() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start_with(&sandbox, VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        agent.propose(&sandbox.file(name), &format!("text of {name}\n")).await;
    }
    neovim.wait_for(&notice("2 changes to review"));
    neovim.wait_for(&format!("{WINDOWS} == 2 && {}", diff_shows("+text of a.txt")));
    // Closed by the agent: the next one follows.
    agent.withdraw(&sandbox.file("a.txt")).await;
    neovim.wait_for(&format!("{WINDOWS} == 2 && {}", diff_shows("+text of b.txt")));
    neovim.press("<F8>");
    neovim.wait_for("&buftype == 'acwrite' && bufname() =~ 'b.txt (review)$'");
    assert_eq!(
        neovim.eval(&format!("tabpagenr('$') . {WINDOWS}")),
        "22",
        "the tab replaces the diff"
    );
    neovim.press("<F8>");
    neovim.wait_for("&buftype == 'acwrite' && bufname() =~ 'c.txt (review)$'");
    neovim.press("<F8>");
    neovim.wait_for("&buftype == 'acwrite' && bufname() =~ 'b.txt (review)$'");
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! write");
        })
        .await;
    assert_eq!(decision["params"]["content"], "text of b.txt\n");
}

#[tokio::test]
async fn closed_view_leaves_the_change_pending_and_a_withdrawn_one_the_layout() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let neovim = Neovim::start_with(&sandbox, VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    neovim.run("split | resize 5 | vsplit | vertical resize 20");
    let layout = neovim.eval("winrestcmd() . win_getid()");
    neovim.press("v");
    neovim.wait_for("mode() == 'v'");
    agent.propose(&path, "2\n").await;
    neovim.wait_for(&format!("{WINDOWS} == 4"));
    agent.withdraw(&path).await;
    neovim.wait_for(&format!("{WINDOWS} == 3"));
    assert_eq!(neovim.eval("mode()"), "v", "a selection stays");
    assert_eq!(neovim.eval("winrestcmd() . win_getid()"), layout);

    agent.propose(&path, "3\n").await;
    neovim.wait_for(&diff_shows("+3"));
    neovim.run("only");
    neovim.wait_for(&notice("a.txt to review"));
    assert_eq!(neovim.eval("len(v:lua.require'alongside.reviews'.pending())"), "1");
    neovim.press("<F8>");
    neovim.wait_for("&buftype == 'acwrite' && &diff");
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! AlongsideReject");
        })
        .await;
    assert_eq!(decision["method"], "ide/diffRejected");
}

#[tokio::test]
async fn decision_is_made_in_the_view_too() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let neovim = Neovim::start_with(&sandbox, VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    agent.propose(&path, "2\n").await;
    neovim.wait_for(&diff_shows("+2"));
    neovim.press("<C-w>b");
    neovim.wait_for("bufname() =~ 'a.txt (diff)$'");
    agent.propose(&path, "3\n").await;
    neovim.wait_for(&diff_shows("+3"));
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! AlongsideAccept");
        })
        .await;
    assert_eq!(decision["params"]["content"], "3\n");
    neovim.wait_for(&format!("{WINDOWS} == 1"));
}

#[tokio::test]
async fn command_being_typed_is_finished_before_a_window_opens() {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let neovim = Neovim::start_with(&sandbox, VIEW);
    let agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    neovim.press(":let typed = 'yes");
    neovim.wait_for("mode() == 'c'");
    agent.propose(&path, "2\n").await;
    neovim.wait_for(&notice("a.txt to review"));
    assert_eq!(neovim.eval(WINDOWS), "1");
    neovim.press("'<CR>");
    neovim.wait_for(&format!("{WINDOWS} == 2 && get(g:, 'typed', '') == 'yes'"));
}

#[tokio::test]
async fn focus_leaves_insert_mode_and_only_the_first_change_takes_it() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start_with(&sandbox, "let g:alongside = {'open': 'focus'}");
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    neovim.press("itext");
    neovim.wait_for("getline(1) == 'text'");
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    neovim.wait_for("bufname() =~ 'a.txt (review)$' && mode() == 'n'");
    agent.propose(&sandbox.file("b.txt"), "b\n").await;
    neovim.wait_for(&notice("b.txt to review"));
    let decision = agent
        .decision_by(|| {
            let _ = neovim.run("silent! AlongsideAccept");
        })
        .await;
    assert_eq!(decision["params"]["content"], "a\n");
    // A second `:w` must not accept the next one.
    neovim.wait_for(&diff_shows("+b"));
    assert_eq!(neovim.eval("tabpagenr('$') . getline(1)"), "1text");
}

#[tokio::test]
async fn only_the_neovim_of_the_agent_opens_a_view() {
    let sandbox = Sandbox::new();
    let (one, other) = (Neovim::start_with(&sandbox, VIEW), Neovim::start_with(&sandbox, VIEW));
    let agent = Agent::connect(&announced(&sandbox, other.pid())).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    other.wait_for(&diff_shows("+a"));
    assert_eq!(
        one.eval("winnr('$') . len(v:lua.require'alongside.reviews'.pending())"),
        "10"
    );
}

#[tokio::test]
async fn review_buffers_end_in_the_file_name_and_never_collide() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start(&sandbox);
    let agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    for (number, name) in ["one/a.rs", "other/a.rs"].iter().enumerate() {
        agent.propose(&sandbox.file(name), "fn main() {}\n").await;
        neovim.wait_for(&format!(
            "len(v:lua.require'alongside.reviews'.pending()) == {}",
            number + 1
        ));
        neovim.press("<F8>");
        neovim.wait_for(&format!(
            "bufname() =~ '^alongside://.*{name} (review)$' && &syntax == 'rust'"
        ));
    }
    assert_eq!(neovim.eval("tabpagenr('$')"), "3");
}

#[tokio::test]
async fn quitting_the_last_other_window_exits() {
    let sandbox = Sandbox::new();
    let neovim = Neovim::start_with(&sandbox, VIEW);
    let mut agent = Agent::connect(&announced(&sandbox, neovim.pid())).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    neovim.wait_for(&diff_shows("+a"));
    neovim.quit_by("<Cmd>quit<CR>");
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    wait_for_no_announcement(&sandbox);
}
