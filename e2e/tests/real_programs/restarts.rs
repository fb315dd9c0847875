//! The companion restarts while a review is pending.

use std::fs;
use std::time::Duration;

use alongside_e2e::{
    Agent, Cli, Companion, FakeModel, Prompt, Sandbox, TIMEOUT, eventually, for_both_agents, never_during,
};

for_both_agents!(clean_restart_rejects_the_review_and_keeps_the_connection);
fn clean_restart_rejects_the_review_and_keeps_the_connection(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    let port = companion.port;

    let path = propose(&sandbox, &companion, &agent, "before.txt", "unwanted");
    companion.terminate();
    let left = companion.files.iter().filter(|file| file.exists()).collect::<Vec<_>>();
    assert!(left.is_empty(), "left behind: {left:?}");
    companion.restart();
    assert_eq!(companion.port, port, "the port is the same again");
    agent.wait_until_idle();
    assert!(
        never_during(Duration::from_secs(1), || path.exists()),
        "a rejected change was written"
    );

    agent.wait_until_connected();
    companion.wait_for_agents(1, TIMEOUT);
    accept_another_change(&sandbox, &companion, &agent);
}

for_both_agents!(agent_between_two_streams_gets_the_rejection_of_a_clean_stop);
fn agent_between_two_streams_gets_the_rejection_of_a_clean_stop(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();

    let path = propose(&sandbox, &companion, &agent, "rejected.txt", "unwanted");
    companion.end_stream();
    companion.terminate();
    agent.wait_until_idle();
    assert!(!path.exists(), "a rejected change was written");
}

for_both_agents!(decision_undelivered_by_a_clean_stop_arrives_after_the_restart);
fn decision_undelivered_by_a_clean_stop_arrives_after_the_restart(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();

    let path = propose(&sandbox, &companion, &agent, "accepted.txt", "from the model");
    agent.terminal.freeze();
    companion.end_stream();
    companion.json(&["diff", "accept", &path.to_string_lossy()]);
    companion.terminate();
    companion.restart();
    agent.terminal.thaw();
    wait_for_content(&agent, &path, "from the model");
    companion.wait_for_agents(1, TIMEOUT);
}

for_both_agents!(review_survives_a_companion_crash);
fn review_survives_a_companion_crash(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();

    let path = propose(&sandbox, &companion, &agent, "survivor.txt", "from the model");
    let (port, token) = (companion.port, companion.token());
    companion.kill();
    companion.restart();
    assert_eq!(
        (companion.port, companion.token()),
        (port, token),
        "the address is the same again"
    );
    companion.wait_for_review(&path);
    // The agent reopens its stream after a second; the decision is kept until then.
    let content = sandbox.path("edited");
    fs::write(&content, "from the person").expect("write the edited text");
    let content = content.to_string_lossy().into_owned();
    companion.json(&["diff", "accept", &path.to_string_lossy(), "--content-file", &content]);
    wait_for_content(&agent, &path, "from the person");
    agent.wait_until_idle();

    // It saw a broken connection and stays disconnected until `/ide enable`.
    if !agent.ide_status().contains("Connected to") {
        agent.ide_enable();
        agent.wait_until_connected();
    }
    accept_another_change(&sandbox, &companion, &agent);
}

fn propose(sandbox: &Sandbox, companion: &Companion<'_>, agent: &Agent, name: &str, text: &str) -> std::path::PathBuf {
    let path = sandbox.file(name);
    agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), text).to_string());
    companion.wait_for_review(&path);
    agent.wait_for_question();
    path
}

/// Proves that nothing hangs: the next change goes all the way through.
fn accept_another_change(sandbox: &Sandbox, companion: &Companion<'_>, agent: &Agent) {
    let path = propose(sandbox, companion, agent, "after.txt", "after the restart");
    companion.json(&["diff", "accept", &path.to_string_lossy()]);
    wait_for_content(agent, &path, "after the restart");
}

fn wait_for_content(agent: &Agent, path: &std::path::Path, expected: &str) {
    let written = eventually(TIMEOUT, || (fs::read_to_string(path).ok()? == expected).then_some(()));
    if written.is_none() {
        agent.terminal.fail(&format!("{} was not written", path.display()));
    }
}
