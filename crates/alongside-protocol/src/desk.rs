//! What the companion offers to front ends.

use serde_json::Value;
use thiserror::Error;
use tokio::sync::broadcast;

use crate::{Hello, Notification, Request};

/// One front end, once it has said who it is.
#[derive(Clone, Debug)]
pub struct FrontEnd {
    /// What it said.
    pub hello: Hello,
}

/// The companion as front ends see it.
pub trait Desk: Send + Sync + 'static {
    /// Does what a front end asks.
    fn call(&self, front_end: &FrontEnd, request: Request) -> impl Future<Output = Result<Value, Refusal>> + Send;

    /// What happens from now on. A receiver that falls behind is told to ask again; it never holds anybody up.
    fn watch(&self) -> broadcast::Receiver<Notification>;

    /// What happens in the chat from now on. It is apart from the rest, so that a thousand words of an agent push out no review.
    fn watch_chat(&self) -> broadcast::Receiver<Notification>;
}

/// Why a request was not done: a sentence for people and a word for programs.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("{message}")]
pub struct Refusal {
    /// The word for programs, in `error.data.kind`.
    pub kind: &'static str,
    /// The sentence for people.
    pub message: String,
}

impl Refusal {
    /// A refusal with its word and its sentence.
    pub fn new(kind: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
        }
    }
}
