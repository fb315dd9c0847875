//! A real agent on the left of a tmux window, the terminal reviewer on the right.

use std::fs;

use alongside_e2e::{
    Agent, Cli, Companion, FakeModel, Prompt, Sandbox, TIMEOUT, Terminal, eventually, for_both_agents,
};

fn lines(one: &str, five: &str, nine: &str) -> String {
    format!("{one}\n2\n3\n4\n{five}\n6\n7\n8\n{nine}\n")
}

for_both_agents!(change_is_reviewed_in_the_next_pane);
fn change_is_reviewed_in_the_next_pane(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    let path = sandbox.file("reviewed.txt");
    let propose = |text: &str| {
        agent.wait_until_idle();
        agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), text).to_string());
        companion.wait_for_review(&path);
        agent.wait_for_question();
    };
    // The agent writes the file first: Qwen Code refuses to overwrite one that it has not read.
    let environment: Vec<String> = sandbox
        .environment()
        .into_iter()
        .map(|(name, value)| format!("{name}='{value}'"))
        .collect();
    let review = format!(
        "cd '{}' && env TERM=screen-256color {} alongside review",
        sandbox.workspace().display(),
        environment.join(" ")
    );
    let reviewer = agent.terminal.split(&review);
    reviewer.wait_for_text("No pending changes.", TIMEOUT);
    propose(&lines("one", "five", "nine"));
    let armed = |screen: &str| {
        screen
            .lines()
            .next()
            .is_some_and(|line| line.trim_start().starts_with('●'))
    };
    reviewer.wait_for("the new file", TIMEOUT, |screen| {
        armed(screen) && screen.contains("hunk 1/1")
    });
    reviewer.press("A");
    let written = |text: String| {
        let found = eventually(TIMEOUT, || (fs::read_to_string(&path).ok()? == text).then_some(()));
        let found = found.is_some();
        assert!(found, "{:?}\n{}", fs::read_to_string(&path), reviewer.screen());
    };
    written(lines("one", "five", "nine"));

    propose(&lines("ONE", "FIVE", "NINE"));
    reviewer.wait_for("three hunks", TIMEOUT, |screen| {
        armed(screen) && screen.contains("hunk 1/3")
    });
    reviewer.press("a");
    reviewer.wait_for_text("hunk 2/3", TIMEOUT);
    // The middle one is edited here, the others are accepted.
    reviewer.press("i");
    reviewer.wait_for_text("editing", TIMEOUT);
    reviewer.type_text("high ");
    reviewer.wait_for_text("high FIVE", TIMEOUT);
    reviewer.press("Escape");
    reviewer.wait_for_text("✎ edited", TIMEOUT);
    reviewer.press("n");
    reviewer.wait_for_text("hunk 3/3", TIMEOUT);
    reviewer.press("a");
    reviewer.wait_for("two accepted hunks", TIMEOUT, |screen| {
        screen.matches("✓ accepted").count() == 2
    });
    reviewer.press("A");
    written(lines("ONE", "high FIVE", "NINE"));
    reviewer.wait_for_text("No pending changes.", TIMEOUT);
    agent.wait_until_idle();
}

#[test]
fn run_opens_the_reviewer_in_a_split_and_closes_it() {
    let sandbox = Sandbox::new();
    sandbox.write_config("[run]\nsplit = 'ask'\n");
    let terminal = Terminal::open(&sandbox, "split", &sandbox.workspace(), &[]);
    terminal.type_line(&format!("export {}", terminal.variables()));
    terminal.type_line("alongside run sh -c 'echo the agent started; read line'");
    terminal.wait_for_text("Open the reviewer next to the agent?", TIMEOUT);
    terminal.press("Enter");
    terminal.wait_for_text("the agent started", TIMEOUT);
    let reviewer = eventually(TIMEOUT, || terminal.other_pane()).expect("a second pane");
    reviewer.wait_for_text("No pending changes.", TIMEOUT);
    // The companion ends with the agent, and the pane with it.
    terminal.press("Enter");
    assert!(eventually(TIMEOUT, || terminal.other_pane().is_none().then_some(())).is_some());
    terminal.type_line("alongside run echo 'second agent'");
    terminal.wait_for_text("Open the reviewer next to the agent?", TIMEOUT);
    terminal.type_line("n");
    terminal.wait_for_text("second agent", TIMEOUT);
    assert!(terminal.other_pane().is_none());
}
