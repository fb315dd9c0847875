//! A language server without a language: the front end for editors that have a language client but no plugin.
//!
//! Such a client reports which files are open and what they contain, and the cursor and the selection only when it asks about that
//! position. It can show diagnostics, code actions, messages and files. So pending changes are hints on their hunks (`reviews`),
//! decisions are code actions (`actions`), and a draft is edited as a file in a private directory (`drafts`).
//!
//! Real language servers come first: this one offers no completion, formatting or hover text, and responds immediately.

mod actions;
mod client;
mod connection;
mod documents;
mod drafts;
mod front_end;
mod normalize;
mod reviews;
mod scratch;
mod text;
mod types;
mod uri;
mod workspace;

use std::sync::Arc;
use std::time::Duration;

use alongside_protocol::{Backend, Empty, Notification};
use alongside_wire::rpc::{INVALID_REQUEST, InvalidMessage, Message, RequestId, RpcError};
use alongside_wire::sender::RpcSender;
use tokio::runtime::Handle;
use tokio::sync::broadcast::error::RecvError;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinHandle;

use connection::log_unsent;
use front_end::LspFrontEnd;

pub use client::{Client, Open};
pub use connection::Connection;
pub use scratch::Scratch;
pub use workspace::wait_for_workspace;

/// How long to wait for `exit` after `shutdown`.
const EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a stopped session may take to remove its files.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// The specification's `ServerNotInitialized` and `RequestFailed`.
const SERVER_NOT_INITIALIZED: i64 = -32_002;
const REQUEST_FAILED: i64 = -32_803;

/// An editor that has sent `initialize` and waits for the response.
pub struct PendingInitialize {
    pub client: Client,
    /// `None` after the response.
    id: Option<RequestId>,
}

pub enum SessionEnd {
    /// The editor sent `shutdown` and waits for the response.
    Shutdown(PendingShutdown),
    /// The connection was closed without `shutdown`.
    Abrupt,
}

/// Some editors kill the server as soon as they have the response to `shutdown`, so everything else must be done before it.
pub struct PendingShutdown {
    connection: Connection,
    id: RequestId,
}

impl PendingShutdown {
    /// Responds, and waits until the editor has closed the connection.
    pub async fn finish(self) {
        let Self { mut connection, id } = self;
        connection.respond(&id, &());
        let exit = async {
            while let Some(frame) = connection.next().await {
                match Message::parse_bytes(&frame) {
                    Ok(Message::Notification(notification)) if notification.method == "exit" => break,
                    Ok(Message::Request(request)) => {
                        let error = RpcError::new(INVALID_REQUEST, "the server is already shutting down");
                        connection.send_text(request.error(&error));
                    }
                    _ => {}
                }
            }
        };
        let _ = tokio::time::timeout(EXIT_TIMEOUT, exit).await;
        connection.close().await;
    }
}

/// Waits for `initialize`; `None` if the editor closes the connection before it.
pub async fn wait_for_initialize(connection: &mut Connection) -> Option<PendingInitialize> {
    loop {
        let frame = connection.next().await?;
        match Message::parse_bytes(&frame) {
            Ok(Message::Request(request)) if request.method == "initialize" => {
                let params = request.params.map(|params| serde_json::from_str(params.get()));
                return Some(PendingInitialize {
                    client: Client::read(&params.and_then(Result::ok).unwrap_or_default()),
                    id: Some(request.id.into()),
                });
            }
            Ok(Message::Request(request)) => {
                let error = RpcError::new(SERVER_NOT_INITIALIZED, "send `initialize` first");
                connection.send_text(request.error(&error));
            }
            Ok(Message::Notification(notification)) if notification.method == "exit" => return None,
            Ok(Message::Notification(_) | Message::Response(_)) => {}
            Err(invalid) => connection.send_text(invalid.to_response()),
        }
    }
}

/// Fails `initialize` with a reason for the user, or shows it if there was a response already.
pub async fn refuse(connection: Connection, initialize: PendingInitialize, reason: &str) {
    match &initialize.id {
        Some(id) => connection.refuse(id, &RpcError::new(REQUEST_FAILED, reason.to_owned())),
        None => connection.show_error(reason),
    }
    connection.close().await;
}

/// An editor being served, on a thread of its own.
///
/// A session reads and writes files in the order of the editor's messages, and a file system may be slow. On its own thread that delays
/// only this editor.
pub struct Session {
    ended: JoinHandle<SessionEnd>,
    /// Dropping it stops the session.
    stop: oneshot::Sender<()>,
}

impl Session {
    /// Starts serving an editor. Drafts are written as files into `scratch`; `changes` is notified when one was saved.
    pub fn start<B: Backend>(
        backend: Arc<B>,
        connection: Connection,
        initialize: PendingInitialize,
        scratch: Scratch,
        changes: Arc<Notify>,
    ) -> Self {
        let (stop, stopped) = oneshot::channel();
        let runtime = Handle::current();
        let ended = tokio::task::spawn_blocking(move || {
            runtime.block_on(async {
                tokio::select! {
                    end = serve(backend, connection, initialize, scratch, &changes) => end,
                    _ = stopped => SessionEnd::Abrupt,
                }
            })
        });
        Self { ended, stop }
    }

    /// Waits until the editor ends the session.
    pub async fn end(&mut self) -> SessionEnd {
        (&mut self.ended).await.unwrap_or(SessionEnd::Abrupt)
    }

    /// Stops the session, and waits until it has removed its draft files.
    pub async fn stop(self) {
        drop(self.stop);
        if tokio::time::timeout(STOP_TIMEOUT, self.ended).await.is_err() {
            tracing::warn!("the file system does not respond; draft files are removed by the next language server");
        }
    }
}

/// Serves an editor until it closes the connection. It blocks its thread while it uses files.
async fn serve<B: Backend>(
    backend: Arc<B>,
    mut connection: Connection,
    initialize: PendingInitialize,
    scratch: Scratch,
    changes: &Notify,
) -> SessionEnd {
    // Subscribe before fetching, so that nothing in between is missed.
    let mut notifications = backend.subscribe();
    let PendingInitialize { client, id } = initialize;
    let mut front_end = LspFrontEnd::new(backend, client, scratch, connection.sender.clone());
    match (front_end.initialize().await, &id) {
        (Ok(result), Some(id)) => connection.respond(id, &result),
        (Err(error), Some(id)) => connection.refuse(id, &error),
        (_, None) => {}
    }
    let shutdown = loop {
        tokio::select! {
            frame = connection.next() => {
                let Some(frame) = frame else { break None };
                match Message::parse_bytes(&frame) {
                    Ok(Message::Notification(notification)) if notification.method == "exit" => break None,
                    Ok(Message::Request(request)) if request.method == "shutdown" => break Some(request.id.into()),
                    message => handle(&mut front_end, &connection.sender, message).await,
                }
            }
            notification = notifications.recv() => match notification {
                Ok(notification) => front_end.on_notification(&notification).await,
                Err(RecvError::Lagged(_)) => front_end.on_notification(&Notification::Resync(Empty {})).await,
                Err(RecvError::Closed) => break None,
            },
            () = changes.notified() => front_end.sync_draft_files().await,
        }
    };
    drop(front_end);
    if let Some(id) = shutdown {
        return SessionEnd::Shutdown(PendingShutdown { connection, id });
    }
    connection.close().await;
    SessionEnd::Abrupt
}

async fn handle<B: Backend>(
    front_end: &mut LspFrontEnd<B>,
    sender: &RpcSender,
    message: Result<Message<'_>, InvalidMessage<'_>>,
) {
    match message {
        Ok(Message::Request(request)) => {
            let response = front_end.handle_request(&request).await;
            log_unsent(sender.send_text(response));
        }
        Ok(Message::Notification(notification)) => front_end.handle_notification(&notification).await,
        Ok(Message::Response(response)) => front_end.handle_response(response).await,
        Err(invalid) => {
            log_unsent(sender.send_text(invalid.to_response()));
        }
    }
}
