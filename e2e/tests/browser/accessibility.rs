//! axe-core runs on the main states of the page; screenshots are saved in `e2e/artifacts/`.

use std::fs;

use alongside_e2e::{Companion, Sandbox};
use serde_json::{Value, json};

use crate::browser::{Scenario, artifacts};
use crate::sdk_agent::SdkAgent;

const BASE: &str = include_str!("samples/base.rs.txt");
const PROPOSAL: &str = include_str!("samples/proposal.rs.txt");

#[test]
fn main_states_have_no_serious_axe_violation() {
    let sandbox = Sandbox::new();
    let file = sandbox.write("src/retry.rs", BASE);
    let readme = sandbox.write("README.md", "# fetch\n\nFetches pages, politely.\n");
    let secret = sandbox.write(".env", "TOKEN=1\n");
    let companion = Companion::start(&sandbox);
    for path in [&readme, &secret, &file] {
        companion.json(&["context", "open", &path.to_string_lossy()]);
    }
    let place = [
        "context",
        "focus",
        &file.to_string_lossy(),
        "--line",
        "9",
        "--select",
        "attempts",
    ];
    companion.json(&place);
    let mut agent = SdkAgent::connect(&companion);
    let edit = json!({"file": "retry.rs", "reject": 0, "after": "attempts: 5,", "text": " // three were too few"});
    let mut scenario = Scenario::start(&sandbox, &companion, "states", json!({"edit": edit}));
    scenario.wait_until("empty");
    agent.propose(&file, PROPOSAL);
    agent.propose(
        &readme,
        "# fetch\n\nFetches pages, politely: it waits longer after each failure.\n",
    );
    scenario.resume();
    let result = scenario.finish().without_complaints();

    assert_eq!(result["cutOff"], json!([]), "the header fits on a phone");
    let faults = &result["faults"];
    let path = artifacts().join("axe.json");
    fs::write(path, format!("{faults:#}")).expect("save the axe results");
    let states = faults.as_object().expect("faults by state");
    assert!(states.len() >= 12, "only {} states were checked", states.len());
    let serious: Vec<(&String, &Value)> = states
        .iter()
        .flat_map(|(state, faults)| faults.as_array().into_iter().flatten().map(move |fault| (state, fault)))
        .filter(|(_, fault)| fault["impact"] == "serious" || fault["impact"] == "critical")
        .collect();
    assert!(serious.is_empty(), "{serious:#?}");
}
