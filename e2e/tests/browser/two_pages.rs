//! Two pages on one change.

use alongside_e2e::{Companion, Sandbox};
use serde_json::json;

use crate::browser::{Scenario, login_link};
use crate::sdk_agent::SdkAgent;

#[test]
fn edits_show_in_both_pages_and_first_decision_wins() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("file.txt", "one\ntwo\nthree\nfour\nfive\n");
    let companion = Companion::start(&sandbox);
    let mut agent = SdkAgent::connect(&companion);
    agent.propose(&file, "1\ntwo\nthree\nfour\n5\n");
    let details = json!({
        "otherUrl": login_link(&companion),
        "edit": {"after": "5", "text": ", from the one page"},
        "answer": ", from the other page",
    });
    let scenario = Scenario::start(&sandbox, &companion, "two-pages", details);
    let result = scenario.finish().without_complaints();

    let last = "5, from the one page, from the other page";
    let lines = json!(["one", "two", "three", "four", last, ""]);
    assert_eq!(result["lines"], json!([lines, lines]));
    let states = json!(["rejected", "edited"]);
    assert_eq!(result["states"], json!([states, states]));
    let notice = result["notice"].as_str().unwrap_or_default();
    assert!(notice.contains("Accepted elsewhere."), "{notice}");
    assert_eq!(result["editable"], "false");
    assert_eq!(agent.accepted_text(&file), format!("one\ntwo\nthree\nfour\n{last}\n"));
}
