//! Hooks: a change waits for its review in a mode in which the agent would write it without asking, and the model reads why it was
//! rejected.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_e2e::{
    Agent, AgentCapability, Cli, Companion, FakeModel, Launch, Prompt, Review, Sandbox, TIMEOUT, eventually,
    for_both_agents, never_during,
};

for_both_agents!(hook_reviews_what_the_agent_would_write_without_asking);
fn hook_reviews_what_the_agent_would_write_without_asking(cli: Cli) {
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    sandbox.install(cli.command());
    let companion = Companion::start(&sandbox);
    let launch = Launch::plain(&sandbox, cli).writing_without_questions(cli);
    let agent = Agent::launch(&sandbox, cli, &model, cli.command(), launch);
    // Its connection shows no change in this mode, but must not get in the way.
    agent.wait_until_connected();
    let mut scene = Scene {
        cli,
        sandbox: &sandbox,
        model: &model,
        companion,
        agent,
    };
    scene.accepted_change_is_written();
    scene.edited_change_is_written_with_exactly_its_bytes();
    scene.rejected_hunk_is_not_written();
    scene.reason_of_a_rejection_reaches_the_model();
    scene.without_a_companion_nothing_is_written();
    scene.companion.restart();
    scene.accepted_change_is_written();
    cli.proves(AgentCapability::Reason);
}

/// The steps share one agent session: starting it is most of the cost.
struct Scene<'a> {
    cli: Cli,
    sandbox: &'a Sandbox,
    model: &'a FakeModel,
    companion: Companion<'a>,
    agent: Agent,
}

impl Scene<'_> {
    /// Makes the model write a new file.
    fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.sandbox.file(name);
        let _ = fs::remove_file(&path);
        self.prompt(&Prompt::WriteFile(&path.to_string_lossy(), text));
        path
    }

    /// The same, and waits for the review.
    fn propose(&self, name: &str, text: &str) -> (PathBuf, Review) {
        let path = self.write(name, text);
        let review = self.review(&path);
        assert!(!path.exists(), "written before the review");
        (path, review)
    }

    fn prompt(&self, prompt: &Prompt<'_>) {
        self.agent.wait_until_idle();
        self.agent.prompt(&prompt.to_string());
    }

    /// Waits for the hook's review.
    fn review(&self, path: &Path) -> Review {
        let review = self.companion.wait_for_review(path);
        let expected = self.cli.display_name();
        assert!(review.agent.contains(expected), "not from {expected}: {review:?}");
        review
    }

    fn accepted_change_is_written(&self) {
        let (path, review) = self.propose("new.txt", "as\r\nproposed");
        self.companion.json(&["diff", "accept", &review.id]);
        self.assert_file(&path, "as\r\nproposed");
    }

    fn edited_change_is_written_with_exactly_its_bytes(&self) {
        let mark = self.model.mark();
        let (path, review) = self.propose("edited.txt", "hello\nworld\n");
        // CRLF line endings, no final newline, and multi-byte characters.
        let edited = "hällo\r\nedited world 🦀\r\nno end";
        let content = self.sandbox.path("edited");
        fs::write(&content, edited).expect("write the edited text");
        let content = content.to_string_lossy();
        self.companion
            .json(&["diff", "accept", &review.id, "--content-file", &content]);
        self.assert_file(&path, edited);
        self.model.wait_for_message(mark, "edited world", TIMEOUT);
    }

    fn rejected_hunk_is_not_written(&self) {
        let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n8\n{last}\n");
        // Its own file: Qwen Code refuses to change one that it has not read.
        let (before, after) = (lines("one", "nine"), lines("ONE", "NINE"));
        let (path, review) = self.propose("hunks.txt", &before);
        self.companion.json(&["diff", "accept", &review.id]);
        self.assert_file(&path, &before);
        self.prompt(&Prompt::Edit(&path.to_string_lossy(), &before, &after));
        let review = self.review(&path);
        self.companion.json(&["diff", "hunk", &review.id, "0", "reject"]);
        self.companion.json(&["diff", "accept", &review.id]);
        self.assert_file(&path, &lines("one", "NINE"));
    }

    fn reason_of_a_rejection_reaches_the_model(&self) {
        let mark = self.model.mark();
        let (path, review) = self.propose("rejected.txt", "unwanted");
        self.companion
            .json(&["diff", "reject", &review.id, "--reason", "Keep it out."]);
        self.model.wait_for_message(mark, "Keep it out.", TIMEOUT);
        self.assert_not_written(&path);
    }

    fn without_a_companion_nothing_is_written(&mut self) {
        self.agent.wait_until_idle();
        self.companion.terminate();
        let mark = self.model.mark();
        let path = self.write("alone.txt", "unwanted");
        self.model.wait_for_message(mark, "no companion is running", TIMEOUT);
        self.assert_not_written(&path);
    }

    fn assert_file(&self, path: &Path, expected: &str) {
        let mut found = String::new();
        let right = eventually(TIMEOUT, || {
            found = fs::read_to_string(path).unwrap_or_default();
            (found == expected).then_some(())
        });
        if right.is_none() {
            let path = path.display();
            let message = format!("{path} has {found:?} and not {expected:?}");
            self.agent.terminal.fail(&message);
        }
        self.agent.wait_until_idle();
        assert_eq!(self.companion.reviews(), [], "no review is left");
    }

    fn assert_not_written(&self, path: &Path) {
        self.agent.wait_until_idle();
        if !never_during(Duration::from_secs(1), || path.exists()) {
            self.agent.terminal.fail("a file was written that was not accepted");
        }
    }
}
