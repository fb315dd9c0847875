//! Two hundred turns, and whatever takes part in them killed at random moments: every word that was shown stays, none comes twice, and
//! a turn that says that it is complete is.
//!
//! The moments come from a seed, which is printed; `ALONGSIDE_SEED` sets it.

use std::time::Duration;

use alongside_front::client::ClientError;
use alongside_protocol::ChatPhase;
use alongside_testing::Dice;
use alongside_testing::chat::{ChatFront, Watched};
use serde_json::json;

use super::front::Front;
use super::{sandbox, serve, talking_daemon};
use crate::sandbox::{Sandbox, Serving, TIMEOUT};

/// A companion, and a front end that comes back to it.
struct Stage {
    sandbox: Sandbox,
    serving: Option<Serving>,
    front: Front,
    watched: Watched,
}

impl Stage {
    async fn new(sandbox: Sandbox) -> Self {
        let serving = serve(&sandbox);
        let front = Front::connect(&serving, &sandbox).await;
        Self {
            sandbox,
            serving: Some(serving),
            front,
            watched: Watched::default(),
        }
    }

    async fn restart_companion(&mut self) {
        self.serving.take().unwrap().kill();
        let serving = serve(&self.sandbox);
        self.front = Front::connect(&serving, &self.sandbox).await;
        self.serving = Some(serving);
        self.watched.look(&self.front).unwrap();
    }

    /// Says something as soon as the agent can be spoken to, and waits until that is shown.
    async fn say(&mut self, text: &str) -> String {
        let start = std::time::Instant::now();
        let prompt = loop {
            self.reopen_if_over().await;
            let settled = |front: &ChatFront| matches!(front.phase, ChatPhase::Connected | ChatPhase::Ended);
            self.front.until("it is connected", settled).await;
            if self.front.phase == ChatPhase::Ended {
                continue;
            }
            match self.front.prompt(text).await {
                Ok(prompt) => break prompt,
                // A daemon that has only just gone.
                Err(ClientError::Rejected(error)) => {
                    assert!(start.elapsed() < TIMEOUT, "{error}");
                    let _ = tokio::time::timeout(Duration::from_millis(50), self.front.step()).await;
                }
                Err(error) => panic!("{error}"),
            }
        };
        self.watched.order.push(text.to_owned());
        self.front
            .until("the prompt", |front| front.turns().iter().any(|turn| turn.0 == text))
            .await;
        prompt
    }

    /// A child that was killed while the companion lives is started again when somebody asks for it.
    async fn reopen_if_over(&mut self) {
        if self.front.phase == ChatPhase::Ended {
            let reopen = json!({"type": "loadSession", "sessionId": "session-1"});
            self.front.command(reopen).await.unwrap();
            // How it is now, not how it was when the notifications were sent that wait to be read.
            self.front.ask().await.unwrap();
        }
    }

    /// Watches for a while.
    async fn watch(&mut self, time: Duration) {
        let _ = tokio::time::timeout(time, async {
            while self.front.step().await.is_ok() {
                self.watched.look(&self.front).unwrap();
            }
        })
        .await;
    }

    /// Waits until the turn has ended, one way or the other.
    async fn finish(&mut self, text: &str, prompt: &str) {
        let over =
            |front: &ChatFront| !front.is_being_told() && (front.end(prompt).is_some() || front.is_history(prompt));
        let wait = async {
            loop {
                self.reopen_if_over().await;
                if over(&self.front) && self.front.phase == ChatPhase::Connected {
                    return;
                }
                self.front.step().await.unwrap();
                self.watched.look(&self.front).unwrap();
            }
        };
        let waited = tokio::time::timeout(TIMEOUT, wait).await;
        assert!(
            waited.is_ok(),
            "{text} never ends: {:#?} {:?}",
            self.front.events,
            self.front.phase
        );
        let completed = self.front.end(prompt).is_some_and(|end| end["outcome"] == "completed");
        self.watched.completed.insert(text.to_owned(), completed);
        self.watched.look(&self.front).unwrap();
    }
}

#[tokio::test]
async fn daemon_turns_survive_120_kills() {
    let mut dice = Dice::from_environment();
    let sandbox = sandbox();
    let mut daemon = talking_daemon(&sandbox, Duration::from_millis(2)).await;
    sandbox.write_config(&format!("[daemon]\nenabled = true\nurl = '{}'\n", daemon.url()));
    let mut stage = Stage::new(sandbox).await;
    stage.front.choose("daemon").await.unwrap();
    let (mut kills, mut complete) = (0, 0);
    for turn in 0..120 {
        let text = format!("answer {turn} {}", 5 + dice.below(20));
        let prompt = stage.say(&text).await;
        let (what, moment) = (dice.below(10), Duration::from_millis(dice.below(50)));
        if what < 4 {
            stage.watch(moment).await;
            kills += 1;
        }
        match what {
            0 => {
                daemon.kill().await;
                daemon.revive().await;
            }
            1 | 2 => stage.restart_companion().await,
            3 => {
                daemon.kill().await;
                stage.restart_companion().await;
                daemon.revive().await;
            }
            _ => {}
        }
        stage.finish(&text, &prompt).await;
        complete += usize::from(stage.watched.completed[&text]);
    }
    stage.watched.check(&stage.front).unwrap();
    let late = Front::connect(stage.serving.as_ref().unwrap(), &stage.sandbox).await;
    stage.watched.check(&late).unwrap();
    println!("{kills} kills, {complete} complete turns");
    assert!(complete >= 60, "most turns are not killed");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn eighty_turns_with_a_child_survive_kills_of_both() {
    let mut dice = Dice::from_environment();
    let mut stage = Stage::new(sandbox()).await;
    stage.front.choose("scripted").await.unwrap();
    let (mut kills, mut complete) = (0, 0);
    for turn in 0..80 {
        let text = format!("answer {turn} {}", 5 + dice.below(20));
        let prompt = stage.say(&text).await;
        let (what, moment) = (dice.below(10), Duration::from_millis(dice.below(50)));
        if what < 4 {
            stage.watch(moment).await;
            kills += 1;
        }
        match what {
            0 | 1 => kill_children_of(stage.serving.as_ref().unwrap().pid()),
            2 | 3 => stage.restart_companion().await,
            _ => {}
        }
        stage.finish(&text, &prompt).await;
        complete += usize::from(stage.watched.completed[&text]);
    }
    stage.watched.check(&stage.front).unwrap();
    let late = Front::connect(stage.serving.as_ref().unwrap(), &stage.sandbox).await;
    stage.watched.check(&late).unwrap();
    println!("{kills} kills, {complete} complete turns");
    assert!(complete >= 40, "most turns are not killed");
}

#[cfg(target_os = "linux")]
fn kill_children_of(parent: u32) {
    for entry in std::fs::read_dir("/proc").unwrap().flatten() {
        let Ok(stat) = std::fs::read_to_string(entry.path().join("stat")) else {
            continue;
        };
        // The name of a program is in parentheses, and may hold anything.
        let Some((_, rest)) = stat.rsplit_once(") ") else {
            continue;
        };
        if rest.split(' ').nth(1) == Some(&parent.to_string()) {
            let pid = entry.file_name().into_string().unwrap();
            // It may have ended this very moment.
            let _ = std::process::Command::new("kill").args(["-KILL", &pid]).status();
        }
    }
}
