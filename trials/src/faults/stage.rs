//! A run: the sandbox, the companions in it, all participants, and the rounds.

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::{Duration, Instant};

use alongside_testing::chat::words;
use alongside_testing::daemon::Talk;
use alongside_testing::{FakeDaemon, Sandbox, agent};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::agent::{Agent, GEMINI, OTHER, QWEN};
use super::conversation::Conversation;
use super::disk::Disk;
use super::hand::Hand;
use super::invariant::Invariant;
use super::ledger::Ledger;
use super::node::NodePlaces;
use super::plan::{Cast, Plan, Return, Role};
use super::texts;
use super::wire::Program;
use crate::program::{Endpoints, NotStarted, Process};

/// How long the companion keeps the sessions of agents that do not come back, and some more.
const GRACE: Duration = Duration::from_secs(45);

const HANDS: usize = 2;

pub struct Options {
    pub kills: usize,
    pub seed: u64,
    pub verbose: bool,
}

pub struct Report {
    pub rounds: usize,
    pub kills: usize,
    pub duration: Duration,
    pub counts: Vec<(&'static str, usize)>,
    pub violations: Vec<(usize, Invariant, String)>,
}

pub(super) struct Stage {
    pub(super) sandbox: Sandbox,
    pub(super) disk: Option<Disk>,
    pub(super) ledger: Arc<Ledger>,
    pub(super) agents: Vec<Arc<Agent>>,
    pub(super) hands: [Vec<Arc<Hand>>; 2],
    pub(super) conversations: [Arc<Mutex<Conversation>>; 2],
    pub(super) daemon: FakeDaemon,
    pub(super) companions: [Option<Process>; 2],
    /// Where the companions listen, or listened last.
    pub(super) endpoints: [Option<Endpoints>; 2],
    pub(super) proposals: Arc<AtomicU64>,
}

/// The agents: where, which program, and a number for each program at a companion.
const CAST: [(Role, Program, usize); 9] = [
    (Role::Serve, GEMINI, 0),
    (Role::Serve, GEMINI, 0),
    (Role::Serve, QWEN, 1),
    (Role::Serve, QWEN, 1),
    (Role::Serve, OTHER, 2),
    (Role::Bridge, GEMINI, 3),
    (Role::Bridge, QWEN, 4),
    (Role::Serve, GEMINI, 0),
    (Role::Serve, QWEN, 1),
];
/// The last agents use the SDKs that Gemini CLI and Qwen Code pin.
const SDKS: [&str; 2] = ["sdk-1-23", "sdk-1-30"];

pub async fn run(options: &Options) -> Report {
    let started = Instant::now();
    let plan = Plan::new(
        options.seed,
        options.kills,
        Cast {
            agents: CAST.len(),
            hands: HANDS,
        },
    );
    let mut stage = Stage::new(options.verbose).await;
    let ledger = stage.ledger.clone();
    for role in Role::ALL {
        stage.start(role).await;
        stage.gather(role, &[Return::Resume; CAST.len()]).await;
        stage.begin_chat(role).await;
    }
    let mut kills = 0;
    for (number, round) in plan.rounds.iter().enumerate() {
        ledger.begin_round(number);
        ledger.note(|| format!("{:?} after {:?}", round.fault, round.moment));
        stage.play(round).await;
        kills += round.fault.kills();
        if number % 25 == 24 {
            let (violations, seconds) = (ledger.violations().len(), started.elapsed().as_secs());
            eprintln!(
                "  {} rounds, {kills} kills, {violations} violations, {seconds} s",
                number + 1
            );
        }
    }
    ledger.begin_round(plan.rounds.len());
    stage.finish().await;
    Report {
        rounds: plan.rounds.len(),
        kills,
        duration: started.elapsed(),
        counts: ledger.counts().into_iter().collect(),
        violations: ledger.violations(),
    }
}

/// Without the SDKs, our own client takes their place, so that the plan is the same.
fn cast(ledger: &Arc<Ledger>) -> Vec<Arc<Agent>> {
    let node = NodePlaces::find();
    if node.is_none() {
        println!("The SDKs are not installed (`cargo xtask test` does that): only our own client takes part.");
    }
    let agent = |(index, (role, program, _)): (usize, (Role, Program, usize))| {
        let sdk = (index + SDKS.len()).checked_sub(CAST.len()).map(|sdk| SDKS[sdk]);
        Arc::new(match (&node, sdk) {
            (Some(places), Some(sdk)) => Agent::in_node(places, sdk, index, role, program, ledger.clone()),
            _ => Agent::new(index, role, program, ledger.clone()),
        })
    };
    CAST.into_iter().enumerate().map(agent).collect()
}

impl Stage {
    async fn new(verbose: bool) -> Self {
        let mut sandbox = Sandbox::new("alongside-faults-");
        sandbox.set(agent::VARIABLE, "usual");
        let talk = Talk {
            before: Duration::ZERO,
            between: Duration::from_millis(2),
            words,
        };
        let daemon = FakeDaemon::start_talking(&sandbox.workspace(), talk).await;
        let scripted = serde_json::json!([std::env::current_exe().unwrap()]);
        sandbox.write_config(&format!(
            "[agents.scripted]\ncommand = {scripted}\nname = 'Scripted'\n[daemon]\nenabled = true\nurl = '{}'\n",
            daemon.url()
        ));
        texts::write_files(&sandbox, CAST.len());
        let clients = CAST.iter().map(|(_, _, client)| *client).collect();
        let ledger = Arc::new(Ledger::new(clients, verbose));
        let hands = |role| {
            let hand = |index| Arc::new(Hand::new(role, index, HANDS, ledger.clone()));
            (0..HANDS).map(hand).collect::<Vec<_>>()
        };
        let disk = Disk::mount(&sandbox.path("home/.local/state"));
        if disk.is_none() {
            println!("No mount namespace: the disk is made unwritable, but never full or read-only.");
        }
        Self {
            disk,
            sandbox,
            agents: cast(&ledger),
            hands: Role::ALL.map(hands),
            conversations: Role::ALL.map(|role| Arc::new(Mutex::new(Conversation::new(role, ledger.clone())))),
            daemon,
            ledger: ledger.clone(),
            companions: [None, None],
            endpoints: [None, None],
            proposals: Arc::default(),
        }
    }

    /// Starts a companion. It must start, unless the disk is a reason not to.
    pub(super) async fn start(&mut self, role: Role) {
        self.ledger.stopped();
        if let Err(failure) = self.try_start(role) {
            self.ledger
                .violated(Invariant::Alive, format!("{role:?} did not start: {failure:?}"));
            // A run without companions shows nothing.
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.try_start(role).expect("a companion that starts");
        }
        for hand in &self.hands[role.index()] {
            hand.disconnect().await;
        }
    }

    pub(super) fn try_start(&mut self, role: Role) -> Result<(), NotStarted> {
        let pid = std::process::id().to_string();
        let arguments: &[&str] = match role {
            Role::Serve => &["serve", "--json"],
            Role::Bridge => &["bridge", "--name", "ed", "--display-name", "The Editor", "--pid", &pid],
        };
        let process = Process::start(&self.sandbox, arguments)?;
        self.endpoints[role.index()] = Some(process.endpoints.clone());
        self.companions[role.index()] = Some(process);
        Ok(())
    }

    pub(super) fn kill(&mut self, role: Role) {
        if let Some(mut process) = self.companions[role.index()].take() {
            process.kill();
            self.ledger.count("companions killed");
        }
    }

    pub(super) async fn stop(&mut self, role: Role) {
        self.ledger.stopping(role);
        if let Some(process) = self.companions[role.index()].take() {
            self.ledger.count("companions stopped");
            if !process.stop(role == Role::Bridge).await {
                self.ledger
                    .violated(Invariant::Alive, format!("{role:?} did not stop within 30 s"));
            }
        }
    }

    pub(super) fn agents_of(&self, role: Role) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.iter().filter(move |agent| agent.role == role)
    }

    /// Lets the agents of a companion come back, each in its way.
    pub(super) async fn gather(&self, role: Role, returns: &[Return]) {
        let mut coming = JoinSet::new();
        for agent in self.agents_of(role) {
            let (agent, how) = (agent.clone(), returns[agent.index]);
            let endpoints = self.endpoints[role.index()].clone().unwrap();
            let ledger = self.ledger.clone();
            coming.spawn(async move {
                if let Err(error) = agent.come(&endpoints, how).await {
                    // As after `/ide enable`.
                    ledger.note(|| format!("agent {} cannot come back: {error:?}", agent.index));
                    if let Err(error) = agent.come(&endpoints, Return::NewSession).await {
                        let what = format!("agent {} cannot connect: {error:?}", agent.index);
                        ledger.violated(Invariant::Alive, what);
                    }
                }
            });
        }
        coming.join_all().await;
    }

    /// Everything works again: every agent gets an answer.
    async fn finish(&mut self) {
        for role in Role::ALL {
            let endpoints = self.endpoints[role.index()].clone().unwrap();
            self.inspect(role, false).await;
            for agent in self.agents_of(role).filter(|agent| !agent.is_listening()) {
                let _ = agent.come(&endpoints, Return::Resume).await;
            }
            self.hands[role.index()][0].reject_everything(&endpoints).await;
        }
        for role in Role::ALL {
            let endpoints = self.endpoints[role.index()].clone().unwrap();
            self.conversations[role.index()].lock().await.finish(&endpoints).await;
        }
        self.ledger.nobody_waits(GRACE).await;
        for role in Role::ALL {
            self.inspect(role, false).await;
        }
    }
}
