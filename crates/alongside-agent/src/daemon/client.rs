//! The daemon's routes.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use hyper::Method;
use hyper::header::ACCEPT;
use serde::Deserialize;
use serde_json::{Value, json};

use super::address::DaemonAddress;
use super::error::DaemonError;
use super::responses::{
    Capabilities, FileText, NewSession, PendingPrompt, PromptReceipt, SessionHandle, SessionPage, SessionStatus,
    TranscriptPage, read_events,
};
use super::transport::{Body, Call, Transport, encoded};
use crate::attachments::MAX_FILE_BYTES;
use crate::conversation::{ContentBlock, Vote, list_of, owned_text, text_of};
use alongside_core::{Secret, SessionId};
use alongside_protocol::chat::PreflightCell;

/// Generous: a starting daemon holds requests instead of refusing them, and a session created for a request that timed out remains.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(30);

const PAGE: usize = 50;

const MAX_FILES: usize = 1000;

/// See [`DaemonClient::diagnostics`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Diagnostics {
    /// Environment variables.
    Environment,
    Providers,
    McpServers,
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

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// For a request. Event streams have no limit.
    pub timeout: Duration,
    /// For https: a file with the trusted certificates, instead of the system's. The daemon must present one of them, or one signed by one
    /// of them.
    pub ca_file: Option<PathBuf>,
}

impl Default for ClientSettings {
    fn default() -> Self {
        Self {
            timeout: DEFAULT_TIMEOUT,
            ca_file: None,
        }
    }
}

/// A client of one daemon. Clones share its connections.
///
/// The `client` parameter of a method is the [`SessionHandle::client_id`] that the daemon issued for the session. It is optional.
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
    /// Connects with the first request.
    pub fn new(address: DaemonAddress, token: Option<Secret>) -> Result<Self, DaemonError> {
        Self::with_settings(address, token, &ClientSettings::default())
    }

    pub fn with_settings(
        address: DaemonAddress,
        token: Option<Secret>,
        settings: &ClientSettings,
    ) -> Result<Self, DaemonError> {
        let transport = Arc::new(Transport::new(address, token, settings)?);
        Ok(Self { transport })
    }

    pub fn address(&self) -> &DaemonAddress {
        self.transport.address()
    }

    /// Checks that the daemon is up. This needs no token, unless the daemon was started with `--require-auth`.
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

    pub async fn capabilities(&self) -> Result<Capabilities, DaemonError> {
        let capabilities: Capabilities = self.transport.json(Call::get("/capabilities")).await?;
        if capabilities.v == json!(1) {
            Ok(capabilities)
        } else {
            Err(DaemonError::Version(capabilities.v))
        }
    }

    /// Creates a session, or attaches to the workspace's shared one. See [`NewSession::session_scope`].
    pub async fn create_or_attach(
        &self,
        session: &NewSession,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        let body = serde_json::to_value(session).map_err(|_| DaemonError::Unsendable("the session"))?;
        self.transport.json(Call::post("/session", body).client(client)).await
    }

    /// Opens a live or stored session, with its history.
    pub async fn load(
        &self,
        session: &SessionId,
        cwd: Option<&str>,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        self.restore(session, "load", cwd, client).await
    }

    /// Opens a session without its history. The daemon replaces a client id that it has forgotten.
    pub async fn resume(
        &self,
        session: &SessionId,
        cwd: Option<&str>,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        self.restore(session, "resume", cwd, client).await
    }

    async fn restore(
        &self,
        session: &SessionId,
        how: &str,
        cwd: Option<&str>,
        client: Option<&str>,
    ) -> Result<SessionHandle, DaemonError> {
        let body = cwd.map_or_else(|| json!({}), |cwd| json!({"cwd": cwd}));
        self.transport
            .json(Call::post(of_session(session, how), body).client(client))
            .await
    }

    /// The live and stored sessions of a workspace. `cursor` is [`SessionPage::next_cursor`] of the previous page.
    pub async fn list(&self, workspace: &str, cursor: Option<&str>) -> Result<SessionPage, DaemonError> {
        let query = cursor
            .map(|cursor| format!("&cursor={}", encoded(cursor)))
            .unwrap_or_default();
        let path = format!("/workspace/{}/sessions?size={PAGE}{query}", encoded(workspace));
        self.transport.json(Call::get(path)).await
    }

    /// Closes a session for all clients. Succeeds if it is not live.
    pub async fn close(&self, session: &SessionId, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::new(Method::DELETE, format!("/session/{}", encoded(session.as_str())));
        forgive_gone(self.transport.json::<Value>(call.client(client)).await)
    }

    /// Leaves a session; it stays live.
    pub async fn detach(&self, session: &SessionId, client: &str) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "detach"), json!({}));
        forgive_gone(self.transport.json::<Value>(call.client(Some(client))).await)
    }

    /// Sends a prompt. The answer arrives as events.
    pub async fn prompt(
        &self,
        session: &SessionId,
        blocks: &[ContentBlock],
        client: Option<&str>,
    ) -> Result<PromptReceipt, DaemonError> {
        let blocks: Vec<Value> = blocks.iter().map(ContentBlock::to_json).collect();
        let call = Call::post(of_session(session, "prompt"), json!({"prompt": blocks}));
        self.transport.json(call.client(client)).await
    }

    /// Stores a file in the session, to refer to it in a prompt. Returns the reference; the daemon may change the name.
    pub async fn upload_attachment(
        &self,
        session: &SessionId,
        name: &str,
        mime_type: &str,
        content: Bytes,
        client: Option<&str>,
    ) -> Result<ContentBlock, DaemonError> {
        let path = of_session(session, &format!("attachments?name={}", encoded(name)));
        let mime_type = mime_type.to_owned();
        let call = Call {
            body: Body::File { mime_type, content },
            ..Call::new(Method::POST, path)
        };
        let reference: Value = self.transport.json(call.client(client)).await?;
        Ok(ContentBlock::from(reference))
    }

    /// The content of a file that was attached in the session.
    pub async fn read_attachment(
        &self,
        session: &SessionId,
        name: &str,
        client: Option<&str>,
    ) -> Result<Bytes, DaemonError> {
        let path = of_session(session, &format!("attachments/{}", encoded(name)));
        let call = Call::get(path).header(ACCEPT, "*/*");
        self.transport.bytes(call.client(client), MAX_FILE_BYTES).await
    }

    /// Sends a message for the running turn. Returns its id; `None` if it was not accepted, for example because no turn is running.
    pub async fn mid_turn_message(
        &self,
        session: &SessionId,
        text: &str,
        attachments: &[ContentBlock],
        client: Option<&str>,
    ) -> Result<Option<String>, DaemonError> {
        let mut body = json!({"message": text});
        if !attachments.is_empty() {
            body["content"] = attachments.iter().map(ContentBlock::to_json).collect();
        }
        let call = Call::post(of_session(session, "mid-turn-message"), body);
        let answer: Value = self.transport.json(call.client(client)).await?;
        let accepted = answer.get("accepted").and_then(Value::as_bool).unwrap_or_default();
        let id = answer.get("messageId").and_then(Value::as_str).map(str::to_owned);
        Ok(id.filter(|_| accepted))
    }

    /// The messages that wait for a step of the running turn, as queued prompts.
    pub async fn mid_turn_messages(
        &self,
        session: &SessionId,
        client: Option<&str>,
    ) -> Result<Vec<PendingPrompt>, DaemonError> {
        let call = Call::get(of_session(session, "mid-turn-messages"));
        let answer: Value = self.transport.json(call.client(client)).await?;
        let messages = list_of(&answer, "messages").iter();
        let queued = messages.filter_map(|message| {
            Some(PendingPrompt {
                prompt_id: text_of(message, "messageId")?.to_owned(),
                text: owned_text(message, "text"),
                state: "queued".to_owned(),
                originator_client_id: None,
            })
        });
        Ok(queued.collect())
    }

    /// Takes back a message for the running turn. `false` if the agent has it already, or if it is unknown.
    pub async fn remove_mid_turn_message(
        &self,
        session: &SessionId,
        message: &str,
        client: Option<&str>,
    ) -> Result<bool, DaemonError> {
        let path = of_session(session, &format!("mid-turn-messages/{}", encoded(message)));
        self.remove(path, client).await
    }

    /// The points that the session can be rewound to: the id of each turn, in order.
    pub async fn rewind_points(&self, session: &SessionId) -> Result<Vec<String>, DaemonError> {
        let call = Call::get(of_session(session, "rewind/snapshots"));
        let answer: Value = self.transport.json(call).await?;
        let snapshots = list_of(&answer, "snapshots").iter();
        Ok(snapshots.map(|snapshot| owned_text(snapshot, "promptId")).collect())
    }

    /// Removes a turn and everything after it. `point` is one of [`Self::rewind_points`]. Files stay as they are.
    pub async fn rewind(&self, session: &SessionId, point: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let body = json!({"promptId": point, "rewindFiles": false});
        let call = Call::post(of_session(session, "rewind"), body);
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// Cancels the running turn, if any. Its end arrives as an event.
    pub async fn cancel(&self, session: &SessionId, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "cancel"), json!({}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// Responds to a permission request. `false` if it is no longer open.
    ///
    /// Uses the session's route: the older one without a session finds only requests of the first workspace.
    pub async fn respond_to_permission(
        &self,
        session: &SessionId,
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
            // A missing session has another code.
            Err(error) if error.status() == Some(404) && !error.is_session_gone() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Switches the model. The response contains parts of a key, so it is dropped.
    pub async fn set_model(&self, session: &SessionId, model: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "model"), json!({"modelId": model}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// Switches the approval mode: `plan`, `default`, `auto-edit`, `auto` or `yolo`.
    pub async fn set_approval_mode(
        &self,
        session: &SessionId,
        mode: &str,
        client: Option<&str>,
    ) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "approval-mode"), json!({"mode": mode}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// The status of a session, with its open permission requests.
    pub async fn status(&self, session: &SessionId) -> Result<SessionStatus, DaemonError> {
        self.transport.json(Call::get(of_session(session, "status"))).await
    }

    /// The modes and models of a session: see [`crate::conversation::read_models`].
    pub async fn context(&self, session: &SessionId) -> Result<Value, DaemonError> {
        let mut context: Value = self.transport.json(Call::get(of_session(session, "context"))).await?;
        Ok(context.get_mut("state").map(Value::take).unwrap_or_default())
    }

    /// Tells the daemon that this client is still there.
    pub async fn heartbeat(&self, session: &SessionId, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call::post(of_session(session, "heartbeat"), json!({}));
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// The running and the queued prompts.
    pub async fn pending_prompts(&self, session: &SessionId) -> Result<Vec<PendingPrompt>, DaemonError> {
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

    /// Removes a prompt from the queue. `false` if it is not queued.
    pub async fn remove_pending_prompt(
        &self,
        session: &SessionId,
        prompt: &str,
        client: Option<&str>,
    ) -> Result<bool, DaemonError> {
        let path = of_session(session, &format!("pending-prompts/{}", encoded(prompt)));
        self.remove(path, client).await
    }

    async fn remove(&self, path: String, client: Option<&str>) -> Result<bool, DaemonError> {
        let call = Call::new(Method::DELETE, path).client(client);
        let answer = self.transport.json::<Value>(call).await;
        match answer {
            Ok(answer) => Ok(answer.get("removed").and_then(Value::as_bool).unwrap_or_default()),
            Err(error) if error.status() == Some(404) && !error.is_session_gone() => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// The result of a turn: its `state`, `stopReason`, `resultText` or `error`.
    pub async fn turn(&self, session: &SessionId, prompt: &str) -> Result<Value, DaemonError> {
        self.transport
            .json(Call::get(of_session(session, &format!("turns/{}", encoded(prompt)))))
            .await
    }

    /// A page of the recorded conversation. `cursor` is [`TranscriptPage::next_cursor`] of the previous page.
    pub async fn transcript(
        &self,
        session: &SessionId,
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

    pub async fn rename(&self, session: &SessionId, name: &str, client: Option<&str>) -> Result<(), DaemonError> {
        let call = Call {
            body: Body::Json(json!({"displayName": name})),
            ..Call::new(Method::PATCH, of_session(session, "metadata"))
        };
        self.transport.json::<Value>(call.client(client)).await.map(drop)
    }

    /// Reads the first 256 KiB of a file. Without a workspace, the daemon's first one is used.
    pub async fn read_file(&self, workspace: Option<&str>, path: &str) -> Result<FileText, DaemonError> {
        self.transport
            .json(Call::get(format!(
                "{}/file?path={}",
                of_workspace(workspace),
                encoded(path)
            )))
            .await
    }

    /// Finds at most 1,000 files that match a pattern, as paths relative to the workspace. Ignored files are not found.
    ///
    /// Without a workspace, the daemon's first one is used. Only a daemon with several workspaces has the other route.
    pub async fn find_files(&self, workspace: Option<&str>, pattern: &str) -> Result<Vec<String>, DaemonError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            matches: Vec<String>,
        }
        let answer: Answer = self
            .transport
            .json(Call::get(format!(
                "{}/glob?maxResults={MAX_FILES}&pattern={}",
                of_workspace(workspace),
                encoded(pattern)
            )))
            .await?;
        Ok(answer.matches)
    }

    /// The daemon's checks of its own machine.
    pub async fn preflight(&self) -> Result<Vec<PreflightCell>, DaemonError> {
        #[derive(Deserialize)]
        struct Answer {
            #[serde(default)]
            cells: Vec<PreflightCell>,
        }
        let answer: Answer = self.transport.json(Call::get("/workspace/preflight")).await?;
        Ok(answer.cells)
    }

    /// The daemon's own report. It lists the names of environment variables, never their values.
    pub async fn diagnostics(&self, of: Diagnostics) -> Result<Value, DaemonError> {
        self.transport.json(Call::get(of.path())).await
    }

    pub async fn daemon_status(&self) -> Result<Value, DaemonError> {
        self.transport.json(Call::get("/daemon/status")).await
    }

    /// The id of the daemon's process, if it has one. It changes with a restart.
    pub async fn run_id(&self) -> Result<Option<String>, DaemonError> {
        let status = self.daemon_status().await?;
        Ok(status
            .pointer("/daemon/runId")
            .and_then(Value::as_str)
            .map(str::to_owned))
    }
}

pub(super) fn of_session(session: &SessionId, rest: &str) -> String {
    format!("/session/{}/{rest}", encoded(session.as_str()))
}

fn of_workspace(workspace: Option<&str>) -> String {
    workspace
        .map(|workspace| format!("/workspaces/{}", encoded(workspace)))
        .unwrap_or_default()
}

/// Deleting what does not exist is a success.
fn forgive_gone(answer: Result<Value, DaemonError>) -> Result<(), DaemonError> {
    match answer {
        Err(error) if error.status() != Some(404) => Err(error),
        _ => Ok(()),
    }
}
