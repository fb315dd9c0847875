//! Reviewing changes in Emacs.

use std::fs;
use std::process::Command;

use alongside_e2e::{Capability, Sandbox, TIMEOUT, alongside, eventually};

use super::driver::{Emacs, Version, for_both_versions};
use crate::agent::{Agent, announced};

for_both_versions!(
    edited_draft_keeps_untouched_bytes,
    mixed_line_endings_and_missing_newline_survive,
    key_rejects_and_closing_the_view_keeps_the_change_pending,
    single_hunks_are_decided_by_our_keys_and_by_ediff_keys,
    proposal_is_compared_with_unsaved_text,
    large_unsaved_text_is_reported,
    conflict_is_shown_and_needs_confirmation,
    buffer_is_reverted_when_the_agent_writes,
    several_changes_are_listed_and_counted_in_the_mode_line,
    nothing_steals_the_focus,
    edits_and_decisions_from_elsewhere_are_shown,
    revision_replaces_the_open_draft,
    view_can_be_reopened,
    empty_draft_needs_a_prefix_argument,
);

async fn edited_draft_keeps_untouched_bytes(version: Version) {
    let sandbox = Sandbox::new();
    let base = "\u{feff}one\r\ntwo\r\nthree";
    let path = sandbox.write("dir with space/ünï.txt", base);
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&sandbox.write("other.txt", "other\n"));
    agent.propose(&path, "\u{feff}one\r\nTWO 🦀\r\nthree").await;
    emacs.show_review();
    emacs.go_to_draft();
    assert_eq!(
        emacs.eval("(equal (buffer-string) \"one\\nTWO 🦀\\nthree\")"),
        "t",
        "no carriage return is shown"
    );
    emacs.press(&["M-<", "C-n", "C-e"]);
    emacs.terminal.type_text(" edited");
    emacs.wait_for("(equal (buffer-string) \"one\\nTWO 🦀 edited\\nthree\")");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["method"], "ide/diffAccepted");
    assert_eq!(decision["params"]["content"], "\u{feff}one\r\nTWO 🦀 edited\r\nthree");
    emacs.wait_for_no_view();
    assert_eq!(emacs.eval("(buffer-name)"), "\"other.txt\"");
    assert_eq!(
        fs::read_to_string(&path).expect("read"),
        base,
        "only the agent writes the file"
    );
    version.proves(Capability::Edit);
}

async fn mixed_line_endings_and_missing_newline_survive(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    for text in ["a\r\nb\nc\r\n", "\n", "a\n\n", "\u{feff}", "a\rb", "a\r\nb\r\n"] {
        let path = sandbox.file("new.txt");
        agent.propose(&path, text).await;
        emacs.show_review();
        let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
        assert_eq!(decision["params"]["content"], text);
        emacs.wait_for_no_view();
    }
    // With every hunk rejected, the draft is the file's text, whatever the proposal's line endings.
    let base = "\u{feff}one\r\ntwo\r\nthree";
    let path = sandbox.write("mixed.txt", base);
    agent.propose(&path, "ONE\ntwo\nTHREE\n").await;
    emacs.show_review();
    emacs.press(&["k", "k"]);
    emacs.wait_for(
        "(equal (alongside-review--draft (cdar alongside-review--shown)) \"\\ufeffone\\r\\ntwo\\r\\nthree\")",
    );
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], base);
}

async fn key_rejects_and_closing_the_view_keeps_the_change_pending(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&path, "two\n").await;
    emacs.show_review();
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-k"])).await;
    assert_eq!(decision["method"], "ide/diffRejected");
    emacs.wait_for_no_view();

    agent.propose(&path, "three\n").await;
    emacs.show_review();
    emacs.go_to_draft();
    emacs.terminal.type_text("my ");
    emacs.wait_for("(equal (buffer-string) \"my three\\n\")");
    emacs.eval("(progn (select-window (get-buffer-window (alongside-view-control alongside-review--view))) nil)");
    emacs.press(&["q", "y"]);
    emacs.wait_for_no_view();
    // The same when the buffer is killed; the edit is kept.
    emacs.show_review();
    emacs.go_to_draft();
    emacs.wait_for("(equal (buffer-string) \"my three\\n\")");
    emacs.press(&["C-x", "k", "Enter"]);
    emacs.wait_for_no_view();
    emacs.show_review();
    emacs.go_to_draft();
    let decision = agent.decision_by(|| emacs.press(&["C-x", "C-s"])).await;
    assert_eq!(decision["params"]["content"], "my three\n");
    emacs.wait_for_no_view();
    version.proves(Capability::Review);
}

async fn single_hunks_are_decided_by_our_keys_and_by_ediff_keys(version: Version) {
    let sandbox = Sandbox::new();
    let lines = |changed: &[usize]| -> String {
        let line = |number: usize| {
            if changed.contains(&number) {
                format!("new {number}\n")
            } else {
                format!("{number}\n")
            }
        };
        (1..=30).map(line).collect()
    };
    let path = sandbox.write("a.txt", &lines(&[]));
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&path, &lines(&[3, 12, 25])).await;
    // In the control window: accept the first, reject the second.
    emacs.show_review();
    emacs.wait_for("(= ediff-current-difference 0)");
    emacs.press(&["y"]);
    emacs.wait_for("(= ediff-current-difference 1)");
    emacs.press(&["k"]);
    emacs.wait_for("(= ediff-current-difference 2)");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], lines(&[3, 25]));
    emacs.wait_for_no_view();

    // Ediff's own keys: copy the file's text twice, then undo the last copy.
    agent.propose(&path, &lines(&[3, 12])).await;
    emacs.show_review();
    emacs.press(&["a", "n", "a", "r", "b"]);
    let draft = "(alongside-review--string (alongside-view-buffer (cdar alongside-review--shown)))";
    emacs.wait_for(&format!("(equal {draft} {:?})", lines(&[12])));
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], lines(&[12]));
    emacs.wait_for_no_view();

    // In the draft: the hunk at point; a rejected hunk can be accepted again.
    agent.propose(&path, &lines(&[3, 12, 25])).await;
    emacs.show_review();
    emacs.go_to_draft();
    emacs.eval("(progn (goto-char (point-min)) (forward-line 24) nil)");
    emacs.press(&["C-c", "C-r"]);
    emacs.wait_for(&format!("(equal (buffer-string) {:?})", lines(&[3, 12])));
    emacs.eval("(progn (goto-char (point-min)) (forward-line 11) nil)");
    emacs.press(&["C-c", "C-r"]);
    emacs.wait_for(&format!("(equal (buffer-string) {:?})", lines(&[3])));
    emacs.eval("(progn (goto-char (point-min)) (forward-line 11) nil)");
    emacs.press(&["C-c", "C-a"]);
    emacs.wait_for(&format!("(equal (buffer-string) {:?})", lines(&[3, 12])));
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], lines(&[3, 12]));
    version.proves(Capability::Hunk);
}

async fn proposal_is_compared_with_unsaved_text(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "saved\r\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&path);
    emacs.press(&["M->"]);
    emacs.terminal.type_text("unsaved");
    emacs.wait_for("(and (equal (buffer-string) \"saved\\nunsaved\") (alongside-context-reported-p))");
    emacs.wait_until_handled();
    agent.propose(&path, "saved\r\nunsaved\r\nproposed\r\n").await;
    emacs.show_review();
    emacs.wait_for(
        "(equal \"saved\\nunsaved\" (alongside-review--string (alongside-view-file (cdar alongside-review--shown))))",
    );
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "saved\r\nunsaved\r\nproposed\r\n");
    emacs.wait_for_no_view();
    emacs.wait_for("(and (equal (buffer-string) \"saved\\nunsaved\") (buffer-modified-p))");
    // After a revert, nothing is unsaved.
    emacs.eval("(progn (revert-buffer t t) nil)");
    emacs.wait_for("(alongside-context-reported-p)");
    emacs.wait_until_handled();
    agent.propose(&path, "other\r\n").await;
    emacs.show_review();
    emacs.wait_for(
        "(equal \"saved\\n\" (alongside-review--string (alongside-view-file (cdar alongside-review--shown))))",
    );
}

async fn large_unsaved_text_is_reported(version: Version) {
    let sandbox = Sandbox::new();
    let lines = "line of a large file\r\n".repeat(50_000);
    let path = sandbox.write("large.txt", &lines);
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&path);
    emacs.terminal.type_text("mine ");
    emacs.wait_for("(and (string-prefix-p \"mine line\" (buffer-string)) (alongside-context-reported-p))");
    emacs.wait_until_handled();
    let proposal = format!("mine {lines}and one more\r\n");
    agent.propose(&path, &proposal).await;
    emacs.show_review();
    assert_eq!(
        emacs.eval("ediff-number-of-differences"),
        "1",
        "the unsaved text is not a difference"
    );
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert!(
        decision["params"]["content"] == proposal.as_str(),
        "the text came back changed"
    );
}

async fn conflict_is_shown_and_needs_confirmation(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\ntwo\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&path, "ONE\ntwo\n").await;
    emacs.show_review();
    fs::write(&path, "1\ntwo\n").expect("write");
    emacs.terminal.wait_for_text("conflicts: 1", TIMEOUT);
    emacs.go_to_draft();
    emacs.press(&["C-c", "C-c"]);
    emacs
        .terminal
        .wait_for_text("Accept exactly what is in the buffer?", TIMEOUT);
    emacs.press(&["n"]);
    emacs.wait_for("(not (active-minibuffer-window))");
    // An edit resolves the conflict.
    emacs.press(&["M-<"]);
    emacs.terminal.type_text("both ");
    emacs.terminal.wait_for("no conflict", TIMEOUT, |screen| {
        screen.contains("both ") && !screen.contains("conflicts:")
    });
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    let content = decision["params"]["content"].as_str().expect("a text");
    assert!(content.starts_with("both "), "{content}");
    emacs.wait_for_no_view();
}

async fn buffer_is_reverted_when_the_agent_writes(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&path);
    agent.propose(&path, "two\n").await;
    emacs.show_review();
    agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    fs::write(&path, "two\n").expect("write as the agent does");
    emacs.wait_for_no_view();
    emacs.wait_for("(and (equal (buffer-string) \"two\\n\") (not (buffer-modified-p)))");
}

async fn several_changes_are_listed_and_counted_in_the_mode_line(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    for name in ["a.txt", "b.txt", "c.txt"] {
        agent.propose(&sandbox.file(name), name).await;
    }
    emacs.terminal.wait_for_text("Alongside[3 to review]", TIMEOUT);
    emacs.press(&["C-c", "a", "r"]);
    emacs.wait_for("(derived-mode-p 'alongside-list-mode)");
    let screen = emacs.terminal.screen();
    assert!(
        screen.contains("b.txt") && screen.contains("+1 −0, new file") && screen.contains("Gemini CLI 0.61.0"),
        "{screen}"
    );
    emacs.press(&["M-<"]);
    let decision = agent.decision_by(|| emacs.press(&["a"])).await;
    assert_eq!(decision["params"]["content"], "a.txt");
    emacs.wait_for("(= 2 (length (alongside-review-pending)))");
    emacs.wait_for("(not (string-search \"a.txt\" (buffer-string)))");
    emacs.press(&["M-<", "C-n", "Enter"]);
    emacs.wait_for("alongside-review--view");
    emacs.go_to_draft();
    emacs.wait_for("(equal (buffer-string) \"c.txt\")");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-k"])).await;
    assert_eq!(decision["method"], "ide/diffRejected");
    emacs.wait_for("(derived-mode-p 'alongside-list-mode)");
    let decision = agent
        .decision_by(|| {
            emacs.press(&["M-<", "K"]);
            emacs.press(&["y"]);
        })
        .await;
    assert_eq!(decision["method"], "ide/diffRejected");
    emacs.wait_for("(null (alongside-review-pending))");
}

async fn nothing_steals_the_focus(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&sandbox.write("mine.txt", ""));
    emacs.terminal.type_text("before ");
    agent.propose(&sandbox.file("new.txt"), "new\n").await;
    emacs.wait_for("(= 1 (length (alongside-review-pending)))");
    emacs.terminal.type_text("after");
    emacs.wait_for("(equal (buffer-string) \"before after\")");
    assert_eq!(emacs.eval("(count-windows)"), "1");

    // A view decided elsewhere closes without moving a user in another window.
    emacs.show_review();
    emacs.eval("(progn (select-window (split-window (get-buffer-window (alongside-view-file (cdar alongside-review--shown))))) (find-file \"elsewhere.txt\") nil)");
    diff(&sandbox, &["reject", "new.txt"]);
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    emacs.wait_for("(null alongside-review--shown)");
    emacs.terminal.type_text("on and on");
    emacs.wait_for("(equal (buffer-string) \"on and on\")");
    emacs.wait_for("(not (seq-some (lambda (b) (string-prefix-p \"*draft\" (buffer-name b))) (buffer-list)))");
    emacs.wait_for("(= 1 (count-windows))");
}

async fn edits_and_decisions_from_elsewhere_are_shown(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n2\n3\n4\n5\nsix\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&path, "ONE\n2\n3\n4\n5\nSIX\n").await;
    emacs.show_review();
    let better = sandbox.path("better");
    fs::write(&better, "ONE\n2\n3\n4\n5\nBETTER\n").expect("write");
    diff(
        &sandbox,
        &["edit", "a.txt", "--content-file", &better.to_string_lossy()],
    );
    let draft = "(alongside-review--string (alongside-view-buffer (cdar alongside-review--shown)))";
    emacs.wait_for(&format!("(equal {draft} \"ONE\\n2\\n3\\n4\\n5\\nBETTER\\n\")"));
    // The file changes under the review.
    fs::write(&path, "one\n2\n3\nfresh\n4\n5\nsix\n").expect("write");
    emacs.wait_for(&format!("(equal {draft} \"ONE\\n2\\n3\\nfresh\\n4\\n5\\nBETTER\\n\")"));
    emacs.wait_for(
        "(equal \"one\\n2\\n3\\nfresh\\n4\\n5\\nsix\\n\" (alongside-review--string (alongside-view-file (cdar alongside-review--shown))))",
    );
    // An edit here is accepted elsewhere.
    emacs.go_to_draft();
    emacs.press(&["M-<"]);
    emacs.terminal.type_text("MY ");
    emacs.wait_for("(and (null (alongside-view-timer alongside-review--view)) (zerop (alongside-view-sharing alongside-review--view)))");
    diff(&sandbox, &["accept", "a.txt"]);
    let decision = agent.decision().await;
    assert_eq!(decision["params"]["content"], "MY ONE\n2\n3\nfresh\n4\n5\nBETTER\n");
    emacs.wait_for_no_view();
    emacs.wait_for("(with-current-buffer \"*Messages*\" (string-search \"a.txt: accepted\" (buffer-string)))");
}

async fn revision_replaces_the_open_draft(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a.txt", "one\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&path, "two\n").await;
    emacs.show_review();
    emacs.go_to_draft();
    emacs.terminal.type_text("my ");
    emacs.wait_for("(equal (buffer-string) \"my two\\n\")");
    agent.propose(&path, "three\n").await;
    emacs.wait_for("(equal (buffer-string) \"three\\n\")");
    emacs.press(&["M-<"]);
    emacs.terminal.type_text("his ");
    emacs.wait_for("(equal (buffer-string) \"his three\\n\")");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "his three\n");
    emacs.wait_for_no_view();
}

async fn view_can_be_reopened(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&sandbox.write("mine.txt", "mine\n"));
    agent.propose(&sandbox.write("a 100%.txt", "one\n"), "two\n").await;
    emacs.show_review();
    emacs
        .terminal
        .wait_for_text("Gemini CLI 0.61.0 · C-c C-c to accept", TIMEOUT);
    emacs.eval("(progn (switch-to-buffer \"mine.txt\") (delete-other-windows) nil)");
    emacs.wait_for("(= 1 (count-windows))");
    emacs.press(&["C-c", "a", "r"]);
    emacs.wait_for("(and (= 3 (count-windows)) (eq (current-buffer) (alongside-view-control alongside-review--view)))");
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "two\n");
    emacs.wait_for_no_view();
    assert_eq!(emacs.eval("(buffer-name)"), "\"mine.txt\"");
}

async fn empty_draft_needs_a_prefix_argument(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&sandbox.write("a.txt", "one\n"), "two\n").await;
    emacs.show_review();
    emacs.go_to_draft();
    emacs.press(&["C-x", "h", "C-w"]);
    emacs.wait_for("(zerop (buffer-size))");
    let refused = eventually(TIMEOUT, || {
        emacs.press(&["C-c", "C-c"]);
        emacs.terminal.screen().contains("to accept anyway").then_some(())
    });
    assert!(refused.is_some(), "{}", emacs.terminal.screen());
    let decision = agent.decision_by(|| emacs.press(&["C-u", "C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "");
}

/// Runs `alongside diff`, as a user in another terminal.
fn diff(sandbox: &Sandbox, arguments: &[&str]) {
    let output = Command::new(alongside())
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(sandbox.workspace())
        .arg("diff")
        .args(arguments)
        .output()
        .expect("run alongside");
    assert!(output.status.success(), "{arguments:?}: {output:?}");
}
