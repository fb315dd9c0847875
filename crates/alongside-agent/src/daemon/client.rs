//! The routes of a daemon.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hyper::Method;
use serde::Deserialize;
use serde_json::{Value, json};

use super::address::DaemonAddress;
use super::answers::{
    Capabilities, FileText, NewSession, PendingPrompt, PromptReceipt, SessionHandle, SessionPage, SessionStatus,
    TranscriptPage, read_events,
};
use super::error::DaemonError;
use super::transport::{Call, Transport, encoded};
use crate::conversation::{ContentBlock, Vote};
use alongside_core::Secret;
use alongside_protocol::chat::PreflightCell;

/// How long a request may take. Until its runtime is up a daemon lets requests wait instead of refusing them, and a
/// session that is created for nobody stays: so this is generous.
pub const USUAL_TIMEOUT: Duration = Duration::from_secs(30);

/// How many sessions are asked for at once.
const PAGE: usize = 50;

/// How many files are asked for at once.
const MOST_FILES: usize = 1000;

/// A side of the daemon's machine: see [`DaemonClient::diagnostics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnostics {
    /// The variables of its environment that matter.
    Environment,
    /// Where models come from.
    Providers,
    /// The MCP servers.
    McpServers,
    /// The skills.
    Skills,
}

impl Diagnostics {
    fn path(self) -> &'static str {
        match self {
            Self::Environment => "/workspace/env",
            Self::Providers => "/workspace/providers",
            Self::McpServers => "/workspace/mcp",
            Self::Skills => "/workspace/skills",
        }
    }
}

/// How a client talks to its daemon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// How long a request may take. Streams have no limit.
    pub timeout: Duration,
    /// For https: the certificates that are trusted, in place of those that the system trusts. The daemon shows one of them, or one that
    /// was signed with one of them.
    pub ca_file: Option<PathBuf>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            timeout: USUAL_TIMEOUT,
            ca_file: None,
        }
    }
}

/// A client of one daemon. Clones share its connections.
///
/// Where a method takes a `client`, it is the [`SessionHandle::client_id`] that the daemon has issued for the session; without one
/// the daemon acts all the same, for nobody in particular.
#[derive(Clone)]
pub struct DaemonClient {
    pub(super) transport: Arc<Transport>,
}

impl fmt::Debug for DaemonClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DaemonClient")
            .field("address", self.address())
            .finish_non_exhaustive()
    }
}

impl DaemonClient {
    /// A client that connects when it has something to say.
    pub fn new(address: DaemonAddress, token: Option<Secret>) -> Result<Self, DaemonError> {
        Self::with_settings(address, token, &ClientSettings::default())
    }

    /// The same with some things different from usual.
    pub fn with_settings(
        address: DaemonAddress,
        token: Option<Secret>,
        settings: &ClientSettings,
    ) -> Result<Self, DaemonError> {
        let transport = Arc::new(Transport::new(address, token, settings)?);
        Ok(Self { transport })
    }

    /// Where the daemon is.
    pub fn address(&self) -> &DaemonAddress {
        self.transport.address()
    }

    /// Whether the daemon is up. This needs no token, unless the daemon was told to insist on it.
    pub async fn health(&self) -> Result<(), DaemonError> {
        let answer: Value = self.transport.json(Call::get("/health")).await?;
        if answer.get("status").and_then(Value::as_str) == Some("ok") {
            Ok(())
        } else {
            Err(DaemonError::NotADaemon(
                "its health check did not report \"ok\"".to_owned(),
            ))
        }
    }

    /// What the daemon can do.
    pub async fn capabilities(&self) -> Result<Capabilities, DaemonError> {
        let capabilities: Capabilities = self.transport.json(Call::get("/capabilities")).await?;
        if capabilities.v == json!(1) {
            Ok(capabilities)
        } else {
            Err(DaemonError::Version(capabilities.v))
        }
    }

    /// Begins a session, or enters the one that the directory has. See [`NewSession::session_scope`].
    pub async fn create_or_attach(
        &self,
        session: &NewSession,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        let body = serde_json::to_value(session).map_err(|_| DaemonError::Unsendable("the session"))?;
        self.transport.json(Call::post("/session", body).client(client)).await
    }

    /// Opens a session with its history, whether it is live or only remembered.
    pub async fn load(
        &self,
        session: &str,
        cwd: Option<&str>,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        self.restore(session, "load", cwd, client).await
    }

    /// Opens a session without its history. An id that the daemon has forgotten is replaced by a new one.
    pub async fn resume(
        &self,
        session: &str,
        cwd: Option<&str>,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        self.restore(session, "resume", cwd, client).await
    }

    async fn restore(
        &self,
        session: &str,
        how: &str,
        cwd: Option<&str>,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        let body = cwd.map_or_else(|| json!({}), |cwd| json!({"cwd": cwd}));
        self.transport
            .json(Call::post(of_session(session, how), body).client(client))
            .await
    }

    /// The sessions of a directory, live and remembered. `cursor` is [`SessionPage::next_cursor`] of the page before.
    pub async fn list(&self, workspace: &str, cursor: Option<&str>) -> Result<SessionPage, DaemonError> {
        let query = cursor
            .map(|cursor| format!("&cursor={}", encoded(cursor)))
            .unwrap_or_default();
        let path = format!("/workspace/{}/sessions?size={PAGE}{query}", encoded(workspace));
        self.transport.json(Call::get(path)).await
    }

    /// Closes a session for everyone. One that is not live is closed.
    pub async fn close(&self, session: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::new(Method::DELETE, format!("/session/{}", encoded(session)));
        forgive_gone(self.transport.json::<Value>(call.client(client)).await)
    }

    /// Leaves a session without closing it.
    pub async fn detach(&self, session: &str, client: &str) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "detach"), json!({}));
        forgive_gone(self.transport.json::<Value>(call.client(Some(client))).await)
    }

    /// Says something. The answer comes as events.
    pub async fn prompt(
        &self,
        session: &str,
        blocks: &[ContentBlock],
        client: Option<&str>,
    ) -> Result<PromptReceipt, DaemonError> {
        let blocks: Vec<Value> = blocks.iter().map(ContentBlock::to_json).collect();
        let call = Call::post(of_session(session, "prompt"), json!({"prompt": blocks}));
        self.transport.json(call.client(client)).await
    }

    /// Cancels the turn that is going on, if any. Its end comes as an event.
    pub async fn cancel(&self, session: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "cancel"), json!({}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// Answers a request for permission. `false` if it does not wait any more.
    ///
    /// This is the route of the session: the older one without it does not find requests in any but the first directory.
    pub async fn respond_to_permission(
        &self,
        session: &str,
        request: &str,
        vote: &Vote,
        client: Option<&str>,
    ) -> Result<bool, DaemonError> {
        let path = of_session(session, &format!("permission/{}", encoded(request)));
        let answer = self
            .transport
            .json::<Value>(Call::post(path, vote.to_daemon()).client(client))
            .await;
        match answer {
            Ok(_) => Ok(true),
            // A session that is gone is something else, and says so.
            Err(error) if error.status() == Some(404) && !error.is_session_gone() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Switches the model. The answer holds parts of a key, so it is not given away.
    pub async fn set_model(&self, session: &str, model: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "model"), json!({"modelId": model}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// Switches the approval mode: `plan`, `default`, `auto-edit`, `auto` or `yolo`.
    pub async fn set_approval_mode(&self, session: &str, mode: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "approval-mode"), json!({"mode": mode}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// How a session is, and what waits for an answer in it.
    pub async fn status(&self, session: &str) -> Result<SessionStatus, DaemonError> {
        self.transport.json(Call::get(of_session(session, "status"))).await
    }

    /// The modes and models of a session: see [`crate::conversation::read_models`].
    pub async fn context(&self, session: &str) -> Result<Value, DaemonError> {
        let mut context: Value = self.transport.json(Call::get(of_session(session, "context"))).await?;
        Ok(context.get_mut("state").map(Value::take).unwrap_or_default())
    }

    /// Says that we are still here.
    pub async fn heartbeat(&self, session: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "heartbeat"), json!({}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// The prompts that run or wait.
    pub async fn pending_prompts(&self, session: &str) -> Result<Vec<PendingPrompt>, DaemonError> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct Answer {
            #[serde(default)]
            pending_prompts: Vec<PendingPrompt>,
        }
        let answer: Answer = self
            .transport
            .json(Call::get(of_session(session, "pending-prompts")))
            .await?;
        Ok(answer.pending_prompts)
    }

    /// Takes a prompt out of the queue. `false` if it does not wait any more.
    pub async fn remove_pending_prompt(
        &self,
        session: &str,
        prompt: &str,
        client: Option<&str>,
    ) -> Result<bool, DaemonError> {
        let path = of_session(session, &format!("pending-prompts/{}", encoded(prompt)));
        let answer = self
            .transport
            .json::<Value>(Call::new(Method::DELETE, path).client(client))
            .await;
        match answer {
            Ok(answer) => Ok(answer.get("removed").and_then(Value::as_bool).unwrap_or_default()),
            Err(error) if error.status() == Some(404) && !error.is_session_gone() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// What became of a turn: its `state`, `stopReason`, `resultText` or `error`.
    pub async fn turn(&self, session: &str, prompt: &str) -> Result<Value, DaemonError> {
        self.transport
            .json(Call::get(of_session(session, &format!("turns/{}", encoded(prompt)))))
            .await
    }

    /// A page of the recorded conversation. `cursor` is [`TranscriptPage::next_cursor`] of the page before.
    pub async fn transcript(
        &self,
        session: &str,
        cursor: Option<&str>,
        limit: u32,
    ) -> Result<TranscriptPage, DaemonError> {
        let cursor = cursor
            .map(|cursor| format!("&cursor={}", encoded(cursor)))
            .unwrap_or_default();
        let path = of_session(session, &format!("transcript?limit={limit}{cursor}"));
        let mut page: Value = self.transport.json(Call::get(path)).await?;
        let Value::Array(events) = page.get_mut("events").map(Value::take).unwrap_or_default() else {
            return Err(DaemonError::NotADaemon("its transcript is missing `events`".to_owned()));
        };
        Ok(TranscriptPage {
            events: read_events(events.into_iter()),
            next_cursor: page.get("nextCursor").and_then(Value::as_str).map(str::to_owned),
            has_more: page.get("hasMore").and_then(Value::as_bool).unwrap_or_default(),
        })
    }

    /// Gives a session a name.
    pub async fn rename(&self, session: &str, name: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call {
            body: Some(json!({"displayName": name})),
            ..Call::new(Method::PATCH, of_session(session, "metadata"))
        };
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// Reads a file of a workspace on the daemon's machine; the first 256 KiB of it. Without a workspace it is the daemon's first one.
    pub async fn read_file(&self, workspace: Option<&str>, path: &str) -> Result<FileText, DaemonError> {
        self.transport
            .json(Call::get(format!(
                "{}/file?path={}",
                of_workspace(workspace),
                encoded(path)
            )))
            .await
    }

    /// The files of a workspace that match a pattern, a thousand at most, as paths from its directory. Ignored ones are not among them.
    ///
    /// Without a workspace it is the daemon's first one. Only a daemon with several knows the route of any other.
    pub async fn find_files(&self, workspace: Option<&str>, pattern: &str) -> Result<Vec<String>, DaemonError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            matches: Vec<String>,
        }
        let answer: Answer = self
            .transport
            .json(Call::get(format!(
                "{}/glob?maxResults={MOST_FILES}&pattern={}",
                of_workspace(workspace),
                encoded(pattern)
            )))
            .await?;
        Ok(answer.matches)
    }

    /// What the daemon found out about the machine it runs on.
    pub async fn preflight(&self) -> Result<Vec<PreflightCell>, DaemonError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            cells: Vec<PreflightCell>,
        }
        let answer: Answer = self.transport.json(Call::get("/workspace/preflight")).await?;
        Ok(answer.cells)
    }

    /// What the daemon says about one side of its machine, in its own words. It names variables and never tells their values.
    pub async fn diagnostics(&self, of: Diagnostics) -> Result<Value, DaemonError> {
        self.transport.json(Call::get(of.path())).await
    }

    /// How the daemon is, in its own words.
    pub async fn daemon_status(&self) -> Result<Value, DaemonError> {
        self.transport.json(Call::get("/daemon/status")).await
    }

    /// Which run of the daemon this is, if it says so. A restart changes it.
    pub async fn run_id(&self) -> Result<Option<String>, DaemonError> {
        let status = self.daemon_status().await?;
        Ok(status
            .pointer("/daemon/runId")
            .and_then(Value::as_str)
            .map(str::to_owned))
    }
}

/// The path of something that belongs to a session.
pub(super) fn of_session(session: &str, rest: &str) -> String {
    format!("/session/{}/{rest}", encoded(session))
}

/// The path of something that belongs to a directory of the daemon.
fn of_workspace(workspace: Option<&str>) -> String {
    workspace
        .map(|workspace| format!("/workspaces/{}", encoded(workspace)))
        .unwrap_or_default()
}

/// What shall be gone may be gone already.
fn forgive_gone(answer: Result<Value, DaemonError>) -> Result<(), DaemonError> {
    match answer {
        Err(error) if error.status() != Some(404) => Err(error),
        _ => Ok(()),
    }
}
