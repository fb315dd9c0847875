//! What front ends ask of the chat.

use std::sync::Arc;

use alongside_agent::OpenSession;
use alongside_agent::daemon::DaemonError;
use alongside_agent::{AgentCommand, AgentError, AgentReply};
use alongside_core::SessionId;
use alongside_core::draft::Draft;
use alongside_protocol::Refusal;
use alongside_protocol::{ChatConnect, Hunks, Texts};
use serde::Serialize;
use serde_json::{Value, json};

use super::agents::{self, Choice};
use super::gate::Gate;
use crate::Companion;
use crate::clock::diff_deadline;
use crate::settings::Settings;

impl Companion {
    pub(crate) fn chat_state(&self) -> Result<Value, Refusal> {
        let choices = agents::choices(&self.settings.lock(), environment);
        value(&self.chat.state(choices.iter().map(Choice::describe).collect()))
    }

    pub(crate) async fn connect_chat(&self, asked: &ChatConnect) -> Result<Value, Refusal> {
        self.open_chat(&asked.agent, None).await?;
        Ok(json!({}))
    }

    /// Asks something of the agent. To begin or open a session also works when there is no connection: the agent that was chosen is
    /// connected to again, by this companion or the one before.
    pub(crate) async fn chat_command(&self, command: Value) -> Result<Value, Refusal> {
        let command: AgentCommand = serde_json::from_value(command)
            .map_err(|error| Refusal::new("badCommand", format!("invalid agent command: {error}")))?;
        let open = match &command {
            AgentCommand::NewSession => Some(OpenSession::New),
            AgentCommand::LoadSession { session_id } => Some(OpenSession::Load(SessionId::new(session_id.as_str()))),
            _ => None,
        };
        let agent = self.chat.state.lock().agent.clone();
        if let (Some(open), Some(agent), false) = (open, agent, self.chat.manager.is_connected()) {
            self.open_chat(&agent, Some(open)).await?;
            return value(&AgentReply::Done);
        }
        value(&self.chat.command(command).await?)
    }

    async fn open_chat(&self, agent: &str, open: Option<OpenSession>) -> Result<(), Refusal> {
        let choice = choice(&self.settings.lock(), agent)?;
        let workspace = self.workspace().into_iter().next();
        let workspace =
            workspace.ok_or_else(|| Refusal::new("noWorkspace", "the workspace has no folder to work in"))?;
        let gate = Arc::new(Gate(self.me.clone()));
        self.chat.connect(&choice, open, workspace, gate).await
    }
}

/// The agent of this id.
pub(super) fn choice(settings: &Settings, id: &str) -> Result<Choice, Refusal> {
    let mut choices = agents::choices(settings, environment);
    let Some(place) = choices.iter().position(|choice| choice.id == id) else {
        let ids: Vec<&str> = choices.iter().map(|choice| choice.id.as_str()).collect();
        let message = format!("unknown agent `{id}`; available agents: {}", ids.join(", "));
        return Err(Refusal::new("unknownAgent", message));
    };
    Ok(choices.swap_remove(place))
}

fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

fn value(answer: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(answer).map_err(|error| Refusal::new("internal", error.to_string()))
}

/// Where two texts differ. Large ones take a while.
pub(crate) async fn difference(texts: Texts) -> Result<Value, Refusal> {
    let compare = move || {
        Draft::new(texts.base, texts.proposal, Some(diff_deadline()))
            .hunks()
            .collect()
    };
    let hunks = tokio::task::spawn_blocking(compare).await;
    let hunks = hunks.map_err(|error| Refusal::new("internal", error.to_string()))?;
    value(&Hunks { hunks })
}

pub(super) fn given_up_refusal() -> Refusal {
    Refusal::new("givenUp", "a different agent has been selected, or none")
}

/// Why the agent did not do it, and what can be done, without the address of anything.
pub(super) fn refusal(error: &AgentError) -> Refusal {
    let kind = match error {
        AgentError::NotConnected => "notConnected",
        AgentError::NoSuchRequest => "noSuchRequest",
        AgentError::EmptyPrompt => "emptyPrompt",
        AgentError::Pattern(_) => "badPattern",
        AgentError::Unsupported(_) => "unsupported",
        AgentError::Daemon(_) | AgentError::Acp(_) => "agentFailed",
    };
    let mut message = match error {
        AgentError::Daemon(DaemonError::Unreachable { source, .. }) => format!("cannot reach the daemon: {source}"),
        other => other.to_string(),
    };
    if let Some(hint) = error.hint() {
        message = format!("{}. {hint}", message.trim_end_matches('.'));
    }
    Refusal::new(kind, message)
}
