//! Starts, exits and crashes of Emacs and its companion.

use std::process::Command;

use alongside_e2e::{Sandbox, TIMEOUT, alongside};
use serde_json::json;

use super::driver::{Emacs, Version, for_both_versions};
use crate::agent::{Agent, announced, wait_for_no_announcement};

for_both_versions!(
    agent_is_notified_when_emacs_exits_or_is_killed,
    killed_companion_restarts_on_the_same_port_with_its_reviews,
    two_emacsen_have_a_companion_each_and_are_healthy,
    mode_can_be_turned_off_and_on,
    stopped_companion_stays_stopped_until_started,
);

async fn agent_is_notified_when_emacs_exits_or_is_killed(version: Version) {
    for end in ["kill", "quit"] {
        let sandbox = Sandbox::new();
        let emacs = Emacs::start(&sandbox, version);
        let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
        agent.propose(&sandbox.file("a.txt"), "a\n").await;
        emacs.show_review();
        if end == "kill" {
            Emacs::kill(&emacs.pid().to_string());
        } else {
            // Without asking: nothing is lost.
            emacs.press(&["C-x", "C-c"]);
        }
        assert_eq!(agent.decision().await["method"], "ide/diffRejected", "{end}");
        wait_for_no_announcement(&sandbox);
    }
}

async fn killed_companion_restarts_on_the_same_port_with_its_reviews(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    let before = announced(&sandbox, emacs.pid());
    let mut agent = Agent::connect(&before).await;
    let path = sandbox.write("a.txt", "one\n");
    emacs.open(&path);
    agent.propose(&path, "two\n").await;
    emacs.show_review();
    let bridge = emacs.eval("(plist-get alongside-bridge-welcome :pid)");
    Emacs::kill(&bridge);
    emacs.wait_for(&format!(
        "(/= {bridge} (or (plist-get alongside-bridge-welcome :pid) {bridge}))"
    ));
    assert_eq!(announced(&sandbox, emacs.pid()), before);
    emacs.wait_for("(with-current-buffer \"*Messages*\" (string-search \"was restarted\" (buffer-string)))");
    agent.reconnect().await;
    agent.sees(|file| file["path"] == json!(path)).await;
    let decision = agent.decision_by(|| emacs.press(&["C-c", "C-c"])).await;
    assert_eq!(decision["params"]["content"], "two\n");
    emacs.wait_for_no_view();
}

async fn two_emacsen_have_a_companion_each_and_are_healthy(version: Version) {
    let sandbox = Sandbox::new();
    let (one, other) = (Emacs::start(&sandbox, version), Emacs::start(&sandbox, version));
    let (first, second) = (announced(&sandbox, one.pid()), announced(&sandbox, other.pid()));
    assert_ne!(first.0, second.0);
    let mut agent = Agent::connect(&second).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    other.show_review();
    assert_eq!(one.eval("(length (alongside-review-pending))"), "0");
    one.open(&sandbox.write("open.txt", "text\n"));
    one.wait_for("(alongside-context-reported-p)");
    one.run("alongside-doctor");
    one.wait_for("(equal (buffer-name) \"*alongside doctor*\")");
    let report = one.eval("(buffer-string)");
    assert!(
        report.contains("is running for")
            && report.contains("open.txt (active)")
            && report.contains("Qwen Code would connect"),
        "{report}"
    );
    Emacs::kill(&other.pid().to_string());
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
}

async fn mode_can_be_turned_off_and_on(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.propose(&sandbox.file("a.txt"), "a\n").await;
    emacs.show_review();
    emacs.run("alongside-mode");
    assert_eq!(agent.decision().await["method"], "ide/diffRejected");
    wait_for_no_announcement(&sandbox);
    emacs.wait_for_no_view();
    emacs.wait_for("(null (getenv \"QWEN_CODE_IDE_SERVER_PORT\"))");
    emacs.run("alongside-mode");
    let path = sandbox.write("b.txt", "text\n");
    emacs.open(&path);
    let mut agent = Agent::connect(&announced(&sandbox, emacs.pid())).await;
    agent.sees(|file| file["path"] == json!(path)).await;
}

async fn stopped_companion_stays_stopped_until_started(version: Version) {
    let sandbox = Sandbox::new();
    let emacs = Emacs::start(&sandbox, version);
    announced(&sandbox, emacs.pid());
    let output = Command::new(alongside())
        .env_clear()
        .envs(sandbox.environment())
        .current_dir(sandbox.workspace())
        .arg("stop")
        .output()
        .expect("run alongside");
    assert!(output.status.success(), "{output:?}");
    emacs.terminal.wait_for_text("the companion was stopped", TIMEOUT);
    wait_for_no_announcement(&sandbox);
    emacs.wait_for("(and (not (alongside-bridge-running-p)) (null alongside-bridge-variables))");
    emacs.run("alongside-start");
    announced(&sandbox, emacs.pid());
    emacs.wait_for("alongside-bridge-variables");
}
