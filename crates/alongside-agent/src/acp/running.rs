//! An agent that runs.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::sync::watch;

use super::child::Keeper;
use super::error::AcpError;
use super::rpc::{Message, Speaker, read_messages, write_lines};
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
const START: Duration = Duration::from_mins(1);

/// How long an agent may take for anything else than a turn, which takes as long as it takes.
const PATIENCE: Duration = Duration::from_mins(1);

/// How many sessions of a page are read.
const MOST_SESSIONS: usize = 500;

/// An agent that runs. It ends when nobody has it any more; the tasks that work for it do not count.
pub(super) struct Running {
    shared: Weak<Shared>,
    options: AcpOptions,
    pub(super) speaker: Speaker,
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
        let (speaker, lines) = Speaker::new();
        let running = Arc::new(Self {
            shared: shared.clone(),
            options,
            speaker,
            keeper,
            talk: Mutex::new(Talk::new(events)),
            initialized: OnceLock::new(),
            cancelled: watch::channel(0).0,
            searching: tokio::sync::Mutex::default(),
            gone: AtomicBool::new(false),
        });
        tokio::spawn(write_lines(lines, pipes.input));
        let weak = Arc::downgrade(&running);
        tokio::spawn(async move {
            read_messages(pipes.output, |message| {
                if let Some(running) = weak.upgrade() {
                    running.take(message);
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
        let initialized = self.call("initialize", &params, START).await?;
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
                self.call("authenticate", &json!({"methodId": method}), PATIENCE)
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
        let answer = self.call(method, &params, PATIENCE).await;
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
        let switched = self.call(method, params, PATIENCE).await;
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
                self.call("session/set_config_option", &params, PATIENCE)
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
        let answer = self.call("session/list", &params, PATIENCE).await?;
        let sessions = list_of(&answer, "sessions").iter();
        Ok(SessionPage {
            sessions: sessions
                .filter_map(|session| serde_json::from_value(session.clone()).ok())
                .take(MOST_SESSIONS)
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
        let answer = self.call("renameSession", &params, PATIENCE).await?;
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

    /// Asks and waits for the answer.
    async fn call(&self, method: &'static str, params: &Value, limit: Duration) -> Result<Value, AcpError> {
        match tokio::time::timeout(limit, self.speaker.request(method, params)).await {
            Ok(Ok(result)) => result,
            Ok(Err(_)) => Err(self.keeper.ended().await),
            Err(_) => Err(AcpError::Timeout { method, limit }),
        }
    }

    fn take(self: &Arc<Self>, message: Message) {
        match message {
            Message::Response { id, result } => {
                let mut talk = self.talk.lock();
                if talk.running.as_ref().is_some_and(|(running, _)| *running == id) {
                    self.turn_answered(&mut talk, result);
                } else {
                    drop(talk);
                    self.speaker.resolve(id, result);
                }
            }
            Message::Notification { method, params } if method == "session/update" => self.talk.lock().update(&params),
            Message::Notification { method, .. } => tracing::debug!(method, "unknown notification"),
            Message::Request { id, method, params } => match method.as_str() {
                "session/request_permission" => self.permission_asked(id, &params),
                "fs/read_text_file" | "fs/write_text_file" => {
                    self.file_asked(id, params, method == "fs/write_text_file");
                }
                _ => {
                    tracing::debug!(method, "unknown request");
                    let message = format!("Method not found: {method}");
                    self.speaker
                        .answer(&id, Err(json!({"code": -32601, "message": message})));
                }
            },
        }
    }

    /// Serves a file beside the reading of messages: a review takes as long as a person takes.
    fn file_asked(self: &Arc<Self>, id: Value, params: Value, is_write: bool) {
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
                _ = cancelled.changed() => Err(json!({"code": -32000, "message": "the turn was cancelled"})),
            };
            if let Some(running) = weak.upgrade() {
                running.speaker.answer(&id, result);
            }
        });
    }

    /// The agent has closed its output. Whoever is told twice has not listened.
    pub(super) async fn ended(self: &Arc<Self>) {
        self.gone.store(true, Ordering::Release);
        self.speaker.close();
        let reason = self.keeper.ended().await.to_string();
        self.cancelled.send_modify(|turns| *turns += 1);
        let Some(shared) = self.shared.upgrade() else { return };
        let mut current = shared.current.lock();
        if !current.as_ref().is_some_and(|current| Arc::ptr_eq(current, self)) {
            return;
        }
        *current = None;
        drop(current);
        let mut talk = self.talk.lock();
        talk.end(&reason);
        let reopen = talk.session_id.clone().filter(|_| self.abilities().load_sessions);
        talk.finish(AgentEvent::Disconnected {
            kind: DisconnectKind::Died,
            reason,
            reopen,
        });
    }
}
