//! A client for one session of a daemon.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use alongside_core::SessionId;
use bytes::Bytes;
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::sync::Notify;

use super::client::DaemonClient;
use super::error::DaemonError;
use super::responses::{
    FileText, NewSession, PendingPrompt, PromptReceipt, SessionHandle, SessionStatus, TranscriptPage,
};
use super::stream::EventStream;
use crate::conversation::{ContentBlock, TurnEnd, Vote};

/// Remembered for callers of [`DaemonSessionClient::turn_end`] that come late.
const MAX_TURN_ENDS: usize = 256;

/// How far the events of a session were read.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Cursor {
    /// The last handled event; 0 is before the first, `None` means from now on.
    pub last_event_id: Option<u64>,
    /// The epoch of the id. A restarted daemon needs it to recognize an old id.
    pub epoch: Option<String>,
}

/// A session that we attached to. Clones are the same session.
#[derive(Clone)]
pub struct DaemonSessionClient {
    client: DaemonClient,
    shared: Arc<Shared>,
}

struct Shared {
    session_id: SessionId,
    workspace: String,
    cursor: Mutex<SessionCursor>,
    /// Not in the daemon's first workspace.
    elsewhere: AtomicBool,
    subscribed: AtomicBool,
    renewal: tokio::sync::Mutex<()>,
    turn_ends: Mutex<TurnEnds>,
    ended: Notify,
}

/// Our client id, and how far we have read. Both change when the daemon is restarted.
struct SessionCursor {
    client_id: Option<String>,
    cursor: Cursor,
}

#[derive(Default)]
struct TurnEnds {
    recent: VecDeque<(String, TurnEnd)>,
    /// Why no more turns will end.
    closed: Option<String>,
}

impl fmt::Debug for DaemonSessionClient {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("DaemonSessionClient")
            .field("session_id", &self.shared.session_id)
            .field("cursor", &self.cursor())
            .finish_non_exhaustive()
    }
}

impl DaemonSessionClient {
    /// Creates a session, or attaches to the workspace's shared one. Events of a new session are read from the first one, those of a
    /// shared one from now on.
    pub async fn create_or_attach(client: &DaemonClient, session: &NewSession) -> Result<Self, DaemonError> {
        let mut handle = client.create_or_attach(session, None).await?;
        // The request itself causes events, such as a failed model switch, before the stream is open.
        let from_first = !handle.attached || session.model_service_id.is_some() || session.approval_mode.is_some();
        if from_first {
            handle.last_event_id = Some(0);
        } else if handle.last_event_id.is_none() {
            // Resuming after a lost connection needs an id, so ask for the current one.
            let resumed = client
                .resume(&handle.session_id, None, handle.client_id.as_deref())
                .await;
            match resumed {
                Ok(resumed) => {
                    handle.last_event_id = resumed.last_event_id;
                    handle.event_epoch = resumed.event_epoch;
                    handle.client_id = resumed.client_id.or(handle.client_id);
                }
                Err(error) => tracing::debug!(%error, "this daemon is too old to report its event position"),
            }
        }
        Ok(Self::from_handle(client, &handle))
    }

    pub async fn load(
        client: &DaemonClient,
        session: &SessionId,
        cwd: Option<&str>,
    ) -> Result<(Self, SessionHandle), DaemonError> {
        let mut handle = client.load(session, cwd, None).await?;
        handle.last_event_id.get_or_insert(0);
        let this = Self::from_handle(client, &handle);
        this.remember_turn_ends(handle.turn_ends());
        Ok((this, handle))
    }

    pub async fn resume(client: &DaemonClient, session: &SessionId, cwd: Option<&str>) -> Result<Self, DaemonError> {
        let mut handle = client.resume(session, cwd, None).await?;
        handle.last_event_id.get_or_insert(0);
        Ok(Self::from_handle(client, &handle))
    }

    /// A client for a session that is open already.
    pub fn from_handle(client: &DaemonClient, handle: &SessionHandle) -> Self {
        let cursor = Cursor {
            last_event_id: handle.last_event_id,
            epoch: handle.event_epoch.clone(),
        };
        Self {
            client: client.clone(),
            shared: Arc::new(Shared {
                session_id: handle.session_id.clone(),
                workspace: handle.workspace_cwd.clone(),
                cursor: Mutex::new(SessionCursor {
                    client_id: handle.client_id.clone(),
                    cursor,
                }),
                elsewhere: AtomicBool::new(false),
                subscribed: AtomicBool::new(false),
                renewal: tokio::sync::Mutex::default(),
                turn_ends: Mutex::default(),
                ended: Notify::new(),
            }),
        }
    }

    pub fn client(&self) -> &DaemonClient {
        &self.client
    }

    pub fn session_id(&self) -> &SessionId {
        &self.shared.session_id
    }

    /// The working directory, on the daemon's machine.
    pub fn workspace(&self) -> &str {
        &self.shared.workspace
    }

    /// Our id in the session. The daemon may issue another one after a restart.
    pub fn client_id(&self) -> Option<String> {
        self.shared.cursor.lock().client_id.clone()
    }

    /// How far events were handled.
    pub fn cursor(&self) -> Cursor {
        self.shared.cursor.lock().cursor.clone()
    }

    /// Continues reading elsewhere, for a conversation that was read before.
    pub fn set_cursor(&self, cursor: Cursor) {
        self.shared.cursor.lock().cursor = cursor;
    }

    /// The events after the cursor. There is one stream at a time.
    pub fn events(&self) -> Result<EventStream, DaemonError> {
        if self.shared.subscribed.swap(true, Ordering::AcqRel) {
            return Err(DaemonError::AlreadySubscribed);
        }
        Ok(EventStream::new(self.clone()))
    }

    /// Sends a prompt. Wait for [`DaemonSessionClient::turn_end`].
    pub async fn prompt(&self, blocks: &[ContentBlock]) -> Result<PromptReceipt, DaemonError> {
        self.with_identity(
            |client| async move { self.client.prompt(self.session_id(), blocks, client.as_deref()).await },
        )
        .await
    }

    /// See [`DaemonClient::upload_attachment`].
    pub async fn upload_attachment(
        &self,
        name: &str,
        mime_type: &str,
        content: Bytes,
    ) -> Result<ContentBlock, DaemonError> {
        self.with_identity(|client| {
            let content = content.clone();
            async move {
                let upload =
                    self.client
                        .upload_attachment(self.session_id(), name, mime_type, content, client.as_deref());
                upload.await
            }
        })
        .await
    }

    pub async fn read_attachment(&self, name: &str) -> Result<Bytes, DaemonError> {
        self.with_identity(|client| async move {
            let read = self.client.read_attachment(self.session_id(), name, client.as_deref());
            read.await
        })
        .await
    }

    /// See [`DaemonClient::mid_turn_message`].
    pub async fn mid_turn_message(
        &self,
        text: &str,
        attachments: &[ContentBlock],
    ) -> Result<Option<String>, DaemonError> {
        self.with_identity(|client| async move {
            let send = self
                .client
                .mid_turn_message(self.session_id(), text, attachments, client.as_deref());
            send.await
        })
        .await
    }

    pub async fn mid_turn_messages(&self) -> Result<Vec<PendingPrompt>, DaemonError> {
        self.with_identity(|client| async move {
            let list = self.client.mid_turn_messages(self.session_id(), client.as_deref());
            list.await
        })
        .await
    }

    /// See [`DaemonClient::remove_mid_turn_message`].
    pub async fn remove_mid_turn_message(&self, message: &str) -> Result<bool, DaemonError> {
        self.with_identity(|client| async move {
            let remove = self
                .client
                .remove_mid_turn_message(self.session_id(), message, client.as_deref());
            remove.await
        })
        .await
    }

    /// See [`DaemonClient::rewind_points`].
    pub async fn rewind_points(&self) -> Result<Vec<String>, DaemonError> {
        self.client.rewind_points(self.session_id()).await
    }

    /// See [`DaemonClient::rewind`].
    pub async fn rewind(&self, point: &str) -> Result<(), DaemonError> {
        self.with_identity(
            |client| async move { self.client.rewind(self.session_id(), point, client.as_deref()).await },
        )
        .await
    }

    /// Waits until a turn has ended. The event stream must be read in the meantime.
    pub async fn turn_end(&self, prompt: &str) -> Result<TurnEnd, DaemonError> {
        loop {
            let mut changed = std::pin::pin!(self.shared.ended.notified());
            // Register before checking, so an end between the check and the wait is not missed.
            changed.as_mut().enable();
            {
                let ends = self.shared.turn_ends.lock();
                if let Some((_, end)) = ends.recent.iter().find(|(own, _)| own == prompt) {
                    return Ok(end.clone());
                }
                if let Some(reason) = &ends.closed {
                    return Err(DaemonError::SessionEnded(reason.clone()));
                }
            }
            changed.await;
        }
    }

    /// Cancels the running turn, if any.
    pub async fn cancel(&self) -> Result<(), DaemonError> {
        self.with_identity(|client| async move { self.client.cancel(self.session_id(), client.as_deref()).await })
            .await
    }

    pub async fn set_model(&self, model: &str) -> Result<(), DaemonError> {
        self.with_identity(
            |client| async move { self.client.set_model(self.session_id(), model, client.as_deref()).await },
        )
        .await
    }

    pub async fn set_approval_mode(&self, mode: &str) -> Result<(), DaemonError> {
        self.with_identity(|client| async move {
            self.client
                .set_approval_mode(self.session_id(), mode, client.as_deref())
                .await
        })
        .await
    }

    /// Responds to a permission request. `false` if it is no longer open.
    pub async fn respond_to_permission(&self, request: &str, vote: &Vote) -> Result<bool, DaemonError> {
        self.with_identity(|client| async move {
            self.client
                .respond_to_permission(self.session_id(), request, vote, client.as_deref())
                .await
        })
        .await
    }

    pub async fn heartbeat(&self) -> Result<(), DaemonError> {
        self.with_identity(|client| async move { self.client.heartbeat(self.session_id(), client.as_deref()).await })
            .await
    }

    /// The running and the queued prompts.
    pub async fn pending_prompts(&self) -> Result<Vec<PendingPrompt>, DaemonError> {
        self.client.pending_prompts(self.session_id()).await
    }

    /// `false` if the prompt is not queued.
    pub async fn remove_pending_prompt(&self, prompt: &str) -> Result<bool, DaemonError> {
        self.with_identity(|client| async move {
            self.client
                .remove_pending_prompt(self.session_id(), prompt, client.as_deref())
                .await
        })
        .await
    }

    pub async fn status(&self) -> Result<SessionStatus, DaemonError> {
        self.client.status(self.session_id()).await
    }

    pub async fn context(&self) -> Result<Value, DaemonError> {
        self.client.context(self.session_id()).await
    }

    pub async fn transcript(&self, cursor: Option<&str>, limit: u32) -> Result<TranscriptPage, DaemonError> {
        self.client.transcript(self.session_id(), cursor, limit).await
    }

    /// See [`DaemonClient::find_files`].
    pub async fn find_files(&self, pattern: &str) -> Result<Vec<String>, DaemonError> {
        self.client.find_files(self.other_workspace(), pattern).await
    }

    /// See [`DaemonClient::read_file`].
    pub async fn read_file(&self, path: &str) -> Result<FileText, DaemonError> {
        self.client.read_file(self.other_workspace(), path).await
    }

    /// Whether the session is in the daemon's first workspace. The default is yes.
    pub fn set_in_first_workspace(&self, is_first: bool) {
        self.shared.elsewhere.store(!is_first, Ordering::Relaxed);
    }

    /// The workspace, if it is not the daemon's first one.
    fn other_workspace(&self) -> Option<&str> {
        self.shared.elsewhere.load(Ordering::Relaxed).then(|| self.workspace())
    }

    pub async fn rename(&self, name: &str) -> Result<(), DaemonError> {
        self.with_identity(|client| async move { self.client.rename(self.session_id(), name, client.as_deref()).await })
            .await
    }

    /// Leaves the session; it stays live.
    pub async fn detach(&self) -> Result<(), DaemonError> {
        match self.client_id() {
            Some(client_id) => self.client.detach(self.session_id(), &client_id).await,
            None => Ok(()),
        }
    }

    /// Closes the session for all clients.
    pub async fn close(&self) -> Result<(), DaemonError> {
        self.client.close(self.session_id(), self.client_id().as_deref()).await
    }

    /// Sends a request with our client id. If the daemon has forgotten it, gets another one and tries again: the daemon checks the id
    /// first, so nothing happens twice.
    async fn with_identity<T, F>(&self, act: impl Fn(Option<String>) -> F) -> Result<T, DaemonError>
    where
        F: Future<Output = Result<T, DaemonError>>,
    {
        let identity = self.client_id();
        match act(identity.clone()).await {
            Err(error) if error.has_code("invalid_client_id") => {
                self.renew_identity(identity.as_deref()).await?;
                act(self.client_id()).await
            }
            result => result,
        }
    }

    /// Gets another id from the daemon, unless another task has done so since `forgotten` was used.
    pub(super) async fn renew_identity(&self, forgotten: Option<&str>) -> Result<(), DaemonError> {
        let _alone = self.shared.renewal.lock().await;
        if self.client_id().as_deref() == forgotten {
            let resumed = self.client.resume(self.session_id(), None, None).await?;
            self.take_identity(&resumed);
        }
        Ok(())
    }

    pub(super) fn take_identity(&self, handle: &SessionHandle) {
        if handle.client_id.is_some() {
            self.shared.cursor.lock().client_id.clone_from(&handle.client_id);
        }
    }

    pub(crate) fn remember_turn_ends(&self, ends: impl IntoIterator<Item = (String, TurnEnd)>) {
        let mut own = self.shared.turn_ends.lock();
        for end in ends {
            if own.recent.len() == MAX_TURN_ENDS {
                own.recent.pop_front();
            }
            own.recent.push_back(end);
        }
        drop(own);
        self.shared.ended.notify_waiters();
    }

    /// The stream has ended, so no more turns will: fails those who wait for one.
    pub(super) fn unsubscribe(&self, reason: &str) {
        self.shared.turn_ends.lock().closed = Some(reason.to_owned());
        self.shared.ended.notify_waiters();
        self.shared.subscribed.store(false, Ordering::Release);
    }

    pub(super) fn begin_reading(&self) {
        self.shared.turn_ends.lock().closed = None;
    }
}
