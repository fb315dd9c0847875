//! The real agents while the companion is killed and stopped at random moments: a shorter relative of `cargo xtask faults`.
//!
//! The moments come from a seed, which is printed; `ALONGSIDE_SEED` sets it. `cargo xtask faults --real` sets the number of rounds.

use std::fs;
use std::path::Path;
use std::time::Duration;

use alongside_e2e::{Agent, Cli, Companion, FakeModel, Prompt, Sandbox, TIMEOUT, eventually, for_both_agents};
use alongside_testing::Dice;

/// Rounds in an ordinary test run.
const ROUNDS: u64 = 3;

/// What happens to a proposal, and to the companion around it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    KillThenAccept,
    KillThenReject,
    /// The decision is acknowledged while no stream can carry it.
    AcceptWithoutStreamThenKill,
    RejectWithoutStreamThenKill,
    AcceptThenKillAtOnce,
    /// A clean stop rejects it.
    Stop,
}

impl Round {
    fn is_accepted(self) -> bool {
        matches!(
            self,
            Self::KillThenAccept | Self::AcceptWithoutStreamThenKill | Self::AcceptThenKillAtOnce
        )
    }
}

for_both_agents!(every_decision_arrives_through_random_faults);
fn every_decision_arrives_through_random_faults(cli: Cli) {
    let mut dice = Dice::from_environment();
    let rounds = std::env::var("ALONGSIDE_FAULT_ROUNDS").ok();
    let rounds = rounds.and_then(|rounds| rounds.parse().ok()).unwrap_or(ROUNDS);
    let sandbox = Sandbox::new();
    let model = FakeModel::start();
    let mut companion = Companion::start(&sandbox);
    let agent = Agent::start(&sandbox, cli, &model);
    agent.wait_until_connected();
    for number in 0..rounds {
        reconnect(&agent);
        let round = dice.pick(&[
            (1, Round::KillThenAccept),
            (1, Round::KillThenReject),
            (1, Round::AcceptWithoutStreamThenKill),
            (1, Round::RejectWithoutStreamThenKill),
            (1, Round::AcceptThenKillAtOnce),
            (1, Round::Stop),
        ]);
        println!("round {number}: {round:?}");
        let path = sandbox.file(&format!("round-{number}.txt"));
        let text = format!("text of round {number}");
        agent.prompt(&Prompt::WriteFile(&path.to_string_lossy(), &text).to_string());
        companion.wait_for_review(&path);
        agent.wait_for_question();
        play(round, &mut companion, &path, dice.milliseconds(50));
        check(round, &agent, &path, &text);
    }
}

fn play(round: Round, companion: &mut Companion<'_>, path: &Path, moment: Duration) {
    let name = path.to_string_lossy().into_owned();
    let decision = if round.is_accepted() { "accept" } else { "reject" };
    match round {
        Round::KillThenAccept | Round::KillThenReject => {
            companion.kill();
            companion.restart();
            companion.wait_for_review(path);
            companion.json(&["diff", decision, &name]);
        }
        Round::AcceptWithoutStreamThenKill | Round::RejectWithoutStreamThenKill => {
            // The agent opens the next one after a second.
            companion.end_stream();
            companion.json(&["diff", decision, &name]);
            std::thread::sleep(moment);
            companion.kill();
            companion.restart();
        }
        Round::AcceptThenKillAtOnce => {
            companion.json(&["diff", decision, &name]);
            companion.kill();
            companion.restart();
        }
        Round::Stop => {
            companion.terminate();
            companion.restart();
        }
    }
    assert!(companion.reviews().is_empty(), "{round:?}: it is pending again");
}

/// The agent did what was decided, and waits for nothing.
fn check(round: Round, agent: &Agent, path: &Path, text: &str) {
    if round.is_accepted() {
        let written = eventually(TIMEOUT, || (fs::read_to_string(path).ok()? == text).then_some(()));
        if written.is_none() {
            agent
                .terminal
                .fail(&format!("{round:?}: {} was not written", path.display()));
        }
    }
    agent.wait_until_idle();
    assert_eq!(path.exists(), round.is_accepted(), "{round:?}");
}

/// An agent that saw a broken connection stays disconnected until `/ide enable`.
fn reconnect(agent: &Agent) {
    if !agent.ide_status().contains("Connected to") {
        agent.ide_enable();
        agent.wait_until_connected();
    }
}
