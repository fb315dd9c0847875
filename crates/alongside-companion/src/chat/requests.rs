//! Front ends' requests about the chat.

use std::sync::Arc;

use alongside_agent::daemon::DaemonError;
use alongside_agent::{AgentError, OpenSession};
use alongside_core::draft::Draft;
use alongside_protocol::chat::{AgentCommand, AgentReply};
use alongside_protocol::{ChatState, ErrorKind, Hunks, RequestError, Texts};

use super::agents::{self, AgentOption};
use super::gate::WriteReviewer;
use crate::Companion;
use crate::clock::diff_deadline;
use crate::settings::Settings;

/// How often a state that keeps changing is waited for.
const MAX_STATE_ATTEMPTS: usize = 20;

impl Companion {
    /// The chat's state once everything in it is journaled: a front end must find it again after a crash. Nothing is awaited after
    /// the state is read, so that no notification overtakes it.
    pub(crate) async fn chat_state(&self) -> Result<ChatState, RequestError> {
        let choices = agents::choices(&self.settings.lock(), environment, alongside_platform::is_installed);
        for _ in 0..MAX_STATE_ATTEMPTS {
            let version = self.chat.version();
            let written = self.chat.writer.written().await;
            written.map_err(|problem| RequestError::new(ErrorKind::NotSaved, problem.to_string()))?;
            if self.chat.version() == version {
                break;
            }
        }
        Ok(self.chat.state(choices.iter().map(AgentOption::describe).collect()))
    }

    /// Runs a command. Starting or opening a session also works without a connection: the selected agent is connected again, by
    /// this companion or its successor.
    pub(crate) async fn chat_command(&self, command: AgentCommand) -> Result<AgentReply, RequestError> {
        let open = match &command {
            AgentCommand::NewSession => Some(OpenSession::New),
            AgentCommand::LoadSession { session_id } => Some(OpenSession::Load(session_id.clone())),
            _ => None,
        };
        let agent = self.chat.state.lock().agent.clone();
        if let (Some(open), Some(agent), false) = (open, agent, self.chat.manager.is_connected()) {
            if let Some(session) = open.session_id().filter(|session| self.chat.shows(session)) {
                let choice = choice(&self.settings.lock(), &agent)?;
                if choice.is_child() {
                    self.restart_local_agent(&choice, session).await?;
                    return Ok(AgentReply::Done);
                }
            }
            self.open_chat(&agent, Some(open), false).await?;
            return Ok(AgentReply::Done);
        }
        self.chat.command(command).await
    }

    pub(crate) async fn open_chat(
        &self,
        agent: &str,
        open: Option<OpenSession>,
        if_idle: bool,
    ) -> Result<(), RequestError> {
        let choice = choice(&self.settings.lock(), agent)?;
        let workspace = self.workspace().into_iter().next();
        let workspace = workspace
            .ok_or_else(|| RequestError::new(ErrorKind::NoWorkspace, "the workspace has no folder to work in"))?;
        let gate = Arc::new(WriteReviewer(self.me.clone()));
        self.chat.connect(&choice, open, workspace, gate, if_idle).await
    }
}

pub(super) fn choice(settings: &Settings, id: &str) -> Result<AgentOption, RequestError> {
    let mut choices = agents::choices(settings, environment, alongside_platform::is_installed);
    let Some(place) = choices.iter().position(|choice| choice.id == id) else {
        let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
        let message = format!("unknown agent `{id}`; available agents: {}", ids.join(", "));
        return Err(RequestError::new(ErrorKind::UnknownAgent, message));
    };
    Ok(choices.swap_remove(place))
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// Compares two texts, off the async workers: large ones take a while.
pub(crate) async fn diff(texts: Texts) -> Result<Hunks, RequestError> {
    let compare = move || {
        Draft::new(texts.base, texts.proposal, Some(diff_deadline()))
            .hunks()
            .collect()
    };
    let hunks = tokio::task::spawn_blocking(compare).await;
    let hunks = hunks.map_err(|error| RequestError::new(ErrorKind::Internal, error.to_string()))?;
    Ok(Hunks { hunks })
}

pub(super) fn busy(agent: &str) -> RequestError {
    RequestError::new(ErrorKind::Busy, format!("the chat is in use by {agent}"))
}

pub(super) fn superseded() -> RequestError {
    RequestError::new(ErrorKind::Superseded, "a different agent has been selected, or none")
}

/// The error of an agent with its hint, without any address.
pub(super) fn request_error(error: &AgentError) -> RequestError {
    let kind = match error {
        AgentError::NotConnected => ErrorKind::NotConnected,
        AgentError::NoSuchRequest => ErrorKind::NoSuchRequest,
        AgentError::EmptyPrompt => ErrorKind::EmptyPrompt,
        AgentError::Pattern(_) => ErrorKind::BadPattern,
        AgentError::Unsupported(_) | AgentError::Attachment(..) => ErrorKind::Unsupported,
        AgentError::Rewind(_) => ErrorKind::Failed,
        AgentError::Daemon(_) | AgentError::Acp(_) => ErrorKind::AgentFailed,
    };
    let mut message = match error {
        AgentError::Daemon(DaemonError::Unreachable { source, .. }) => format!("cannot reach the daemon: {source}"),
        other => other.to_string(),
    };
    if let Some(hint) = error.hint() {
        message = format!("{}. {hint}", message.trim_end_matches('.'));
    }
    RequestError::new(kind, message)
}
