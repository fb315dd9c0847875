//! What will happen in a run, decided before it starts: the same seed is the same plan.
//!
//! The outcome still depends on timing. A plan says who acts when and what breaks when, not which review is open then: each
//! move carries a number that picks one of those that exist at that moment.

use std::time::Duration;

use alongside_testing::Dice;

/// The moves of a round happen within this time, and so does its fault.
const ROUND: u64 = 220;
const MOVES: u64 = 14;

/// Who takes part.
#[derive(Clone, Copy, Debug)]
pub struct Cast {
    /// Agents, those of the bridge included.
    pub agents: usize,
    /// Front ends of each companion.
    pub hands: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    pub rounds: Vec<Round>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Round {
    pub moves: Vec<(Duration, Move)>,
    pub fault: Fault,
    /// When the fault strikes.
    pub moment: Duration,
    /// How long the companion is down.
    pub down: Duration,
    /// How each agent comes back.
    pub returns: Vec<Return>,
    /// What is said in each companion's chat, if anything: the number of words in the answer.
    pub chat: [Option<u64>; 2],
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Move {
    Agent {
        agent: usize,
        does: AgentMove,
    },
    Hand {
        companion: Role,
        hand: usize,
        does: HandMove,
        pick: u64,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentMove {
    /// Proposes a change of about this many bytes. The number picks the file; if a proposal for it is pending, this is a
    /// revision.
    Propose { file: u64, bytes: usize },
    /// Closes a proposal, because it was decided in the agent's terminal.
    Close { pick: u64 },
    /// Loses its event stream, and opens another after a while.
    CutStream { apart: Duration, returns: Return },
    /// Ends its session properly and starts another.
    Leave,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandMove {
    Edit,
    Hunk,
    AcceptDraft,
    AcceptText,
    Reject,
}

/// The companions of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Role {
    Serve,
    Bridge,
}

impl Role {
    pub const ALL: [Self; 2] = [Self::Serve, Self::Bridge];

    pub fn index(self) -> usize {
        match self {
            Self::Serve => 0,
            Self::Bridge => 1,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    Kill(Role),
    /// Event streams are cut first, and decisions made while they are.
    CutThenKill(Role),
    /// SIGTERM to `serve`, the end of stdin to the bridge.
    Stop(Role),
    CutThenStop(Role),
    KillLocalAgent,
    KillDaemon,
    /// The state directory's disk is full during the round; the companion may be killed before there is space again.
    FullDisk {
        kill: bool,
    },
    /// The companion cannot write any file during the round.
    Unwritable {
        kill: bool,
    },
    /// The companion is killed and started on a read-only disk, then killed again.
    ReadOnlyDisk,
}

impl Fault {
    /// How many processes it kills.
    pub fn kills(self) -> usize {
        match self {
            Self::Stop(_) | Self::CutThenStop(_) => 0,
            Self::Kill(_) | Self::CutThenKill(_) | Self::KillLocalAgent | Self::KillDaemon => 1,
            Self::FullDisk { kill } | Self::Unwritable { kill } => usize::from(kill),
            Self::ReadOnlyDisk => 2,
        }
    }

    /// The companion that it concerns.
    pub fn role(self) -> Role {
        match self {
            Self::Kill(role) | Self::CutThenKill(role) | Self::Stop(role) | Self::CutThenStop(role) => role,
            Self::KillDaemon => Role::Bridge,
            Self::KillLocalAgent | Self::FullDisk { .. } | Self::Unwritable { .. } | Self::ReadOnlyDisk => Role::Serve,
        }
    }
}

/// How an agent opens its next event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Return {
    /// With `Last-Event-ID`.
    Resume,
    /// In the same session, without `Last-Event-ID`.
    Forgetful,
    /// As a new session of the same client, like `/ide enable`.
    NewSession,
    /// Resumes a while after the others.
    Late(Duration),
}

impl Plan {
    pub fn new(seed: u64, kills: usize, cast: Cast) -> Self {
        let mut dice = Dice::new(seed);
        let mut rounds = Vec::new();
        let mut planned = 0;
        while planned < kills {
            let round = Round::new(&mut dice, cast);
            planned += round.fault.kills();
            rounds.push(round);
        }
        Self { rounds }
    }
}

impl Round {
    fn new(dice: &mut Dice, cast: Cast) -> Self {
        let fault = dice.pick(&[
            (30, Fault::Kill(Role::Serve)),
            (25, Fault::CutThenKill(Role::Serve)),
            (8, Fault::Kill(Role::Bridge)),
            (8, Fault::CutThenKill(Role::Bridge)),
            (6, Fault::Stop(Role::Serve)),
            (4, Fault::CutThenStop(Role::Serve)),
            (3, Fault::Stop(Role::Bridge)),
            (5, Fault::KillLocalAgent),
            (5, Fault::KillDaemon),
            (2, Fault::FullDisk { kill: false }),
            (3, Fault::FullDisk { kill: true }),
            (2, Fault::Unwritable { kill: false }),
            (3, Fault::Unwritable { kill: true }),
            (2, Fault::ReadOnlyDisk),
        ]);
        let mut moves: Vec<(Duration, Move)> = (0..4 + dice.below(MOVES))
            .map(|_| (dice.milliseconds(ROUND), Move::new(dice, cast)))
            .collect();
        moves.sort_by_key(|(moment, _)| *moment);
        Self {
            moves,
            fault,
            moment: dice.milliseconds(ROUND),
            down: dice.milliseconds(60),
            returns: (0..cast.agents).map(|_| Return::new(dice)).collect(),
            chat: [0, 1].map(|_| (dice.below(2) == 0).then(|| 5 + dice.below(20))),
        }
    }
}

impl Move {
    fn new(dice: &mut Dice, cast: Cast) -> Self {
        if dice.below(2) == 0 {
            let agent = usize::try_from(dice.below(cast.agents as u64)).unwrap();
            return Self::Agent {
                agent,
                does: AgentMove::new(dice),
            };
        }
        let does = dice.pick(&[
            (3, HandMove::Edit),
            (3, HandMove::Hunk),
            (3, HandMove::AcceptDraft),
            (2, HandMove::AcceptText),
            (3, HandMove::Reject),
        ]);
        Self::Hand {
            companion: dice.pick(&[(3, Role::Serve), (1, Role::Bridge)]),
            hand: usize::try_from(dice.below(cast.hands as u64)).unwrap(),
            does,
            pick: dice.roll(),
        }
    }
}

impl AgentMove {
    fn new(dice: &mut Dice) -> Self {
        const KIBIBYTE: u64 = 1024;
        match dice.below(20) {
            0 => Self::Close { pick: dice.roll() },
            1 | 2 => Self::CutStream {
                apart: dice.milliseconds(150),
                returns: dice.pick(&[(3, Return::Resume), (1, Return::Forgetful)]),
            },
            3 if dice.below(3) == 0 => Self::Leave,
            _ => {
                let bytes = match dice.below(40) {
                    0 => 1024 * KIBIBYTE + dice.below(3 * 1024 * KIBIBYTE),
                    1..=4 => 50 * KIBIBYTE + dice.below(300 * KIBIBYTE),
                    _ => KIBIBYTE + dice.below(8 * KIBIBYTE),
                };
                Self::Propose {
                    file: dice.roll(),
                    bytes: usize::try_from(bytes).unwrap(),
                }
            }
        }
    }
}

impl Return {
    fn new(dice: &mut Dice) -> Self {
        let late = Self::Late(Duration::from_millis(100) + dice.milliseconds(400));
        dice.pick(&[
            (12, Self::Resume),
            (4, Self::Forgetful),
            (1, Self::NewSession),
            (3, late),
        ])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAST: Cast = Cast { agents: 5, hands: 2 };

    #[test]
    fn same_seed_is_the_same_plan() {
        assert_eq!(Plan::new(3, 100, CAST), Plan::new(3, 100, CAST));
        assert_ne!(Plan::new(3, 100, CAST), Plan::new(4, 100, CAST));
    }

    #[test]
    fn plan_has_the_wanted_number_of_kills_and_every_fault() {
        let plan = Plan::new(1, 1000, CAST);
        let kills: usize = plan.rounds.iter().map(|round| round.fault.kills()).sum();
        assert!((1000..=1001).contains(&kills));
        for fault in [
            Fault::Stop(Role::Serve),
            Fault::KillDaemon,
            Fault::FullDisk { kill: true },
            Fault::ReadOnlyDisk,
        ] {
            assert!(plan.rounds.iter().any(|round| round.fault == fault), "{fault:?}");
        }
    }
}
