//! The vocabulary of the front-end protocol.

pub mod chat;
mod desk;

pub use chat::{
    ChatAgent, ChatAgentKind, ChatChanged, ChatCommand, ChatConnect, ChatEvent, ChatPhase, ChatState, ChatWrites,
    ChatWritesChoice, Hunks, Texts,
};

pub use desk::{Desk, FrontEnd, Refusal};

use alongside_core::context::{Cursor, Hidden, HiddenReason, IdeContext};
use alongside_core::difference::ChangeSize;
use alongside_core::draft::{Hunk, HunkChange, HunkId};
use alongside_core::privacy::Rule;
use alongside_core::{BaseKind, Review, ReviewId, ReviewOutcome, SessionKey, TextChange};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
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
    /// The editor got the focus, or is used in a way that no file shows.
    #[serde(rename = "window/focus")]
    WindowFocus(Nothing),
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
    /// Change stretches of the draft. Answers [`Version`].
    #[serde(rename = "review/change")]
    ReviewChange(Change),
    /// Decide one hunk. Answers [`Version`].
    #[serde(rename = "review/hunk")]
    ReviewHunk(HunkDecision),
    /// Accept the draft, or the given text in its place.
    #[serde(rename = "review/accept")]
    ReviewAccept(Accept),
    /// Reject the proposal.
    #[serde(rename = "review/reject")]
    ReviewReject(ReviewRef),
    /// Accept every waiting review of one agent. Answers [`Decided`].
    #[serde(rename = "review/acceptAll")]
    ReviewAcceptAll(OfAgent),
    /// Reject every waiting review of one agent. Answers [`Decided`].
    #[serde(rename = "review/rejectAll")]
    ReviewRejectAll(OfAgent),
    /// A file has unsaved changes in the editor, or has none any more.
    #[serde(rename = "context/buffer")]
    ContextBuffer(Buffer),
    /// Replace the folders of the workspace.
    #[serde(rename = "workspace/set")]
    WorkspaceSet(Folders),
    /// The companion, its agents and its reviews. Answers [`Status`].
    #[serde(rename = "status")]
    Status(Nothing),
    /// Whether each command line would connect. Answers what `alongside doctor --json` prints.
    #[serde(rename = "doctor")]
    Doctor(Nothing),
    /// A link that opens the built-in page, good for one use. Answers [`PageLink`].
    #[serde(rename = "page/link")]
    PageLink(Nothing),
    /// The variables for terminals that the editor opens. Answers [`Variables`]; only over a bridge.
    #[serde(rename = "terminal/environment")]
    TerminalEnvironment(Nothing),
    /// Everything about the chat. Answers [`ChatState`].
    #[serde(rename = "chat/state")]
    ChatState(Nothing),
    /// Connect to an agent, in place of the one before.
    #[serde(rename = "chat/connect")]
    ChatConnect(ChatConnect),
    /// Leave the agent.
    #[serde(rename = "chat/disconnect")]
    ChatDisconnect(Nothing),
    /// Ask something of the agent. Answers an `AgentReply`.
    #[serde(rename = "chat/command")]
    ChatCommand(ChatCommand),
    /// Choose what happens to files that a child wants to write.
    #[serde(rename = "chat/writes")]
    ChatWrites(ChatWritesChoice),
    /// Compare two texts. Answers [`Hunks`].
    #[serde(rename = "difference")]
    Difference(Texts),
    /// End the companion.
    #[serde(rename = "stop")]
    Stop(Nothing),
}

impl Request {
    /// Whether the answer may take as long as an agent takes. Such a request holds up nothing else, and is answered when it is done.
    pub fn takes_its_time(&self) -> bool {
        matches!(
            self,
            Self::ChatConnect(_) | Self::ChatDisconnect(_) | Self::ChatCommand(_) | Self::Difference(_)
        )
    }
}

/// The names of all methods, for the error that lists them.
pub const METHODS: &[&str] = &[
    "hello",
    "context/open",
    "context/focus",
    "window/focus",
    "context/close",
    "context/show",
    "review/list",
    "review/get",
    "review/edit",
    "review/change",
    "review/hunk",
    "review/accept",
    "review/reject",
    "review/acceptAll",
    "review/rejectAll",
    "context/buffer",
    "workspace/set",
    "status",
    "doctor",
    "page/link",
    "terminal/environment",
    "chat/state",
    "chat/connect",
    "chat/disconnect",
    "chat/command",
    "chat/writes",
    "difference",
    "stop",
];

/// What the companion tells a watching front end without being asked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", content = "params")]
pub enum Notification {
    /// A review waits.
    #[serde(rename = "review/opened")]
    ReviewOpened(ReviewSummary),
    /// A review has a new revision, or its file changed: ask for it again.
    #[serde(rename = "review/changed")]
    ReviewChanged(ReviewSummary),
    /// The draft of a review was edited, by anybody.
    #[serde(rename = "review/edited")]
    ReviewEdited(ReviewEdited),
    /// The file of a review changed meanwhile, and the draft was carried over.
    #[serde(rename = "review/rebased")]
    ReviewRebased(ReviewRebased),
    /// A review is over.
    #[serde(rename = "review/closed")]
    ReviewClosed(ReviewClosed),
    /// An agent came, went, or opened or lost its stream.
    #[serde(rename = "agents/changed")]
    AgentsChanged(Agents),
    /// Agents see something else now.
    #[serde(rename = "context/changed")]
    ContextChanged(IdeContext),
    /// Something happened in the chat. Only for front ends that want the chat.
    #[serde(rename = "chat/event")]
    ChatEvent(ChatEvent),
    /// The chat has another agent, phase or choice. Only for front ends that want the chat.
    #[serde(rename = "chat/changed")]
    ChatChanged(ChatChanged),
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
    /// Whether its decisions come from keys or clicks, which must not decide what has only just appeared.
    #[serde(default)]
    pub interactive: bool,
    /// Whether the workspace is trusted; absent if the front end has no such notion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trusted: Option<bool>,
    /// Whether it shows the chat and wants to hear every word of it.
    #[serde(default)]
    pub chat: bool,
}

impl Hello {
    /// A front end that asks and decides nothing by keys, and hears nothing.
    pub fn new(name: impl Into<String>) -> Self {
        Self {
            protocol: VERSION,
            name: name.into(),
            watch: false,
            interactive: false,
            trusted: None,
            chat: false,
        }
    }
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
    pub hidden: Vec<HiddenFile>,
}

/// An open file that agents are not told of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HiddenFile {
    /// Its absolute path.
    pub path: String,
    /// Why, in words.
    pub because: String,
    /// The privacy rule that hid it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rule: Option<Rule>,
}

impl From<Hidden> for HiddenFile {
    fn from(hidden: Hidden) -> Self {
        let because = hidden.reason.to_string();
        let rule = match hidden.reason {
            HiddenReason::Rule(rule) => Some(rule),
            HiddenReason::NotOnDisk | HiddenReason::NotLookedUp | HiddenReason::TooMany => None,
        };
        Self {
            path: hidden.path,
            because,
            rule,
        }
    }
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

/// A change of the draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Change {
    /// The number of the review.
    pub review: ReviewId,
    /// The version of the draft that the offsets are into.
    pub version: u64,
    /// What changes, rising.
    pub changes: Vec<TextChange>,
}

/// The version of a draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    /// It grows with every change.
    pub version: u64,
}

/// A decision about one hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HunkDecision {
    /// The number of the review.
    pub review: ReviewId,
    /// The number of the hunk.
    pub hunk: HunkId,
    /// What becomes of it.
    pub decision: HunkChoice,
}

/// What becomes of a hunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum HunkChoice {
    /// The agent's text.
    Accept,
    /// The file's text.
    Reject,
    /// What the draft holds; this settles a conflict in favour of it.
    Keep,
}

impl From<HunkChoice> for alongside_core::draft::HunkDecision {
    fn from(choice: HunkChoice) -> Self {
        match choice {
            HunkChoice::Accept => Self::Accepted,
            HunkChoice::Reject => Self::Rejected,
            HunkChoice::Keep => Self::Kept,
        }
    }
}

/// An agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfAgent {
    /// Its session.
    pub session: SessionKey,
}

/// What became of several reviews.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Decided {
    /// The reviews that were decided.
    pub decided: Vec<ReviewId>,
    /// Those that were not, with the reason.
    pub refused: Vec<NotDecided>,
}

/// A review that could not be decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NotDecided {
    /// Its number.
    pub review: ReviewId,
    /// Why, in a sentence.
    pub message: String,
}

/// A file with unsaved changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Buffer {
    /// Its absolute path.
    pub path: String,
    /// What the editor holds; absent once it is what is on disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<Arc<str>>,
}

/// A link to the built-in page.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageLink {
    /// Good for one use.
    pub url: String,
}

/// Environment variables.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variables {
    /// Their values by their names.
    pub variables: BTreeMap<String, String>,
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
    pub session: SessionKey,
    /// Counts the proposals of this agent for this file.
    pub revision: u32,
    /// Counts the changes of the draft.
    pub version: u64,
    /// Whether the file does not exist yet.
    pub new_file: bool,
    /// Whether a person has changed the proposal.
    pub edited: bool,
    /// How much accepting it would change.
    pub size: ChangeSize,
    /// How many hunks are in conflict with what happened to the file meanwhile.
    pub conflicts: usize,
    /// When it came, in milliseconds since the Unix epoch.
    pub opened: u64,
}

impl ReviewSummary {
    /// Sums up a review.
    pub fn of(review: &Review) -> Self {
        Self {
            id: review.id,
            path: review.path.clone(),
            agent: review.agent.to_string(),
            session: review.session.clone(),
            revision: review.revision,
            version: review.version,
            new_file: review.base == BaseKind::Missing,
            edited: review.is_edited(),
            size: review.size(),
            conflicts: review.conflicts(),
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
    /// What the file holds; absent if it does not exist or is not in UTF-8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base: Option<Arc<str>>,
    /// What the agent proposed.
    pub proposal: Arc<str>,
    /// What would be accepted now.
    pub draft: Arc<str>,
    /// Where they differ.
    pub hunks: Vec<Hunk>,
    /// What changes and cannot be seen, in sentences.
    pub notes: Vec<String>,
}

impl ReviewTexts {
    /// A review with its texts.
    pub fn of(review: &Review) -> Self {
        let (base, draft) = (review.draft().base(), review.text());
        Self {
            summary: ReviewSummary::of(review),
            base: (review.base == BaseKind::Text).then(|| base.clone()),
            proposal: review.draft().proposal().clone(),
            draft: draft.clone(),
            hunks: review.draft().hunks().collect(),
            notes: review.notes().iter().map(ToString::to_string).collect(),
        }
    }
}

/// An edit of a draft.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewEdited {
    /// The number of the review.
    pub review: ReviewId,
    /// The version that the draft has now.
    pub version: u64,
    /// What leads there from the version before.
    pub changes: Vec<TextChange>,
    /// Which hunks are others now.
    pub hunks: HunkChange,
}

/// A draft that was carried over to what its file holds now.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewRebased {
    /// The number of the review.
    pub review: ReviewId,
    /// How many hunks must be decided.
    pub conflicts: usize,
}

/// A review that is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReviewClosed {
    /// Its number.
    pub review: ReviewId,
    /// Its file.
    pub path: Arc<str>,
    /// How it ended.
    pub outcome: ReviewOutcome,
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
    pub session: SessionKey,
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
