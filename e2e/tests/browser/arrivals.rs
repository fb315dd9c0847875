//! A new change must not disturb what the user is doing.

use alongside_e2e::{Companion, Sandbox};
use serde_json::json;

use crate::browser::Scenario;
use crate::sdk_agent::SdkAgent;

#[test]
fn second_change_moves_nothing_and_takes_no_focus() {
    let sandbox = Sandbox::new();
    let first = sandbox.write("first.txt", "one\ntwo\nthree\n");
    let second = sandbox.write("second.txt", "four\nfive\n");
    let companion = Companion::start(&sandbox);
    let mut agent = SdkAgent::connect(&companion);
    agent.propose(&first, "one\n2\nthree\n");
    let details = json!({
        "first": "first.txt",
        "second": "second.txt",
        "edit": {"after": "2", "text": ", edited", "more": " and more"},
    });
    let mut scenario = Scenario::start(&sandbox, &companion, "second-review", details);
    scenario.wait_until("edited");
    agent.propose(&second, "4\nfive\n");
    scenario.resume();
    let result = scenario.finish().without_complaints();

    assert_eq!(result["before"], result["after"], "something moved");
    assert_eq!(result["before"]["focus"]["inDraft"], true, "{result:#}");
    assert_eq!(agent.accepted_text(&first), "one\n2, edited and more\nthree\n");
    agent.wait_for_rejection(&second);
    assert!(companion.reviews().is_empty());
}

#[test]
fn key_within_400_ms_of_a_new_change_is_ignored() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("file.txt", "one\ntwo\nthree\n");
    let companion = Companion::start(&sandbox);
    let mut agent = SdkAgent::connect(&companion);
    let mut scenario = Scenario::start(&sandbox, &companion, "arming", json!({}));
    scenario.wait_until("listening");
    agent.propose(&file, "one\n2\nthree\n");
    scenario.resume();
    scenario.wait_until("armed");
    assert_eq!(companion.reviews().len(), 1, "a key pressed too early decided");
    scenario.resume();
    let result = scenario.finish().without_complaints();
    let pressed = result["pressed"].as_array().expect("a list of times");
    assert!(!pressed.is_empty(), "no key was pressed: {result}");
    assert_eq!(result["states"], json!(["accepted"]), "a hunk was decided");
    assert_eq!(agent.accepted_text(&file), "one\n2\nthree\n");
}
