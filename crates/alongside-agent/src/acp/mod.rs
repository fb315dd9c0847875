//! A conversation with an agent that is our child: `qwen --acp`, `gemini --acp`, or any other that speaks the Agent Client
//! Protocol over its input and output.
//!
//! [`AcpConnection`] does for a child what [`crate::ide::DaemonIdeConnection`] does for a daemon, with the same events and the same
//! commands. What an ACP agent leaves to its client is done here: the queue of prompts, and the files of the
//! workspace, which are written through a [`ReviewGate`] and found for a mention.
//!
//! The protocol is spoken here without the crate `agent-client-protocol`: its schema lacks the models that Qwen Code and Gemini CLI send,
//! it has no place for updates that it does not know, which must keep their name here, and it switches `serde_json` to another order of
//! fields for the whole program. What is left without it is JSON-RPC by lines, which is one small module.

mod child;
mod error;
mod files;
mod running;
mod talk;
mod turns;

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::conversation::{ContentBlock, PermissionDecision};
use crate::error::AgentError;
use crate::ide::OpenSession;
use crate::mention::Query;
use crate::position::{EventReceiver, EventSender, event_channel};
use crate::{AgentCommand, AgentReply};
use alongside_protocol::chat::{AgentEvent, ConnectedSession, DisconnectKind};
use running::Running;

pub use child::AgentProcess;
pub use error::AcpError;
pub use files::{AllowWrites, ProposedWrite, ReviewGate, WriteDecision};

/// Which agent to start, and how.
#[derive(Clone)]
pub struct AcpOptions {
    /// The program.
    pub process: AgentProcess,
    /// The directory to work in.
    pub workspace: PathBuf,
    /// The session to enter. An ACP agent has none in common with others, so the first choice means a new one.
    pub open: OpenSession,
    /// The model to begin with.
    pub model: Option<String>,
    /// The mode to begin with.
    pub mode: Option<String>,
    /// The way to log in if the agent wants that, by its id.
    pub authentication: Option<String>,
    /// What stands between the agent and the files of the workspace.
    pub gate: Arc<dyn ReviewGate>,
}

impl AcpOptions {
    /// A new session of a program in a directory, with everything else as usual.
    pub fn new(process: AgentProcess, workspace: impl Into<PathBuf>, gate: Arc<dyn ReviewGate>) -> Self {
        Self {
            process,
            workspace: workspace.into(),
            open: OpenSession::New,
            model: None,
            mode: None,
            authentication: None,
            gate,
        }
    }
}

impl fmt::Debug for AcpOptions {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcpOptions")
            .field("process", &self.process)
            .field("workspace", &self.workspace)
            .field("open", &self.open)
            .finish_non_exhaustive()
    }
}

/// The connection. Clones are the same connection.
#[derive(Clone)]
pub struct AcpConnection {
    shared: Arc<Shared>,
}

struct Shared {
    events: EventSender,
    /// Connecting takes several requests; one connect at a time goes through them.
    connecting: tokio::sync::Mutex<()>,
    current: Mutex<Option<Arc<Running>>>,
}

impl fmt::Debug for AcpConnection {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AcpConnection")
            .field("session", &self.session_id())
            .finish_non_exhaustive()
    }
}

impl AcpConnection {
    /// A connection that is not connected, and where its events come from.
    pub fn new() -> (Self, EventReceiver) {
        let (events, receiver) = event_channel();
        (Self::with_events(events), receiver)
    }

    /// A connection whose events go where others go.
    pub fn with_events(events: EventSender) -> Self {
        let shared = Shared {
            events,
            connecting: tokio::sync::Mutex::default(),
            current: Mutex::default(),
        };
        Self {
            shared: Arc::new(shared),
        }
    }

    /// Starts the agent and begins or opens a session. A connect while another is under way waits for it, and then takes its
    /// place.
    pub async fn connect(&self, options: AcpOptions) -> Result<ConnectedSession, AgentError> {
        let _alone = self.shared.connecting.lock().await;
        self.leave("replaced by another connection");
        let running = Running::start(&Arc::downgrade(&self.shared), self.shared.events.clone(), options)?;
        running.initialize().await?;
        let open = running.options().open.clone();
        let connected = running.open_session(&open).await?;
        running.begin_with().await;
        *self.shared.current.lock() = Some(Arc::clone(&running));
        if running.is_gone() {
            // It ended when it was nobody's current agent yet, and so nobody was told.
            running.ended().await;
        }
        Ok(connected)
    }

    /// Ends the agent.
    pub async fn disconnect(&self) {
        let _alone = self.shared.connecting.lock().await;
        self.leave("disconnected");
    }

    fn leave(&self, reason: &str) {
        let Some(running) = self.shared.current.lock().take() else {
            return;
        };
        let event = AgentEvent::Disconnected {
            kind: DisconnectKind::Requested,
            reason: reason.to_owned(),
            reopen: running.session_to_reopen(),
        };
        running.talk.lock().finish(event);
    }

    /// Whether there is a session.
    pub fn is_connected(&self) -> bool {
        self.shared.current.lock().is_some()
    }

    /// The id of the session.
    pub fn session_id(&self) -> Option<String> {
        self.running().ok()?.session_id()
    }

    /// Says something, and gives the identity of the turn. While a turn is going on it waits.
    pub fn prompt(&self, blocks: Vec<ContentBlock>) -> Result<String, AgentError> {
        if blocks.is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        Ok(self.running()?.prompt(blocks)?)
    }

    /// Cancels the turn that is going on, and every approval with it. Without a session nothing happens.
    pub fn cancel(&self) {
        if let Ok(running) = self.running() {
            running.cancel();
        }
    }

    /// Answers an approval or a question. `false` if it was answered before.
    pub fn respond_to_permission(&self, request_id: &str, decision: &PermissionDecision) -> Result<bool, AgentError> {
        let answered = self.running()?.answer_permission(request_id, decision);
        answered.ok_or(AgentError::NoSuchRequest)
    }

    /// Does what is asked.
    pub async fn execute(&self, command: AgentCommand) -> Result<AgentReply, AgentError> {
        Ok(match command {
            AgentCommand::Prompt { blocks } => AgentReply::Prompt {
                prompt_id: self.prompt(blocks)?,
            },
            AgentCommand::Cancel => {
                self.cancel();
                AgentReply::Done
            }
            AgentCommand::Answer { request_id, decision } => {
                self.respond_to_permission(&request_id, &decision)?;
                AgentReply::Done
            }
            AgentCommand::RemoveQueued { prompt_id } => {
                if self.running()?.remove_queued(&prompt_id) {
                    AgentReply::Done
                } else {
                    AgentReply::TooLate
                }
            }
            AgentCommand::SetModel { model_id } => {
                self.running()?.set_model(&model_id).await?;
                AgentReply::Done
            }
            AgentCommand::SetMode { mode_id } => {
                self.running()?.set_mode(&mode_id).await?;
                AgentReply::Done
            }
            AgentCommand::ListSessions { cursor } => {
                let running = self.running()?;
                if !running.abilities().list_sessions {
                    return Err(AgentError::Unsupported("list its sessions"));
                }
                let page = running.list_sessions(cursor.as_deref()).await?;
                AgentReply::Sessions {
                    sessions: page.sessions,
                    next_cursor: page.next_cursor,
                }
            }
            AgentCommand::NewSession => self.reopen(OpenSession::New).await?,
            AgentCommand::LoadSession { session_id } => {
                if !self.running()?.abilities().load_sessions {
                    return Err(AgentError::Unsupported("reopen earlier sessions"));
                }
                self.reopen(OpenSession::Load(session_id)).await?
            }
            AgentCommand::Rename { title } => {
                let running = self.running()?;
                if !running.abilities().rename_sessions || !running.rename(&title).await? {
                    return Err(AgentError::Unsupported("rename its session"));
                }
                AgentReply::Done
            }
            AgentCommand::FindFiles { pattern } => AgentReply::Files {
                paths: self.running()?.find_files(Query::read(&pattern)).await?,
            },
        })
    }

    /// Opens another session of the same agent.
    async fn reopen(&self, open: OpenSession) -> Result<AgentReply, AgentError> {
        let _alone = self.shared.connecting.lock().await;
        let running = self.running()?;
        running.cancel();
        running.open_session(&open).await?;
        Ok(AgentReply::Done)
    }

    fn running(&self) -> Result<Arc<Running>, AgentError> {
        self.shared.current.lock().clone().ok_or(AgentError::NotConnected)
    }
}
