//! One round: moves by agents and front ends, a fault in between, and what must hold afterwards.

use std::collections::HashMap;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use rustix::process::{Signal, kill_process};
use tokio::task::JoinSet;

use super::invariant::Invariant;
use super::plan::{AgentMove, Fault, Move, Role, Round};
use super::stage::Stage;
use super::texts;
use crate::program::{NotStarted, Process};

/// How long a decision may take to arrive once its agent listens.
const PATIENCE: Duration = Duration::from_secs(8);
/// How long until work resumes when there is space again.
const RESUME: Duration = Duration::from_secs(10);
/// How long a front end watches the chat in a round.
const TALK: Duration = Duration::from_millis(300);

impl Stage {
    pub(super) async fn play(&mut self, round: &Round) {
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
            sessions.insert(agent.index, agent.session().await);
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
                                agent.cut().await;
                                tokio::time::sleep(apart).await;
                                let _ = agent.come(&endpoints, returns).await;
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

    pub(super) async fn begin_chat(&self, role: Role) {
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
                        agent.cut().await;
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
        if let Err(NotStarted { status, errors }) = self.try_start(role) {
            self.ledger.count("starts refused");
            if errors.trim().len() < 20 || errors.contains("panicked") {
                let what = format!("{role:?} did not start ({status}), and did not say why: {errors:?}");
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

    pub(super) async fn inspect(&self, role: Role, after_stop: bool) {
        let Some(endpoints) = &self.endpoints[role.index()] else {
            return;
        };
        let pending = self.hands[role.index()][0].pending(endpoints).await;
        self.ledger.inspect(role, &pending, after_stop);
    }
}
