//! The chat with real local agents in a real browser: the queue, mentions, the switch for writes, and a killed agent.

use std::fs;

use alongside_e2e::{Cli, Companion, FakeModel, Prompt, Sandbox, for_both_agents};
use serde_json::json;

use crate::browser::Scenario;

fn local_agent_queue_mentions_and_writes_switch(cli: Cli) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    fs::write(sandbox.file("notes.txt"), "what the mentioned file says\n").expect("write the file");
    let companion = Companion::start_with_variables(&sandbox, cli.model_variables(&model));
    let (written, reviewed) = (sandbox.file("written.txt"), sandbox.file("reviewed.txt"));
    let write = |path: &std::path::Path| Prompt::WriteFile(&path.to_string_lossy(), "by the agent\n").to_string();
    let prompts = json!({
        "slow": Prompt::Slow.to_string(),
        "kept": Prompt::Say("The kept one.").to_string(),
        "removed": Prompt::Say("The removed one.").to_string(),
        "write": write(&written),
        "writeReviewed": write(&reviewed),
    });
    let details = json!({"agent": cli.command(), "prompts": prompts});
    let mut scenario = Scenario::start(&sandbox, &companion, "chat-local", details);
    scenario.wait_until("mentioned");
    assert!(
        model.received_since(0).contains("what the mentioned file says"),
        "the content of a mentioned file reaches the model"
    );
    scenario.resume();
    scenario.wait_until("written");
    let text = fs::read_to_string(&written).expect("the file is written");
    assert_eq!(text, "by the agent\n");
    scenario.resume();
    let seen = &scenario.finish().without_complaints()["seen"];
    assert_eq!(seen["offered"][0], "notes.txt");
    assert_eq!(seen["mention"], "@notes.txt ");
    assert_eq!((&seen["queued"], &seen["afterRemoval"]), (&json!(2), &json!(1)));
    assert_eq!(seen["saidReloaded"], seen["said"]);
    assert!(
        !model.received_since(0).contains("The_removed_one."),
        "a removed message is never sent"
    );
    assert_eq!(
        seen["refused"], true,
        "the switch stays on if the question is answered with no"
    );
    assert_eq!(seen["allowed"], "Runs locally, as you. File writes are not reviewed.");
    assert_eq!(seen["allowedReloaded"], seen["allowed"]);
    assert_eq!(seen["reviewsWhileAllowed"], 0);
    assert_eq!(seen["back"], "Runs locally, as you. File writes go through review.");
    assert!(!reviewed.exists(), "a rejected write is not written");
    assert_eq!(seen["rejected"], json!(["rejected", "You rejected this change."]));
    let card = seen["rejectedText"].as_str().unwrap_or_default();
    assert!(!card.contains("Error") && !card.contains("-32000"), "{card}");
}
for_both_agents!(local_agent_queue_mentions_and_writes_switch);

fn local_agent_killed_during_an_answer_is_started_again(cli: Cli) {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    let companion = Companion::start_with_variables(&sandbox, cli.model_variables(&model));
    let prompts = json!({
        "first": Prompt::Say("The first answer.").to_string(),
        "slow": Prompt::Slow.to_string(),
        "queued": Prompt::Say("Never asked.").to_string(),
        "again": Prompt::Say("Here again.").to_string(),
    });
    let details = json!({"agent": cli.command(), "prompts": prompts});
    let mut scenario = Scenario::start(&sandbox, &companion, "chat-killed", details);
    scenario.wait_until("answering");
    companion.kill_local_agent();
    scenario.resume();
    let seen = &scenario.finish().without_complaints()["seen"];
    assert_eq!(
        seen["over"],
        "The agent stopped unexpectedly. Send a message, or reopen the session, to continue where it ended."
    );
    assert_eq!(seen["phase"], "disconnected");
    assert_eq!(seen["turn"], "none", "the turn ended");
    let said = &seen["said"];
    assert_eq!(
        *said,
        json!(["user DO", "answer", "user DO", "answer", "notice", "notice"])
    );
    let notices = seen["notices"].to_string();
    assert!(
        notices.contains("The agent stopped unexpectedly. Send your message again to retry."),
        "{notices}"
    );
    assert!(notices.contains("This message was queued and not sent"), "{notices}");
    let partial = seen["partial"].as_str().unwrap_or_default();
    assert!(partial.contains("slow3"), "what was answered stays: {partial}");
    // An agent that did not save its session is started without it, and a notice says so.
    assert_eq!(
        seen["after"],
        json!(["user DO", "answer", "user DO", "answer", "user DO", "answer"]),
        "nothing is lost, and the next message was answered"
    );
    assert_eq!(seen["afterReloaded"], seen["after"]);
}
for_both_agents!(local_agent_killed_during_an_answer_is_started_again);
