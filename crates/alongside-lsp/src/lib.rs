//! The language server: a front end for every editor that has a language client and no plugin of ours.
//!
//! Such a client was made for something else, and tells little: which files are open and what they hold, always; where the
//! cursor is and what is selected, when it asks about that place. And it shows little: hints beside lines, a menu of
//! actions, a message, a file. So a waiting change is hints at its hunks (`reviews`), deciding is an action
//! (`actions`), and editing is a file in a private directory whose text is the draft (`drafts`).
//!
//! The real language servers of a person come first: this one formats, completes and explains nothing, and answers at once.
//!
//! `wire` is the carrier. It and the few types of the protocol that are needed are our own: the usual crates are made for
//! threads and blocking pipes, or bring a second asynchronous framework, and either is larger than all of this.

mod actions;
mod client;
mod documents;
mod drafts;
mod face;
mod habits;
mod reviews;
mod scratch;
mod text;
mod uri;
mod wire;

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::sync::Notify;
use tokio::sync::broadcast::error::RecvError;

use alongside_protocol::Backend;
use alongside_protocol::{Empty, Notification};
use face::Face;
use wire::{Failure, Incoming};

pub use client::Client;
pub use scratch::Scratch;
pub use wire::Wire;

/// How long an editor that has said goodbye is waited for.
const LEAVING_TIME: Duration = Duration::from_secs(10);

/// An editor that has introduced itself and waits for an answer.
pub struct Greeting {
    /// Who it is.
    pub client: Client,
    id: Value,
}

/// How a conversation ended.
pub enum Ending {
    /// The editor said goodbye, as it should, and waits for an answer.
    Goodbye(Farewell),
    /// It left without a word.
    Abrupt,
}

/// An editor that is about to leave. Some kill the server as soon as they have their answer, so everything has to be in
/// order before it.
pub struct Farewell {
    wire: Wire,
    id: Value,
}

impl Farewell {
    /// Answers, and waits until the editor has left.
    pub async fn say(self) {
        let Self { mut wire, id } = self;
        wire.outgoing.answer(&id, Ok(Value::Null));
        let leaving = async {
            loop {
                match wire.next().await {
                    None => break,
                    Some(Incoming::Notification { method, .. }) if method == "exit" => break,
                    Some(Incoming::Request { id, .. }) => {
                        let failure = Failure::new(-32600, "the server is already shutting down");
                        wire.outgoing.answer(&id, Err(failure));
                    }
                    Some(_) => {}
                }
            }
        };
        let _ = tokio::time::timeout(LEAVING_TIME, leaving).await;
        wire.close().await;
    }
}

/// Waits for `initialize`. `None` if the editor leaves before it.
pub async fn greet(wire: &mut Wire) -> Option<Greeting> {
    loop {
        match wire.next().await? {
            Incoming::Request { id, method, params } if method == "initialize" => {
                return Some(Greeting {
                    client: Client::read(&params),
                    id,
                });
            }
            Incoming::Request { id, .. } => {
                wire.outgoing
                    .answer(&id, Err(Failure::new(-32002, "send `initialize` first")));
            }
            Incoming::Notification { method, .. } if method == "exit" => return None,
            Incoming::Notification { .. } | Incoming::Answer { .. } => {}
            Incoming::Garbled(answer) => wire.outgoing.send(answer),
        }
    }
}

/// Tells an editor that there will be no conversation, and why.
pub async fn refuse(wire: Wire, greeting: Greeting, reason: &str) {
    wire.outgoing.answer(&greeting.id, Err(Failure::new(-32803, reason)));
    wire.close().await;
}

/// Speaks with an editor until it leaves. `scratch` is where drafts are written as files, and `changes` tells when
/// something in there was saved.
pub async fn serve<D: Backend>(
    desk: Arc<D>,
    mut wire: Wire,
    greeting: Greeting,
    scratch: Scratch,
    changes: Arc<Notify>,
) -> Ending {
    // Before anything is asked, so that nothing is missed in between.
    let mut news = desk.subscribe();
    let Greeting { client, id } = greeting;
    let mut face = Face::new(desk, client, scratch, wire.outgoing.clone());
    let answer = face.begin().await;
    wire.outgoing.answer(&id, answer);
    let goodbye = loop {
        tokio::select! {
            message = wire.next() => match message {
                None => break None,
                Some(Incoming::Notification { method, .. }) if method == "exit" => break None,
                Some(Incoming::Request { id, method, .. }) if method == "shutdown" => break Some(id),
                Some(Incoming::Request { id, method, params }) => {
                    let answer = face.asked(&method, params).await;
                    wire.outgoing.answer(&id, answer);
                }
                Some(Incoming::Notification { method, params }) => face.told(&method, params).await,
                Some(Incoming::Answer { id, result }) => face.answered(&id, result).await,
                Some(Incoming::Garbled(answer)) => wire.outgoing.send(answer),
            },
            notification = news.recv() => match notification {
                Ok(notification) => face.heard(&notification).await,
                Err(RecvError::Lagged(_)) => face.heard(&Notification::Resync(Empty {})).await,
                Err(RecvError::Closed) => break None,
            },
            () = changes.notified() => face.saved_on_disk().await,
        }
    };
    drop(face);
    if let Some(id) = goodbye {
        return Ending::Goodbye(Farewell { wire, id });
    }
    wire.close().await;
    Ending::Abrupt
}

/// What this server can do, for the answer to `initialize`.
fn capabilities(client: &Client) -> Value {
    json!({
        "positionEncoding": client.encoding.name(),
        "textDocumentSync": { "openClose": true, "change": 2, "save": { "includeText": true } },
        // Never answered with anything: they say where the cursor is.
        "hoverProvider": true,
        "documentHighlightProvider": true,
        "codeActionProvider": { "codeActionKinds": [actions::KIND] },
        "codeLensProvider": { "resolveProvider": false },
        "executeCommandProvider": { "commands": actions::COMMANDS },
        // Else some clients would start another server for every folder.
        "workspace": { "workspaceFolders": { "supported": true, "changeNotifications": true } },
    })
}
