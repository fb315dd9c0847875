//! What the companion sends to front ends without being asked.

use alongside_core::context::IdeContext;
use serde::{Deserialize, Serialize};

use crate::chat::{ChatChanged, ChatEvent};
use crate::{
    AgentsChanged, Empty, FileTarget, ProblemsChanged, ReviewClosed, ReviewEdited, ReviewRebased, ReviewSummary,
};

macro_rules! notifications {
    ($($(#[$doc:meta])* $name:ident = $method:literal, $params:ty;)+) => {
        #[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(tag = "method", content = "params")]
        pub enum Notification {
            $($(#[$doc])* #[serde(rename = $method)] $name($params),)+
        }

        pub const NOTIFICATIONS: &[&str] = &[$($method),+];

        /// Method and parameters of each notification, as they are written here.
        pub const NOTIFICATION_TYPES: &[(&str, &str)] = &[$(($method, stringify!($params))),+];
    };
}

notifications! {
    ReviewOpened = "review/opened", ReviewSummary;
    /// A review has a new revision or a new base: fetch it again.
    ReviewChanged = "review/changed", ReviewSummary;
    /// A front end edited the draft of a review.
    ReviewEdited = "review/edited", ReviewEdited;
    /// The file of a review changed, and the draft was rebased.
    ReviewRebased = "review/rebased", ReviewRebased;
    ReviewClosed = "review/closed", ReviewClosed;
    /// An agent connected, disconnected, or opened or lost its event stream.
    AgentsChanged = "agents/changed", AgentsChanged;
    /// What agents see changed.
    ContextChanged = "context/changed", IdeContext;
    /// Something is wrong that the user should know, or no longer is.
    ProblemsChanged = "problems/changed", ProblemsChanged;
    /// An agent asked to show a file to the user; for front ends with `opensFiles`.
    FileShow = "file/show", FileTarget;
    /// Only for front ends with `chat`.
    ChatEvent = "chat/event", ChatEvent;
    /// Only for front ends with `chat`.
    ChatChanged = "chat/changed", ChatChanged;
    /// The front end missed notifications: fetch everything shown again.
    Resync = "resync", Empty;
}
