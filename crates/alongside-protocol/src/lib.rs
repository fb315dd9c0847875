//! The front-end protocol: every request, response and notification, as types that serialize both ways.
//!
//! | module | what for |
//! |---|---|
//! | [`requests`], [`Method`] | one type per method, binding its name, parameters and response |
//! | [`Notification`] | what the companion sends without being asked |
//! | [`RequestError`] | why a request failed |
//! | [`chat`] | the conversation with an agent |
//! | [`Backend`] | what the companion implements |
//!
//! `docs/PROTOCOL.md` is the public description. Its tables and the page's TypeScript types are checked against this crate by its tests.

mod backend;
pub mod chat;
mod companion;
mod context;
mod error;
mod hook;
mod long_text;
mod notification;
mod request;
mod review;

pub use backend::{Backend, FrontEnd, Origin, SharedNotification};
pub use chat::{
    ChatAgent, ChatAgentKind, ChatChanged, ChatCommand, ChatConnect, ChatEvent, ChatPhase, ChatState, ChatWrites,
    ChatWritesChoice,
};
pub use companion::{
    AgentSummary, AgentsChanged, Hello, PageFile, PageLink, PageTarget, PageView, ProblemsChanged, Status, VERSION,
    Variables, Welcome,
};
pub use context::{
    Buffer, DiagnosticsQuery, FilePath, FileTarget, Focus, Folders, HiddenFile, MentionTarget, Mentioned, ShownContext,
};
pub use error::{ErrorKind, RequestError};
pub use hook::{HookFile, HookFollower, HookOutcome, HookReview, HookReviewed, HookSession};
pub use notification::{NOTIFICATION_TYPES, NOTIFICATIONS, Notification};
pub use request::{Empty, METHODS, Method, REQUEST_TYPES, Request, Response, requests};
pub use review::{
    Accept, BulkDecision, Change, DecideHunkParams, Edit, HunkAction, Hunks, Reject, ReviewClosed, ReviewDecided,
    ReviewEdited, ReviewRebased, ReviewRef, ReviewSummary, ReviewTexts, SessionRef, Texts, Undecided, Version,
};
