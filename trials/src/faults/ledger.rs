//! What was acknowledged to whom, and everything that must follow from it.
//!
//! Agents and front ends record each request before they send it and its response when it comes. A request without a response
//! (the companion was killed) may have been carried out or not; the next [inspection](Ledger::inspect) finds out which.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::invariant::Invariant;
use super::plan::Role;

#[derive(Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// `None`: the draft, whose text is not known to us.
    Accepted(Option<Arc<str>>),
    Rejected,
}

impl Decision {
    /// Whether one may be the other, as far as we know.
    pub(super) fn matches(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Rejected, Self::Rejected)
            | (Self::Accepted(None), Self::Accepted(_))
            | (Self::Accepted(_), Self::Accepted(None)) => true,
            (Self::Accepted(Some(left)), Self::Accepted(Some(right))) => left == right,
            _ => false,
        }
    }
}

impl fmt::Debug for Decision {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted(Some(text)) => write!(formatter, "accepted ({} bytes)", text.len()),
            Self::Accepted(None) => write!(formatter, "accepted"),
            Self::Rejected => write!(formatter, "rejected"),
        }
    }
}

/// How far a request is known to have gone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Known<T> {
    /// Never requested, or known not to have happened.
    No,
    /// Requested without a response.
    Perhaps(T),
    Yes(T),
}

/// What came of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer<T = ()> {
    Done(T),
    /// Refused, so nothing may have changed.
    Refused,
    /// There was no response: it may have been carried out.
    Lost,
}

impl<T> Answer<T> {
    pub(super) fn map<U>(self, with: impl FnOnce(T) -> U) -> Answer<U> {
        match self {
            Self::Done(done) => Answer::Done(with(done)),
            Self::Refused => Answer::Refused,
            Self::Lost => Answer::Lost,
        }
    }
}

/// A draft after an edit.
#[derive(Clone, Debug)]
pub(super) enum Text {
    Known(Arc<str>),
    /// A hunk was decided; what that makes of the text is the companion's business.
    Unknown,
}

pub(super) type ProposalId = usize;

#[expect(clippy::struct_excessive_bools, reason = "independent facts")]
pub(super) struct Proposal {
    pub(super) role: Role,
    pub(super) agent: usize,
    pub(super) session: String,
    pub(super) path: String,
    pub(super) text: Arc<str>,
    pub(super) sent: Instant,
    pub(super) opened: Known<()>,
    /// Whether the agent's table has it: it hangs until it receives a decision.
    pub(super) waiting: bool,
    /// Closed or replaced by the agent.
    pub(super) closed: Known<()>,
    /// A later proposal was a revision of the same review.
    pub(super) replaced: bool,
    pub(super) decided: Known<Decision>,
    /// The companion may reject it on its own: it was stopped, or the agent started another session.
    pub(super) may_be_rejected: bool,
    pub(super) received: Option<Decision>,
    pub(super) version: u64,
    pub(super) draft: Option<Arc<str>>,
    /// An edit without a response.
    pub(super) edit: Option<Text>,
    /// A violation was reported; nothing more is expected.
    pub(super) given_up: bool,
    pub(super) busy: bool,
}

impl Proposal {
    pub(super) fn is_live(&self) -> bool {
        self.opened != Known::No && self.closed == Known::No && self.decided == Known::No && !self.given_up
    }

    pub(super) fn name(&self) -> String {
        let file = self.path.rsplit('/').next().unwrap_or_default();
        let directory = self.path.rsplit('/').nth(1).unwrap_or_default();
        format!("agent {}'s {directory}/{file} ({} bytes)", self.agent, self.text.len())
    }
}

/// A pending review, as a front end sees it.
pub(super) struct Seen {
    pub review: u64,
    pub session: String,
    pub path: String,
    pub version: u64,
    pub proposal: Arc<str>,
    pub draft: Arc<str>,
}

#[derive(Default)]
pub(super) struct Books {
    pub(super) proposals: Vec<Proposal>,
    /// The latest proposal of the review with this number.
    pub(super) numbers: HashMap<(Role, u64), ProposalId>,
    pub(super) violations: Vec<(usize, Invariant, String)>,
    pub(super) counts: BTreeMap<&'static str, usize>,
    pub(super) round: usize,
    pub(super) stopping: Option<Role>,
    /// Which agents are the same program, by client info: orphans are rejected through any of its sessions.
    pub(super) clients: Vec<usize>,
}

pub(super) struct Ledger {
    books: Mutex<Books>,
    changed: Notify,
    verbose: bool,
    started: Instant,
}

impl Books {
    pub(super) fn violated(&mut self, invariant: Invariant, what: String) {
        eprintln!("  round {}: VIOLATION ({invariant:?}): {what}", self.round);
        self.violations.push((self.round, invariant, what));
    }

    pub(super) fn count(&mut self, what: &'static str) {
        *self.counts.entry(what).or_default() += 1;
    }

    pub(super) fn newest(&self, is_wanted: impl Fn(&Proposal) -> bool) -> Option<ProposalId> {
        self.proposals.iter().rposition(is_wanted)
    }
}

impl Ledger {
    /// `clients[i]` identifies the program that agent `i` claims to be.
    pub(super) fn new(clients: Vec<usize>, verbose: bool) -> Self {
        let books = Books {
            clients,
            ..Books::default()
        };
        Self {
            books: Mutex::new(books),
            changed: Notify::new(),
            verbose,
            started: Instant::now(),
        }
    }

    pub(super) fn begin_round(&self, round: usize) {
        self.books.lock().round = round;
    }

    pub(super) fn violated(&self, invariant: Invariant, what: impl Into<String>) {
        self.books.lock().violated(invariant, what.into());
    }

    pub(super) fn count(&self, what: &'static str) {
        self.books.lock().count(what);
    }

    pub(super) fn violations(&self) -> Vec<(usize, Invariant, String)> {
        self.books.lock().violations.clone()
    }

    pub(super) fn counts(&self) -> BTreeMap<&'static str, usize> {
        self.books.lock().counts.clone()
    }

    pub(super) fn note(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            let round = self.books.lock().round;
            eprintln!(
                "  {:>8.3} round {round}: {}",
                self.started.elapsed().as_secs_f64(),
                what()
            );
        }
    }

    // ---- the agents' side

    /// An agent is about to propose. `None` if a front end is busy with the path.
    pub(super) fn proposing(
        &self,
        role: Role,
        agent: usize,
        session: &str,
        path: &str,
        text: Arc<str>,
    ) -> Option<ProposalId> {
        let mut books = self.books.lock();
        let is_busy = books
            .proposals
            .iter()
            .any(|proposal| proposal.busy && proposal.agent == agent && proposal.path == path);
        if is_busy {
            return None;
        }
        let may_be_rejected = books.stopping == Some(role);
        books.proposals.push(Proposal {
            role,
            agent,
            session: session.to_owned(),
            path: path.to_owned(),
            text: text.clone(),
            sent: Instant::now(),
            opened: Known::Perhaps(()),
            waiting: true,
            closed: Known::No,
            replaced: false,
            decided: Known::No,
            may_be_rejected,
            received: None,
            version: 0,
            draft: Some(text),
            edit: None,
            given_up: false,
            busy: true,
        });
        Some(books.proposals.len() - 1)
    }

    pub(super) fn proposed(&self, id: ProposalId, answer: Answer) {
        let mut books = self.books.lock();
        let (agent, path, session) = {
            let proposal = &mut books.proposals[id];
            proposal.busy = false;
            match answer {
                Answer::Done(()) => proposal.opened = Known::Yes(()),
                Answer::Refused => proposal.opened = Known::No,
                Answer::Lost => {}
            }
            // An agent whose request failed does not wait.
            proposal.waiting = answer == Answer::Done(()) && proposal.received.is_none();
            (proposal.agent, proposal.path.clone(), proposal.session.clone())
        };
        books.count(match answer {
            Answer::Done(()) => "proposals acknowledged",
            Answer::Refused => "proposals refused",
            Answer::Lost => "proposals without a response",
        });
        // The agent's table is by path: it no longer waits for the previous one, whatever the response.
        for previous in &mut books.proposals[..id] {
            if previous.agent == agent && previous.path == path {
                previous.waiting = false;
                if answer != Answer::Refused && previous.session == session && previous.is_live() {
                    previous.replaced = true;
                    previous.closed = if answer == Answer::Done(()) {
                        Known::Yes(())
                    } else {
                        Known::Perhaps(())
                    };
                }
            }
        }
    }

    /// The path of something that the agent is waiting for. Not of one that it is revising: it would close the revision.
    pub(super) fn waiting_path(&self, agent: usize, pick: u64) -> Option<(ProposalId, String)> {
        let books = self.books.lock();
        let own: Vec<usize> = (0..books.proposals.len())
            .filter(|id| books.proposals[*id].agent == agent)
            .collect();
        let is_busy = |path: &str| {
            let mut same = own.iter().map(|id| &books.proposals[*id]);
            same.any(|proposal| proposal.path == path && proposal.busy)
        };
        let waiting: Vec<usize> = own
            .iter()
            .copied()
            .filter(|id| {
                let proposal = &books.proposals[*id];
                proposal.waiting && proposal.is_live() && !is_busy(&proposal.path)
            })
            .collect();
        let id = *waiting.get(usize::try_from(pick % waiting.len().max(1) as u64).unwrap())?;
        Some((id, books.proposals[id].path.clone()))
    }

    /// The agent closes a proposal, and no longer waits for it. `false` if that was of another session: the companion does not
    /// know then which one is meant.
    pub(super) fn closing(&self, id: ProposalId, session: &str) -> bool {
        let mut books = self.books.lock();
        let proposal = &mut books.proposals[id];
        proposal.waiting = false;
        let is_own = proposal.session == session;
        if is_own {
            (proposal.closed, proposal.busy) = (Known::Perhaps(()), true);
        }
        is_own
    }

    pub(super) fn closed(&self, id: ProposalId, answer: Answer) {
        let mut books = self.books.lock();
        let proposal = &mut books.proposals[id];
        proposal.busy = false;
        match answer {
            Answer::Done(()) => proposal.closed = Known::Yes(()),
            Answer::Refused => proposal.closed = Known::No,
            Answer::Lost => {}
        }
    }

    /// The agent starts another session; the proposals of the previous one are no longer its session's.
    pub(super) fn abandoned(&self, agent: usize) {
        for proposal in &mut self.books.lock().proposals {
            if proposal.agent == agent {
                proposal.may_be_rejected = true;
            }
        }
    }

    /// The agent ended its session: nothing waits.
    pub(super) fn left(&self, agent: usize) {
        for proposal in &mut self.books.lock().proposals {
            if proposal.agent == agent {
                proposal.waiting = false;
                if proposal.closed == Known::No {
                    proposal.closed = Known::Perhaps(());
                }
            }
        }
    }

    /// A decision arrived on an agent's event stream.
    pub(super) fn received(&self, agent: usize, session: &str, path: &str, decision: &Decision) {
        let mut books = self.books.lock();
        books.count("decisions received");
        books.receive(agent, session, path, decision);
        drop(books);
        self.changed.notify_waiters();
    }

    // ---- the front ends' side

    /// Reserves the proposal behind a pending review for a front end. `None` if it is not to be touched now.
    pub(super) fn reserve(&self, role: Role, session: &str, path: &str) -> Option<(ProposalId, u64, Option<Arc<str>>)> {
        let mut books = self.books.lock();
        let id = books.newest(|proposal| {
            proposal.role == role
                && proposal.session == session
                && proposal.path == path
                && proposal.opened != Known::No
        })?;
        let proposal = &mut books.proposals[id];
        // An edit or a proposal without a response is sorted out by an inspection first.
        if proposal.busy || !proposal.is_live() || proposal.edit.is_some() || proposal.opened != Known::Yes(()) {
            return None;
        }
        proposal.busy = true;
        Some((id, proposal.version, proposal.draft.clone()))
    }

    pub(super) fn release(&self, id: ProposalId) {
        self.books.lock().proposals[id].busy = false;
    }

    /// An edit is about to be sent.
    pub(super) fn editing(&self, id: ProposalId, text: Text) {
        self.books.lock().proposals[id].edit = Some(text);
    }

    /// An edit was answered with the version of the draft.
    pub(super) fn edited(&self, id: ProposalId, answer: Answer<(u64, Text)>) {
        let mut books = self.books.lock();
        let proposal = &mut books.proposals[id];
        proposal.busy = false;
        match answer {
            Answer::Done((version, text)) => {
                proposal.draft = match text {
                    Text::Known(text) => Some(text),
                    Text::Unknown => None,
                };
                (proposal.version, proposal.edit) = (version, None);
                books.count("edits acknowledged");
            }
            Answer::Refused => proposal.edit = None,
            Answer::Lost => {}
        }
    }

    pub(super) fn deciding(&self, id: ProposalId, decision: Decision) {
        self.books.lock().proposals[id].decided = Known::Perhaps(decision);
    }

    pub(super) fn decided(&self, id: ProposalId, answer: Answer) {
        let mut books = self.books.lock();
        let proposal = &mut books.proposals[id];
        proposal.busy = false;
        // It may have arrived already.
        if proposal.received.is_none() {
            proposal.decided = match (std::mem::replace(&mut proposal.decided, Known::No), answer) {
                (Known::Perhaps(decision), Answer::Done(())) => Known::Yes(decision),
                (Known::Perhaps(_), Answer::Refused) => Known::No,
                (known, _) => known,
            };
        }
        if answer == Answer::Done(()) {
            books.count("decisions acknowledged");
        }
    }

    // ---- checks

    /// A clean stop is about to begin: it rejects what is pending, and what comes in until it is over.
    pub(super) fn stopping(&self, role: Role) {
        let mut books = self.books.lock();
        books.stopping = Some(role);
        for proposal in &mut books.proposals {
            if proposal.role == role {
                proposal.may_be_rejected = true;
            }
        }
    }

    /// Nothing is stopping any more.
    pub(super) fn stopped(&self) {
        self.books.lock().stopping = None;
    }

    /// Compares the pending reviews of a companion with what was acknowledged. Nothing else is under way.
    pub(super) fn inspect(&self, role: Role, pending: &[Seen], after_stop: bool) {
        let mut books = self.books.lock();
        let mut found = vec![false; books.proposals.len()];
        for seen in pending {
            if after_stop {
                let what = format!("review {} of {} is pending after a clean stop", seen.review, seen.path);
                books.violated(Invariant::Stopped, what);
            }
            if let Some(id) = books.inspect_review(role, seen) {
                found[id] = true;
                books.inspect_number(role, seen.review, id);
            }
        }
        for (id, found) in found.into_iter().enumerate() {
            if books.proposals[id].role == role && !found {
                books.inspect_missing(id);
            }
        }
    }

    /// Waits until every listed agent has received what was decided. What does not come is reported, and no longer expected.
    pub(super) async fn deliveries(&self, agents: &[usize], patience: Duration, sessions: &HashMap<usize, String>) {
        let due = |books: &Books| -> Vec<ProposalId> {
            let is_due = |proposal: &Proposal| {
                let is_current = sessions
                    .get(&proposal.agent)
                    .is_none_or(|session| *session == proposal.session);
                agents.contains(&proposal.agent)
                    && proposal.waiting
                    && is_current
                    && matches!(proposal.decided, Known::Yes(_))
            };
            (0..books.proposals.len())
                .filter(|id| is_due(&books.proposals[*id]))
                .collect()
        };
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if due(&self.books.lock()).is_empty() {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(patience, wait).await;
        let mut books = self.books.lock();
        for id in due(&books) {
            let proposal = &mut books.proposals[id];
            (proposal.given_up, proposal.waiting) = (true, false);
            let what = format!(
                "{} was {:?}, and its agent never received it",
                proposal.name(),
                proposal.decided
            );
            books.violated(Invariant::Delivered, what);
        }
    }

    /// Whether any agent is still waiting.
    pub(super) fn is_anyone_waiting(&self) -> bool {
        self.books.lock().proposals.iter().any(|proposal| proposal.waiting)
    }

    /// Waits until no agent is waiting any more.
    pub(super) async fn nobody_waits(&self, patience: Duration) {
        let wait = async {
            loop {
                let changed = self.changed.notified();
                if !self.is_anyone_waiting() {
                    return;
                }
                changed.await;
            }
        };
        let _ = tokio::time::timeout(patience, wait).await;
        let mut books = self.books.lock();
        let hanging: Vec<String> = books
            .proposals
            .iter()
            .filter(|proposal| proposal.waiting)
            .map(|proposal| format!("{} has no answer; it was {:?}", proposal.name(), proposal.decided))
            .collect();
        for what in hanging {
            books.violated(Invariant::NoHang, what);
        }
    }
}
