//! What happens to the reviewer, and what it wants done.

use std::path::PathBuf;
use std::sync::Arc;

use alongside_core::ReviewId;
use alongside_protocol::{Notification, Request, RequestError, Response};
use crossterm::event::{KeyEvent, MouseEvent};

use crate::highlight::{Job, Marks};

/// A companion that the reviewer is attached to, by its index.
pub type CompanionIndex = usize;

/// A review of one of the companions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReviewKey {
    pub companion: CompanionIndex,
    pub review: ReviewId,
}

#[derive(Debug)]
pub enum Message {
    Key(KeyEvent),
    Mouse(MouseEvent),
    Paste(String),
    Resize {
        width: u16,
        height: u16,
    },
    /// Time passed.
    Tick,
    Link(CompanionIndex, LinkEvent),
    /// The answer to [`Action::ListCompanions`].
    Companions(Vec<RunningCompanion>),
    /// The user's editor was closed, with the new text or a sentence.
    EditorClosed {
        key: ReviewKey,
        /// What the editor was opened with.
        original: Arc<str>,
        text: Result<String, String>,
    },
    Highlighted(Box<(Job, Marks)>),
    /// Something the shell could not do, as a sentence.
    Failed(String),
    /// The program is asked to stop.
    Stop,
}

/// What a connection reports.
#[derive(Debug)]
pub enum LinkEvent {
    Connected {
        workspace: Vec<PathBuf>,
        version: String,
    },
    /// It is tried again.
    Disconnected {
        reason: String,
    },
    Reply {
        request: Box<Request>,
        result: Result<Box<Response>, RequestError>,
    },
    Notification(Box<Notification>),
}

/// A companion that could be attached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunningCompanion {
    pub pid: u32,
    /// The editor's name, or the companion's.
    pub name: String,
    pub workspace: Vec<PathBuf>,
}

#[derive(Debug)]
pub enum Action {
    Send(CompanionIndex, Box<Request>),
    ListCompanions,
    /// Attaches another companion, with the next index.
    Attach(RunningCompanion),
    /// Opens the user's editor with this text.
    OpenEditor {
        key: ReviewKey,
        path: Arc<str>,
        text: Arc<str>,
        /// From 1.
        line: usize,
    },
    Highlight(Job),
    /// Draws the attention of a user who is looking elsewhere.
    Alert(String),
    Suspend,
    /// Draws everything again.
    Redraw,
    Quit,
}
