//! What an agent tells whoever shows it, whichever way it is connected.

use serde::Serialize;

use crate::conversation::{
    ContentBlock, Models, Modes, PermissionRequest, PlanEntry, SlashCommand, TokenUsage, ToolCall, TurnEnd,
};
use crate::daemon::PreflightCell;

/// Something that happened with an agent.
///
/// They can be written as JSON for a page as they are: there is no token, no address and no client id in any of them.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "type", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum AgentEvent {
    /// There is a session. What was shown of an earlier one is over, unless this one is [`ConnectedSession::resumed`].
    Connected(ConnectedSession),
    /// Forget the conversation that was shown, its turns, its queue and its approvals: what follows is what there is. It ends with
    /// [`AgentEvent::HistoryEnd`].
    HistoryStart {
        /// Why, in a word: `loaded`, `ring_evicted`, `epoch_reset`, `session_reopened` and so on.
        reason: String,
    },
    /// The history is told; from now on things happen.
    HistoryEnd,
    /// A prompt of ours was accepted. This comes once for each, before anything else of its turn.
    PromptAccepted {
        /// The turn.
        prompt_id: String,
        /// What was said, where it was text.
        text: String,
    },
    /// Somebody else said something, or it is history.
    UserMessage {
        /// The turn.
        prompt_id: Option<String>,
        /// A piece of it.
        content: ContentBlock,
    },
    /// A turn begins.
    TurnStarted {
        /// The turn.
        prompt_id: String,
    },
    /// A piece of the answer.
    AssistantChunk {
        /// The turn.
        prompt_id: Option<String>,
        /// The piece.
        content: ContentBlock,
    },
    /// A piece of what the agent thinks.
    ThinkingChunk {
        /// The turn.
        prompt_id: Option<String>,
        /// The piece.
        content: ContentBlock,
    },
    /// A call of a tool, as far as it is known by now.
    ToolCall {
        /// The turn.
        prompt_id: Option<String>,
        /// The whole card.
        call: Box<ToolCall>,
    },
    /// The plan, as it is by now.
    Plan {
        /// All of its steps.
        entries: Vec<PlanEntry>,
    },
    /// A person is needed: an approval, or an answer to questions.
    ApprovalOpened {
        /// What about.
        request: Box<PermissionRequest>,
    },
    /// More than one vote is needed.
    ApprovalProgress {
        /// Which approval.
        request_id: String,
        /// How many there are.
        received: u64,
        /// How many more it takes.
        needed: u64,
    },
    /// No person is needed any more, whoever answered.
    ApprovalClosed {
        /// Which approval.
        request_id: String,
        /// What was chosen; `None` if it was cancelled, or if nobody knows.
        option_id: Option<String>,
        /// Whether the answer was ours.
        own: bool,
    },
    /// Somebody asked to cancel the turn. It has not ended yet.
    CancelRequested {
        /// The turn.
        prompt_id: Option<String>,
    },
    /// A turn ended.
    TurnEnded {
        /// The turn.
        prompt_id: Option<String>,
        /// How.
        end: TurnEnd,
    },
    /// A prompt waits its turn.
    PromptQueued {
        /// The turn that it will be.
        prompt_id: String,
        /// What was said.
        text: String,
    },
    /// A prompt waits no more: it begins, or was taken out.
    PromptUnqueued {
        /// The turn.
        prompt_id: String,
        /// Whether it was taken out.
        removed: bool,
    },
    /// The models that there are.
    Models(Models),
    /// Another model is in use.
    ModelChanged {
        /// Which.
        model_id: String,
    },
    /// Another model was wanted and is not in use.
    ModelChangeFailed {
        /// Which.
        model_id: String,
        /// Why not.
        message: String,
    },
    /// The modes that there are.
    Modes(Modes),
    /// Another mode is in force.
    ModeChanged {
        /// Which.
        mode_id: String,
    },
    /// What may be typed after a slash.
    Commands {
        /// The commands.
        commands: Vec<SlashCommand>,
        /// The names of the skills.
        skills: Vec<String>,
    },
    /// How full the context is.
    ContextUsage {
        /// Tokens in use.
        used: u64,
        /// Tokens that fit.
        size: u64,
    },
    /// What an answer has cost.
    TokenUsage(TokenUsage),
    /// The session is called something.
    Title {
        /// What.
        title: String,
    },
    /// Something to say next.
    Suggestion {
        /// The text.
        text: String,
    },
    /// Something that a person should know and that has no event of its own.
    Notice {
        /// How much it matters.
        level: NoticeLevel,
        /// What to say.
        message: String,
    },
    /// The connection is cut. It comes back by itself, and nothing is lost.
    Interrupted {
        /// What happened.
        reason: String,
        /// When it is tried again.
        retry_in_milliseconds: u64,
    },
    /// The connection is back.
    Reconnected,
    /// The session is over, as far as we are concerned. Nothing follows but a [`AgentEvent::Connected`].
    Disconnected {
        /// What happened.
        kind: DisconnectKind,
        /// The same in words.
        reason: String,
        /// The session that can be opened again with its history.
        reopen: Option<String>,
    },
}

/// A session that was entered.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectedSession {
    /// Its id.
    pub session_id: String,
    /// Who it is with, as people say it.
    pub agent: String,
    /// Whether it existed before.
    pub attached: bool,
    /// Whether it goes on where somebody was before: what was shown then stays, and what they missed follows.
    pub resumed: bool,
    /// The directory that it works in, on the machine where the agent runs.
    pub workspace: String,
    /// What can be done in it.
    pub abilities: Abilities,
    /// Where files, servers, skills and credentials are.
    pub locality: Locality,
}

/// What can be done, so that nothing is offered that cannot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[expect(clippy::struct_excessive_bools, reason = "each is a question of its own")]
pub struct Abilities {
    /// Sessions can be listed.
    pub list_sessions: bool,
    /// An old session can be opened with its history.
    pub load_sessions: bool,
    /// A session can be given a name.
    pub rename_sessions: bool,
    /// Files of the workspace can be found.
    pub find_files: bool,
    /// The model can be switched.
    pub switch_models: bool,
    /// The mode can be switched.
    pub switch_modes: bool,
    /// A prompt can hold pictures.
    pub images: bool,
    /// Others may be in the same session.
    pub shared: bool,
    /// Changes of files can go through a review before they are written.
    pub reviews_writes: bool,
}

/// Where things are that an agent uses.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "where", rename_all = "camelCase")]
pub enum Locality {
    /// The agent is our child: files are read and written by us, everything else is the child's, which runs as we do.
    Child,
    /// The agent runs in a daemon: files, MCP servers, skills and credentials are those of the daemon's process, not ours.
    Daemon {
        /// What the daemon found out about itself.
        preflight: Vec<PreflightCell>,
    },
}

/// How much a notice matters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum NoticeLevel {
    /// Good to know.
    Information,
    /// Something is not as it should be.
    Warning,
    /// Something happened that cannot be shown as it is.
    Unsupported,
}

/// Why a session is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DisconnectKind {
    /// We wanted it.
    Requested,
    /// The agent died.
    Died,
    /// Somebody closed the session.
    Closed,
    /// The agent wants another token, or a login.
    Unauthorised,
    /// Something else went wrong.
    Failed,
}
