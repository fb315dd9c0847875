//! Requests to an agent about its sessions: creating and loading them, models, modes and names.

use std::time::Duration;

use alongside_core::SessionId;
use alongside_protocol::chat::{Abilities, AgentEvent, ConnectedSession, Locality, Modes, NoticeLevel};
use serde_json::{Value, json};

use super::connection::AcpConnection;
use super::error::AcpError;
use super::permission_review::ChangeRequests;
use crate::connection::{AgentConnection, OpenSession};
use crate::conversation::{Source, list_of, read_modes, text_of};
use crate::daemon::SessionPage;

/// Includes the start of the process. Node programs that check for updates take their time.
const START_TIMEOUT: Duration = Duration::from_mins(1);

/// For everything but a turn, which has no limit.
const REQUEST_TIMEOUT: Duration = Duration::from_mins(1);

/// For a request whose response says only that the agent has read it.
const SYNC_TIMEOUT: Duration = Duration::from_secs(10);

/// The number of sessions read from one page.
const MAX_SESSIONS: usize = 500;

impl AcpConnection {
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
        // Set once: initialize is called once.
        let _ = self.initialized.set(initialized);
        Ok(())
    }

    /// Creates or loads a session, and logs in first if the agent requires it.
    pub(super) async fn load_or_create(&self, open: &OpenSession) -> Result<ConnectedSession, AcpError> {
        let opened = self.try_open(open).await;
        let opened = match (opened, &self.options.authentication) {
            (Err(error), Some(method)) if error.is_login_required() => {
                self.call("authenticate", &json!({"methodId": method}), REQUEST_TIMEOUT)
                    .await?;
                self.try_open(open).await
            }
            (opened, _) => opened,
        };
        let (connected, modes) = opened.map_err(|error| {
            if error.is_login_required() {
                AcpError::login_required(self.initialized())
            } else {
                error
            }
        })?;
        self.switch_to_review_mode(modes.as_ref()).await;
        Ok(connected)
    }

    /// Switches to the mode in which every change is reviewed, and the user is asked only once. Before the first prompt: in another
    /// mode, some agents write without asking.
    async fn switch_to_review_mode(&self, modes: Option<&Modes>) {
        let (ChangeRequests::Review, Some(known), Some(modes)) =
            (self.options.gate.change_requests(), self.options.known, modes)
        else {
            return;
        };
        if let Some(mode) = known.review_mode(modes)
            && let Err(error) = self.switch_mode(&mode).await
        {
            self.notice_failures([format!("Could not switch to mode {mode}: {error}")]);
        }
    }

    async fn try_open(&self, open: &OpenSession) -> Result<(ConnectedSession, Option<Modes>), AcpError> {
        let mut params = json!({"cwd": self.options.workspace, "mcpServers": []});
        let (method, source) = match open.session_id() {
            Some(id) => {
                params["sessionId"] = json!(id);
                ("session/load", Source::History)
            }
            None => ("session/new", Source::Stream),
        };
        self.state.lock().begin_opening(source, open.session_id().cloned());
        let response = self.call(method, &params, REQUEST_TIMEOUT).await;
        if source == Source::History && response.is_ok() {
            // Gemini CLI sends the history without waiting for it, so part of it may follow the response. The next request is read
            // after that. Agents refuse it, which is all it is for: ACP reserves names with an underscore for extensions.
            let _ = self.call("_alongside/sync", &json!({}), SYNC_TIMEOUT).await;
        }
        let mut state = self.state.lock();
        let opened = response.and_then(|opened| {
            let id = text_of(&opened, "sessionId").map(SessionId::new);
            let id = id.or_else(|| open.session_id().cloned());
            Ok((id.ok_or(AcpError::NotAcp("the session has no id"))?, opened))
        });
        match opened {
            Ok((session_id, opened)) => {
                let connected = self.describe(&session_id, open.session_id().is_some());
                state.discard_opening_of_another(&session_id);
                state.session_id = Some(session_id);
                state.end_opening(Some(AgentEvent::Connected(connected.clone())));
                state.set_options(&opened);
                Ok((connected, read_modes(&opened)))
            }
            Err(error) => {
                state.end_opening(None);
                Err(error)
            }
        }
    }

    /// Switches to the model and the mode to start with. A failure is only a notice.
    pub(super) async fn apply_start_options(&self) {
        let mut failures = Vec::new();
        if let Some(model) = &self.options.model
            && let Err(error) = self.switch_model(model).await
        {
            failures.push(format!("Could not switch to model {model}: {error}"));
        }
        if let Some(mode) = &self.options.mode
            && let Err(error) = self.switch_mode(mode).await
        {
            failures.push(format!("Could not switch to mode {mode}: {error}"));
        }
        self.notice_failures(failures);
    }

    fn notice_failures(&self, failures: impl IntoIterator<Item = String>) {
        let level = NoticeLevel::Warning;
        let notices = failures
            .into_iter()
            .map(|message| AgentEvent::Notice { level, message });
        self.state.lock().send(notices);
    }

    /// The agent's response to `initialize`.
    pub(super) fn initialized(&self) -> &Value {
        self.initialized.get().unwrap_or(&Value::Null)
    }

    pub(super) fn abilities(&self) -> Abilities {
        let capabilities = self.initialized().get("agentCapabilities").unwrap_or(&Value::Null);
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
            files: has("/promptCapabilities/embeddedContext"),
            read_attachments: false,
            mid_turn: false,
            rewind: false,
            shared: false,
            reviews_writes: true,
        }
    }

    fn describe(&self, session_id: &SessionId, attached: bool) -> ConnectedSession {
        let info = self.initialized().get("agentInfo").unwrap_or(&Value::Null);
        let name = text_of(info, "title").or_else(|| text_of(info, "name"));
        let program = self
            .options
            .process
            .program
            .file_name()
            .unwrap_or_default()
            .to_string_lossy();
        ConnectedSession {
            session_id: session_id.clone(),
            agent: name.unwrap_or(&program).to_owned(),
            agent_version: text_of(info, "version").map(str::to_owned),
            attached,
            resumed: false,
            workspace: self.options.workspace.display().to_string(),
            abilities: self.abilities(),
            locality: Locality::Child,
        }
    }

    pub(super) async fn switch_model(&self, model: &str) -> Result<(), AcpError> {
        let params = json!({"sessionId": self.session_id(), "modelId": model});
        self.switch("session/set_model", &params, "model", model).await?;
        self.state.lock().send([AgentEvent::ModelChanged {
            model_id: model.to_owned(),
        }]);
        Ok(())
    }

    pub(super) async fn switch_mode(&self, mode: &str) -> Result<(), AcpError> {
        let params = json!({"sessionId": self.session_id(), "modeId": mode});
        self.switch("session/set_mode", &params, "mode", mode).await?;
        self.state.lock().send([AgentEvent::ModeChanged {
            mode_id: mode.to_owned(),
        }]);
        Ok(())
    }

    /// Switches a model or a mode. Older agents have a method for each, newer ones one for all options.
    async fn switch(&self, method: &'static str, params: &Value, category: &str, value: &str) -> Result<(), AcpError> {
        let switched = self.call(method, params, REQUEST_TIMEOUT).await;
        match switched {
            Err(error) if error.is_unknown_method() => {
                let option = {
                    let state = self.state.lock();
                    let options = state.config_options.as_array().map_or(&[][..], Vec::as_slice);
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

    pub(super) async fn list_page(&self, cursor: Option<&str>) -> Result<SessionPage, AcpError> {
        let mut params = json!({"cwd": self.options.workspace});
        if let Some(cursor) = cursor {
            params["cursor"] = json!(cursor);
        }
        let response = self.call("session/list", &params, REQUEST_TIMEOUT).await?;
        let sessions = list_of(&response, "sessions").iter();
        Ok(SessionPage {
            sessions: sessions
                .filter_map(|session| serde_json::from_value(session.clone()).ok())
                .take(MAX_SESSIONS)
                .collect(),
            next_cursor: text_of(&response, "nextCursor").map(str::to_owned),
        })
    }

    /// ACP cannot rename a session. Qwen Code has a method of its own for that, and does not announce it.
    fn knows_rename(&self) -> bool {
        self.initialized().pointer("/agentInfo/name") == Some(&json!("qwen-code"))
    }

    /// `false` if the agent refused.
    pub(super) async fn try_rename(&self, title: &str) -> Result<bool, AcpError> {
        let params = json!({"sessionId": self.session_id(), "title": title, "cwd": self.options.workspace});
        let response = self.call("renameSession", &params, REQUEST_TIMEOUT).await?;
        let renamed = response.get("success") == Some(&json!(true));
        if renamed {
            let title = title.to_owned();
            self.state.lock().send([AgentEvent::Title { title }]);
        }
        Ok(renamed)
    }
}
