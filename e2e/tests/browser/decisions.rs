//! The agent writes what was decided on the page.

use std::fs;
use std::path::Path;
use std::time::Duration;

use alongside_e2e::{
    Agent, Cli, Companion, FakeModel, Prompt, Sandbox, TIMEOUT, eventually, for_both_agents, never_during,
};
use serde_json::json;

use crate::browser::Scenario;

const BASE: &str = "\
title: weekly report

intro:
  The week in numbers.
  Written on Friday.

figures:
  visits: 1200
  orders: 80
  returns: 3

outlook:
  More of the same.
  See you on Monday.
";

/// Three hunks: a line replaced, a line added, a line replaced.
const PROPOSAL: &str = "\
title: monthly report

intro:
  The week in numbers.
  Written on Friday.

figures:
  visits: 1200
  orders: 80
  refunds: 1
  returns: 3

outlook:
  More of the same.
  See you next month.
";

/// The first hunk accepted, the second rejected, the third edited.
const DECIDED: &str = "\
title: monthly report

intro:
  The week in numbers.
  Written on Friday.

figures:
  visits: 1200
  orders: 80
  returns: 3

outlook:
  More of the same.
  See you next month. Or later, perhaps.
";

for_both_agents!(agent_writes_decided_hunks_and_no_rejected_change);
fn agent_writes_decided_hunks_and_no_rejected_change(cli: Cli) {
    let sandbox = Sandbox::new();
    let report = sandbox.file("report.yaml");
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    // The agent creates the file itself: Qwen Code does not change a file that it has not read.
    propose(&agent, &companion, &report, BASE);
    companion.json(&["diff", "accept", &report.to_string_lossy()]);
    assert_file(&agent, &report, BASE);
    agent.wait_until_idle();

    let edit = json!({"after": "See you next month.", "text": " Or later, perhaps."});
    let mut scenario = Scenario::start(&sandbox, &companion, "decide", json!({"edit": edit}));
    scenario.wait_until("listening");
    propose(&agent, &companion, &report, PROPOSAL);
    scenario.resume();

    scenario.wait_until("accepted");
    assert_file(&agent, &report, DECIDED);
    agent.wait_until_idle();
    let unwanted = sandbox.file("unwanted.txt");
    propose(&agent, &companion, &unwanted, "unwanted");
    scenario.resume();
    let result = scenario.finish().without_complaints();
    agent.wait_until_idle();
    assert!(
        never_during(Duration::from_secs(1), || unwanted.exists()),
        "a rejected change was written"
    );
    assert!(companion.reviews().is_empty());
    assert_eq!(result["proposed"], json!(["accepted", "accepted", "accepted"]));
    assert_eq!(result["decided"], json!(["accepted", "rejected", "edited"]));
}

/// Lets the agent propose a change, and waits until it is pending.
fn propose(agent: &Agent, companion: &Companion<'_>, path: &Path, text: &str) {
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), text).to_string());
    agent.wait_for_question();
    // The agent may ask in its terminal before its request reaches the companion.
    let pending = eventually(TIMEOUT, || (!companion.reviews().is_empty()).then_some(()));
    assert!(pending.is_some(), "no pending change to {}", path.display());
}

fn assert_file(agent: &Agent, path: &Path, expected: &str) {
    let mut found = String::new();
    let right = eventually(TIMEOUT, || {
        found = fs::read_to_string(path).unwrap_or_default();
        (found == expected).then_some(())
    });
    if right.is_none() {
        agent
            .terminal
            .fail(&format!("{} has {found:?} and not {expected:?}", path.display()));
    }
}
