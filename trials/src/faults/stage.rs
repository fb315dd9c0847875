//! A run: the sandbox, the companions in it, everybody who takes part, and the rounds.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use alongside_testing::chat::words;
use alongside_testing::daemon::Talk;
use alongside_testing::{FakeDaemon, Sandbox, agent};
use rustix::process::{Signal, kill_process};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::agent::{Agent, GEMINI, OTHER, QWEN};
use super::conversation::Conversation;
use super::disk::Disk;
use super::hand::Hand;
use super::invariant::Invariant;
use super::ledger::Ledger;
use super::plan::{AgentMove, Cast, Fault, Move, Plan, Return, Role, Round};
use super::texts;
use crate::program::{Endpoints, NotStarted, Process};

/// How long a decision may take to arrive once its agent listens.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long the companion keeps the sessions of agents that do not come back, and some more.
const GRACE: Duration = Duration::from_secs(45);
/// How long until work resumes when there is space again.
const RESUME: Duration = Duration::from_secs(10);

/// How long a front end watches the chat in a round.
const TALK: Duration = Duration::from_millis(300);

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

struct Stage {
    sandbox: Sandbox,
    disk: Option<Disk>,
    ledger: Arc<Ledger>,
    agents: Vec<Arc<Agent>>,
    hands: [Vec<Arc<Hand>>; 2],
    conversations: [Arc<Mutex<Conversation>>; 2],
    daemon: FakeDaemon,
    companions: [Option<Process>; 2],
    /// Where the companions listen, or listened last.
    endpoints: [Option<Endpoints>; 2],
    proposals: Arc<AtomicU64>,
}

pub async fn run(options: &Options) -> Report {
    let started = Instant::now();
    let cast = [
        (Role::Serve, GEMINI, 0),
        (Role::Serve, GEMINI, 0),
        (Role::Serve, QWEN, 1),
        (Role::Serve, QWEN, 1),
        (Role::Serve, OTHER, 2),
        (Role::Bridge, GEMINI, 3),
        (Role::Bridge, QWEN, 4),
    ];
    let plan = Plan::new(
        options.seed,
        options.kills,
        Cast {
            agents: cast.len(),
            hands: HANDS,
        },
    );
    let clients = cast.iter().map(|(_, _, client)| *client).collect();
    let ledger = Arc::new(Ledger::new(clients, options.verbose));
    let agent = |(index, (role, program, _))| Arc::new(Agent::new(index, role, program, ledger.clone()));
    let hands = |role| {
        let hand = |index| Arc::new(Hand::new(role, index, HANDS, ledger.clone()));
        (0..HANDS).map(hand).collect::<Vec<_>>()
    };
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
    texts::write_files(&sandbox, cast.len());
    let mut stage = Stage {
        disk: Disk::mount(&sandbox.path("home/.local/state")),
        sandbox,
        agents: cast.into_iter().enumerate().map(agent).collect(),
        hands: Role::ALL.map(hands),
        conversations: Role::ALL.map(|role| Arc::new(Mutex::new(Conversation::new(role, ledger.clone())))),
        daemon,
        ledger: ledger.clone(),
        companions: [None, None],
        endpoints: [None, None],
        proposals: Arc::default(),
    };
    if stage.disk.is_none() {
        println!("No mount namespace: the disk is made unwritable, but never full or read-only.");
    }
    for role in Role::ALL {
        stage.start(role).await;
        stage.gather(role, &vec![Return::Resume; stage.agents.len()]).await;
        stage.begin_chat(role).await;
    }
    let mut kills = 0;
    for (number, round) in plan.rounds.iter().enumerate() {
        ledger.begin_round(number);
        ledger.note(|| format!("{:?} after {:?}", round.fault, round.moment));
        stage.play(round).await;
        kills += round.fault.kills();
        if number % 25 == 24 {
            let violations = ledger.violations().len();
            eprintln!(
                "  {} rounds, {kills} kills, {violations} violations, {:.0} s",
                number + 1,
                started.elapsed().as_secs_f64()
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

impl Stage {
    /// Starts a companion. It must start, unless the disk is a reason not to.
    async fn start(&mut self, role: Role) {
        if let Err(NotStarted(errors)) = self.try_start(role) {
            self.ledger
                .violated(Invariant::Alive, format!("{role:?} did not start: {errors}"));
            // A run without companions shows nothing.
            tokio::time::sleep(Duration::from_secs(1)).await;
            self.try_start(role).expect("a companion that starts");
        }
        for hand in &self.hands[role.index()] {
            hand.disconnect().await;
        }
    }

    fn try_start(&mut self, role: Role) -> Result<(), NotStarted> {
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

    fn kill(&mut self, role: Role) {
        if let Some(mut process) = self.companions[role.index()].take() {
            process.kill();
            self.ledger.count("companions killed");
        }
    }

    async fn stop(&mut self, role: Role) {
        self.ledger.stopping(role);
        if let Some(process) = self.companions[role.index()].take() {
            self.ledger.count("companions stopped");
            if !process.stop(role == Role::Bridge).await {
                self.ledger
                    .violated(Invariant::Alive, format!("{role:?} did not stop within 30 s"));
            }
        }
    }

    fn agents_of(&self, role: Role) -> impl Iterator<Item = &Arc<Agent>> {
        self.agents.iter().filter(move |agent| agent.role == role)
    }

    /// Lets the agents of a companion come back, each in its way.
    async fn gather(&self, role: Role, returns: &[Return]) {
        let mut coming = JoinSet::new();
        for agent in self.agents_of(role) {
            let (agent, how) = (agent.clone(), returns[agent.index]);
            let endpoints = self.endpoints[role.index()].clone().unwrap();
            let ledger = self.ledger.clone();
            coming.spawn(async move {
                if let Err(error) = agent.come(&endpoints, how).await {
                    // As after `/ide enable`.
                    ledger.note(|| format!("agent {} cannot come back: {error}", agent.index));
                    if let Err(error) = agent.come(&endpoints, Return::NewSession).await {
                        let what = format!("agent {} cannot connect: {error}", agent.index);
                        ledger.violated(Invariant::Alive, what);
                    }
                }
            });
        }
        coming.join_all().await;
    }

    async fn play(&mut self, round: &Round) {
        let disk = self.break_disk(round.fault);
        let mut moves = self.start_moves(round);
        tokio::time::sleep(round.moment).await;
        self.strike(round, &mut moves).await;
        if disk {
            self.mend_disk(round, &mut moves).await;
        }
        // Requests to a companion that is gone fail at once.
        while moves.join_next().await.is_some() {}
        for role in Role::ALL {
            self.inspect(role, false).await;
        }
        let mut sessions = HashMap::new();
        let mut listening = Vec::new();
        for agent in &self.agents {
            sessions.insert(agent.index, agent.session());
            if agent.is_listening() {
                listening.push(agent.index);
            }
        }
        self.ledger.deliveries(&listening, PATIENCE, &sessions).await;
    }

    fn start_moves(&self, round: &Round) -> JoinSet<()> {
        let mut moves = JoinSet::new();
        for (moment, action) in round.moves.clone() {
            match action {
                Move::Agent { agent, does } => {
                    let agent = self.agents[agent].clone();
                    let endpoints = self.endpoints[agent.role.index()].clone().unwrap();
                    let number = self.proposals.fetch_add(1, Ordering::Relaxed);
                    let work = match does {
                        AgentMove::Propose { file, bytes } => {
                            let path = texts::path(&self.sandbox, agent.index, file);
                            let text = texts::proposal(agent.index, number, bytes);
                            Some((path.to_str().unwrap().to_owned(), text))
                        }
                        _ => None,
                    };
                    moves.spawn(async move {
                        tokio::time::sleep(moment).await;
                        match does {
                            AgentMove::Propose { .. } => {
                                let (path, text) = work.unwrap();
                                agent.propose(&path, text).await;
                            }
                            AgentMove::Close { pick } => agent.close(pick).await,
                            AgentMove::CutStream { apart, returns } => {
                                agent.cut();
                                tokio::time::sleep(apart).await;
                                let _ = agent.reopen(returns == Return::Resume).await;
                            }
                            AgentMove::Leave => agent.leave(&endpoints).await,
                        }
                    });
                }
                Move::Hand {
                    companion,
                    hand,
                    does,
                    pick,
                } => {
                    let hand = self.hands[companion.index()][hand].clone();
                    let endpoints = self.endpoints[companion.index()].clone().unwrap();
                    moves.spawn(async move {
                        tokio::time::sleep(moment).await;
                        hand.act(&endpoints, does, pick).await;
                    });
                }
            }
        }
        for role in Role::ALL {
            let conversation = self.conversations[role.index()].clone();
            let (endpoints, words) = (self.endpoints[role.index()].clone().unwrap(), round.chat[role.index()]);
            moves.spawn(async move { conversation.lock().await.talk(&endpoints, words, TALK).await });
        }
        moves
    }

    async fn begin_chat(&self, role: Role) {
        let endpoints = self.endpoints[role.index()].clone().unwrap();
        self.conversations[role.index()].lock().await.begin(&endpoints).await;
    }

    async fn inspect_chat(&self, role: Role) {
        let endpoints = self.endpoints[role.index()].clone().unwrap();
        self.conversations[role.index()].lock().await.inspect(&endpoints).await;
    }

    async fn strike(&mut self, round: &Round, moves: &mut JoinSet<()>) {
        let role = round.fault.role();
        match round.fault {
            Fault::CutThenKill(_) | Fault::CutThenStop(_) => {
                for agent in self.agents_of(role) {
                    if !agent.index.is_multiple_of(3) {
                        agent.cut();
                    }
                }
                // Decisions are made while no stream can carry them.
                self.decide_some(role, round).await;
            }
            _ => {}
        }
        match round.fault {
            Fault::Kill(_) | Fault::CutThenKill(_) => {
                self.kill(role);
                while moves.join_next().await.is_some() {}
                tokio::time::sleep(round.down).await;
                self.start(role).await;
                self.inspect(role, false).await;
                tokio::join!(self.gather(role, &round.returns), self.inspect_chat(role));
            }
            Fault::Stop(_) | Fault::CutThenStop(_) => {
                self.stop(role).await;
                while moves.join_next().await.is_some() {}
                tokio::time::sleep(round.down).await;
                self.start(role).await;
                self.inspect(role, true).await;
                tokio::join!(self.gather(role, &round.returns), self.inspect_chat(role));
                // After a clean stop the chat waits for a front end.
                self.begin_chat(role).await;
            }
            Fault::KillLocalAgent => {
                for child in self.companions[role.index()]
                    .as_ref()
                    .map(Process::children)
                    .unwrap_or_default()
                {
                    // It may have exited just now.
                    let _ = kill_process(child, Signal::KILL);
                }
                self.inspect_chat(role).await;
            }
            Fault::KillDaemon => {
                self.daemon.kill().await;
                tokio::time::sleep(round.down).await;
                self.daemon.revive().await;
                self.inspect_chat(role).await;
            }
            Fault::FullDisk { .. } | Fault::Unwritable { .. } | Fault::ReadOnlyDisk => {}
        }
    }

    async fn decide_some(&self, role: Role, round: &Round) {
        use super::plan::HandMove::{AcceptDraft, AcceptText, Reject};
        let endpoints = self.endpoints[role.index()].clone().unwrap();
        for (hand, does) in self.hands[role.index()]
            .iter()
            .zip([AcceptText, Reject, AcceptDraft].iter().cycle())
        {
            let pick = u64::try_from(round.moment.as_nanos()).unwrap_or_default();
            hand.act(&endpoints, *does, pick).await;
        }
    }

    /// Breaks the disk before the moves of a round; `false` if this round has nothing to do with it.
    fn break_disk(&mut self, fault: Fault) -> bool {
        match (fault, &self.disk) {
            (Fault::FullDisk { .. }, Some(disk)) => disk.fill(),
            (Fault::Unwritable { .. }, _) | (Fault::FullDisk { .. }, None) => {
                for process in self.companions.iter().flatten() {
                    process.set_writable(false);
                }
            }
            (Fault::ReadOnlyDisk, Some(_)) => {
                // No file may be open for writing.
                for role in Role::ALL {
                    self.kill(role);
                }
                if let Some(disk) = &self.disk {
                    disk.set_read_only(true);
                }
                for role in Role::ALL {
                    self.start_or_refuse(role);
                }
            }
            _ => return false,
        }
        self.ledger.count("disks broken");
        true
    }

    /// Starts a companion that may refuse to, in a sentence.
    fn start_or_refuse(&mut self, role: Role) {
        if let Err(NotStarted(errors)) = self.try_start(role) {
            self.ledger.count("starts refused");
            if errors.trim().len() < 20 || errors.contains("panicked") {
                let what = format!("{role:?} did not start, and did not say why: {errors:?}");
                self.ledger.violated(Invariant::Disk, what);
            }
        }
    }

    async fn mend_disk(&mut self, round: &Round, moves: &mut JoinSet<()>) {
        let kill = match round.fault {
            Fault::FullDisk { kill } | Fault::Unwritable { kill } => kill,
            _ => true,
        };
        if !kill {
            while moves.join_next().await.is_some() {}
        }
        if kill {
            for role in Role::ALL {
                self.kill(role);
            }
            while moves.join_next().await.is_some() {}
            // A companion that starts while the disk is full, or says why not.
            if matches!(round.fault, Fault::FullDisk { .. }) && self.disk.is_some() {
                for role in Role::ALL {
                    self.start_or_refuse(role);
                    self.kill(role);
                }
            }
        }
        if let Some(disk) = &self.disk {
            if round.fault == Fault::ReadOnlyDisk {
                disk.set_read_only(false);
            }
            disk.free();
        }
        for role in Role::ALL {
            match &self.companions[role.index()] {
                Some(process) => process.set_writable(true),
                None => self.start(role).await,
            }
            self.inspect(role, false).await;
            tokio::join!(self.gather(role, &round.returns), self.inspect_chat(role));
            self.resume_work(role).await;
        }
    }

    /// A proposal is acknowledged again, soon.
    async fn resume_work(&self, role: Role) {
        let agent = self.agents_of(role).next().unwrap();
        let path = self.sandbox.file(&format!("agent{}/resumed.txt", agent.index));
        let start = Instant::now();
        loop {
            let before = self.acknowledged();
            let number = self.proposals.fetch_add(1, Ordering::Relaxed);
            let text = texts::proposal(agent.index, number, 2000);
            agent.propose(path.to_str().unwrap(), text).await;
            if self.acknowledged() > before {
                return;
            }
            if start.elapsed() > RESUME {
                self.ledger
                    .violated(Invariant::Disk, format!("{role:?} does not resume work"));
                return;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    fn acknowledged(&self) -> usize {
        let counts = self.ledger.counts();
        counts.get("proposals acknowledged").copied().unwrap_or_default()
    }

    async fn inspect(&self, role: Role, after_stop: bool) {
        let Some(endpoints) = &self.endpoints[role.index()] else {
            return;
        };
        let pending = self.hands[role.index()][0].pending(endpoints).await;
        self.ledger.inspect(role, &pending, after_stop);
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
