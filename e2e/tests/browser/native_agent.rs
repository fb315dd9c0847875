//! The page with Claude Code, which takes what Gemini CLI and Qwen Code do not: a reason, and the selection.

use alongside_e2e::{Companion, FakeModel, Native, NativeAgent, Prompt, Sandbox, TIMEOUT};
use serde_json::json;

use crate::browser::Scenario;

#[test]
fn reason_reaches_the_model_and_the_selection_the_prompt() {
    let (sandbox, model) = (Sandbox::new(), FakeModel::start());
    Native::Claude.set_up(&sandbox, &model);
    sandbox.install("claude");
    let noted = sandbox.write("noted.txt", "one\ntwo\n");
    let companion = Companion::start(&sandbox);
    let agent = NativeAgent::launch(&sandbox, Native::Claude, &model, "claude --permission-mode acceptEdits");
    companion.wait_for_agents(1, TIMEOUT);
    let noted = noted.to_string_lossy();
    companion.json(&["context", "focus", &noted, "--line", "2", "--select", "two"]);
    let path = sandbox.file("rejected.txt");
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), "unwanted\n").to_string());
    companion.wait_for_review(&path);
    assert_eq!(companion.agents().len(), 1, "its hook is no second agent");

    let mark = model.mark();
    let details = json!({"reason": "Keep it out of here."});
    let mut scenario = Scenario::start(&sandbox, &companion, "agent", details);
    scenario.wait_until("rejected");
    model.wait_for_message(mark, "Keep it out of here.", TIMEOUT);
    assert!(!path.exists(), "a rejected file is not written");
    agent.wait_until_idle();
    scenario.resume();
    let seen = scenario.finish().without_complaints();

    assert!(
        seen["files"].as_str().is_some_and(|files| files.contains("noted.txt")),
        "{seen}"
    );
    assert!(
        seen["sent"].as_str().is_some_and(|sent| sent.contains("Claude Code")),
        "{seen}"
    );
    agent.terminal.wait_for_text("noted.txt#L2", TIMEOUT);
}
