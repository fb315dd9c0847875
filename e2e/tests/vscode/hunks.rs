//! Single hunks: by lens, by quick fix, by VS Code's own arrow, and undone.

use std::fmt::Write as _;

use alongside_e2e::Capability;
use serde_json::json;

use crate::case::{Case, vscode_proves};

/// Numbered lines, some of them changed.
pub(crate) fn lines(count: usize, is_changed: impl Fn(usize) -> bool) -> String {
    let mut text = String::new();
    for number in 1..=count {
        let word = if is_changed(number) { "changed" } else { "line" };
        let _ = writeln!(text, "{word} {number}");
    }
    text
}

#[tokio::test]
async fn hunk_is_rejected_by_lens_quick_fix_and_arrow_and_undone() {
    let case = Case::new();
    let path = case.write("a.txt", &lines(20, |_| false));
    let window = case.open();
    let mut agent = case.agent().await;
    agent.propose(&path, &lines(20, |number| number % 5 == 3)).await;
    window.show_review();
    window.wait_for_states(&["Accepted"; 4]);

    window.click_lens("Reject hunk", 0);
    window.wait_for_states(&["Rejected", "Accepted", "Accepted", "Accepted"]);
    window.wait_for_draft_line("line 3");

    window.call("clickDraft", &json!({"text": "changed 8"}));
    window.call("codeAction", &json!({"title": "Reject hunk"}));
    window.wait_for_states(&["Rejected", "Rejected", "Accepted", "Accepted"]);
    window.wait_for_draft_line("line 8");

    window.call("revertArrow", &json!({"text": "changed 13"}));
    window.wait_for_states(&["Rejected", "Rejected", "Rejected", "Accepted"]);
    window.call("clickDraft", &json!({"text": "line 13"}));
    window.press("Control+Z");
    window.wait_for_states(&["Rejected", "Rejected", "Accepted", "Accepted"]);
    window.wait_for_draft_line("changed 13");

    window.call("revertArrow", &json!({"text": "changed 18"}));
    window.wait_for_states(&["Rejected", "Rejected", "Accepted", "Rejected"]);
    window.call("clickDraft", &json!({"text": "line 3"}));
    window.command("Alongside: Accept Hunk");
    window.wait_for_states(&["Accepted", "Rejected", "Accepted", "Rejected"]);
    let accepted = window.accept(&mut agent).await;
    assert_eq!(accepted, lines(20, |number| number == 3 || number == 13));
    vscode_proves(Capability::Hunk);
}
