//! One agent, whichever way it is connected.

use std::fmt;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::acp::{AcpConnection, AcpOptions};
use crate::error::AgentError;
use crate::ide::{DaemonIdeConnection, DaemonOptions, OpenSession};
use crate::position::{EventReceiver, event_channel};
use crate::{AgentCommand, AgentReply};
use alongside_protocol::chat::ConnectedSession;

/// An agent to connect to. This is the only place where the two ways are told apart.
#[derive(Clone, Debug)]
pub enum AgentTarget {
    /// An agent in a daemon.
    Daemon(Box<DaemonOptions>),
    /// An agent that is our child.
    Child(Box<AcpOptions>),
}

/// One conversation with one agent. Clones are the same conversation.
///
/// Everything that happens comes as [`crate::AgentEvent`]s from the receiver that [`AgentManager::new`] gives, and everything that can be done
/// is an [`AgentCommand`]; nobody above needs to know which way the agent is connected.
///
/// ```no_run
/// # async fn run() -> Result<(), alongside_agent::AgentError> {
/// use std::sync::Arc;
///
/// use alongside_agent::acp::{AcpOptions, AgentProcess, AllowWrites};
/// use alongside_agent::{AgentCommand, AgentEvent, AgentManager, AgentTarget};
///
/// let (manager, mut events) = AgentManager::new();
/// let options = AcpOptions::new(AgentProcess::qwen(), "/project", Arc::new(AllowWrites));
/// manager.connect(AgentTarget::Child(Box::new(options))).await?;
/// manager.execute(AgentCommand::Prompt { blocks: vec!["Hello".into()] }).await?;
/// while let Some(event) = events.recv().await {
///     match event {
///         AgentEvent::AssistantChunk { content, .. } => print!("{}", content.as_text().unwrap_or_default()),
///         AgentEvent::TurnEnded { .. } => break,
///         _ => {}
///     }
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct AgentManager {
    daemon: DaemonIdeConnection,
    child: AcpConnection,
    /// What we are or were connected to last, to come back to.
    target: Arc<Mutex<Option<AgentTarget>>>,
    connecting: Arc<tokio::sync::Mutex<()>>,
}

impl fmt::Debug for AgentManager {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("AgentManager")
            .field("session", &self.session_id())
            .finish_non_exhaustive()
    }
}

impl AgentManager {
    /// A manager that is not connected, and where everything that happens comes from.
    pub fn new() -> (Self, EventReceiver) {
        let (events, receiver) = event_channel();
        let manager = Self {
            daemon: DaemonIdeConnection::with_events(events.clone()),
            child: AcpConnection::with_events(events),
            target: Arc::default(),
            connecting: Arc::default(),
        };
        (manager, receiver)
    }

    /// Connects to an agent, in place of the one before.
    pub async fn connect(&self, target: AgentTarget) -> Result<ConnectedSession, AgentError> {
        let _alone = self.connecting.lock().await;
        self.connect_alone(target).await
    }

    async fn connect_alone(&self, target: AgentTarget) -> Result<ConnectedSession, AgentError> {
        *self.target.lock() = Some(target.clone());
        match target {
            AgentTarget::Daemon(options) => {
                self.child.disconnect().await;
                self.daemon.connect(*options).await
            }
            AgentTarget::Child(options) => {
                self.daemon.disconnect().await;
                self.child.connect(*options).await
            }
        }
    }

    /// Leaves the agent.
    pub async fn disconnect(&self) {
        let _alone = self.connecting.lock().await;
        self.daemon.disconnect().await;
        self.child.disconnect().await;
    }

    /// Whether there is a session.
    pub fn is_connected(&self) -> bool {
        self.daemon.is_connected() || self.child.is_connected()
    }

    /// The id of the session.
    pub fn session_id(&self) -> Option<String> {
        self.daemon.session_id().or_else(|| self.child.session_id())
    }

    /// Does what is asked.
    ///
    /// To begin or open a session also works when the last one is over: the agent is connected to, or started, again.
    pub async fn execute(&self, command: AgentCommand) -> Result<AgentReply, AgentError> {
        let open = match &command {
            AgentCommand::NewSession => Some(OpenSession::New),
            AgentCommand::LoadSession { session_id } => Some(OpenSession::Load(session_id.clone())),
            _ => None,
        };
        if let Some(open) = open.filter(|_| !self.is_connected()) {
            return self.reconnect(open).await;
        }
        if self.daemon.is_connected() {
            self.daemon.execute(command).await
        } else {
            self.child.execute(command).await
        }
    }

    async fn reconnect(&self, open: OpenSession) -> Result<AgentReply, AgentError> {
        let _alone = self.connecting.lock().await;
        let mut target = self.target.lock().clone().ok_or(AgentError::NotConnected)?;
        match &mut target {
            AgentTarget::Daemon(options) => options.open = open,
            AgentTarget::Child(options) => options.open = open,
        }
        self.connect_alone(target).await.map(|_| AgentReply::Done)
    }
}
