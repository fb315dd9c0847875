//! The vocabulary of the front-end protocol.

use alongside_core::context::{Cursor, Hidden, IdeContext};
use alongside_core::difference::ChangeSize;
use alongside_core::{Base, Outcome, Review, ReviewId};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// The version of the protocol; it changes only when an old front end would misunderstand.
pub const VERSION: u32 = 1;

/// What a front end asks or reports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
pub enum Request {
    /// Who the front end is; the first message of every conversation. Answers [`Welcome`].
    #[serde(rename = "hello")]
    Hello(Hello),
    /// A file was opened.
    #[serde(rename = "context/open")]
    ContextOpen(FilePath),
    /// A file got the focus, or its cursor or selection changed.
    #[serde(rename = "context/focus")]
    ContextFocus(Focus),
    /// A file was closed.
    #[serde(rename = "context/close")]
    ContextClose(FilePath),
    /// What agents see now. Answers [`ShownContext`].
    #[serde(rename = "context/show")]
    ContextShow(Nothing),
    /// The reviews that wait. Answers a list of [`ReviewSummary`].
    #[serde(rename = "review/list")]
    ReviewList(Nothing),
    /// One review with its texts. Answers [`ReviewTexts`].
    #[serde(rename = "review/get")]
    ReviewGet(ReviewRef),
    /// Change the draft without deciding.
    #[serde(rename = "review/edit")]
    ReviewEdit(Edit),
    /// Accept the draft, or the given text in its place.
    #[serde(rename = "review/accept")]
    ReviewAccept(Accept),
    /// Reject the proposal.
    #[serde(rename = "review/reject")]
    ReviewReject(ReviewRef),
    /// Replace the folders of the workspace.
    #[serde(rename = "workspace/set")]
    WorkspaceSet(Folders),
    /// The companion, its agents and its reviews. Answers [`Status`].
    #[serde(rename = "status")]
    Status(Nothing),
    /// End the companion.
    #[serde(rename = "stop")]
    Stop(Nothing),
}

/// The names of all methods, for the error that lists them.
pub const METHODS: &[&str] = &[
    "hello",
    "context/open",
    "context/focus",
    "context/close",
    "context/show",
    "review/list",
    "review/get",
    "review/edit",
    "review/accept",
    "review/reject",
    "workspace/set",
    "status",
    "stop",
];

/// What the companion tells a watching front end without being asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
pub enum Notification {
    /// A review waits.
    #[serde(rename = "review/opened")]
    ReviewOpened(ReviewSummary),
    /// A review has a new draft or revision.
    #[serde(rename = "review/changed")]
    ReviewChanged(ReviewSummary),
    /// A review is over.
    #[serde(rename = "review/closed")]
    ReviewClosed(ReviewClosed),
    /// An agent came, went, or opened or lost its stream.
    #[serde(rename = "agents/changed")]
    AgentsChanged(Agents),
    /// Agents see something else now.
    #[serde(rename = "context/changed")]
    ContextChanged(IdeContext),
    /// This front end read too slowly and missed some of the above: ask for what it shows again.
    #[serde(rename = "resync")]
    Resync(Nothing),
}

/// No parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Nothing {}

/// Who a front end is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Hello {
    /// The version of the protocol that it speaks.
    pub protocol: u32,
    /// A short name: `neovim`, `alongside diff`.
    pub name: String,
    /// Whether it wants notifications.
    #[serde(default)]
    pub watch: bool,
    /// Whether the workspace is trusted; absent if the front end has no such notion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
}

/// The answer to [`Hello`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Welcome {
    /// The version of the protocol that the companion speaks.
    pub protocol: u32,
    /// The version of the companion.
    pub version: String,
    /// Its process.
    pub pid: u32,
    /// The folders of the workspace.
    pub workspace: Vec<PathBuf>,
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FilePath {
    /// Its absolute path.
    pub path: String,
}

/// A file with the focus.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Focus {
    /// Its absolute path.
    pub path: String,
    /// Where the cursor is; absent leaves it where it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<Cursor>,
    /// What is selected; absent means nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selected_text: Option<String>,
}

/// What agents see, and what is kept from them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ShownContext {
    /// Exactly what agents were sent.
    pub context: IdeContext,
    /// Open files that they were not told of.
    pub hidden: Vec<Hidden>,
}

/// A review.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRef {
    /// Its number.
    pub review: ReviewId,
}

/// A new draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// The number of the review.
    pub review: ReviewId,
    /// The whole new text.
    pub content: Arc<str>,
}

/// A decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Accept {
    /// The number of the review.
    pub review: ReviewId,
    /// The whole final text; absent accepts the draft.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Arc<str>>,
    /// Accept an emptied text although the agent will take it as "nothing was edited".
    #[serde(default)]
    pub even_if_empty: bool,
}

/// The folders of the workspace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Folders {
    /// Absolute paths.
    pub folders: Vec<PathBuf>,
}

/// A review without its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewSummary {
    /// Its number.
    pub id: ReviewId,
    /// The file, as the agent wrote it.
    pub path: Arc<str>,
    /// What people call the agent.
    pub agent: String,
    /// The agent's session.
    pub session: String,
    /// Counts the proposals of this agent for this file.
    pub revision: u32,
    /// Whether the file does not exist yet.
    pub new_file: bool,
    /// Whether a person has changed the proposal.
    pub edited: bool,
    /// How much accepting it would change.
    pub size: ChangeSize,
    /// When it came, in milliseconds since the Unix epoch.
    pub opened: u64,
}

impl ReviewSummary {
    /// Sums up a review.
    pub fn of(review: &Review) -> Self {
        Self {
            id: review.id,
            path: review.path.clone(),
            agent: review.agent.clone(),
            session: review.session.to_string(),
            revision: review.revision,
            new_file: review.base == Base::Missing,
            edited: review.is_edited(),
            size: review.size,
            opened: review.opened_unix_milliseconds,
        }
    }
}

/// A review with its texts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewTexts {
    /// The review.
    #[serde(flatten)]
    pub summary: ReviewSummary,
    /// What the file held; absent for a new file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Arc<str>>,
    /// What the agent proposed.
    pub proposal: Arc<str>,
    /// What would be accepted now.
    pub draft: Arc<str>,
}

impl ReviewTexts {
    /// A review with its texts.
    pub fn of(review: &Review) -> Self {
        Self {
            summary: ReviewSummary::of(review),
            base: match &review.base {
                Base::Missing => None,
                Base::Text(text) => Some(text.clone()),
            },
            proposal: review.proposal.clone(),
            draft: review.draft.clone(),
        }
    }
}

/// A review that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewClosed {
    /// Its number.
    pub review: ReviewId,
    /// Its file.
    pub path: Arc<str>,
    /// How it ended.
    pub outcome: Outcome,
}

/// The connected agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agents {
    /// One entry a session.
    pub agents: Vec<AgentSummary>,
}

/// A connected agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentSummary {
    /// What people call it.
    pub name: String,
    /// Its session.
    pub session: String,
    /// Whether it can be told something now.
    pub listening: bool,
    /// When it connected, in milliseconds since the Unix epoch.
    pub since: u64,
}

/// A companion and all it serves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    /// Its process.
    pub pid: u32,
    /// The agents' port.
    pub port: u16,
    /// The version of the companion.
    pub version: String,
    /// The name that agents show.
    pub display_name: String,
    /// The folders of the workspace.
    pub workspace: Vec<PathBuf>,
    /// The discovery files.
    pub files: Vec<PathBuf>,
    /// What could not be announced, in sentences.
    pub problems: Vec<String>,
    /// The connected agents.
    pub agents: Vec<AgentSummary>,
    /// The reviews that wait.
    pub reviews: Vec<ReviewSummary>,
}
