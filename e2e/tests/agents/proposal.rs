//! Changes that an agent proposes, and every way to decide about them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use alongside_e2e::{Native, Prompt, Review, TIMEOUT, eventually, never_during};

use crate::scene::{NINE, Scene};

impl Scene<'_> {
    /// Waits until the companion lists the agent by its name.
    pub(crate) fn wait_until_connected(&self) {
        self.companion.wait_for_agents(1, TIMEOUT);
        let agents = self.companion.agents();
        let expected = self.agent.native.display_name();
        assert!(
            agents.iter().any(|agent| agent.to_string().contains(expected)),
            "not {expected} but {agents:?}"
        );
    }

    /// Makes the agent propose a new file, and returns its review.
    pub(crate) fn propose_new(&self, name: &str, text: &str) -> Proposal<'_> {
        let path = self.sandbox.file(name);
        self.propose(&path, &Prompt::WriteFile(&path.to_string_lossy(), text))
    }

    /// Makes the agent propose to replace the first and the last of nine lines.
    pub(crate) fn propose_two_hunks(&self, name: &str) -> Proposal<'_> {
        let path = self.sandbox.write(name, NINE);
        let text = path.to_string_lossy().into_owned();
        if self.agent.native == Native::Claude {
            // It refuses to change what it has not read.
            let mark = self.model.mark();
            self.agent.prompt(&Prompt::Read(&text).to_string());
            self.model.wait_for_message(mark, "seven", TIMEOUT);
            self.agent.wait_until_idle();
        }
        let new = NINE.replace("one", "ONE").replace("nine", "NINE");
        self.propose(&path, &Prompt::Edit(&text, NINE, &new))
    }

    /// A rejection, and both answers to the agent's own question.
    pub(crate) fn decide_here_and_in_the_terminal(&self) {
        self.propose_new("rejected.txt", "unwanted\n")
            .reject(None)
            .writes_nothing();
        self.propose_new("enter.txt", "one\n")
            .decide_in_terminal("Enter")
            .writes("one\n");
        self.propose_new("escape.txt", "one\n")
            .decide_in_terminal("Escape")
            .writes_nothing();
    }

    /// Kills the companion while the agent waits for a decision, which is then made in the terminal, and starts another one.
    pub(crate) fn restart_companion_under_a_question(&mut self, name: &str) {
        let path = self.propose_new(name, "one\n").path;
        self.companion.kill();
        self.agent.decide("Enter");
        let is_written = eventually(TIMEOUT, || {
            (fs::read_to_string(&path).unwrap_or_default() == "one\n").then_some(())
        });
        if is_written.is_none() {
            self.agent
                .terminal
                .fail("what was accepted in the terminal was not written");
        }
        self.companion.restart();
        assert_eq!(self.companion.reviews(), [], "nothing waits for it any more");
    }

    /// Kills the companion while the agent's hook waits for a decision: the change is denied. Then starts another one.
    pub(crate) fn kill_companion_under_a_hook(&mut self, name: &str) {
        let mark = self.model.mark();
        let path = self.propose_new(name, "unwanted\n").path;
        self.companion.kill();
        self.model
            .wait_for_message(mark, "The companion stopped before the user decided", TIMEOUT);
        self.agent.wait_until_idle();
        if !never_during(Duration::from_secs(1), || path.exists()) {
            self.agent.terminal.fail("a change was written without a decision");
        }
        self.companion.restart();
        assert_eq!(self.companion.reviews(), [], "nothing waits for it any more");
    }

    fn propose(&self, path: &Path, prompt: &Prompt<'_>) -> Proposal<'_> {
        self.agent.wait_until_idle();
        self.agent.prompt(&prompt.to_string());
        let review = self.companion.wait_for_review(path);
        let expected = self.agent.native.display_name();
        assert!(review.agent.contains(expected), "not from {expected}: {review:?}");
        Proposal {
            scene: self,
            path: path.to_owned(),
            review,
        }
    }
}

/// A pending change.
pub(crate) struct Proposal<'a> {
    scene: &'a Scene<'a>,
    path: PathBuf,
    review: Review,
}

impl Proposal<'_> {
    pub(crate) fn accept(self) -> Self {
        self.scene.companion.json(&["diff", "accept", &self.review.id]);
        self
    }

    /// Accepts this text in place of the proposal.
    pub(crate) fn accept_edited(self, text: &str) -> Self {
        let content = self.scene.sandbox.path("edited");
        fs::write(&content, text).expect("write the edited text");
        let content = content.to_string_lossy().into_owned();
        self.scene
            .companion
            .json(&["diff", "accept", &self.review.id, "--content-file", &content]);
        self
    }

    pub(crate) fn reject_hunk(self, number: &str) -> Self {
        let id = &self.review.id;
        self.scene.companion.json(&["diff", "hunk", id, number, "reject"]);
        self
    }

    pub(crate) fn reject(self, reason: Option<&str>) -> Self {
        let mut arguments = vec!["diff", "reject", &self.review.id];
        arguments.extend(reason.map(|reason| ["--reason", reason]).into_iter().flatten());
        self.scene.companion.json(&arguments);
        self
    }

    /// Decides in the agent's terminal.
    pub(crate) fn decide_in_terminal(self, key: &str) -> Self {
        self.scene.agent.decide(key);
        self.scene.companion.wait_for_no_review(TIMEOUT);
        self
    }

    /// Stops the agent in its terminal while it waits for the review.
    pub(crate) fn interrupt(self) -> Self {
        self.scene.agent.interrupt();
        self.scene.companion.wait_for_no_review(TIMEOUT);
        self
    }

    /// Waits until the file has this text and the agent is idle again.
    pub(crate) fn writes(self, expected: &str) {
        let mut found = String::new();
        let right = eventually(TIMEOUT, || {
            found = fs::read_to_string(&self.path).unwrap_or_default();
            (found == expected).then_some(())
        });
        if right.is_none() {
            let path = self.path.display();
            self.fail(&format!("{path} has {found:?} and not {expected:?}"));
        }
        self.scene.agent.wait_until_idle();
        assert_eq!(self.scene.companion.reviews(), [], "no review is left");
    }

    /// Checks that the file is not written.
    pub(crate) fn writes_nothing(self) {
        self.scene.agent.wait_until_idle();
        if !never_during(Duration::from_secs(1), || self.path.exists()) {
            self.fail("a rejected file was written");
        }
        assert_eq!(self.scene.companion.reviews(), [], "no review is left");
    }

    fn fail(&self, message: &str) -> ! {
        self.scene.agent.terminal.fail(message)
    }
}
