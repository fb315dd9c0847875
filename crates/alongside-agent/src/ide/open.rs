//! Entering a session of a daemon: does it fit, which session, what is in it.

use std::path::Path;

use serde_json::Value;

use super::{DaemonOptions, OpenSession};
use crate::conversation::{PermissionRequest, read_models, read_modes};
use crate::daemon::{
    Capabilities, ClientSettings, DaemonClient, DaemonError, DaemonEvent, DaemonSessionClient, NewSession,
    PendingPrompt, SessionHandle,
};
use crate::position::Position;
use alongside_protocol::chat::{Abilities, AgentEvent, ConnectedSession, Locality, NoticeLevel};

/// What there is no conversation without. Its name, and the tag that says so.
const NEEDED: [&str; 5] = [
    "session_create",
    "session_prompt",
    "session_events",
    "session_cancel",
    "session_permission_vote",
];

/// A session that was entered, and all that is to be told about it.
pub(super) struct Opened {
    pub(super) session: DaemonSessionClient,
    pub(super) connected: ConnectedSession,
    pub(super) past: Past,
    pub(super) state: State,
}

/// What happened in a session before it was entered.
pub(super) enum Past {
    /// Nothing but what its events will tell.
    None,
    /// This, which is to be told.
    History(Vec<DaemonEvent>),
    /// This, up to where it was told before and beyond.
    Told(Box<Position>, Vec<DaemonEvent>),
}

/// What a session is like beside its conversation.
#[derive(Default)]
pub(super) struct State {
    pub(super) events: Vec<AgentEvent>,
    pub(super) open: Option<Vec<PermissionRequest>>,
    pub(super) prompts: Vec<PendingPrompt>,
}

impl State {
    /// The mode in force.
    pub(super) fn mode(&self) -> Option<String> {
        self.events.iter().find_map(|event| match event {
            AgentEvent::Modes(modes) => modes.current.clone(),
            _ => None,
        })
    }
}

pub(super) async fn open(options: &DaemonOptions) -> Result<Opened, DaemonError> {
    let settings = ClientSettings {
        ca_file: options.ca_file.clone(),
        ..ClientSettings::default()
    };
    let client = DaemonClient::with_settings(options.address.clone(), options.token.clone(), &settings)?;
    let mut capabilities = client.capabilities().await?;
    let workspace = options.workspace.as_deref().map(canonical);
    // While it starts, a daemon does not know all that it can do, nor all directories that it works in.
    let starting = capabilities.workspaces.is_empty();
    if !starting {
        check(&capabilities, workspace.as_deref())?;
    }
    let (session, handle, past) = enter(&client, options, workspace.as_deref()).await.map_err(mismatch)?;
    if starting {
        capabilities = client.capabilities().await?;
        check(&capabilities, None)?;
    }
    let first = capabilities.workspace_cwd.as_deref();
    session.set_in_first_workspace(first.is_none_or(|first| canonical(first) == canonical(session.workspace())));
    let preflight = client.preflight().await.unwrap_or_else(|error| {
        tracing::debug!(%error, "cannot read the daemon's preflight report");
        Vec::new()
    });
    let mut failure = None;
    if let Some(mode) = options.mode.as_deref()
        && options.open.session_id().is_some()
        && !handle.attached
    {
        // Nobody else is in it, and a session that was not live does not know in which mode it was.
        failure = session.set_approval_mode(mode).await.err();
    }
    let mut state = state_of(&session).await;
    state.events.extend(failure.map(|error| AgentEvent::Notice {
        level: NoticeLevel::Warning,
        message: format!(
            "Could not switch to mode {}: {error}",
            options.mode.as_deref().unwrap_or_default()
        ),
    }));
    let connected = ConnectedSession {
        session_id: session.session_id().to_owned(),
        agent: capabilities.qwen_code_version.as_ref().map_or_else(
            || "Qwen Code (daemon)".to_owned(),
            |version| format!("Qwen Code {version} (daemon)"),
        ),
        attached: handle.attached,
        resumed: matches!(past, Past::Told(..)),
        workspace: session.workspace().to_owned(),
        abilities: Abilities {
            list_sessions: capabilities.has("session_list"),
            load_sessions: capabilities.has("session_load"),
            rename_sessions: capabilities.has("session_metadata"),
            find_files: capabilities.has("workspace_file_read"),
            switch_models: capabilities.has("session_set_model"),
            switch_modes: capabilities.has("session_approval_mode_control"),
            images: true,
            shared: true,
            reviews_writes: false,
        },
        locality: Locality::Daemon { preflight },
    };
    Ok(Opened {
        session,
        connected,
        past,
        state,
    })
}

/// Whether the daemon can do what is needed, where it is needed.
fn check(capabilities: &Capabilities, workspace: Option<&str>) -> Result<(), DaemonError> {
    if let Some(missing) = NEEDED.iter().find(|feature| !capabilities.has(feature)) {
        return Err(DaemonError::MissingFeature(missing));
    }
    let Some(wanted) = workspace else { return Ok(()) };
    let offered = capabilities.directories();
    if offered.iter().any(|directory| canonical(directory) == wanted) {
        return Ok(());
    }
    Err(DaemonError::WorkspaceMismatch {
        wanted: wanted.to_owned(),
        offered: offered.into_iter().map(str::to_owned).collect(),
    })
}

/// A directory as the system knows it, if it does: the daemon is on this machine, though perhaps in a container.
fn canonical(directory: &str) -> String {
    let known = Path::new(directory).canonicalize().ok();
    let known = known.and_then(|path| path.to_str().map(str::to_owned));
    known.unwrap_or_else(|| directory.trim_end_matches('/').to_owned())
}

/// What the daemon itself says when the directory is not one of its own.
fn mismatch(error: DaemonError) -> DaemonError {
    let Some(refusal) = error.refusal().filter(|_| error.has_code("workspace_mismatch")) else {
        return error;
    };
    DaemonError::WorkspaceMismatch {
        wanted: refusal.detail("requestedWorkspace").unwrap_or_default().to_owned(),
        offered: refusal
            .detail("boundWorkspace")
            .map(str::to_owned)
            .into_iter()
            .collect(),
    }
}

type Entered = (DaemonSessionClient, SessionHandle, Past);

async fn enter(
    client: &DaemonClient,
    options: &DaemonOptions,
    workspace: Option<&str>,
) -> Result<Entered, DaemonError> {
    match &options.open {
        OpenSession::Load(id) => {
            let (session, mut handle) = DaemonSessionClient::load(client, id, workspace).await?;
            let history = handle.take_history();
            return Ok((session, handle, Past::History(history)));
        }
        OpenSession::Resume(position) => return resume(client, position, workspace).await,
        OpenSession::CreateOrAttach | OpenSession::New => {}
    }
    let request = NewSession {
        cwd: workspace.map(str::to_owned),
        session_scope: options.open.scope(),
        session_id: None,
        model_service_id: options.model.clone(),
        approval_mode: options.mode.clone(),
    };
    let mut handle = client.create_or_attach(&request, None).await?;
    if !handle.attached {
        // What the request itself causes happens before anyone listens.
        handle.last_event_id = Some(0);
        return Ok((DaemonSessionClient::from_handle(client, &handle), handle, Past::None));
    }
    // Others were here before: what they said is the history.
    let mut loaded = client
        .load(&handle.session_id, None, handle.client_id.as_deref())
        .await?;
    loaded.last_event_id.get_or_insert(0);
    loaded.attached = true;
    let session = DaemonSessionClient::from_handle(client, &loaded);
    let history = loaded.take_history();
    Ok((session, loaded, Past::History(history)))
}

/// Goes on in a session as who we were in it, so that what we began there stays ours: under some policies only we may answer for it.
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
    session.remember_ends(handle.turn_ends());
    let history = handle.take_history();
    // Ids of another life mean something else.
    let same_life = !position.needs_history()
        && position.cursor.epoch == handle.event_epoch
        && position.cursor.last_event_id <= handle.last_event_id;
    if !same_life {
        return Ok((session, handle, Past::History(history)));
    }
    session.set_cursor(position.cursor.clone());
    Ok((session, handle, Past::Told(Box::new(position.clone()), history)))
}

/// Asks for everything beside the conversation. What cannot be had is left out: the events will tell.
pub(super) async fn state_of(session: &DaemonSessionClient) -> State {
    let (context, status, prompts) = tokio::join!(session.context(), session.status(), session.pending_prompts());
    let mut state = State::default();
    match context {
        Ok(context) => state.events = models_and_modes(&context),
        Err(error) => tracing::debug!(%error, "cannot list the daemon's models"),
    }
    match status {
        Ok(status) => state.open = Some(status.open_requests()),
        Err(error) => tracing::debug!(%error, "cannot list the daemon's open requests"),
    }
    state.prompts = prompts.unwrap_or_default();
    state
}

fn models_and_modes(context: &Value) -> Vec<AgentEvent> {
    let models = read_models(context).map(AgentEvent::Models);
    models
        .into_iter()
        .chain(read_modes(context).map(AgentEvent::Modes))
        .collect()
}
