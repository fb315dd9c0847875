//! A proposed change is decided in one place, and the file on disk matches the decision.

use std::fs;
use std::time::Duration;

use alongside_e2e::{
    Agent, AgentCapability, Cli, Companion, FakeModel, Prompt, Sandbox, TIMEOUT, eventually, for_both_agents,
    never_during,
};

for_both_agents!(every_kind_of_decision_reaches_the_file);
fn every_kind_of_decision_reaches_the_file(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    let scene = Scene {
        sandbox: &sandbox,
        model: &model,
        companion: &companion,
        agent: &agent,
    };
    scene.accepting_an_edited_draft_writes_it();
    scene.accepting_as_proposed_writes_the_proposal();
    scene.rejecting_writes_nothing();
    cli.proves(AgentCapability::Edit);
    cli.proves(AgentCapability::Review);
    scene.rejecting_a_hunk_keeps_that_part();
    cli.proves(AgentCapability::Hunk);
    scene.enter_in_the_agent_closes_the_review(cli);
    scene.escape_in_the_agent_closes_the_review();
}

/// The steps share one agent session: starting it is most of the cost.
struct Scene<'a> {
    sandbox: &'a Sandbox,
    model: &'a FakeModel,
    companion: &'a Companion<'a>,
    agent: &'a Agent,
}

impl Scene<'_> {
    /// Makes the model propose a new file, and waits until it is pending in the companion and the terminal.
    fn propose(&self, name: &str, text: &str) -> std::path::PathBuf {
        self.agent.wait_until_idle();
        let path = self.sandbox.file(name);
        let prompt = Prompt::WriteFile(&path.to_string_lossy(), text).to_string();
        self.agent.prompt(&prompt);
        self.companion.wait_for_review(&path);
        self.agent.wait_for_question();
        path
    }

    fn accepting_an_edited_draft_writes_it(&self) {
        let mark = self.model.mark();
        let path = self.propose("edited.txt", "hello\r\nworld");
        // CRLF line endings, no final newline, and multi-byte characters.
        let edited = "hällo\r\nedited world 🦀\r\nno end";
        let content = self.sandbox.path("edited");
        fs::write(&content, edited).expect("write the edited text");
        let content = content.to_string_lossy().into_owned();
        self.companion
            .json(&["diff", "accept", &path.to_string_lossy(), "--content-file", &content]);
        assert_file(self.agent, &path, edited);
        assert!(self.companion.reviews().is_empty());
        self.model.wait_for_message(mark, "edited world", TIMEOUT);
    }

    fn accepting_as_proposed_writes_the_proposal(&self) {
        let path = self.propose("proposed.txt", "as\r\nproposed");
        let review = self.companion.wait_for_review(&path);
        self.companion.json(&["diff", "accept", &review.id]);
        assert_file(self.agent, &path, "as\r\nproposed");
    }

    fn rejecting_writes_nothing(&self) {
        let path = self.propose("rejected.txt", "unwanted");
        self.companion.json(&["diff", "reject", &path.to_string_lossy()]);
        self.agent.wait_until_idle();
        assert!(never_during(Duration::from_secs(1), || path.exists()));
        assert!(self.companion.reviews().is_empty());
    }

    fn rejecting_a_hunk_keeps_that_part(&self) {
        let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
        // Its own file: Qwen Code refuses to overwrite one that it has not read.
        let path = self.propose("hunks.txt", &lines("one", "nine"));
        let review = self.companion.wait_for_review(&path);
        self.companion.json(&["diff", "accept", &review.id]);
        assert_file(self.agent, &path, &lines("one", "nine"));
        self.propose("hunks.txt", &lines("ONE", "NINE"));
        let review = self.companion.wait_for_review(&path);
        self.companion.json(&["diff", "hunk", &review.id, "0", "reject"]);
        self.companion.json(&["diff", "accept", &review.id]);
        assert_file(self.agent, &path, &lines("one", "NINE"));
    }

    fn enter_in_the_agent_closes_the_review(&self, cli: Cli) {
        let path = self.propose("enter.txt", "from the model");
        let content = self.sandbox.path("draft");
        fs::write(&content, "from the person").expect("write the draft");
        let content = content.to_string_lossy().into_owned();
        self.companion
            .json(&["diff", "edit", &path.to_string_lossy(), "--content-file", &content]);
        self.agent.terminal.press("Enter");
        self.companion.wait_for_no_review(TIMEOUT);
        // Qwen Code 0.24.4 requests the draft and then does not use it.
        let expected = match cli {
            Cli::Gemini => "from the person",
            Cli::Qwen => "from the model",
        };
        assert_file(self.agent, &path, expected);
    }

    fn escape_in_the_agent_closes_the_review(&self) {
        let path = self.propose("escape.txt", "unwanted");
        self.agent.terminal.press("Escape");
        self.companion.wait_for_no_review(TIMEOUT);
        self.agent.wait_until_idle();
        assert!(never_during(Duration::from_secs(1), || path.exists()));
    }
}

fn assert_file(agent: &Agent, path: &std::path::Path, expected: &str) {
    let mut found = String::new();
    let right = eventually(TIMEOUT, || {
        found = fs::read_to_string(path).unwrap_or_default();
        (found == expected).then_some(())
    });
    if right.is_none() {
        agent
            .terminal
            .fail(&format!("{} has {found:?} and not {expected:?}", path.display()));
    }
}
