//! What a conversation has besides questions and answers, in a real browser with the real agents: attachments, messages during a turn,
//! rewinding, the queue, plans, suggestions, names, mentions, and agents that are killed.

use std::fs;

use alongside_e2e::{Companion, FakeModel, Prompt, QwenDaemon, SUGGESTION, Sandbox};
use serde_json::{Value, json};

use crate::browser::Scenario;

const TOKEN: &str = "the token of the daemon";

fn use_daemon(sandbox: &Sandbox, daemon: &QwenDaemon) {
    let port = daemon.port;
    sandbox.write_config(&format!(
        "[daemon]\nenabled = true\nurl = 'http://127.0.0.1:{port}'\ntoken = '{TOKEN}'\n"
    ));
}

/// The smallest PNG, one pixel.
const PIXEL: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

#[test]
fn daemon_receives_attachments_and_messages_during_a_turn_and_is_rewound() {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let daemon = QwenDaemon::start(&sandbox, &model, TOKEN);
    use_daemon(&sandbox, &daemon);
    let mut companion = Companion::start(&sandbox);
    let file = sandbox.file("during.txt");
    let prompts = json!({
        "write": Prompt::WriteFile(&file.to_string_lossy(), "by the agent\n").to_string(),
        "say": Prompt::Say("The third answer.").to_string(),
        "reject": Prompt::WriteFile(&sandbox.file("rejected.txt").to_string_lossy(), "no\n").to_string(),
    });
    let details = json!({"prompts": prompts, "pixel": PIXEL});
    let mut scenario = Scenario::start(&sandbox, &companion, "chat-extras", details);

    scenario.wait_until("attached");
    let received = model.received_since(0);
    assert!(
        received.contains("the text of the notes"),
        "a text file reaches the model"
    );
    assert!(received.contains("image/png"), "an image reaches the model");
    let mark = model.mark();
    scenario.resume();
    scenario.wait_until("received during the turn");
    assert!(
        model.received_since(mark).contains("by the way, be brief"),
        "the message reached the model"
    );
    scenario.resume();
    scenario.wait_until("rewound");
    // A rewound conversation stays so.
    companion.kill();
    companion.restart();
    scenario.resume_with(&crate::browser::login_link(&companion));
    // A rejection is not an error, even if only the daemon's history reports it.
    scenario.wait_until("rejected");
    companion.kill();
    companion.restart();
    scenario.resume_with(&crate::browser::login_link(&companion));
    let result = scenario.finish().without_complaints();
    let seen = &result["seen"];
    assert_eq!(
        seen["refused"],
        "Not attached: big.bin is larger than 8 MB. Mention its path instead."
    );
    assert_eq!(
        seen["attached"],
        json!(["pixel.png · image/png · 70 bytes", "notes.txt · text/plain · 21 bytes"])
    );
    assert_eq!(seen["preview"], 1, "a small image is shown");
    assert_eq!(
        seen["waiting"],
        json!(["by the way, be brief"]),
        "it waits for the next step"
    );
    assert_eq!(
        seen["during"],
        json!([
            "user look",
            "answer",
            "user DO",
            "tool",
            "user by the way, be brief",
            "answer"
        ]),
        "the message is where the agent received it"
    );
    assert_eq!(seen["duringReloaded"], seen["during"]);
    assert_eq!(
        seen["filled"],
        prompts_write(&file),
        "the removed message can be changed"
    );
    assert_eq!(seen["rewound"], json!(["user look", "answer"]));
    assert_eq!(seen["rewoundReloaded"], seen["rewound"]);
    assert_eq!(seen["rewoundRestarted"], seen["rewound"]);
    assert_eq!(seen["continued"], json!(["user look", "answer", "user DO", "answer"]));
    assert_eq!(
        fs::read_to_string(&file).expect("the file"),
        "by the agent\n",
        "files stay as they are"
    );
    assert_eq!(seen["rejected"], "rejected");
    assert_eq!(seen["rejectedRestarted"], "rejected");
}

fn prompts_write(file: &std::path::Path) -> Value {
    json!(Prompt::WriteFile(&file.to_string_lossy(), "by the agent\n").to_string())
}

#[test]
fn daemon_queue_plan_suggestion_and_name_are_shown_and_survive_a_reload() {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let daemon = QwenDaemon::start(&sandbox, &model, TOKEN);
    use_daemon(&sandbox, &daemon);
    let companion = Companion::start(&sandbox);
    let prompts = json!({
        "slow": Prompt::Slow.to_string(),
        "plan": Prompt::Plan.to_string(),
        "kept": Prompt::Say("The kept one.").to_string(),
        "removed": Prompt::Say("The removed one.").to_string(),
    });
    let scenario = Scenario::start(
        &sandbox,
        &companion,
        "chat-queue",
        json!({"agent": "daemon", "prompts": prompts}),
    );
    let result = scenario.finish().without_complaints();
    let seen = &result["seen"];
    assert_eq!(seen["queued"], 2);
    assert_eq!(seen["afterRemoval"], 1);
    assert_eq!(
        seen["said"],
        json!(["user DO", "answer", "notice", "user DO", "answer"])
    );
    assert_eq!(seen["saidReloaded"], seen["said"]);
    assert!(
        !model.received_since(0).contains("The_removed_one."),
        "a removed message is never sent"
    );
    assert_eq!(seen["plan"], json!(["Read the code", "Change it"]));
    assert_eq!(seen["suggestion"], SUGGESTION);
    assert_eq!(seen["filled"], SUGGESTION);
    assert_eq!(seen["title"], "A better name");
    assert_eq!(seen["titleReloaded"], "A better name");
    assert_eq!(seen["listed"], true, "the daemon has the name too");
}
