//! Why a request failed.

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A failed request: a sentence for users and a kind for programs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct RequestError {
    /// In `error.data.kind`.
    pub kind: ErrorKind,
    pub message: String,
}

impl RequestError {
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}

macro_rules! error_kinds {
    ($($(#[$doc:meta])* $name:ident = $wire:literal,)+) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
        pub enum ErrorKind {
            $($(#[$doc])* #[serde(rename = $wire)] $name,)+
            /// A kind of a newer companion.
            #[serde(other, rename = "unknown")]
            Unknown,
        }

        impl ErrorKind {
            /// Every kind that a companion sends.
            pub const ALL: &[Self] = &[$(Self::$name),+];

            pub fn as_str(self) -> &'static str {
                match self {
                    $(Self::$name => $wire,)+
                    Self::Unknown => "unknown",
                }
            }
        }
    };
}

error_kinds! {
    NoHello = "noHello",
    ProtocolVersion = "protocolVersion",
    NotAbsolute = "notAbsolute",
    BadPosition = "badPosition",
    NotOpen = "notOpen",
    NotADirectory = "notADirectory",
    /// The file is not in the workspace, or no editor is connected.
    NotShown = "notShown",
    UnknownReview = "unknownReview",
    Closed = "closed",
    TooSoon = "tooSoon",
    Stale = "stale",
    Misplaced = "misplaced",
    Conflicts = "conflicts",
    UnknownHunk = "unknownHunk",
    EmptyMeansUnedited = "emptyMeansUnedited",
    /// The journal cannot be written, so nothing was changed.
    NotSaved = "notSaved",
    UnknownAgent = "unknownAgent",
    AgentUnusable = "agentUnusable",
    AgentFailed = "agentFailed",
    Superseded = "superseded",
    /// The chat is in use.
    Busy = "busy",
    NoWorkspace = "noWorkspace",
    NotConnected = "notConnected",
    NoSuchRequest = "noSuchRequest",
    EmptyPrompt = "emptyPrompt",
    BadPattern = "badPattern",
    Unsupported = "unsupported",
    NoPage = "noPage",
    BridgeOnly = "bridgeOnly",
    Failed = "failed",
    Internal = "internal",
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn kinds_round_trip_and_unknown_ones_are_read() {
        for kind in ErrorKind::ALL {
            assert_eq!(json!(kind), kind.as_str());
            assert_eq!(
                serde_json::from_value::<ErrorKind>(json!(kind.as_str())).unwrap(),
                *kind
            );
        }
        let future: ErrorKind = serde_json::from_value(json!("tooMuchCoffee")).unwrap();
        assert_eq!(future, ErrorKind::Unknown);
    }
}
