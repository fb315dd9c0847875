//! A conversation with an agent in a daemon, for an editor.
//!
//! [`DaemonIdeConnection`] checks that the daemon fits, enters a session, keeps its events coming and turns them into
//! [`AgentEvent`]s. An approval never holds up the events: it is opened with one event, closed with another,
//! whoever answered, and found again by whoever comes late.

mod open;
mod pump;
mod talk;
mod translator;

use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;

use crate::conversation::{ContentBlock, PermissionDecision, Vote};
use crate::daemon::{Cursor, DaemonAddress, DaemonSessionClient, SessionScope};
use crate::error::AgentError;
use crate::mention::Query;
use crate::position::{EventReceiver, EventSender, Position, event_channel};
use crate::{AgentCommand, AgentReply};
use alongside_core::Secret;
use alongside_protocol::chat::{AgentEvent, ConnectedSession, DisconnectKind};
use pump::Pump;
use talk::Talk;

pub use translator::{Source, Translator};

/// What to connect to, and how.
#[derive(Clone, Debug, Default)]
pub struct DaemonOptions {
    /// Where the daemon is.
    pub address: DaemonAddress,
    /// Its token.
    pub token: Option<Secret>,
    /// The certificates that are trusted: see [`crate::daemon::ClientSettings::ca_file`].
    pub ca_file: Option<PathBuf>,
    /// The directory to work in; the daemon's first one if `None`.
    pub workspace: Option<String>,
    /// The session to enter.
    pub open: OpenSession,
    /// The model to begin with.
    pub model: Option<String>,
    /// The approval mode to begin with.
    pub mode: Option<String>,
}

/// Which session to enter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OpenSession {
    /// The one that the directory has, or a new one.
    #[default]
    CreateOrAttach,
    /// A new one of one's own.
    New,
    /// A certain one, with its history.
    Load(String),
    /// A certain one, from where somebody was in it before; with its history if what came after that is not to be had any more. An agent
    /// that is a child has no such place: it opens the session with its history.
    Resume(Box<Position>),
}

/// The connection. Clones are the same connection.
#[derive(Clone)]
pub struct DaemonIdeConnection {
    shared: Arc<Shared>,
}

struct Shared {
    events: EventSender,
    /// Connecting takes several requests; one connect at a time goes through them.
    connecting: tokio::sync::Mutex<Option<DaemonOptions>>,
    current: Mutex<Option<Current>>,
}

/// The session that we are in. Dropping it stops everything that works for it.
struct Current {
    session: DaemonSessionClient,
    talk: Arc<Mutex<Talk>>,
    _pump: Pump,
}

impl std::fmt::Debug for DaemonIdeConnection {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("DaemonIdeConnection")
            .field("session", &self.session_id())
            .finish_non_exhaustive()
    }
}

impl DaemonIdeConnection {
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

    /// Enters a session. A connect while another is under way waits for it, and then takes its place; whether the other one
    /// succeeded does not matter.
    pub async fn connect(&self, options: DaemonOptions) -> Result<ConnectedSession, AgentError> {
        let mut last = self.shared.connecting.lock().await;
        let connected = self.enter(&options).await;
        *last = Some(options);
        connected
    }

    async fn enter(&self, options: &DaemonOptions) -> Result<ConnectedSession, AgentError> {
        self.leave("replaced by another connection");
        let opened = open::open(options).await?;
        let connected = opened.connected.clone();
        let session = opened.session.clone();
        let talk = Arc::new(Mutex::new(Talk::new(self.shared.events.clone(), &session)));
        let mut current = self.shared.current.lock();
        // The pump tells everything, beginning with that there is a session, so that all of it comes in order. It runs only
        // when there is a current session for it to end.
        let pump = Pump::start(&Arc::downgrade(&self.shared), opened, Arc::clone(&talk))?;
        *current = Some(Current {
            session,
            talk,
            _pump: pump,
        });
        Ok(connected)
    }

    /// Leaves the session. Nothing is waited for but the daemon's word that we have left.
    pub async fn disconnect(&self) {
        let _alone = self.shared.connecting.lock().await;
        self.leave("disconnected");
    }

    fn leave(&self, reason: &str) {
        let Some(current) = self.shared.current.lock().take() else {
            return;
        };
        let session = current.session.clone();
        current.talk.lock().end(AgentEvent::Disconnected {
            kind: DisconnectKind::Requested,
            reason: reason.to_owned(),
            reopen: Some(session.session_id().to_owned()),
        });
        drop(current);
        // It is only polite: the daemon forgets clients by itself. So nobody waits for it.
        tokio::spawn(async move {
            if let Err(error) = session.detach().await {
                tracing::debug!(%error, "cannot tell the daemon that we disconnected");
            }
        });
    }

    /// Whether there is a session.
    pub fn is_connected(&self) -> bool {
        self.shared.current.lock().is_some()
    }

    /// The id of the session.
    pub fn session_id(&self) -> Option<String> {
        self.shared.session().map(|session| session.session_id().to_owned())
    }

    /// How far the events have been taken from the daemon. For how far they were taken from here, see [`EventReceiver::position`].
    pub fn cursor(&self) -> Option<Cursor> {
        self.shared.session().map(|session| session.cursor())
    }

    /// Says something, and gives the identity of the turn.
    pub async fn prompt(&self, blocks: &[ContentBlock]) -> Result<String, AgentError> {
        if blocks.is_empty() {
            return Err(AgentError::EmptyPrompt);
        }
        let (session, talk) = self.shared.session_and_talk().ok_or(AgentError::NotConnected)?;
        let receipt = session.prompt(blocks).await?;
        // Its echo may have been here first.
        let mut talk = talk.lock();
        if talk.translator.accept(&receipt.prompt_id) {
            talk.tell([AgentEvent::PromptAccepted {
                prompt_id: receipt.prompt_id.clone(),
                text: ContentBlock::text_of_all(blocks),
            }]);
        }
        Ok(receipt.prompt_id)
    }

    /// Cancels the turn that is going on. Without a session, or a second time for the same turn, nothing happens.
    pub async fn cancel(&self) -> Result<(), AgentError> {
        let Some((session, talk)) = self.shared.session_and_talk() else {
            return Ok(());
        };
        {
            let talk = &mut talk.lock().translator;
            if talk.running.is_some() && talk.running == talk.cancelling {
                return Ok(());
            }
            let running = talk.running.clone();
            talk.cancelling = running;
        }
        let cancelled = session.cancel().await;
        if cancelled.is_err() {
            talk.lock().translator.cancelling = None;
        }
        Ok(cancelled?)
    }

    /// Uses another model.
    pub async fn set_model(&self, model: &str) -> Result<(), AgentError> {
        let session = self.shared.session().ok_or(AgentError::NotConnected)?;
        Ok(session.set_model(model).await?)
    }

    /// Puts another approval mode in force.
    pub async fn set_mode(&self, mode: &str) -> Result<(), AgentError> {
        let session = self.shared.session().ok_or(AgentError::NotConnected)?;
        Ok(session.set_approval_mode(mode).await?)
    }

    /// Answers an approval or a question. `false` if it was answered before.
    ///
    /// If the answer cannot be sent the approval stays open, so that it can be answered again. If the session is another one by
    /// now, nothing is sent: the approval is not open in that one.
    pub async fn respond_to_permission(
        &self,
        request_id: &str,
        decision: &PermissionDecision,
    ) -> Result<bool, AgentError> {
        let (session, talk) = self.shared.session_and_talk().ok_or(AgentError::NotConnected)?;
        let vote = {
            let talk = talk.lock();
            let request = talk.translator.open.get(request_id).ok_or(AgentError::NoSuchRequest)?;
            Vote::new(request, decision)
        };
        let in_time = session.respond_to_permission(request_id, &vote).await?;
        if !in_time {
            let mut talk = talk.lock();
            let closed = talk.translator.close_request(request_id, None, false);
            talk.tell(closed);
        }
        Ok(in_time)
    }

    /// Does what is asked.
    pub async fn execute(&self, command: AgentCommand) -> Result<AgentReply, AgentError> {
        let session = || self.shared.session().ok_or(AgentError::NotConnected);
        Ok(match command {
            AgentCommand::Prompt { blocks } => AgentReply::Prompt {
                prompt_id: self.prompt(&blocks).await?,
            },
            AgentCommand::Cancel => self.cancel().await.map(|()| AgentReply::Done)?,
            AgentCommand::Answer { request_id, decision } => {
                done(self.respond_to_permission(&request_id, &decision).await?)
            }
            AgentCommand::RemoveQueued { prompt_id } => done(session()?.remove_pending_prompt(&prompt_id).await?),
            AgentCommand::SetModel { model_id } => self.set_model(&model_id).await.map(|()| AgentReply::Done)?,
            AgentCommand::SetMode { mode_id } => self.set_mode(&mode_id).await.map(|()| AgentReply::Done)?,
            AgentCommand::ListSessions { cursor } => {
                let session = session()?;
                let page = session.client().list(session.workspace(), cursor.as_deref()).await?;
                AgentReply::Sessions {
                    sessions: page.sessions,
                    next_cursor: page.next_cursor,
                }
            }
            AgentCommand::NewSession => self.reconnect(OpenSession::New).await?,
            AgentCommand::LoadSession { session_id } => self.reconnect(OpenSession::Load(session_id)).await?,
            AgentCommand::Rename { title } => session()?.rename(&title).await.map(|()| AgentReply::Done)?,
            AgentCommand::FindFiles { pattern } => {
                let session = session()?;
                let query = Query::read(&pattern);
                let paths = session.find_files(&query.to_pattern()).await?;
                AgentReply::Files {
                    paths: query.rank(paths),
                }
            }
        })
    }

    /// Connects as before, to another session.
    async fn reconnect(&self, open: OpenSession) -> Result<AgentReply, AgentError> {
        let mut last = self.shared.connecting.lock().await;
        let options = last.as_mut().ok_or(AgentError::NotConnected)?;
        options.open = open;
        let options = options.clone();
        self.enter(&options).await.map(|_| AgentReply::Done)
    }
}

impl OpenSession {
    /// A session of one's own is not the one that the directory has.
    fn scope(&self) -> Option<SessionScope> {
        (*self == Self::New).then_some(SessionScope::Thread)
    }

    /// The session, if it is a certain one.
    pub fn session_id(&self) -> Option<&str> {
        match self {
            Self::Load(id) => Some(id),
            Self::Resume(position) => Some(&position.session_id),
            Self::CreateOrAttach | Self::New => None,
        }
    }
}

fn done(in_time: bool) -> AgentReply {
    if in_time { AgentReply::Done } else { AgentReply::TooLate }
}

impl Shared {
    fn session(&self) -> Option<DaemonSessionClient> {
        self.current.lock().as_ref().map(|current| current.session.clone())
    }

    fn session_and_talk(&self) -> Option<(DaemonSessionClient, Arc<Mutex<Talk>>)> {
        let current = self.current.lock();
        current
            .as_ref()
            .map(|current| (current.session.clone(), Arc::clone(&current.talk)))
    }
}
