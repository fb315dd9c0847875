//! Every request, bound to its method name, its parameters and its response.

use alongside_core::diagnostics::FileDiagnostics;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chat::{AgentReply, ChatCommand, ChatConnect, ChatState, ChatWritesChoice};
use crate::{
    Accept, Buffer, BulkDecision, Change, DecideHunkParams, DiagnosticsQuery, Edit, FilePath, FileTarget, Focus,
    Folders, Hello, HookReview, HookReviewed, HookSession, Hunks, MentionTarget, Mentioned, PageFile, PageLink,
    PageTarget, Reject, ReviewDecided, ReviewRef, ReviewSummary, ReviewTexts, SessionRef, ShownContext, Status, Texts,
    Variables, Version, Welcome,
};

/// A method of the protocol; the types in [`requests`] implement it.
pub trait Method {
    const NAME: &'static str;
    type Params: Serialize + DeserializeOwned + Send + 'static;
    type Response: Serialize + DeserializeOwned + Send + 'static;

    fn request(params: Self::Params) -> Request;
    /// `None` if it is the response of another method.
    fn response(response: Response) -> Option<Self::Response>;
}

/// No parameters, or nothing to respond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Empty {}

macro_rules! requests {
    ($($(#[$doc:meta])* $name:ident = $method:literal, $params:ty => $response:ty;)+) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "method", content = "params")]
        pub enum Request {
            $($(#[$doc])* #[serde(rename = $method)] $name($params),)+
        }

        #[derive(Clone, Debug, PartialEq, Eq, Serialize)]
        #[serde(untagged)]
        pub enum Response {
            $($name($response),)+
        }

        /// One type per request, for [`Method`].
        pub mod requests {
            $($(#[$doc])* #[derive(Clone, Copy, Debug)] pub struct $name;)+
        }

        pub const METHODS: &[&str] = &[$($method),+];

        /// Method, parameters and response of each request, as they are written here.
        pub const REQUEST_TYPES: &[(&str, &str, &str)] = &[$(($method, stringify!($params), stringify!($response))),+];

        impl Request {
            /// Reads the response to this request.
            pub fn parse_response(&self, json: &str) -> Result<Response, serde_json::Error> {
                match self {
                    $(Self::$name(_) => serde_json::from_str(json).map(Response::$name),)+
                }
            }
        }

        $(impl Method for requests::$name {
            const NAME: &'static str = $method;
            type Params = $params;
            type Response = $response;

            fn request(params: $params) -> Request {
                Request::$name(params)
            }

            fn response(response: Response) -> Option<$response> {
                match response {
                    Response::$name(response) => Some(response),
                    _ => None,
                }
            }
        })+
    };
}

requests! {
    /// The first message: who the front end is.
    Hello = "hello", Hello => Welcome;
    ContextOpen = "context/open", FilePath => Empty;
    /// A file got the focus, or its cursor or selection changed.
    ContextFocus = "context/focus", Focus => Empty;
    /// The editor got the focus, or is used without a file.
    WindowFocus = "window/focus", Empty => Empty;
    ContextClose = "context/close", FilePath => Empty;
    /// What agents see now.
    ContextShow = "context/show", Empty => ShownContext;
    /// Puts the selection, or the active file, into an agent's prompt.
    AgentMention = "agent/mention", MentionTarget => Mentioned;
    /// The pending reviews.
    ReviewList = "review/list", Empty => Vec<ReviewSummary>;
    /// One review with its texts.
    ReviewGet = "review/get", ReviewRef => ReviewTexts;
    /// Replaces the draft without deciding.
    ReviewEdit = "review/edit", Edit => ReviewSummary;
    /// Changes parts of the draft.
    ReviewChange = "review/change", Change => Version;
    /// Decides one hunk.
    ReviewHunk = "review/hunk", DecideHunkParams => Version;
    /// Accepts the draft, or the given text in its place.
    ReviewAccept = "review/accept", Accept => ReviewDecided;
    ReviewReject = "review/reject", Reject => ReviewDecided;
    /// Accepts every pending review of one agent.
    ReviewAcceptAll = "review/acceptAll", SessionRef => BulkDecision;
    /// Rejects every pending review of one agent.
    ReviewRejectAll = "review/rejectAll", SessionRef => BulkDecision;
    /// Opens reviews for a hook process, and responds once all of them are decided. They close with the connection.
    HookReview = "hook/review", HookReview => HookReviewed;
    /// The user sent a prompt: what a hook of that session still waits for was abandoned.
    HookPrompt = "hook/prompt", HookSession => Empty;
    /// A file has unsaved changes in the editor, or no longer has.
    ContextBuffer = "context/buffer", Buffer => Empty;
    /// The diagnostics that the editor shows in a file, all of them.
    ContextDiagnostics = "context/diagnostics", FileDiagnostics => Empty;
    /// The diagnostics that agents may see.
    DiagnosticsList = "diagnostics/list", DiagnosticsQuery => Vec<FileDiagnostics>;
    /// Shows a file of the workspace in the editor.
    FileOpen = "file/open", FileTarget => Empty;
    /// Replaces the workspace folders.
    WorkspaceSet = "workspace/set", Folders => Empty;
    /// An agent is about to be started in this directory of the workspace.
    WorkspaceEnter = "workspace/enter", FilePath => Empty;
    Status = "status", Empty => Status;
    /// What `alongside doctor --json` prints.
    Doctor = "doctor", Empty => Value;
    /// A one-time link to the built-in page.
    PageLink = "page/link", PageTarget => PageLink;
    /// A file to start a browser with: a link among its arguments could be read by other users.
    PageFile = "page/file", PageTarget => PageFile;
    /// Opens a sample review by a simulated agent, or returns the one that is open.
    DemoStart = "demo/start", Empty => ReviewRef;
    /// The variables for the editor's own terminals; only over a bridge.
    TerminalEnvironment = "terminal/environment", Empty => Variables;
    /// Everything about the chat.
    ChatState = "chat/state", Empty => ChatState;
    /// Connects to an agent, in place of the current one.
    ChatConnect = "chat/connect", ChatConnect => Empty;
    ChatDisconnect = "chat/disconnect", Empty => Empty;
    ChatCommand = "chat/command", ChatCommand => AgentReply;
    /// Selects what happens to files that a local agent wants to write.
    ChatWrites = "chat/writes", ChatWritesChoice => Empty;
    /// Compares two texts.
    Diff = "diff", Texts => Hunks;
    /// The editor is about to exit and expects to be back; only over a bridge.
    Leaving = "leaving", Empty => Empty;
    /// The next companion of an editor that is leaving takes over.
    HandOver = "handOver", Empty => Empty;
    /// Shuts the companion down.
    Stop = "stop", Empty => Empty;
}

impl Request {
    /// Whether the response may take as long as an agent takes, or the user. Such a request delays no other.
    pub fn is_slow(&self) -> bool {
        matches!(
            self,
            Self::ChatConnect(_)
                | Self::ChatDisconnect(_)
                | Self::ChatCommand(_)
                | Self::DemoStart(_)
                | Self::Diff(_)
                | Self::HookReview(_)
        )
    }

    /// Whether an editor that was leaving is still in use if it sends this. Files are also closed while an editor exits.
    pub fn cancels_leaving(&self) -> bool {
        !matches!(
            self,
            Self::Leaving(_) | Self::ContextClose(_) | Self::ContextBuffer(_) | Self::ContextDiagnostics(_)
        )
    }

    /// Whether the response may take as long as the user takes.
    pub fn waits_for_the_user(&self) -> bool {
        matches!(self, Self::HookReview(_))
    }
}
