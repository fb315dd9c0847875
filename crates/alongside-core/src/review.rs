//! A change that an agent proposed and a person decides.

use std::fmt;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::difference::{ChangeSize, invisible_changes};
use crate::draft::{Draft, DraftChange, DraftOutline, Hunk, HunkChange, InvalidStoredDraft};
use crate::session::{AgentIdentity, SessionId};
use crate::text_change::TextChange;

/// The number by which people name a review.
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
    /// The text of the file, byte for byte: byte order mark, line endings and all.
    Text(Arc<str>),
    /// The file holds text, but not in UTF-8. None of it is shown or kept, because it could only come back mangled:
    /// accepting a proposal replaces the file as a whole.
    OtherEncoding,
}

/// What a review knows of its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum BaseKind {
    /// It does not exist yet.
    Missing,
    /// It is text.
    Text,
    /// It is text in another encoding than UTF-8.
    OtherEncoding,
}

impl Base {
    /// What it is, and the text to compare with, which is empty where there is none.
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
}

impl Proposal {
    /// A proposal to make `path`, which holds `base`, hold `text`. The path is kept exactly as the agent wrote it: agents
    /// recognise answers by this very string. Comparing large texts takes a while.
    pub fn new(path: impl Into<Arc<str>>, base: Base, text: impl Into<Arc<str>>) -> Self {
        let (base, base_text) = base.into_parts();
        Self {
            path: path.into(),
            base,
            draft: Draft::new(base_text, text),
        }
    }
}

/// A proposal while it waits for its decision.
///
/// Its identity is (session, path, revision): the session that asked is the only one that is ever told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Review {
    /// Its number.
    pub id: ReviewId,
    /// Who asked.
    pub session: SessionId,
    pub agent: AgentIdentity,
    /// The path exactly as the agent wrote it.
    pub path: Arc<str>,
    /// Counts the proposals of one session for one path.
    pub revision: u32,
    /// Counts the changes of the draft, over all revisions.
    pub version: u64,
    /// What is known of the file.
    pub base: BaseKind,
    /// When the proposal came.
    pub opened_unix_milliseconds: u64,
    /// Base, proposal and what a person makes of them.
    pub(crate) draft: Draft,
    /// The text of the draft once somebody has asked for it. A decision about one hunk asks for nothing, and so stays quick
    /// in a text of any size.
    pub(crate) text: CachedText,
    /// When it appeared before people's eyes, on the clock that never jumps.
    pub(crate) appeared: Duration,
}

/// All of a review but the texts that it began with: what is stored with each change, and is small however large they are.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewOutline {
    id: ReviewId,
    session: SessionId,
    agent: AgentIdentity,
    path: Arc<str>,
    revision: u32,
    version: u64,
    base: BaseKind,
    opened_unix_milliseconds: u64,
    draft: DraftOutline,
}

impl Review {
    /// All of it but the texts of its [draft](Self::draft), to be stored.
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

    /// Puts a stored review together again.
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
            text: CachedText::default(),
            appeared: Duration::ZERO,
        })
    }

    /// Base, proposal and hunks.
    pub fn draft(&self) -> &Draft {
        &self.draft
    }

    /// What would be accepted now.
    pub fn text(&self) -> &Arc<str> {
        self.text.0.get_or_init(|| Arc::from(self.draft.text()))
    }

    /// Whether what would be accepted is not what was proposed.
    pub fn is_edited(&self) -> bool {
        **self.text() != **self.draft.proposal()
    }

    /// What changes and cannot be seen in a comparison, in sentences.
    pub fn notes(&self) -> Vec<&'static str> {
        if self.base == BaseKind::OtherEncoding {
            return vec!["the file is not UTF-8 and cannot be shown; accepting replaces all of it"];
        }
        invisible_changes(self.draft.base(), self.text())
    }

    /// How much accepting it now would change.
    pub fn size(&self) -> ChangeSize {
        ChangeSize::of(&self.draft)
    }

    /// How many hunks are in conflict with what happened to the file meanwhile.
    pub fn conflicts(&self) -> usize {
        self.draft.conflicts().count()
    }

    /// To be called after every change of the draft.
    /// A person changes the draft into `text`.
    pub(crate) fn edit(&mut self, text: &str) -> DraftChange {
        let hunks: Vec<Hunk> = self.draft.hunks().collect();
        let change = TextChange::between(self.text(), text);
        self.draft.edit(text);
        DraftChange {
            text: change,
            hunks: HunkChange::between(&hunks, &self.draft.hunks().collect::<Vec<_>>()),
        }
    }

    pub(crate) fn changed(&mut self) {
        self.version += 1;
        self.text = CachedText::default();
    }
}

/// A text that follows from the draft, and so makes no two reviews different.
#[derive(Clone, Debug, Default)]
pub(crate) struct CachedText(OnceLock<Arc<str>>);

impl PartialEq for CachedText {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for CachedText {}

/// How a review ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum ReviewOutcome {
    /// A person accepted it.
    Accepted,
    /// A person rejected it.
    Rejected,
    /// It was answered in the agent's own terminal.
    ClosedByAgent,
    /// The agent went away, so that nobody waits for an answer.
    Orphaned,
    /// The companion is shutting down.
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

/// What the agent that asked is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Write this.
    Accepted {
        /// The path, byte for byte as the agent wrote it.
        path: Arc<str>,
        /// The final text.
        content: Arc<str>,
    },
    /// Write nothing.
    Rejected {
        /// The path, byte for byte as the agent wrote it.
        path: Arc<str>,
    },
}

impl Decision {
    /// The path that it is about.
    pub fn path(&self) -> &Arc<str> {
        match self {
            Self::Accepted { path, .. } | Self::Rejected { path } => path,
        }
    }
}
