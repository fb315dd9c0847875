//! A session of a daemon as an [`AgentConnection`].

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::{Secret, SessionId};
use alongside_protocol::chat::{
    AgentEvent, ConnectedSession, ContentBlock, DisconnectKind, PermissionDecision, is_image,
};
use data_encoding::BASE64;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;

use super::address::DaemonAddress;
use super::error::DaemonError;
use super::event_task::EventTask;
use super::open::{self, OpenedSession};
use super::responses::SessionPage;
use super::session::DaemonSessionClient;
use super::session_state::SessionState;
use crate::attachments::read_files;
use crate::connection::{AgentConnection, OpenSession};
use crate::conversation::Vote;
use crate::error::AgentError;
use crate::events::EventSender;
use crate::mention::Query;

/// How long the echo of a prompt is waited for after its response was lost. Includes the time to reconnect.
const ECHO_TIMEOUT: Duration = Duration::from_secs(15);

/// The daemon's limit for a message during a turn, in UTF-16 code units.
const MAX_MID_TURN_CHARS: usize = 16 * 1024;

/// Which daemon to connect to, and how.
#[derive(Clone, Debug, Default)]
pub struct DaemonOptions {
    pub address: DaemonAddress,
    pub token: Option<Secret>,
    /// The trusted certificates: see [`super::ClientSettings::ca_file`].
    pub ca_file: Option<PathBuf>,
    /// The working directory; `None` for the daemon's first one.
    pub workspace: Option<String>,
    pub open: OpenSession,
    /// The model to start with.
    pub model: Option<String>,
    /// The approval mode to start with.
    pub mode: Option<String>,
}

/// A session that we are in. Dropping it stops reading its events.
pub(crate) struct DaemonConnection {
    session: DaemonSessionClient,
    state: Arc<Mutex<SessionState>>,
    phase: Mutex<Phase>,
    prompting: tokio::sync::Mutex<()>,
    has_attachments: bool,
    has_mid_turn: bool,
}

enum Phase {
    /// Opened, but no event was sent.
    Opened(Box<OpenedSession>, EventSender),
    Started(#[expect(dead_code, reason = "dropping it stops the task")] EventTask),
    Closed,
}

impl DaemonConnection {
    pub(crate) async fn open(
        options: &DaemonOptions,
        events: EventSender,
    ) -> Result<(Arc<dyn AgentConnection>, ConnectedSession), AgentError> {
        let opened = open::open(options).await?;
        let connected = opened.connected.clone();
        let session = opened.session.clone();
        let connection = Self {
            has_attachments: connected.abilities.files,
            has_mid_turn: connected.abilities.mid_turn,
            state: Arc::new(Mutex::new(SessionState::new(events.clone(), &session))),
            session,
            phase: Mutex::new(Phase::Opened(Box::new(opened), events)),
            prompting: tokio::sync::Mutex::default(),
        };
        Ok((Arc::new(connection), connected))
    }

    /// The id of a prompt whose response was lost: the daemon echoes every prompt that it accepts.
    async fn wait_for_echo(&self, blocks: &[ContentBlock], lost: DaemonError) -> Result<String, DaemonError> {
        let changed = Arc::clone(&self.state.lock().changed);
        let echo = async {
            loop {
                let mut changed = std::pin::pin!(changed.notified());
                // Register before checking, so an echo between the check and the wait is not missed.
                changed.as_mut().enable();
                {
                    let mut state = self.state.lock();
                    let echo = state.translator.take_echo(blocks);
                    if echo.is_some() || state.is_over() {
                        return echo;
                    }
                }
                changed.await;
            }
        };
        let echo = tokio::time::timeout(ECHO_TIMEOUT, echo).await;
        echo.ok()
            .flatten()
            .ok_or_else(|| DaemonError::Unconfirmed(Box::new(lost)))
    }
}

impl DaemonConnection {
    /// Stores the attached files in the session, and refers to them instead.
    async fn upload(&self, blocks: Vec<ContentBlock>) -> Result<Vec<ContentBlock>, AgentError> {
        let mut uploaded = Vec::with_capacity(blocks.len());
        for (block, file) in blocks.iter().zip(read_files(&blocks)?) {
            let Some(file) = file else {
                uploaded.push(block.clone());
                continue;
            };
            if !self.has_attachments {
                let why = "this daemon does not accept files; update Qwen Code";
                return Err(AgentError::Attachment(file.name.to_owned(), why));
            }
            let reference = self
                .session
                .upload_attachment(file.name, mime_type(file.name, file.mime_type), file.content)
                .await;
            uploaded.push(reference.map_err(|error| match error.status() {
                Some(400) => AgentError::Attachment(
                    file.name.to_owned(),
                    "the daemon does not accept its name or type; rename the file",
                ),
                Some(413) => AgentError::Attachment(file.name.to_owned(), "it is too large for the daemon"),
                _ => error.into(),
            })?);
        }
        Ok(uploaded)
    }

    async fn send_prompt(&self, blocks: &[ContentBlock]) -> Result<String, AgentError> {
        self.state.lock().translator.echoed.clear();
        let receipt = match self.session.prompt(blocks).await {
            Err(error) if error.is_lost() => return Ok(self.wait_for_echo(blocks, error).await?),
            sent => sent?,
        };
        self.accepted(&receipt.prompt_id, ContentBlock::text_of_all(blocks));
        Ok(receipt.prompt_id)
    }

    /// The daemon has the prompt. Its echo may have arrived first.
    fn accepted(&self, prompt_id: &str, text: String) {
        let mut state = self.state.lock();
        if state.translator.accept(prompt_id) {
            let prompt_id = prompt_id.to_owned();
            state.send([AgentEvent::PromptAccepted { prompt_id, text }]);
        }
    }
}

/// The type of a file for the daemon, which derives it from the name and refuses an image whose type differs.
fn mime_type<'a>(name: &str, given: &'a str) -> &'a str {
    let extension = name
        .rsplit_once('.')
        .map(|(_, extension)| extension.to_ascii_lowercase());
    match extension.as_deref() {
        Some("png") => "image/png",
        Some("jpg" | "jpeg") => "image/jpeg",
        Some("gif") => "image/gif",
        Some("webp") => "image/webp",
        Some("bmp") => "image/bmp",
        _ if is_image(given) || given.is_empty() => "application/octet-stream",
        _ => given,
    }
}

impl AgentConnection for DaemonConnection {
    fn start(&self) -> Result<(), AgentError> {
        let mut phase = self.phase.lock();
        match std::mem::replace(&mut *phase, Phase::Closed) {
            Phase::Opened(opened, events) => {
                *phase = Phase::Started(EventTask::start(*opened, Arc::clone(&self.state), events)?);
            }
            other => *phase = other,
        }
        Ok(())
    }

    fn close(&self, reason: &str) {
        *self.phase.lock() = Phase::Closed;
        let ended = self.state.lock().end(AgentEvent::Disconnected {
            kind: DisconnectKind::Requested,
            reason: reason.to_owned(),
            reopen: Some(self.session.session_id().clone()),
        });
        if !ended {
            return;
        }
        // A courtesy that is not waited for: the daemon drops silent clients on its own.
        let session = self.session.clone();
        tokio::spawn(async move {
            if let Err(error) = session.detach().await {
                tracing::debug!(%error, "cannot tell the daemon that we disconnected");
            }
        });
    }

    fn is_open(&self) -> bool {
        !self.state.lock().is_over()
    }

    fn session_id(&self) -> Option<SessionId> {
        Some(self.session.session_id().clone())
    }

    fn prompt(&self, blocks: Vec<ContentBlock>) -> BoxFuture<'_, Result<String, AgentError>> {
        async move {
            // One at a time, so that an echo cannot be taken for another prompt's.
            let _alone = self.prompting.lock().await;
            let blocks = self.upload(blocks).await?;
            self.send_prompt(&blocks).await
        }
        .boxed()
    }

    fn mid_turn(&self, blocks: Vec<ContentBlock>) -> BoxFuture<'_, Result<String, AgentError>> {
        async move {
            let _alone = self.prompting.lock().await;
            let blocks = self.upload(blocks).await?;
            let text = ContentBlock::text_of_all(&blocks);
            let attachments: Vec<ContentBlock> = blocks.iter().filter_map(ContentBlock::attachment).collect();
            let is_possible = self.has_mid_turn && text.encode_utf16().count() <= MAX_MID_TURN_CHARS;
            if !is_possible {
                return self.send_prompt(&blocks).await;
            }
            self.state.lock().translator.echoed.clear();
            match self.session.mid_turn_message(text.trim(), &attachments).await {
                Ok(Some(message_id)) => {
                    self.accepted(&message_id, text);
                    Ok(message_id)
                }
                // The turn has just ended, or too many messages wait for it.
                Ok(None) => self.send_prompt(&blocks).await,
                Err(error) if error.is_lost() => Ok(self.wait_for_echo(&blocks, error).await?),
                Err(error) => Err(error.into()),
            }
        }
        .boxed()
    }

    fn rewind(&self, turn: usize, turns: usize) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            let points = self.session.rewind_points().await?;
            // Not every message has a point: a slash command that the agent answers itself has none. Then it is not known which
            // point is whose.
            let point = points.get(turn).filter(|_| points.len() == turns);
            let point = point.ok_or(AgentError::Rewind(
                "the daemon does not have a restore point for each message; start a new session instead",
            ))?;
            match self.session.rewind(point).await {
                Err(error) if error.has_code("session_busy") => {
                    Err(AgentError::Rewind("the agent is working; stop it first"))
                }
                result => Ok(result?),
            }
        }
        .boxed()
    }

    fn read_attachment(&self, name: String) -> BoxFuture<'_, Result<String, AgentError>> {
        async move {
            let content = self.session.read_attachment(&name).await?;
            Ok(BASE64.encode(&content))
        }
        .boxed()
    }

    fn cancel(&self) -> BoxFuture<'_, Result<(), AgentError>> {
        async move {
            {
                let translator = &mut self.state.lock().translator;
                if translator.running.is_some() && translator.running == translator.cancelling {
                    return Ok(());
                }
                translator.cancelling.clone_from(&translator.running);
            }
            let cancelled = self.session.cancel().await;
            if cancelled.is_err() {
                self.state.lock().translator.cancelling = None;
            }
            Ok(cancelled?)
        }
        .boxed()
    }

    /// If the response cannot be sent, the request stays open, so that it can be sent again.
    fn respond(&self, request_id: String, decision: PermissionDecision) -> BoxFuture<'_, Result<bool, AgentError>> {
        async move {
            let vote = {
                let state = self.state.lock();
                let request = state.translator.open.get(&request_id);
                Vote::new(request.ok_or(AgentError::NoSuchRequest)?, &decision)
            };
            let in_time = self.session.respond_to_permission(&request_id, &vote).await?;
            if !in_time {
                let mut state = self.state.lock();
                let closed = state.translator.close_request(&request_id, None, false);
                state.send(closed);
            }
            Ok(in_time)
        }
        .boxed()
    }

    fn remove_queued(&self, prompt_id: String) -> BoxFuture<'_, Result<bool, AgentError>> {
        async move {
            let removed = self.session.remove_pending_prompt(&prompt_id).await?;
            Ok(removed || (self.has_mid_turn && self.session.remove_mid_turn_message(&prompt_id).await?))
        }
        .boxed()
    }

    fn set_model(&self, model_id: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { Ok(self.session.set_model(&model_id).await?) }.boxed()
    }

    fn set_mode(&self, mode_id: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { Ok(self.session.set_approval_mode(&mode_id).await?) }.boxed()
    }

    fn list_sessions(&self, cursor: Option<String>) -> BoxFuture<'_, Result<SessionPage, AgentError>> {
        async move {
            let client = self.session.client();
            Ok(client.list(self.session.workspace(), cursor.as_deref()).await?)
        }
        .boxed()
    }

    fn rename(&self, title: String) -> BoxFuture<'_, Result<(), AgentError>> {
        async move { Ok(self.session.rename(&title).await?) }.boxed()
    }

    fn find_files(&self, query: Query) -> BoxFuture<'_, Result<Vec<String>, AgentError>> {
        async move {
            let paths = self.session.find_files(&query.to_pattern()).await?;
            Ok(query.rank(paths))
        }
        .boxed()
    }
}
