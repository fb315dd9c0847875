//! A change proposed by an agent, pending until the user decides.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::core::DecideError;
use crate::difference::{ChangeSize, invisible_changes};
use crate::draft::{
    Deadline, Draft, DraftChange, DraftOutline, Hunk, HunkChange, HunkDecision, HunkId, InvalidStoredDraft,
    OutlineChange,
};
use crate::session::{AgentIdentity, SessionKey};
use crate::text_change::TextChange;

/// The number in "review 3".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ReviewId(pub u64);

impl fmt::Display for ReviewId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// What a proposal is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Base {
    /// The file does not exist yet.
    Missing,
    /// Byte for byte: byte order mark, line endings and all.
    Text(Arc<str>),
    /// Text in another encoding. It is neither shown nor kept, because it could only be returned mangled: accepting
    /// replaces the whole file.
    OtherEncoding,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BaseKind {
    /// The file does not exist yet.
    Missing,
    Text,
    OtherEncoding,
}

impl Base {
    /// The kind, and the text to compare with; empty unless the file is UTF-8 text.
    pub(crate) fn into_parts(self) -> (BaseKind, Arc<str>) {
        match self {
            Self::Missing => (BaseKind::Missing, Arc::default()),
            Self::Text(text) => (BaseKind::Text, text),
            Self::OtherEncoding => (BaseKind::OtherEncoding, Arc::default()),
        }
    }
}

/// What an agent asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proposal {
    pub(crate) path: Arc<str>,
    pub(crate) base: BaseKind,
    pub(crate) draft: Draft,
    pub(crate) derived: Derived,
}

impl Proposal {
    /// A proposal to replace `base` with `text` in `path`, which is kept byte for byte: agents match decisions by this
    /// string. Comparing large texts takes up to the deadline, so do it outside of locks.
    pub fn new(path: impl Into<Arc<str>>, base: Base, text: impl Into<Arc<str>>, deadline: Deadline) -> Self {
        let (base, base_text) = base.into_parts();
        let draft = Draft::new(base_text, text, deadline);
        Self {
            path: path.into(),
            base,
            derived: Derived::computed(base, &draft),
            draft,
        }
    }

    /// Compared with its base, and undecided.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }
}

/// A pending proposal.
///
/// Its identity is (session, path, revision): only the session that asked receives the decision. Texts and hunks are
/// shared, so a clone is a cheap snapshot to compute a [`DraftUpdate`] on, outside of locks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    pub id: ReviewId,
    pub session: SessionKey,
    pub agent: AgentIdentity,
    /// Byte for byte as the agent wrote it.
    pub path: Arc<str>,
    /// Counts the proposals of one session for one path.
    pub revision: u32,
    /// Counts the changes to the draft, across revisions.
    pub version: u64,
    pub base: BaseKind,
    pub opened_unix_milliseconds: u64,
    pub(crate) draft: Draft,
    pub(crate) derived: Derived,
    /// When it was first shown, on the monotonic clock.
    pub(crate) appeared: Duration,
}

/// A review without its base and proposal: what is stored on each change, and small even for large texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewOutline {
    id: ReviewId,
    session: SessionKey,
    agent: AgentIdentity,
    path: Arc<str>,
    revision: u32,
    version: u64,
    base: BaseKind,
    opened_unix_milliseconds: u64,
    draft: DraftOutline,
}

/// What a decision or an edit changed in an outline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewChange {
    review: ReviewId,
    /// The version that it applies to.
    since: u64,
    version: u64,
    draft: OutlineChange,
}

impl ReviewChange {
    pub fn id(&self) -> ReviewId {
        self.review
    }
}

impl ReviewOutline {
    pub fn id(&self) -> ReviewId {
        self.id
    }

    /// What leads from another outline of this review to this one; `None` if more than its draft changed.
    pub fn change_since(&self, before: &Self) -> Option<ReviewChange> {
        // A new field must be compared too.
        let Self {
            id,
            session,
            agent,
            path,
            revision,
            version,
            base,
            opened_unix_milliseconds,
            draft,
        } = self;
        let is_only_edited = *id == before.id
            && *session == before.session
            && *agent == before.agent
            && *path == before.path
            && *revision == before.revision
            && *base == before.base
            && *opened_unix_milliseconds == before.opened_unix_milliseconds;
        is_only_edited.then(|| ReviewChange {
            review: *id,
            since: before.version,
            version: *version,
            draft: draft.change_since(&before.draft),
        })
    }

    /// `false`, and nothing happens, if the change is one of another version.
    #[must_use]
    pub fn apply(&mut self, change: ReviewChange) -> bool {
        let is_applied = change.review == self.id && change.since == self.version && self.draft.apply(change.draft);
        if is_applied {
            self.version = change.version;
        }
        is_applied
    }
}

impl Review {
    /// Everything to be stored, except the texts of its [draft](Self::draft).
    pub fn outline(&self) -> ReviewOutline {
        ReviewOutline {
            id: self.id,
            session: self.session.clone(),
            agent: self.agent.clone(),
            path: self.path.clone(),
            revision: self.revision,
            version: self.version,
            base: self.base,
            opened_unix_milliseconds: self.opened_unix_milliseconds,
            draft: self.draft.outline(),
        }
    }

    pub fn restore(outline: ReviewOutline, base: Arc<str>, proposal: Arc<str>) -> Result<Self, InvalidStoredDraft> {
        Ok(Self {
            id: outline.id,
            session: outline.session,
            agent: outline.agent,
            path: outline.path,
            revision: outline.revision,
            version: outline.version,
            base: outline.base,
            opened_unix_milliseconds: outline.opened_unix_milliseconds,
            draft: Draft::restore(base, proposal, outline.draft)?,
            derived: Derived::default(),
            appeared: Duration::ZERO,
        })
    }

    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// What would be accepted now.
    pub fn text(&self) -> &Arc<str> {
        &self.facts().text
    }

    /// Whether the draft differs from the proposal.
    pub fn is_edited(&self) -> bool {
        self.facts().is_edited
    }

    /// Changes that a diff does not show, as sentences.
    pub fn notes(&self) -> &[&'static str] {
        &self.facts().notes
    }

    /// How many lines accepting it now would change.
    pub fn size(&self) -> ChangeSize {
        self.facts().size
    }

    /// How many hunks conflict with a newer change of the file.
    pub fn conflicts(&self) -> usize {
        self.facts().conflicts
    }

    fn facts(&self) -> &Facts {
        self.derived.0.get_or_init(|| Facts::of(self.base, &self.draft))
    }

    /// Replaces the whole draft with `text`.
    pub fn edit(&self, text: impl Into<Arc<str>>, deadline: Deadline) -> DraftUpdate {
        let text = text.into();
        let hunks: Vec<Hunk> = self.draft.hunks().collect();
        let mut draft = self.draft.clone();
        draft.edit_from(self.text(), &text, deadline);
        let change = DraftChange {
            text: TextChange::between(self.text(), &text),
            hunks: HunkChange::between(&hunks, &draft.hunks().collect::<Vec<_>>()),
        };
        let derived = Derived::edited(self.base, &draft, text);
        self.update(draft, derived, Update::Edited(change))
    }

    /// Replaces ranges of the draft at `version`. Offsets are into that version's text.
    pub fn change(&self, version: u64, changes: &[TextChange], deadline: Deadline) -> Result<DraftUpdate, DecideError> {
        if version != self.version {
            let (id, version) = (self.id, self.version);
            return Err(DecideError::Stale { id, version });
        }
        let text = TextChange::apply_all(self.text(), changes)?;
        Ok(self.edit(text, deadline))
    }

    pub fn decide_hunk(&self, hunk: HunkId, decision: HunkDecision) -> Result<DraftUpdate, DecideError> {
        let mut draft = self.draft.clone();
        let change = draft.set_hunk(hunk, decision)?;
        // Derived later, if at all: a decision about one hunk stays quick in a large text.
        Ok(self.update(draft, Derived::default(), Update::Edited(change)))
    }

    /// Carries the draft over to the file's new text; overlapping changes become conflicts. `None` if the file still
    /// holds the same.
    pub fn rebase(&self, base: Base, deadline: Deadline) -> Option<DraftUpdate> {
        let (kind, base) = base.into_parts();
        if kind == self.base && base == *self.draft.base() {
            return None;
        }
        let mut draft = self.draft.clone();
        let conflicts = draft.rebase(base, deadline).conflicts;
        let derived = Derived::computed(kind, &draft);
        Some(self.update(draft, derived, Update::Rebased { base: kind, conflicts }))
    }

    fn update(&self, draft: Draft, derived: Derived, update: Update) -> DraftUpdate {
        DraftUpdate {
            id: self.id,
            version: self.version,
            draft,
            derived,
            update,
        }
    }
}

/// A new draft, computed from one version of a review. [`Core::update_draft`](crate::Core::update_draft) applies it if
/// the review is still at that version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DraftUpdate {
    pub(crate) id: ReviewId,
    pub(crate) version: u64,
    pub(crate) draft: Draft,
    pub(crate) derived: Derived,
    pub(crate) update: Update,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Update {
    Edited(DraftChange),
    Rebased { base: BaseKind, conflicts: usize },
}

/// What follows from a draft. Computed at most once and shared by all clones, so computing it on a snapshot serves the
/// original.
#[derive(Clone, Debug, Default)]
pub(crate) struct Derived(Arc<OnceLock<Facts>>);

#[derive(Debug)]
struct Facts {
    text: Arc<str>,
    is_edited: bool,
    notes: Vec<&'static str>,
    size: ChangeSize,
    conflicts: usize,
}

impl Derived {
    pub(crate) fn computed(base: BaseKind, draft: &Draft) -> Self {
        Self(Arc::new(OnceLock::from(Facts::of(base, draft))))
    }

    /// Of a draft whose text is known, because the user typed it.
    fn edited(base: BaseKind, draft: &Draft, text: Arc<str>) -> Self {
        debug_assert_eq!(*draft.text(), *text);
        let proposal = draft.proposal();
        let text = if text == *proposal { proposal.clone() } else { text };
        Self(Arc::new(OnceLock::from(Facts::with_text(base, draft, text))))
    }
}

/// Drafts decide whether two reviews are equal.
impl PartialEq for Derived {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Derived {}

impl Facts {
    fn of(base: BaseKind, draft: &Draft) -> Self {
        Self::with_text(base, draft, draft.shared_text())
    }

    /// `text` is the very proposal if they are equal.
    fn with_text(base: BaseKind, draft: &Draft, text: Arc<str>) -> Self {
        let is_edited = !Arc::ptr_eq(&text, draft.proposal());
        Self {
            is_edited,
            notes: if base == BaseKind::OtherEncoding {
                vec!["the file is not UTF-8 and cannot be shown; accepting replaces all of it"]
            } else {
                invisible_changes(draft.base(), &text)
            },
            size: ChangeSize::of(draft),
            conflicts: draft.conflicts().count(),
            text,
        }
    }
}

/// How a review closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReviewOutcome {
    Accepted,
    Rejected,
    /// Decided in the agent's own terminal.
    ClosedByAgent,
    /// The agent disconnected.
    Orphaned,
    /// Rejected because the companion was shutting down.
    ShutDown,
}

impl fmt::Display for ReviewOutcome {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::ClosedByAgent => "closed by the agent",
            Self::Orphaned => "dropped because the agent disconnected",
            Self::ShutDown => "rejected because the companion was shutting down",
        })
    }
}

/// The decision that is sent to the agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Accepted {
        /// Byte for byte as the agent wrote it.
        path: Arc<str>,
        content: Arc<str>,
    },
    Rejected {
        /// Byte for byte as the agent wrote it.
        path: Arc<str>,
        /// The user's, for an agent that can receive one ([`SessionKey::takes_reason`]).
        reason: Option<Arc<str>>,
    },
}

impl Decision {
    /// A rejection without a reason.
    pub fn rejected(path: impl Into<Arc<str>>) -> Self {
        let (path, reason) = (path.into(), None);
        Self::Rejected { path, reason }
    }

    pub fn path(&self) -> &Arc<str> {
        match self {
            Self::Accepted { path, .. } | Self::Rejected { path, .. } => path,
        }
    }

    pub(crate) fn text_bytes(&self) -> usize {
        match self {
            Self::Accepted { content, .. } => content.len(),
            Self::Rejected { .. } => 0,
        }
    }
}
