//! What is promised.

/// What must hold after each fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Invariant {
    /// An acknowledged proposal is pending, or has a decision.
    Kept,
    /// Acknowledged edits and hunk decisions are in the draft.
    Draft,
    /// An acknowledged decision reaches the agent that asked, and always the same one.
    Delivered,
    /// No decision goes to another agent.
    Addressed,
    /// A decided review is never pending again.
    Settled,
    /// A review's number is never used for another review.
    Numbers,
    /// Nothing is pending after a clean stop.
    Stopped,
    /// A refusal is an error with a sentence, work resumes when there is space, and a companion that cannot start says why.
    Disk,
    /// No agent is left waiting at the end.
    NoHang,
    /// What the chat showed stays.
    Chat,
    /// Requests are answered, processes start and stop in time.
    Alive,
}

impl Invariant {
    pub const ALL: [Self; 11] = [
        Self::Kept,
        Self::Draft,
        Self::Delivered,
        Self::Addressed,
        Self::Settled,
        Self::Numbers,
        Self::Stopped,
        Self::Disk,
        Self::NoHang,
        Self::Chat,
        Self::Alive,
    ];

    pub fn describe(self) -> &'static str {
        match self {
            Self::Kept => "acknowledged proposals are pending or decided",
            Self::Draft => "acknowledged edits and hunk decisions are in the draft",
            Self::Delivered => "decisions reach the agent that asked, always the same one",
            Self::Addressed => "no decision goes to another agent",
            Self::Settled => "a decided review is never pending again",
            Self::Numbers => "review numbers are never reused",
            Self::Stopped => "nothing is pending after a clean stop",
            Self::Disk => "refusals are sentences, and work resumes",
            Self::NoHang => "no agent is left waiting at the end",
            Self::Chat => "what the chat showed stays",
            Self::Alive => "requests are answered in time",
        }
    }
}
