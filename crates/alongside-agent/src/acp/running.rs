//! An agent that runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use alongside_wire::lines::{Line, LineReader};
use alongside_wire::outgoing::{Framing, QueueEnd, SendError, outgoing};
use alongside_wire::rpc::{METHOD_NOT_FOUND, Message, RequestId, RpcError};
use alongside_wire::sender::RpcSender;
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, BufReader};
use tokio::sync::watch;

use super::child::Keeper;
use super::error::AcpError;
use super::talk::Talk;
use super::{AcpOptions, Shared, files};
use crate::conversation::{list_of, text_of};
use crate::daemon::SessionPage;
use crate::error::AgentError;
use crate::ide::{OpenSession, Source};
use crate::mention::{self, Query};
use crate::position::EventSender;
use alongside_protocol::chat::{Abilities, AgentEvent, ConnectedSession, DisconnectKind, Locality, NoticeLevel};

/// How long an agent may take to start. Node programs that check for updates take their time.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// How long an agent may take for anything else than a turn, which takes as long as it takes.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// How many sessions of a page are read.
const MAX_SESSIONS: usize = 500;

/// The longest message that is read. After a longer one the connection is closed.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// What may wait to be read by the agent. It is enough for two files of the largest size that an agent may read; after more than
/// that the agent counts as stuck, and is stopped.
const MAX_OUTGOING_BYTES: usize = 64 * 1024 * 1024;

/// An agent that runs. It ends when nobody has it any more; the tasks that work for it do not count.
pub(super) struct Running {
    shared: Weak<Shared>,
    options: AcpOptions,
    pub(super) sender: RpcSender,
    keeper: Keeper,
    pub(super) talk: Mutex<Talk>,
    /// What the agent said when it introduced itself.
    initialized: OnceLock<Value>,
    /// Counts the turns that were cancelled, so that reviews that belong to them end.
    pub(super) cancelled: watch::Sender<u64>,
    searching: tokio::sync::Mutex<()>,
    gone: AtomicBool,
}

impl Running {
    pub(super) fn start(
        shared: &Weak<Shared>,
        events: EventSender,
        options: AcpOptions,
    ) -> Result<Arc<Self>, AcpError> {
        let (keeper, pipes) = Keeper::start(&options.process, &options.workspace)?;
        let (messages, queue) = outgoing(MAX_OUTGOING_BYTES);
        let running = Arc::new(Self {
            shared: shared.clone(),
            options,
            sender: RpcSender::new(messages),
            keeper,
            talk: Mutex::new(Talk::new(events)),
            initialized: OnceLock::new(),
            cancelled: watch::channel(0).0,
            searching: tokio::sync::Mutex::default(),
            gone: AtomicBool::new(false),
        });
        let weak = Arc::downgrade(&running);
        tokio::spawn(async move {
            let end = queue.write_to(pipes.input, Framing::Lines).await;
            if end == QueueEnd::Overflow
                && let Some(running) = weak.upgrade()
            {
                running.closed(&AcpError::NotReading);
            }
        });
        let weak = Arc::downgrade(&running);
        tokio::spawn(async move {
            read_messages(pipes.output, |message| {
                if let Some(running) = weak.upgrade() {
                    running.handle(message);
                }
            })
            .await;
            if let Some(running) = weak.upgrade() {
                running.ended().await;
            }
        });
        Ok(running)
    }

    /// Whether the agent has closed its output.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.load(Ordering::Acquire)
    }

    pub(super) fn options(&self) -> &AcpOptions {
        &self.options
    }

    pub(super) fn session_id(&self) -> Option<String> {
        self.talk.lock().session_id.clone()
    }

    pub(super) fn session_to_reopen(&self) -> Option<String> {
        self.session_id().filter(|_| self.abilities().load_sessions)
    }

    /// Introduces us.
    pub(super) async fn initialize(&self) -> Result<(), AcpError> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": {"fs": {"readTextFile": true, "writeTextFile": true}, "terminal": false},
            "clientInfo": {"name": "alongside", "title": "alongside", "version": env!("CARGO_PKG_VERSION")},
        });
        let initialized = self.call("initialize", &params, START_TIMEOUT).await?;
        match initialized.get("protocolVersion") {
            Some(version) if *version == json!(1) => {}
            version => return Err(AcpError::Version(version.cloned().unwrap_or_default())),
        }
        // It is set once: there is one introduction.
        let _ = self.initialized.set(initialized);
        Ok(())
    }

    /// Begins or opens a session.
    pub(super) async fn open_session(&self, open: &OpenSession) -> Result<ConnectedSession, AcpError> {
        let opened = self.try_open(open).await;
        let opened = match (opened, &self.options.authentication) {
            (Err(error), Some(method)) if error.wants_login() => {
                self.call("authenticate", &json!({"methodId": method}), REQUEST_TIMEOUT)
                    .await?;
                self.try_open(open).await
            }
            (opened, _) => opened,
        };
        opened.map_err(|error| {
            if error.wants_login() {
                AcpError::login_needed(self.introduction())
            } else {
                error
            }
        })
    }

    async fn try_open(&self, open: &OpenSession) -> Result<ConnectedSession, AcpError> {
        let mut params = json!({"cwd": self.options.workspace, "mcpServers": []});
        let (method, source) = match open.session_id() {
            Some(id) => {
                params["sessionId"] = json!(id);
                ("session/load", Source::History)
            }
            None => ("session/new", Source::Stream),
        };
        self.talk.lock().begin_opening(source, text_of(&params, "sessionId"));
        let answer = self.call(method, &params, REQUEST_TIMEOUT).await;
        let mut talk = self.talk.lock();
        let opened = answer.and_then(|state| {
            let id = text_of(&state, "sessionId").or_else(|| text_of(&params, "sessionId"));
            let id = id.ok_or(AcpError::NotAcp("the session has no id"))?.to_owned();
            Ok((id, state))
        });
        match opened {
            Ok((session_id, state)) => {
                let connected = self.describe(&session_id, open.session_id().is_some());
                talk.session_id = Some(session_id);
                talk.end_opening(Some(AgentEvent::Connected(connected.clone())));
                talk.take_state(&state);
                Ok(connected)
            }
            Err(error) => {
                talk.end_opening(None);
                Err(error)
            }
        }
    }

    /// Switches to the model and the mode to begin with. If that fails the session is fine all the same.
    pub(super) async fn begin_with(&self) {
        let mut failures = Vec::new();
        if let Some(model) = &self.options.model
            && let Err(error) = self.set_model(model).await
        {
            failures.push(format!("Could not switch to model {model}: {error}"));
        }
        if let Some(mode) = &self.options.mode
            && let Err(error) = self.set_mode(mode).await
        {
            failures.push(format!("Could not switch to mode {mode}: {error}"));
        }
        let level = NoticeLevel::Warning;
        let notices = failures
            .into_iter()
            .map(|message| AgentEvent::Notice { level, message });
        self.talk.lock().tell(notices);
    }

    fn introduction(&self) -> &Value {
        self.initialized.get().unwrap_or(&Value::Null)
    }

    pub(super) fn abilities(&self) -> Abilities {
        let capabilities = self.introduction().get("agentCapabilities").unwrap_or(&Value::Null);
        let has = |path: &str| {
            capabilities
                .pointer(path)
                .is_some_and(|value| !value.is_null() && *value != json!(false))
        };
        Abilities {
            list_sessions: has("/sessionCapabilities/list"),
            load_sessions: has("/loadSession"),
            rename_sessions: self.knows_rename(),
            find_files: true,
            switch_models: true,
            switch_modes: true,
            images: has("/promptCapabilities/image"),
            shared: false,
            reviews_writes: true,
        }
    }

    fn describe(&self, session_id: &str, attached: bool) -> ConnectedSession {
        let info = self.introduction().get("agentInfo").unwrap_or(&Value::Null);
        let name = text_of(info, "title").or_else(|| text_of(info, "name"));
        let program = self
            .options
            .process
            .program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        let mut agent = name.unwrap_or(&program).to_owned();
        if let Some(version) = text_of(info, "version") {
            agent = format!("{agent} {version}");
        }
        ConnectedSession {
            session_id: session_id.to_owned(),
            agent,
            attached,
            resumed: false,
            workspace: self.options.workspace.display().to_string(),
            abilities: self.abilities(),
            locality: Locality::Child,
        }
    }

    pub(super) async fn set_model(&self, model: &str) -> Result<(), AcpError> {
        let params = json!({"sessionId": self.session_id(), "modelId": model});
        self.switch("session/set_model", &params, "model", model).await?;
        self.talk.lock().tell([AgentEvent::ModelChanged {
            model_id: model.to_owned(),
        }]);
        Ok(())
    }

    pub(super) async fn set_mode(&self, mode: &str) -> Result<(), AcpError> {
        let params = json!({"sessionId": self.session_id(), "modeId": mode});
        self.switch("session/set_mode", &params, "mode", mode).await?;
        self.talk.lock().tell([AgentEvent::ModeChanged {
            mode_id: mode.to_owned(),
        }]);
        Ok(())
    }

    /// Switches something, in the way that the agent knows: the older one has a method for each, the newer one for all.
    async fn switch(&self, method: &'static str, params: &Value, category: &str, value: &str) -> Result<(), AcpError> {
        let switched = self.call(method, params, REQUEST_TIMEOUT).await;
        match switched {
            Err(error) if error.is_unknown_method() => {
                let option = {
                    let talk = self.talk.lock();
                    let options = talk.config_options.as_array().map_or(&[][..], Vec::as_slice);
                    let option = options
                        .iter()
                        .find(|option| text_of(option, "category") == Some(category));
                    option.and_then(|option| text_of(option, "id")).map(str::to_owned)
                };
                let Some(option) = option else { return Err(error) };
                let params = json!({"sessionId": self.session_id(), "configId": option, "value": value});
                self.call("session/set_config_option", &params, REQUEST_TIMEOUT)
                    .await
                    .map(drop)
            }
            switched => switched.map(drop),
        }
    }

    /// A page of the sessions of the directory.
    pub(super) async fn list_sessions(&self, cursor: Option<&str>) -> Result<SessionPage, AcpError> {
        let mut params = json!({"cwd": self.options.workspace});
        if let Some(cursor) = cursor {
            params["cursor"] = json!(cursor);
        }
        let answer = self.call("session/list", &params, REQUEST_TIMEOUT).await?;
        let sessions = list_of(&answer, "sessions").iter();
        Ok(SessionPage {
            sessions: sessions
                .filter_map(|session| serde_json::from_value(session.clone()).ok())
                .take(MAX_SESSIONS)
                .collect(),
            next_cursor: text_of(&answer, "nextCursor").map(str::to_owned),
        })
    }

    /// The protocol has no way to give a session a name. Qwen Code has one of its own, and does not announce it.
    fn knows_rename(&self) -> bool {
        self.introduction().pointer("/agentInfo/name") == Some(&json!("qwen-code"))
    }

    /// Gives the session a name. `false` if the agent would not.
    pub(super) async fn rename(&self, title: &str) -> Result<bool, AcpError> {
        let params = json!({"sessionId": self.session_id(), "title": title, "cwd": self.options.workspace});
        let answer = self.call("renameSession", &params, REQUEST_TIMEOUT).await?;
        let renamed = answer.get("success") == Some(&json!(true));
        if renamed {
            let title = title.to_owned();
            self.talk.lock().tell([AgentEvent::Title { title }]);
        }
        Ok(renamed)
    }

    /// Finds files of the workspace, one search at a time: each key that is pressed asks for one.
    pub(super) async fn find_files(&self, query: Query) -> Result<Vec<String>, AgentError> {
        let _alone = self.searching.lock().await;
        let workspace = self.options.workspace.clone();
        let found = tokio::task::spawn_blocking(move || mention::find(&workspace, &query)).await;
        match found {
            Ok(Ok(paths)) => Ok(paths),
            Ok(Err(error)) => Err(AgentError::Pattern(error.to_string())),
            // The runtime ends.
            Err(_) => Err(AgentError::NotConnected),
        }
    }

    /// Sends a request and waits for its response.
    async fn call(&self, method: &'static str, params: &Value, limit: Duration) -> Result<Value, AcpError> {
        let call = match self.sender.call(method, params) {
            Ok(call) => call,
            Err(SendError::Overflow) => return Err(AcpError::NotReading),
            Err(_) => return Err(self.keeper.ended().await),
        };
        match tokio::time::timeout(limit, call).await {
            Ok(Ok(result)) => Ok(serde_json::from_str(result?.get()).unwrap_or_default()),
            Ok(Err(_)) => Err(self.keeper.ended().await),
            Err(_) => Err(AcpError::Timeout { method, limit }),
        }
    }

    /// Sends a notification. If the agent has exited, the reader of its output reports that.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        let _ = self.sender.notify(method, params);
    }

    /// Answers a request of the agent. If the agent has exited, the reader of its output reports that.
    pub(super) fn respond(&self, id: &RequestId, result: Result<Value, RpcError>) {
        let _ = self.sender.respond(id, result.as_ref());
    }

    fn handle(self: &Arc<Self>, message: Message<'_>) {
        match message {
            Message::Response(response) => {
                let mut talk = self.talk.lock();
                let id = response.number();
                if id.is_some() && talk.running.as_ref().map(|(running, _)| *running) == id {
                    let result = response.result.map(|result| serde_json::from_str(result.get()));
                    self.turn_answered(&mut talk, result.map(Result::unwrap_or_default).map_err(AcpError::from));
                } else {
                    drop(talk);
                    self.sender.resolve(response);
                }
            }
            Message::Notification(notification) if notification.method == "session/update" => {
                self.talk.lock().update(&notification.params().unwrap_or_default());
            }
            Message::Notification(notification) => {
                tracing::debug!(method = %notification.method, "unknown notification")
            }
            Message::Request(request) => {
                let id = RequestId::from(request.id);
                let params: Value = request.params().unwrap_or_default();
                match &*request.method {
                    "session/request_permission" => self.permission_asked(id, &params),
                    "fs/read_text_file" => self.file_asked(id, params, false),
                    "fs/write_text_file" => self.file_asked(id, params, true),
                    method => {
                        tracing::debug!(method, "unknown request");
                        let message = format!("Method not found: {method}");
                        self.respond(&id, Err(RpcError::new(METHOD_NOT_FOUND, message)));
                    }
                }
            }
        }
    }

    /// Serves a file beside the reading of messages: a review takes as long as a person takes.
    fn file_asked(self: &Arc<Self>, id: RequestId, params: Value, is_write: bool) {
        let mut cancelled = self.cancelled.subscribe();
        let (gate, workspace) = (Arc::clone(&self.options.gate), self.options.workspace.clone());
        // Gemini CLI looks at a file before it writes it, and takes any error for a reason not to create it
        // (google-gemini/gemini-cli#17588).
        let missing_is_empty = self.introduction().pointer("/agentInfo/name") == Some(&json!("gemini-cli"));
        let weak = Arc::downgrade(self);
        tokio::spawn(async move {
            let work = async {
                if is_write {
                    return files::write(&workspace, &*gate, &params).await;
                }
                match files::read(&workspace, &*gate, &params).await {
                    Err(error) if error.is_missing() && missing_is_empty => Ok(json!({"content": ""})),
                    result => result,
                }
            };
            let result = tokio::select! {
                result = work => result.map_err(files::FileError::into_rpc),
                // The turn was cancelled, or the agent is gone: the review is over with it.
                _ = cancelled.changed() => Err(RpcError::new(-32000, "the turn was cancelled")),
            };
            if let Some(running) = weak.upgrade() {
                running.respond(&id, result);
            }
        });
    }

    /// The agent has closed its output.
    pub(super) async fn ended(self: &Arc<Self>) {
        self.gone.store(true, Ordering::Release);
        self.sender.close();
        let reason = self.keeper.ended().await;
        self.closed(&reason);
    }

    /// The connection is of no more use: every call and review ends, and so does the agent if it is still running. Only the first
    /// reason is reported.
    fn closed(self: &Arc<Self>, reason: &AcpError) {
        self.gone.store(true, Ordering::Release);
        self.sender.close();
        self.cancelled.send_modify(|turns| *turns += 1);
        let Some(shared) = self.shared.upgrade() else { return };
        let mut current = shared.current.lock();
        if !current.as_ref().is_some_and(|current| Arc::ptr_eq(current, self)) {
            return;
        }
        *current = None;
        drop(current);
        let mut talk = self.talk.lock();
        let reason = reason.to_string();
        talk.end(&reason);
        let reopen = talk.session_id.clone().filter(|_| self.abilities().load_sessions);
        talk.finish(AgentEvent::Disconnected {
            kind: DisconnectKind::Died,
            reason,
            reopen,
        });
    }
}

/// Reads messages and handles each before the next, until the output ends.
async fn read_messages(output: impl AsyncRead + Unpin, mut handle: impl FnMut(Message<'_>)) {
    let mut lines = LineReader::new(BufReader::with_capacity(64 * 1024, output), MAX_MESSAGE_BYTES);
    loop {
        let line = match lines.next().await {
            Ok(Some(Line::Complete(line))) => line,
            Ok(Some(Line::TooLong)) => {
                tracing::warn!("the agent sent a message longer than {MAX_MESSAGE_BYTES} bytes");
                return;
            }
            Ok(Some(Line::Unterminated(_)) | None) | Err(_) => return,
        };
        match Message::parse_bytes(line) {
            Ok(message) => handle(message),
            // Programs under Node print all sorts of things.
            Err(error) => {
                tracing::debug!(%error, bytes = line.len(), "ignoring a line from the agent that is not a message")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> Vec<String> {
        let mut messages = Vec::new();
        read_messages(text.as_bytes(), |message| messages.push(format!("{message:?}"))).await;
        messages
    }

    #[tokio::test]
    async fn lines_that_are_not_messages_are_ignored() {
        let text = "Loaded cached credentials.\n[1]\n{}\n{\"id\":null,\"result\":1}\n{\"method\":7}\n\n";
        assert_eq!(read(text).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn requests_notifications_and_responses_are_recognized() {
        let text = "{\"id\":\"a\",\"method\":\"m\",\"params\":{}}\n{\"method\":\"n\"}\n{\"id\":3,\"result\":null}\n\
                    {\"id\":4,\"error\":{\"code\":-32603,\"message\":\"Internal error\",\"data\":{\"details\":\"why\"}}}\n";
        let messages = read(text).await;
        assert!(messages[0].starts_with("Request"), "{messages:?}");
        assert!(messages[1].starts_with("Notification"), "{messages:?}");
        assert!(messages[2].starts_with("Response"), "{messages:?}");
        assert!(messages[3].contains("why"), "{messages:?}");
    }

    #[tokio::test]
    async fn cut_off_message_is_ignored() {
        assert_eq!(read("{\"method\":\"n\"}\n{\"method\":\"n\"}").await.len(), 1);
    }
}
