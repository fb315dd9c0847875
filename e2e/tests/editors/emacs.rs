//! The plugin in a real Emacs, of both versions.

mod driver;

use std::fs;

use alongside_e2e::{PATIENCE, Sandbox, eventually};
use serde_json::json;

use crate::agent::{Agent, announced, wait_for_no_announcement};
use driver::{Emacs, Version, for_both_versions};

for_both_versions!(
    what_is_in_front_where_the_cursor_is_and_what_is_selected_reaches_agents,
    a_change_is_edited_and_accepted_and_what_was_not_touched_is_the_same_byte_for_byte,
);

async fn what_is_in_front_where_the_cursor_is_and_what_is_selected_reaches_agents(version: Version) {
    let sandbox = Sandbox::new();
    let path = sandbox.write("a b 'ü' #1%$.txt", "first\n🦀 second ü\nthird\n");
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&path);
    agent.sees(|file| file["path"] == json!(path)).await;
    emacs.press(&["C-n", "C-f", "C-f", "C-f"]);
    let cursor = json!({ "line": 2, "character": 5 });
    agent.sees(|file| file["cursor"] == cursor).await;
    emacs.press(&["C-Space", "M-f"]);
    agent.sees(|file| file["selectedText"] == "econd").await;
    emacs.press(&["C-g"]);
    agent.sees(|file| file.get("selectedText").is_none()).await;
    // Only a part of the file can be seen; the lines count from its beginning all the same.
    emacs.eval("(progn (goto-char (point-min)) (forward-line 1) (narrow-to-region (point) (point-max)) nil)");
    emacs.press(&["C-n"]);
    let cursor = json!({ "line": 3, "character": 1 });
    agent.sees(|file| file["cursor"] == cursor).await;
    emacs.press(&["C-x", "k", "Enter"]);
    agent.sees(serde_json::Value::is_null).await;
}

async fn a_change_is_edited_and_accepted_and_what_was_not_touched_is_the_same_byte_for_byte(version: Version) {
    let sandbox = Sandbox::new();
    let base = "\u{feff}one\r\ntwo\r\nthree";
    let path = sandbox.write("dir with space/ünï.txt", base);
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    emacs.open(&sandbox.write("other.txt", "other\n"));
    agent.propose(&path, "\u{feff}one\r\nTWO 🦀\r\nthree").await;
    emacs.show_review();
    emacs.go_to_proposal();
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
        "the agent writes the file, nobody else"
    );
}
