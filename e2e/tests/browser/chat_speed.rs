//! Latency of the first word of an answer. Reported, not asserted: it depends on the machine.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use alongside_e2e::{Companion, Sandbox};
use alongside_testing::FakeDaemon;
use alongside_testing::daemon::Talk;
use serde_json::json;

use crate::browser::{Scenario, report};

const TURNS: u64 = 60;

const TALK: Talk = Talk {
    // Everything triggered by the prompt itself is over by then.
    before: Duration::from_millis(60),
    between: Duration::from_millis(30),
    words: |_| vec![stamp()],
};

/// A word that contains the time, in microseconds since 1970.
fn stamp() -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    format!("stamp:{}", now.as_micros())
}

#[test]
fn first_word_latency() {
    let sandbox = Sandbox::new();
    let runtime = tokio::runtime::Runtime::new().expect("start a runtime for the daemon");
    let daemon = runtime.block_on(FakeDaemon::start_talking(&sandbox.workspace(), TALK));
    sandbox.write_config(&format!("[daemon]\nenabled = true\nurl = '{}'\n", daemon.url()));
    let companion = Companion::start(&sandbox);
    let result = Scenario::start(&sandbox, &companion, "chat-speed", json!({"turns": TURNS}))
        .finish()
        .without_complaints();
    assert_eq!(result["turns"], TURNS, "every first word was seen");
    report("From the daemon's first word to the page, in ms", &result["figures"]);
}
