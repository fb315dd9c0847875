//! How fast the page is with a very large change. Reported, not asserted: it depends on the machine.

use std::fmt::Write as _;

use alongside_e2e::{Companion, Sandbox};
use serde_json::json;

use crate::browser::{Scenario, report};
use crate::sdk_agent::SdkAgent;

const LINES: usize = 200_000;
const CHANGES: usize = 2_000;

#[test]
fn large_change_opens_and_hunks_are_decided() {
    let sandbox = Sandbox::new();
    let text = |changed: bool| {
        let mut text = String::new();
        for line in 0..LINES {
            let word = if changed && line % (LINES / CHANGES) == 50 {
                "replaced"
            } else {
                "constant"
            };
            let _ = writeln!(text, "    let value_{line} = {word}({line});");
        }
        text
    };
    let file = sandbox.write("large.rs", &text(false));
    let companion = Companion::start(&sandbox);
    let mut agent = SdkAgent::connect(&companion);
    agent.propose(&file, &text(true));
    let result = Scenario::start(&sandbox, &companion, "speed", json!({}))
        .finish()
        .without_complaints();
    assert_eq!(result["hunks"], "1 / 2,000");
    report("200,000 lines with 2,000 hunks, in ms", &result["figures"]);
}
