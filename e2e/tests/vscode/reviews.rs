//! Whole changes: shown, edited, accepted and rejected.

use std::fs;
use std::time::Duration;

use alongside_e2e::{Capability, TIMEOUT, eventually, never_during};
use serde_json::json;

use crate::case::{Case, decision_by, vscode_proves};

/// Long enough for everything that VS Code and the extension do later.
const A_WHILE: Duration = Duration::from_millis(1500);

const GREETING: &str = "\
/// What the program says first.
pub fn greeting(name: &str) -> String {
    let mut text = String::new();
    text.push_str(\"Hello, \");
    text.push_str(name);
    text
}

pub fn farewell() -> &'static str {
    \"Bye\"
}
";
const TESTS: &str = "\
use greeting::greeting;

#[test]
fn greets() {
    assert_eq!(greeting(\"Ada\"), \"Hello, Ada\");
}
";

/// A file, its text, the proposal, and a line of the draft to type after.
const ODD_TEXTS: [(&str, Option<&str>, &str, &str); 6] = [
    (
        "mark.txt",
        Some("\u{feff}one\r\ntwo\r\n"),
        "\u{feff}one\r\n2\r\n",
        "one",
    ),
    ("mixed.txt", Some("a\r\nb\nc\r\nd\n"), "a\r\nB\nc\r\nd\nend\n", "end"),
    ("carriage.txt", Some("a\rb\nc\n"), "a\rb\nC\rd\n", "C"),
    ("unfinished.txt", Some("one\ntwo"), "one\n2\nthree", "three"),
    ("crab.txt", Some("🦀 one\nx\n"), "🦀🦀 one\nX\n", "🦀🦀 one"),
    ("new.txt", None, "\u{feff}fresh\r\nfile 🦀\rand\0more", "fresh"),
];

#[tokio::test]
async fn text_is_accepted_byte_for_byte_and_with_edits() {
    let case = Case::new();
    let window = case.open();
    let mut agent = case.agent().await;
    for (name, text, proposal, line) in ODD_TEXTS {
        let path = match text {
            Some(text) => case.write(name, text),
            None => case.path(name),
        };
        agent.propose(&path, proposal).await;
        window.show_review();
        assert_eq!(window.accept(&mut agent).await, proposal, "{name}");

        agent.propose(&path, proposal).await;
        window.show_review();
        window.type_after(line, "!");
        let wanted = proposal.replacen(line, &format!("{line}!"), 1);
        assert_eq!(window.accept(&mut agent).await, wanted, "{name}, edited");
    }
    assert_eq!(window.ask("dialogs"), json!([]));
    vscode_proves(Capability::Edit);
}

#[tokio::test]
async fn change_is_rejected_by_its_icon_and_by_closing_its_tab() {
    let case = Case::new();
    let path = case.write("a.txt", "one\ntwo\n");
    let window = case.open();
    let mut agent = case.agent().await;
    agent.propose(&path, "one\n2\n").await;
    window.show_review();
    let icon = json!({"label": "Reject Change"});
    let decision = decision_by(&mut agent, || {
        window.call("titleAction", &icon);
    })
    .await;
    assert_eq!(decision["method"], "ide/diffRejected", "{decision}");
    window.ask("noDiff");

    agent.propose(&path, "one\n2\n").await;
    window.show_review();
    window.type_after("one", " edited");
    window.ask("closeActiveTab");
    let decision = agent.decision().await;
    assert_eq!(decision["method"], "ide/diffRejected", "{decision}");
    assert_eq!(
        window.ask("dialogs"),
        json!([]),
        "an edited draft is not a file to save"
    );

    agent.propose(&path, "one\n2\n").await;
    window.show_review();
    agent.withdraw(&path).await;
    window.ask("noDiff");
    assert_eq!(fs::read_to_string(&path).expect("read the file"), "one\ntwo\n");

    agent.propose(&path, "one\n2\n").await;
    window.show_review();
    let icon = json!({"label": "Accept Change"});
    let decision = decision_by(&mut agent, || {
        window.call("titleAction", &icon);
    })
    .await;
    assert_eq!(decision["params"]["content"], "one\n2\n", "{decision}");
    vscode_proves(Capability::Review);
}

#[tokio::test]
async fn moved_tab_and_automatic_saving_decide_nothing() {
    let case = Case::new();
    case.write_settings(&json!({"files.autoSave": "afterDelay", "files.autoSaveDelay": 50}));
    let path = case.write("a.txt", "one\ntwo\n");
    let window = case.open();
    let mut agent = case.agent().await;
    window.open_file(&path, 1, 1);
    window.type_text("saved ");
    let saved = eventually(TIMEOUT, || {
        (fs::read_to_string(&path).ok()? == "saved one\ntwo\n").then_some(())
    });
    assert!(saved.is_some(), "the setting has no effect");

    agent.propose(&path, "saved one\n2\n").await;
    window.show_review();
    window.type_after("2", " and more");
    window.command("View: Move Editor into Next Group");
    window.wait_for_draft_line("2 and more");
    assert!(never_during(A_WHILE, || case.pending() == 0), "it is no longer pending");
    let tabs = window.ask("tabs");
    let mut tabs = tabs.as_array().expect("tabs are a list").iter();
    assert!(tabs.all(|tab| tab["dirty"] == false), "{tabs:?}");
    window.type_after("2 and more", ".");
    assert_eq!(window.accept(&mut agent).await, "saved one\n2 and more.\n");
}

#[tokio::test]
async fn all_changes_are_reviewed_in_one_editor() {
    let case = Case::new();
    let one = case.write("src/greeting.rs", GREETING);
    let other = case.write("tests/greeting.rs", TESTS);
    let body =
        "    let mut text = String::new();\n    text.push_str(\"Hello, \");\n    text.push_str(name);\n    text\n";
    let greeting = GREETING.replace(body, "    format!(\"Hello, {name}\")\n");
    let proposal = greeting.replace("\"Bye\"", "\"Goodbye\"");
    let tests = TESTS
        .replace("\"Ada\"", "\"Grace\"")
        .replace("Hello, Ada", "Hello, Grace");
    let window = case.open();
    let mut agent = case.agent().await;
    agent.propose(&one, &proposal).await;
    window.show_review();
    window.wait_for_states(&["Accepted", "Accepted"]);
    window.click_lens("Reject hunk", 1);
    window.wait_for_states(&["Accepted", "Rejected"]);
    window.picture("review");

    agent.propose(&other, &tests).await;
    window.call("statusWith", &json!({"text": "2 changes"}));
    window.command("Alongside: Show All Changes");
    window.call("diffs", &json!({"count": 2}));
    // The rejected hunk is an unchanged region, which VS Code hides here.
    window.wait_for_states(&["Accepted", "Accepted"]);
    window.click_lens("Reject hunk", 1);
    window.wait_for_states(&["Accepted", "Rejected"]);
    window.picture("all-changes");
    let decided = [(&one, greeting.as_str(), &["Rejected"][..]), (&other, TESTS, &[][..])];
    for (path, text, left) in decided {
        let decision = decision_by(&mut agent, || window.click_lens("Accept change", 0)).await;
        assert_eq!(decision["params"]["filePath"], json!(path), "{decision}");
        assert_eq!(decision["params"]["content"], text, "{decision}");
        window.wait_for_states(left);
    }
}
