//! Latency of the first word of an answer. Reported, not asserted: it depends on the machine.

use std::fs;

use alongside_e2e::{Companion, Sandbox, ScriptedDaemon};
use serde_json::json;

use crate::browser::{Scenario, report};

const TURNS: u64 = 60;

#[test]
fn first_word_latency() {
    let sandbox = Sandbox::new();
    let daemon = ScriptedDaemon::start(&sandbox.workspace());
    let directory = sandbox.path("home/.config/alongside");
    fs::create_dir_all(&directory).expect("create the settings directory");
    let settings = format!("[daemon]\nenabled = true\nurl = 'http://127.0.0.1:{}'\n", daemon.port);
    fs::write(directory.join("config.toml"), settings).expect("write the settings");
    let companion = Companion::start(&sandbox);
    let result = Scenario::start(&sandbox, &companion, "chat-speed", json!({"turns": TURNS}))
        .finish()
        .without_complaints();
    assert_eq!(result["turns"], TURNS, "every first word was seen");
    report("From the daemon's first word to the page, in ms", &result["figures"]);
}
