//! A local agent as an [`AgentConnection`].

use std::collections::HashMap;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use alongside_core::SessionId;
use alongside_protocol::chat::{ConnectedSession, ContentBlock, DisconnectKind, PermissionDecision};
use alongside_wire::outgoing::{Framing, OutgoingQueue, QueueEnd, SendError, outgoing};
use alongside_wire::rpc::{INVALID_PARAMS, METHOD_NOT_FOUND, Message, RequestId, RpcError};
use alongside_wire::sender::RpcSender;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::process::ChildStdin;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::AbortHandle;

use super::child::ChildHandle;
use super::ending::Children;
use super::error::AcpError;
use super::file_io::FileIo;
use super::messages::read_messages;
use super::permission_review::AcceptedWrites;
use super::session_state::SessionState;
use super::{AcpOptions, files};
use crate::connection::{AgentConnection, OpenSession};
use crate::conversation::text_of;
use crate::daemon::SessionPage;
use crate::error::AgentError;
use crate::events::EventSender;
use crate::mention::{self, Query};

/// Requests for files that may be in progress, those waiting for a review included. Further ones are refused.
const MAX_FILE_REQUESTS: usize = 64;

/// What an agent may leave unread. This is enough for two files of the largest size that an agent may read; an agent that leaves more
/// is stuck, and is stopped.
const MAX_OUTGOING_BYTES: usize = 64 * 1024 * 1024;

/// JSON-RPC leaves this code to the application.
const REFUSED: i64 = -32000;

/// A running agent and its session. Dropping it stops the agent: the tasks that work for it hold weak references.
pub(crate) struct AcpConnection {
    pub(super) options: AcpOptions,
    pub(super) sender: RpcSender,
    writer: OnceLock<AbortHandle>,
    child: ChildHandle,
    pub(super) state: Mutex<SessionState>,
    /// The response to `initialize`.
    pub(super) initialized: OnceLock<Value>,
    /// Counts the cancelled turns, so that their reviews end.
    pub(super) cancelled: watch::Sender<u64>,
    file_requests: Arc<Semaphore>,
    pub(super) file_io: Arc<FileIo>,
    /// One search at a time: each key press starts one.
    searching: tokio::sync::Mutex<()>,
}

impl AcpConnection {
    /// Starts the agent and opens a session.
    pub(crate) async fn open(
        options: &AcpOptions,
        events: EventSender,
        children: &Children,
    ) -> Result<(Arc<dyn AgentConnection>, ConnectedSession), AgentError> {
        let connection = Self::spawn(options.clone(), events, children)?;
        connection.initialize().await?;
        let connected = connection.load_or_create(&options.open).await?;
        connection.apply_start_options().await;
        Ok((connection, connected))
    }

    fn spawn(options: AcpOptions, events: EventSender, children: &Children) -> Result<Arc<Self>, AcpError> {
        let mut process = options.process.clone();
        process.environment.extend(options.known.and_then(|known| {
            let own = process.environment.iter().cloned().collect::<HashMap<_, _>>();
            known.environment(|name| own.get(name).cloned().or_else(|| std::env::var(name).ok()))
        }));
        let (child, pipes) = ChildHandle::start(&process, &options.workspace, children)?;
        let (messages, queue) = outgoing(MAX_OUTGOING_BYTES);
        let connection = Arc::new(Self {
            options,
            sender: RpcSender::new(messages),
            writer: OnceLock::new(),
            child,
            state: Mutex::new(SessionState::new(events.clone())),
            initialized: OnceLock::new(),
            cancelled: watch::channel(0).0,
            file_requests: Arc::new(Semaphore::new(MAX_FILE_REQUESTS)),
            file_io: Arc::default(),
            searching: tokio::sync::Mutex::default(),
        });
        let writer = tokio::spawn(write_messages(queue, pipes.input, Arc::downgrade(&connection)));
        // Set once: this is the only place.
        let _ = connection.writer.set(writer.abort_handle());
        let weak = Arc::downgrade(&connection);
        tokio::spawn(async move {
            read_messages(pipes.output, &events, |message| {
                if let Some(connection) = weak.upgrade() {
                    connection.handle(message);
                }
            })
            .await;
            stdout_closed(weak).await;
        });
        Ok(connection)
    }

    pub(super) fn session_to_reopen(&self, state: &SessionState) -> Option<SessionId> {
        state.session_id.clone().filter(|_| self.abilities().load_sessions)
    }

    /// Sends a request and waits for its response.
    pub(super) async fn call(&self, method: &'static str, params: &Value, limit: Duration) -> Result<Value, AcpError> {
        let call = match self.sender.call(method, params) {
            Ok(call) => call,
            Err(SendError::Overflow) => return Err(AcpError::NotReading),
            Err(_) => return Err(self.child.exit_error().await),
        };
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(result)) => Ok(serde_json::from_str(result?.get()).unwrap_or_default()),
            Ok(Err(_)) => Err(self.child.exit_error().await),
            Err(_) => Err(AcpError::Timeout { method, limit }),
        }
    }

    /// Sends a notification. If the agent has exited, the reader of its stdout reports that.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        let _ = self.sender.notify(method, params);
    }

    /// Responds to a request of the agent. If the agent has exited, the reader of its stdout reports that.
    pub(super) fn reply(&self, id: &RequestId, result: Result<Value, RpcError>) {
        let _ = self.sender.respond(id, result);
    }

    fn handle(self: &Arc<Self>, message: Message<'_>) {
        match message {
            Message::Response(response) => {
                let mut state = self.state.lock();
                let id = response.number();
                if id.is_some() && state.turn.as_ref().map(|turn| turn.request) == id {
                    let result = response.result.map(|result| serde_json::from_str(result.get()));
                    self.finish_turn(
                        &mut state,
                        result.map(Result::unwrap_or_default).map_err(AcpError::from),
                    );
                } else {
                    drop(state);
                    self.sender.resolve(response);
                }
            }
            Message::Notification(notification) if notification.method == "session/update" => {
                self.state.lock().update(&notification.params().unwrap_or_default());
            }
            Message::Notification(notification) => {
                tracing::debug!(method = %notification.method, "unknown notification");
            }
            Message::Request(request) => {
                let id = RequestId::from(request.id);
                let params: Value = request.params().unwrap_or_default();
                let is_open = self.state.lock().is_open(&params);
                match &*request.method {
                    "session/request_permission" | "fs/read_text_file" | "fs/write_text_file" if !is_open => {
                        self.reply(&id, Err(RpcError::new(INVALID_PARAMS, "this session is not open")));
                    }
                    "session/request_permission" => self.request_permission(id, &params),
                    "fs/read_text_file" => self.request_file(id, params, false),
                    "fs/write_text_file" => self.request_file(id, params, true),
                    method => {
                        tracing::debug!(method, "unknown request");
                        let message = format!("Method not found: {method}");
                        self.reply(&id, Err(RpcError::new(METHOD_NOT_FOUND, message)));
                    }
                }
            }
        }
    }

    /// `None` if too many requests are in progress.
    pub(super) fn file_permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.file_requests).try_acquire_owned().ok()
    }

    /// Serves a file in a task of its own: a review takes as long as the user takes.
    fn request_file(self: &Arc<Self>, id: RequestId, params: Value, is_write: bool) {
        let Some(permit) = self.file_permit() else {
            let message = "too many file requests at once";
            self.reply(&id, Err(RpcError::new(REFUSED, message)));
            return;
        };
        let mut cancelled = self.cancelled.subscribe();
        let gate = AcceptedWrites {
            gate: Arc::clone(&self.options.gate),
            connection: Arc::downgrade(self),
        };
        let workspace = self.options.workspace.clone();
        let io = Arc::clone(&self.file_io);
        // Gemini CLI reads a file before it writes it, and treats any error as a reason not to create it
        // (google-gemini/gemini-cli#17588).
        let missing_is_empty = self.initialized().pointer("/agentInfo/name") == Some(&json!("gemini-cli"));
        let weak = Arc::downgrade(self);
        tokio::spawn(async move {
            let _permit = permit;
            let work = async {
                if is_write {
                    return files::write(&io, &workspace, &gate, &params).await;
                }
                match files::read(&io, &workspace, &gate, &params).await {
                    Err(error) if error.is_missing() && missing_is_empty => Ok(json!({"content": ""})),
                    result => result,
                }
            };
            let result = tokio::select! {
                result = work => result.map_err(files::FileError::into_rpc),
                // The turn was cancelled, or the agent has exited: the review ends with it.
                _ = cancelled.changed() => Err(RpcError::new(REFUSED, "the turn was cancelled")),
            };
            if let Some(connection) = weak.upgrade() {
                // Before the agent can report it.
                if let (true, Some(path), Err(refusal)) = (is_write, text_of(&params, "path"), &result) {
                    connection.state.lock().write_refused(path, &refusal.message);
                }
                connection.reply(&id, result);
            }
        });
    }

    /// Stops the agent, and everything that waits for it.
    fn stop(&self) {
        self.sender.close();
        self.cancelled.send_modify(|turns| *turns += 1);
        if let Some(writer) = self.writer.get() {
            writer.abort();
        }
        self.child.stop();
    }

    /// The connection is of no more use. Only the first reason is reported.
    fn fail(&self, reason: &AcpError) {
        self.stop();
        let reason = reason.to_string();
        let mut state = self.state.lock();
        state.abandon(&reason);
        let reopen = self.session_to_reopen(&state);
        state.disconnect(DisconnectKind::Died, &reason, reopen);
    }
}

async fn write_messages(queue: OutgoingQueue, stdin: ChildStdin, connection: Weak<AcpConnection>) {
    let end = queue.write_to(stdin, Framing::Lines).await;
    if end == QueueEnd::Overflow
        && let Some(connection) = connection.upgrade()
    {
        connection.fail(&AcpError::NotReading);
    }
}

/// The agent has exited, or will not send anything more.
async fn stdout_closed(connection: Weak<AcpConnection>) {
    if let Some(connection) = connection.upgrade() {
        connection.sender.close();
        let reason = connection.child.exit_error().await;
        connection.fail(&reason);
    }
}

impl AgentConnection for AcpConnection {
    fn start(&self) -> Result<(), AgentError> {
        if self.state.lock().start() {
            Ok(())
        } else {
            Err(AgentError::NotConnected)
        }
    }

    fn close(&self, reason: &str) {
        {
            let mut state = self.state.lock();
            let reopen = self.session_to_reopen(&state);
            state.disconnect(DisconnectKind::Requested, reason, reopen);
        }
        self.stop();
    }

    fn is_open(&self) -> bool {
        !self.state.lock().is_over()
    }

    fn session_id(&self) -> Option<SessionId> {
        self.state.lock().session_id.clone()
    }

    fn prompt(&self, blocks: Vec<ContentBlock>) -> BoxFuture<'_, Result<String, AgentError>> {
        async move {
            let (workspace, plain) = (self.options.workspace.clone(), blocks.clone());
            let linked = tokio::task::spawn_blocking(move || mention::link_mentions(plain, &workspace)).await;
            // Fails only while the runtime is shutting down.
            let linked = linked.map_err(|_| AgentError::NotConnected)?;
            self.send_prompt(&blocks, linked)
        }
        .boxed()
    }

    fn cancel(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            self.cancel_turn();
            Ok(())
        }
        .boxed()
    }

    fn respond(&self, request_id: String, decision: PermissionDecision) -> BoxFuture<'_, Result<bool, AgentError>> {
        async move {
            let responded = self.respond_to_permission(&request_id, &decision);
            responded.map(|()| true).ok_or(AgentError::NoSuchRequest)
        }
        .boxed()
    }

    fn remove_queued(&self, prompt_id: String) -> BoxFuture<'_, Result<bool, AgentError>> {
        async move { Ok(self.remove_from_queue(&prompt_id)) }.boxed()
    }

    fn set_model(&self, model_id: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { Ok(self.switch_model(&model_id).await?) }.boxed()
    }

    fn set_mode(&self, mode_id: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { Ok(self.switch_mode(&mode_id).await?) }.boxed()
    }

    fn list_sessions(&self, cursor: Option<String>) -> BoxFuture<'_, Result<SessionPage, AgentError>> {
        async move {
            if !self.abilities().list_sessions {
                return Err(AgentError::Unsupported("list its sessions"));
            }
            Ok(self.list_page(cursor.as_deref()).await?)
        }
        .boxed()
    }

    fn rename(&self, title: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            if !self.abilities().rename_sessions || !self.try_rename(&title).await? {
                return Err(AgentError::Unsupported("rename its session"));
            }
            Ok(())
        }
        .boxed()
    }

    fn find_files(&self, query: Query) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        async move {
            let _alone = self.searching.lock().await;
            let workspace = self.options.workspace.clone();
            let found = tokio::task::spawn_blocking(move || mention::find(&workspace, &query)).await;
            match found {
                Ok(Ok(paths)) => Ok(paths),
                Ok(Err(error)) => Err(AgentError::Pattern(error.to_string())),
                // The runtime is shutting down.
                Err(_) => Err(AgentError::NotConnected),
            }
        }
        .boxed()
    }

    fn open_session(&self, open: OpenSession) -> Option<BoxFuture<'_, Result<(), AgentError>>> {
        let opening = async move {
            if open.session_id().is_some() && !self.abilities().load_sessions {
                return Err(AgentError::Unsupported("reopen earlier sessions"));
            }
            self.cancel_turn();
            self.load_or_create(&open).await?;
            Ok(())
        };
        Some(opening.boxed())
    }
}
