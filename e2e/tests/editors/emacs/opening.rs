//! How a proposed change appears in Emacs: `alongside-open`.

use alongside_e2e::{Sandbox, TIMEOUT};

use super::driver::{Emacs, Version, for_both_versions};
use crate::agent::{Agent, announced};

for_both_versions!(
    change_opens_to_the_side_of_a_terminal_without_taking_the_focus,
    quiet_user_sees_the_change_and_a_typing_one_a_message,
    several_changes_share_one_view_and_the_key_reaches_the_next,
    closed_view_leaves_the_change_pending_and_a_withdrawn_one_the_layout,
    decision_is_made_in_the_view_too,
    minibuffer_is_left_before_a_window_opens,
    only_the_first_change_takes_the_focus,
);

async fn change_opens_to_the_side_of_a_terminal_without_taking_the_focus(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let emacs = Emacs::start_opening(&sandbox, version, "auto");
    let agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.eval("(progn (ansi-term \"/bin/sh\") nil)");
    emacs.wait_for("(derived-mode-p 'term-mode)");
    // A shell drops what is typed before it is ready.
    emacs.terminal.wait_for_text("shell$", TIMEOUT);
    emacs.terminal.type_text("echo before");
    emacs.terminal.wait_for_text("echo before", TIMEOUT);
    agent.propose(&path, "two\n").await;
    emacs.terminal.wait_for_text("+two", TIMEOUT);
    emacs.terminal.type_line(" and after");
    emacs
        .terminal
        .wait_for("the output of the shell and the diff", TIMEOUT, |screen| {
            screen.lines().any(|line| line.starts_with("before and after"))
                && screen.contains("-one")
                && screen.contains("<f8>")
        });
    emacs.press(&["F8"]);
    emacs.wait_for("(and alongside-review--view (null (alongside-preview-id)))");
    agent.withdraw(&path).await;
    emacs.wait_for("(and (null alongside-review--shown) (= 1 (count-windows)) (derived-mode-p 'term-mode))");
}

async fn quiet_user_sees_the_change_and_a_typing_one_a_message(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let emacs = Emacs::start_opening(&sandbox, version, "auto");
    let agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&sandbox.file("mine.txt"));
    emacs.wait_for("(and (current-idle-time) (> (float-time (current-idle-time)) 2))");
    agent.propose(&path, "two\n").await;
    emacs.terminal.wait_for_text("+two", TIMEOUT);
    emacs.terminal.type_text("typed");
    emacs.wait_for("(equal (buffer-string) \"typed\")");
    agent.withdraw(&path).await;
    emacs.wait_for("(= 1 (count-windows))");

    // Emacs is busy, as it is while keys arrive.
    emacs.eval("(progn (advice-add 'current-idle-time :override #'ignore) nil)");
    agent.propose(&path, "three\n").await;
    emacs
        .terminal
        .wait_for("a message and the mode line", TIMEOUT, |screen| {
            screen.contains("review with <f8>") && screen.contains("[1 to review]")
        });
    assert_eq!(emacs.eval("(count-windows)"), "1");
}

async fn several_changes_share_one_view_and_the_key_reaches_the_next(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start_opening(&sandbox, version, "view");
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        agent.propose(&sandbox.file(name), &format!("text of {name}\n")).await;
    }
    emacs
        .terminal
        .wait_for("one change and the number of all", TIMEOUT, |screen| {
            screen.contains("+text of a.txt") && screen.contains("[3 to review]")
        });
    assert_eq!(emacs.eval("(count-windows)"), "2");
    agent.withdraw(&sandbox.file("a.txt")).await;
    emacs.terminal.wait_for_text("+text of b.txt", TIMEOUT);
    emacs.press(&["F8"]);
    let shows = |name: &str| {
        format!(
            "(and alongside-review--view (equal \"{name}\" (file-name-nondirectory (alongside-view-path alongside-review--view))))"
        )
    };
    emacs.wait_for(&shows("b.txt"));
    emacs.press(&["F8"]);
    emacs.wait_for(&shows("c.txt"));
    emacs.press(&["F8"]);
    emacs.wait_for(&shows("b.txt"));
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "text of b.txt\n");
}

async fn closed_view_leaves_the_change_pending_and_a_withdrawn_one_the_layout(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let emacs = Emacs::start_opening(&sandbox, version, "view");
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.eval("(progn (split-window nil 7) (split-window nil 33 'right) nil)");
    let layout = "(list (selected-window) (mapcar #'window-edges (window-list)))";
    let before = emacs.eval(layout);
    agent.propose(&path, "2\n").await;
    emacs.wait_for("(= 4 (count-windows))");
    agent.withdraw(&path).await;
    emacs.wait_for("(= 3 (count-windows))");
    assert_eq!(emacs.eval(layout), before);

    agent.propose(&path, "3\n").await;
    emacs.wait_for("(= 4 (count-windows))");
    emacs.eval("(progn (select-window (get-buffer-window alongside-preview--buffer)) nil)");
    emacs.press(&["q"]);
    emacs.wait_for("(and (= 3 (count-windows)) (= 1 (length (alongside-review-pending))))");
    emacs.press(&["F8"]);
    emacs.wait_for("alongside-review--view");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-k"])).await;
    assert_eq!(decision["method"], "ide/diffRejected");
}

async fn decision_is_made_in_the_view_too(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "1\n");
    let emacs = Emacs::start_opening(&sandbox, version, "view");
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&path, "2\n").await;
    emacs.terminal.wait_for_text("+2", TIMEOUT);
    agent.propose(&path, "3\n").await;
    emacs.terminal.wait_for_text("+3", TIMEOUT);
    emacs.press(&["C-x", "o"]);
    emacs.wait_for("(alongside-preview-here)");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "3\n");
    emacs.wait_for("(= 1 (count-windows))");
}

async fn minibuffer_is_left_before_a_window_opens(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start_opening(&sandbox, version, "view");
    let agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.press(&["M-x"]);
    emacs.terminal.type_text("set-mark-comm");
    emacs.terminal.wait_for_text("M-x set-mark-comm", TIMEOUT);
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    emacs.terminal.wait_for_text("[1 to review]", TIMEOUT);
    emacs.terminal.type_text("and");
    emacs.terminal.wait_for("the command and no window", TIMEOUT, |screen| {
        screen.contains("M-x set-mark-command") && !screen.contains("+a")
    });
    emacs.press(&["Enter"]);
    emacs.terminal.wait_for_text("+a", TIMEOUT);
    emacs.wait_for("(= 2 (count-windows))");
}

async fn only_the_first_change_takes_the_focus(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start_opening(&sandbox, version, "focus");
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    emacs.wait_for("alongside-review--view");
    agent.propose(&sandbox.file("b.txt"), "b\n").await;
    emacs.terminal.wait_for_text("[2 to review]", TIMEOUT);
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "a\n");
    // A second C-c C-c must not accept the next one.
    emacs.terminal.wait_for_text("+b", TIMEOUT);
    emacs.wait_for("(and (null alongside-review--shown) (not (alongside-preview-here)))");
}
