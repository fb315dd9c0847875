//! How fast the page is with a very large change. The figures are told, not judged: they depend on the machine.

use std::fmt::Write as _;

use alongside_e2e::{Companion, Sandbox};
use serde_json::json;

use crate::browser::{Scenario, report};
use crate::pretend_agent::PretendAgent;

const LINES: usize = 200_000;
const CHANGES: usize = 2_000;

#[test]
fn a_file_of_200_000_lines_with_2_000_changed_places_opens_and_its_parts_can_be_decided() {
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
    let mut agent = PretendAgent::connect(&companion);
    agent.propose(&file, &text(true));
    let result = Scenario::start(&sandbox, &companion, "speed", json!({}))
        .finish()
        .without_complaints();
    assert_eq!(result["parts"], "1 / 2,000");
    report("200,000 lines with 2,000 changed places, in ms", &result["figures"]);
}
