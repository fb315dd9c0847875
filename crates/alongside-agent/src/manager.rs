//! One agent, however it is connected.

use std::fmt;
use std::sync::Arc;

use alongside_core::SessionId;
use alongside_protocol::chat::{AgentCommand, AgentReply, ConnectedSession};
use parking_lot::Mutex;

use crate::acp::{AcpConnection, Children};
use crate::connection::{AgentConnection, AgentTarget, OpenSession};
use crate::daemon::DaemonConnection;
use crate::error::AgentError;
use crate::events::{EventReceiver, EventSender, event_channel};
use crate::mention::Query;

/// One conversation with one agent. Clones are the same conversation.
///
/// Everything that happens is an [`crate::AgentEvent`] from the receiver that [`AgentManager::new`] returns, and everything that can be
/// done is an [`AgentCommand`]; callers need not know how the agent is connected.
///
/// ```no_run
/// # async fn run() -> Result<(), alongside_agent::AgentError> {
/// use std::sync::Arc;
///
/// use alongside_agent::acp::{AcpOptions, AgentProcess, AllowWrites};
/// use alongside_agent::{AgentCommand, AgentEvent, AgentManager, AgentTarget};
///
/// let (manager, mut events) = AgentManager::new();
/// let options = AcpOptions::new(AgentProcess::new("qwen", &["--acp"]), "/project", Arc::new(AllowWrites));
/// manager.connect(AgentTarget::Child(Box::new(options))).await?;
/// manager.execute(AgentCommand::Prompt { blocks: vec!["Hello".into()], id: None }).await?;
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
    shared: Arc<Shared>,
}

struct Shared {
    events: EventSender,
    link: Mutex<Link>,
    /// Connecting takes several requests; one attempt at a time.
    connecting: tokio::sync::Mutex<()>,
    children: Children,
}

/// What the manager is connected to. There is at most one connection.
enum Link {
    Idle,
    /// Not connected; opening a session connects to this target again.
    Disconnected(AgentTarget),
    /// The connection may have closed since: see [`AgentConnection::is_open`].
    Connected(AgentTarget, Arc<dyn AgentConnection>),
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
    pub fn new() -> (Self, EventReceiver) {
        let (events, receiver) = event_channel();
        let shared = Shared {
            events,
            link: Mutex::new(Link::Idle),
            connecting: tokio::sync::Mutex::default(),
            children: Children::default(),
        };
        let manager = Self {
            shared: Arc::new(shared),
        };
        (manager, receiver)
    }

    /// Connects to an agent and disconnects from the previous one. Waits for another attempt in progress first, and then replaces
    /// its connection, if any.
    pub async fn connect(&self, target: AgentTarget) -> Result<ConnectedSession, AgentError> {
        let _alone = self.shared.connecting.lock().await;
        self.connect_alone(target).await
    }

    async fn connect_alone(&self, target: AgentTarget) -> Result<ConnectedSession, AgentError> {
        self.leave("replaced by another connection", Link::Disconnected(target.clone()));
        let events = self.shared.events.clone();
        let (connection, connected): (Arc<dyn AgentConnection>, _) = match &target {
            AgentTarget::Daemon(options) => DaemonConnection::open(options, events).await?,
            AgentTarget::Child(options) => AcpConnection::open(options, events, &self.shared.children).await?,
        };
        // Under the lock: when its first event arrives, the connection is the current one.
        let mut link = self.shared.link.lock();
        connection.start()?;
        *link = Link::Connected(target, connection);
        Ok(connected)
    }

    /// Does nothing without a connection.
    pub async fn disconnect(&self) {
        let _alone = self.shared.connecting.lock().await;
        let target = match &*self.shared.link.lock() {
            Link::Connected(target, _) => target.clone(),
            Link::Idle | Link::Disconnected(_) => return,
        };
        self.leave("disconnected", Link::Disconnected(target));
    }

    /// Disconnects, and waits until no process of a local agent is left. Call this before the program exits.
    pub async fn shut_down(&self) {
        self.disconnect().await;
        self.shared.children.ended().await;
    }

    fn leave(&self, reason: &str, next: Link) {
        let previous = std::mem::replace(&mut *self.shared.link.lock(), next);
        if let Link::Connected(_, connection) = previous {
            connection.close(reason);
        }
    }

    pub fn is_connected(&self) -> bool {
        self.connection().is_some()
    }

    pub fn session_id(&self) -> Option<SessionId> {
        self.connection()?.session_id()
    }

    fn connection(&self) -> Option<Arc<dyn AgentConnection>> {
        match &*self.shared.link.lock() {
            Link::Connected(_, connection) if connection.is_open() => Some(Arc::clone(connection)),
            _ => None,
        }
    }

    /// Executes a command.
    ///
    /// Opening a session also works after the previous one ended: the manager connects to the agent, or starts it, again. While
    /// the queue of events is full, this waits.
    pub async fn execute(&self, command: AgentCommand) -> Result<AgentReply, AgentError> {
        self.shared.events.ready().await;
        let command = match command {
            AgentCommand::NewSession => return self.open_session(OpenSession::New).await,
            AgentCommand::LoadSession { session_id } => {
                return self.open_session(OpenSession::Load(session_id)).await;
            }
            AgentCommand::Prompt { blocks, .. } | AgentCommand::MidTurn { blocks, .. } if blocks.is_empty() => {
                return Err(AgentError::EmptyPrompt);
            }
            command => command,
        };
        let Some(connection) = self.connection() else {
            return match command {
                AgentCommand::Cancel => Ok(AgentReply::Done),
                _ => Err(AgentError::NotConnected),
            };
        };
        execute(&*connection, command).await
    }

    /// Removes the turns from `turn` on, of `turns` in all.
    pub async fn rewind(&self, turn: usize, turns: usize) -> Result<(), AgentError> {
        self.shared.events.ready().await;
        let connection = self.connection().ok_or(AgentError::NotConnected)?;
        connection.rewind(turn, turns).await
    }

    async fn open_session(&self, open: OpenSession) -> Result<AgentReply, AgentError> {
        let _alone = self.shared.connecting.lock().await;
        if let Some(connection) = self.connection()
            && let Some(opening) = connection.open_session(open.clone())
        {
            return opening.await.map(|()| AgentReply::Done);
        }
        let mut target = match &*self.shared.link.lock() {
            Link::Idle => return Err(AgentError::NotConnected),
            Link::Disconnected(target) | Link::Connected(target, _) => target.clone(),
        };
        target.set_open(open);
        self.connect_alone(target).await.map(|_| AgentReply::Done)
    }
}

async fn execute(connection: &dyn AgentConnection, command: AgentCommand) -> Result<AgentReply, AgentError> {
    let done = |in_time: bool| if in_time { AgentReply::Done } else { AgentReply::TooLate };
    Ok(match command {
        AgentCommand::Prompt { blocks, .. } => AgentReply::Prompt {
            prompt_id: connection.prompt(blocks).await?,
        },
        AgentCommand::MidTurn { blocks, .. } => AgentReply::Prompt {
            prompt_id: connection.mid_turn(blocks).await?,
        },
        AgentCommand::ReadAttachment { name } => AgentReply::Attachment {
            data: connection.read_attachment(name).await?,
        },
        // Needs the number of turns: see `AgentManager::rewind`.
        AgentCommand::Rewind { .. } => return Err(AgentError::Unsupported("rewind its conversation")),
        AgentCommand::Cancel => connection.cancel().await.map(|()| AgentReply::Done)?,
        AgentCommand::Answer { request_id, decision } => done(connection.respond(request_id, decision).await?),
        AgentCommand::RemoveQueued { prompt_id } => done(connection.remove_queued(prompt_id).await?),
        AgentCommand::SetModel { model_id } => connection.set_model(model_id).await.map(|()| AgentReply::Done)?,
        AgentCommand::SetMode { mode_id } => connection.set_mode(mode_id).await.map(|()| AgentReply::Done)?,
        AgentCommand::ListSessions { cursor } => {
            let page = connection.list_sessions(cursor).await?;
            AgentReply::Sessions {
                sessions: page.sessions,
                next_cursor: page.next_cursor,
            }
        }
        AgentCommand::Rename { title } => connection.rename(title).await.map(|()| AgentReply::Done)?,
        AgentCommand::FindFiles { pattern } => AgentReply::Files {
            paths: connection.find_files(Query::read(&pattern)).await?,
        },
        // Handled by the manager, with or without a connection.
        AgentCommand::NewSession | AgentCommand::LoadSession { .. } => AgentReply::Done,
    })
}
