//! The page loses its connection to the companion, and no edit is lost.

use std::fs;

use alongside_e2e::{Agent, Cli, Companion, FakeModel, Prompt, Sandbox, TIMEOUT, eventually};
use serde_json::json;

use crate::browser::Scenario;
use crate::sdk_agent::SdkAgent;

#[test]
fn page_recovers_after_the_companion_crashes() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("survivor.txt", "one\ntwo\nthree\nfour\nfive\n");
    let model = FakeModel::start();
    let mut companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, Cli::Gemini, &model);
    agent.wait_until_connected();
    agent.prompt(&Prompt::WriteFile(&file.to_string_lossy(), "1\ntwo\nthree\nfour\n5\n").to_string());
    agent.wait_for_question();
    let edit = json!({
        "after": "5",
        "before": ", before the crash",
        "offline": ", offline",
        "afterwards": ", afterwards",
    });
    let mut scenario = Scenario::start(&sandbox, &companion, "crash", json!({"edit": edit}));
    scenario.wait_until("half-edited");
    companion.kill();
    scenario.resume();
    scenario.wait_until("lost");
    companion.restart();
    scenario.resume();
    let result = scenario.finish().without_complaints();

    let banner = result["banner"].as_str().unwrap_or_default();
    assert!(banner.contains("Disconnected from the companion."), "{banner:?}");
    assert_eq!(result["offline"][4], "5, before the crash, offline");
    assert_eq!(result["online"][4], "5, before the crash, offline, afterwards");
    assert_eq!(result["states"], json!(["rejected", "edited"]));
    let expected = "one\ntwo\nthree\nfour\n5, before the crash, offline, afterwards\n";
    let written = eventually(TIMEOUT, || (fs::read_to_string(&file).ok()? == expected).then_some(()));
    if written.is_none() {
        agent.terminal.fail("the draft that survived was not written");
    }
}

#[test]
fn lost_connection_is_shown_and_keeps_offline_edits() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("file.txt", "one\ntwo\n");
    let companion = Companion::start(&sandbox);
    let mut agent = SdkAgent::connect(&companion);
    agent.propose(&file, "one\n2\n");
    let edit = json!({"after": "2", "before": ", before", "offline": ", offline"});
    let mut scenario = Scenario::start(&sandbox, &companion, "lost-connection", json!({"edit": edit}));
    scenario.wait_until("lost");
    assert_eq!(
        companion.reviews().len(),
        1,
        "nothing can be decided without a connection"
    );
    scenario.resume();
    let result = scenario.finish().without_complaints();

    let banner = result["banner"].as_str().unwrap_or_default();
    assert!(banner.contains("Disconnected from the companion."), "{banner:?}");
    assert!(!result["refusal"].as_str().unwrap_or_default().is_empty(), "{result:#}");
    assert_eq!(result["lines"][1], "2, before, offline");
    assert_eq!(agent.accepted_text(&file), "one\n2, before, offline\n");
}
