//! Opening a session of a daemon: whether the daemon fits, which session, what is in it.

use std::path::PathBuf;

use alongside_protocol::chat::{Abilities, AgentEvent, ConnectedSession, Locality, NoticeLevel};
use serde_json::Value;

use super::client::{ClientSettings, DaemonClient};
use super::connection::DaemonOptions;
use super::error::DaemonError;
use super::event::DaemonEvent;
use super::responses::{Capabilities, NewSession, PendingPrompt, SessionHandle, SessionScope};
use super::session::DaemonSessionClient;
use crate::connection::OpenSession;
use crate::conversation::{PermissionRequest, read_models, read_modes};
use crate::position::Position;

/// The features that a conversation needs.
const REQUIRED_FEATURES: [&str; 5] = [
    "session_create",
    "session_prompt",
    "session_events",
    "session_cancel",
    "session_permission_vote",
];

/// An open session, and everything to report about it.
pub(super) struct OpenedSession {
    pub(super) session: DaemonSessionClient,
    pub(super) connected: ConnectedSession,
    pub(super) history: History,
    pub(super) extras: SessionExtras,
}

/// What happened in a session before it was opened.
pub(super) enum History {
    /// Its events will report everything.
    None,
    /// To be reported before its events.
    Full(Vec<DaemonEvent>),
    /// Delivered up to this position. The history goes beyond it.
    Partial(Box<Position>, Vec<DaemonEvent>),
}

/// What a session has besides its conversation.
#[derive(Default)]
pub(super) struct SessionExtras {
    /// The models and modes, and notices.
    pub(super) events: Vec<AgentEvent>,
    /// The open permission requests, if known.
    pub(super) open: Option<Vec<PermissionRequest>>,
    pub(super) prompts: Vec<PendingPrompt>,
}

impl SessionExtras {
    /// The current mode.
    pub(super) fn mode(&self) -> Option<String> {
        self.events.iter().find_map(|event| match event {
            AgentEvent::Modes(modes) => modes.current.clone(),
            _ => None,
        })
    }
}

const MID_TURN_FEATURE: &str = "session_mid_turn_message_mutation";

pub(super) async fn open(options: &DaemonOptions) -> Result<OpenedSession, DaemonError> {
    let settings = ClientSettings {
        ca_file: options.ca_file.clone(),
        ..ClientSettings::default()
    };
    let (address, token) = (options.address.clone(), options.token.clone());
    // Reads certificates, from a file or the system's.
    let client = blocking(move || DaemonClient::with_settings(address, token, &settings)).await??;
    let mut capabilities = client.capabilities().await?;
    let workspace = match &options.workspace {
        Some(workspace) => Some(canonical(workspace).await),
        None => None,
    };
    // While it starts, a daemon lists neither all its features nor all its directories.
    let starting = capabilities.workspaces.is_empty();
    if !starting {
        check(&capabilities, workspace.as_deref()).await?;
    }
    let (session, handle, history) = enter(&client, options, workspace.as_deref()).await.map_err(mismatch)?;
    if starting {
        capabilities = client.capabilities().await?;
        check(&capabilities, None).await?;
    }
    session.set_in_first_workspace(match &capabilities.workspace_cwd {
        Some(first) => canonical(first).await == canonical(session.workspace()).await,
        None => true,
    });
    let preflight = client.preflight().await.unwrap_or_else(|error| {
        tracing::debug!(%error, "cannot read the daemon's preflight report");
        Vec::new()
    });
    let mut failure = None;
    if let Some(mode) = options.mode.as_deref()
        && options.open.session_id().is_some()
        && !handle.attached
    {
        // No other client is in it, and a session that was not live has forgotten its mode.
        failure = session.set_approval_mode(mode).await.err();
    }
    let mut extras = fetch_extras(&session).await;
    extras.events.extend(failure.map(|error| AgentEvent::Notice {
        level: NoticeLevel::Warning,
        message: format!(
            "Could not switch to mode {}: {error}",
            options.mode.as_deref().unwrap_or_default()
        ),
    }));
    let connected = ConnectedSession {
        session_id: session.session_id().clone(),
        agent: "Qwen Code".to_owned(),
        agent_version: capabilities.qwen_code_version.clone(),
        attached: handle.attached,
        resumed: matches!(history, History::Partial(..)),
        workspace: session.workspace().to_owned(),
        abilities: Abilities {
            list_sessions: capabilities.has("session_list"),
            load_sessions: capabilities.has("session_load"),
            rename_sessions: capabilities.has("session_metadata"),
            find_files: capabilities.has("workspace_file_read"),
            switch_models: capabilities.has("session_set_model"),
            switch_modes: capabilities.has("session_approval_mode_control"),
            images: true,
            files: capabilities.has("session_attachments"),
            read_attachments: capabilities.has("session_attachments"),
            mid_turn: capabilities.has(MID_TURN_FEATURE),
            rewind: capabilities.has("session_rewind"),
            shared: true,
            reviews_writes: false,
        },
        locality: Locality::Daemon { preflight },
    };
    Ok(OpenedSession {
        session,
        connected,
        history,
        extras,
    })
}

/// Checks that the daemon has the required features and serves the workspace.
async fn check(capabilities: &Capabilities, workspace: Option<&str>) -> Result<(), DaemonError> {
    if let Some(missing) = REQUIRED_FEATURES.iter().find(|feature| !capabilities.has(feature)) {
        return Err(DaemonError::MissingFeature(missing));
    }
    let Some(wanted) = workspace else { return Ok(()) };
    let offered = capabilities.directories();
    for directory in &offered {
        if canonical(directory).await == wanted {
            return Ok(());
        }
    }
    Err(DaemonError::WorkspaceMismatch {
        wanted: wanted.to_owned(),
        offered: offered.into_iter().map(str::to_owned).collect(),
    })
}

/// The canonical path, if the directory exists here: the daemon is on this machine, but perhaps in a container.
async fn canonical(directory: &str) -> String {
    let path = PathBuf::from(directory);
    let known = blocking(move || alongside_platform::path::real(&path)).await;
    let known = known.ok().and_then(Result::ok);
    let known = known.and_then(|path| path.to_str().map(str::to_owned));
    known.unwrap_or_else(|| directory.trim_end_matches('/').to_owned())
}

/// Runs file access on a thread for it. Only a runtime that shuts down fails.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, DaemonError> {
    let result = tokio::task::spawn_blocking(work).await;
    result.map_err(|error| DaemonError::Lost(error.to_string()))
}

/// The same error for a mismatch that the daemon found.
fn mismatch(error: DaemonError) -> DaemonError {
    let Some(response) = error.response().filter(|_| error.has_code("workspace_mismatch")) else {
        return error;
    };
    DaemonError::WorkspaceMismatch {
        wanted: response.detail("requestedWorkspace").unwrap_or_default().to_owned(),
        offered: response
            .detail("boundWorkspace")
            .map(str::to_owned)
            .into_iter()
            .collect(),
    }
}

type Entered = (DaemonSessionClient, SessionHandle, History);

async fn enter(
    client: &DaemonClient,
    options: &DaemonOptions,
    workspace: Option<&str>,
) -> Result<Entered, DaemonError> {
    match &options.open {
        OpenSession::Load(id) => {
            let (session, mut handle) = DaemonSessionClient::load(client, id, workspace).await?;
            let history = handle.take_history();
            return Ok((session, handle, History::Full(history)));
        }
        OpenSession::Resume(position) => return resume(client, position, workspace).await,
        OpenSession::CreateOrAttach | OpenSession::New => {}
    }
    let request = NewSession {
        cwd: workspace.map(str::to_owned),
        session_scope: (options.open == OpenSession::New).then_some(SessionScope::Thread),
        session_id: None,
        model_service_id: options.model.clone(),
        approval_mode: options.mode.clone(),
    };
    let mut handle = client.create_or_attach(&request, None).await?;
    if !handle.attached {
        // The request itself causes events before the stream is open.
        handle.last_event_id = Some(0);
        return Ok((DaemonSessionClient::from_handle(client, &handle), handle, History::None));
    }
    // Other clients were here before: their conversation is the history.
    let mut loaded = client
        .load(&handle.session_id, None, handle.client_id.as_deref())
        .await?;
    loaded.last_event_id.get_or_insert(0);
    loaded.attached = true;
    let session = DaemonSessionClient::from_handle(client, &loaded);
    let history = loaded.take_history();
    Ok((session, loaded, History::Full(history)))
}

/// Resumes a session with our previous client id, so that what we started there stays ours: under some policies, only the
/// originator may respond to permission requests.
async fn resume(client: &DaemonClient, position: &Position, workspace: Option<&str>) -> Result<Entered, DaemonError> {
    let known_as = position.clients.last().map(String::as_str);
    let mut loaded = client.load(&position.session_id, workspace, known_as).await;
    if let Err(error) = &loaded
        && error.has_code("invalid_client_id")
    {
        loaded = client.load(&position.session_id, workspace, None).await;
    }
    let mut handle = loaded?;
    handle.last_event_id.get_or_insert(0);
    let session = DaemonSessionClient::from_handle(client, &handle);
    session.remember_turn_ends(handle.turn_ends());
    let history = handle.take_history();
    // Event ids restart when the daemon does.
    let same_epoch = !position.needs_history()
        && position.cursor.epoch == handle.event_epoch
        && position.cursor.last_event_id <= handle.last_event_id;
    if !same_epoch {
        return Ok((session, handle, History::Full(history)));
    }
    session.set_cursor(position.cursor.clone());
    Ok((session, handle, History::Partial(Box::new(position.clone()), history)))
}

/// Fetches everything besides the conversation. What is unavailable is left out: the events will report it.
pub(super) async fn fetch_extras(session: &DaemonSessionClient) -> SessionExtras {
    let (context, status, prompts, during) = tokio::join!(
        session.context(),
        session.status(),
        session.pending_prompts(),
        session.mid_turn_messages()
    );
    let mut extras = SessionExtras::default();
    match context {
        Ok(context) => extras.events = models_and_modes(&context),
        Err(error) => tracing::debug!(%error, "cannot list the daemon's models"),
    }
    match status {
        Ok(status) => extras.open = Some(status.open_requests()),
        Err(error) => tracing::debug!(%error, "cannot list the daemon's open requests"),
    }
    extras.prompts = prompts.unwrap_or_default();
    // An older daemon has no such messages.
    extras.prompts.extend(during.unwrap_or_default());
    extras
}

fn models_and_modes(context: &Value) -> Vec<AgentEvent> {
    let models = read_models(context).map(AgentEvent::Models);
    models
        .into_iter()
        .chain(read_modes(context).map(AgentEvent::Modes))
        .collect()
}
