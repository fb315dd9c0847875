//! Resumes the chat after the companion was killed.
//!
//! | the agent | the shown conversation |
//! |---|---|
//! | in a daemon that kept running | stays; missed events follow, each once |
//! | in a restarted daemon | is merged with the daemon's history |
//! | a local agent that can load sessions | stays; the running turn has failed |
//! | any other local agent | stays, with a notice that the agent does not remember it |

use std::sync::Arc;
use std::time::Duration;

use alongside_agent::OpenSession;
use alongside_agent::{AgentError, Position};
use alongside_core::SessionId;
use alongside_protocol::{ErrorKind, RequestError};
use tokio::time::Instant;

use super::agents::AgentOption;
use super::gate::WriteReviewer;
use super::log::Log;
use super::requests::{choice, request_error};
use crate::Companion;

/// How long to wait for a daemon that does not respond.
const RESUME_TIMEOUT: Duration = Duration::from_mins(2);
const MIN_DELAY: Duration = Duration::from_millis(100);
const MAX_DELAY: Duration = Duration::from_secs(2);

#[derive(Clone, Debug)]
pub(super) struct Resume {
    agent: String,
    session: SessionId,
    position: Option<Position>,
    /// Whether the agent can load old sessions.
    loads: bool,
}

impl Resume {
    /// `None` unless the log ends while connected.
    pub(super) fn new(agent: Option<&str>, log: &Log, position: Option<&Position>) -> Option<Self> {
        let connected = log.connected()?;
        Some(Self {
            agent: agent?.to_owned(),
            session: connected.session_id.clone(),
            position: position.cloned(),
            loads: connected.abilities.load_sessions,
        })
    }
}

impl Companion {
    /// Resumes the chat of the previous companion, if it had one.
    pub(crate) async fn resume_chat(self: Arc<Self>) {
        let Some(resume) = self.chat.state.lock().resume.take() else {
            return;
        };
        let superseded = self.chat.superseded.notified();
        let chosen = choice(&self.settings.lock(), &resume.agent);
        let attempt = match &chosen {
            Ok(choice) => self.chat.start_attempt(choice),
            Err(_) => self.chat.state.lock().attempt().unwrap_or_default(),
        };
        let resumed = match chosen {
            Ok(choice) => tokio::select! {
                resumed = self.try_to_resume(&choice, &resume) => resumed,
                () = superseded => return,
            },
            Err(error) => Err(error),
        };
        if let Err(error) = resumed {
            self.chat.settle(&error.message);
            self.chat.failed(attempt, &error);
        }
    }

    async fn try_to_resume(&self, choice: &AgentOption, resume: &Resume) -> Result<(), RequestError> {
        if !choice.is_child() {
            let open = match &resume.position {
                Some(position) => OpenSession::Resume(Box::new(position.clone())),
                None => OpenSession::Load(resume.session.clone()),
            };
            return self.connect_patiently(choice, &open).await;
        }
        // It exited with the previous companion.
        self.chat
            .settle("the companion restarted before the answer was complete");
        let session = resume.loads.then_some(&resume.session);
        self.load_or_restart(choice, session).await
    }

    /// Starts a local agent that crashed. The conversation stays, even if the agent does not remember it.
    pub(super) async fn restart_local_agent(
        &self,
        choice: &AgentOption,
        session: &SessionId,
    ) -> Result<(), RequestError> {
        self.chat.superseded.notify_waiters();
        let superseded = self.chat.superseded.notified();
        let attempt = self.chat.start_attempt(choice);
        let restarted = tokio::select! {
            restarted = self.load_or_restart(choice, Some(session)) => restarted,
            () = superseded => Err(super::superseded()),
        };
        if let Err(error) = &restarted {
            self.chat.failed(attempt, error);
        }
        restarted
    }

    /// Opens the session with a local agent, or a new one if it cannot be opened.
    async fn load_or_restart(&self, choice: &AgentOption, session: Option<&SessionId>) -> Result<(), RequestError> {
        if let Some(session) = session {
            let open = OpenSession::Load(session.clone());
            match self.connect_once(choice, &open).await? {
                Ok(()) => return Ok(()),
                Err(error) => tracing::info!(%error, "the agent did not reopen its session"),
            }
        }
        self.chat.state.lock().keep_log();
        self.connect_once(choice, &OpenSession::New)
            .await?
            .map_err(|error| request_error(&error))
    }

    /// Retries while that may help: the daemon may be restarting too.
    async fn connect_patiently(&self, choice: &AgentOption, open: &OpenSession) -> Result<(), RequestError> {
        let start = Instant::now();
        let mut delay = MIN_DELAY;
        loop {
            let Err(error) = self.connect_once(choice, open).await? else {
                return Ok(());
            };
            let transient = matches!(&error, AgentError::Daemon(error) if error.is_transient());
            if !transient || start.elapsed() > RESUME_TIMEOUT {
                return Err(request_error(&error));
            }
            tokio::time::sleep(delay).await;
            delay = (delay * 2).min(MAX_DELAY);
        }
    }

    async fn connect_once(
        &self,
        choice: &AgentOption,
        open: &OpenSession,
    ) -> Result<Result<(), AgentError>, RequestError> {
        let workspace = self.workspace().into_iter().next().unwrap_or_default();
        let gate = Arc::new(WriteReviewer(self.me.clone()));
        let target = choice
            .target(workspace, gate, open.clone())
            .map_err(|unusable| RequestError::new(ErrorKind::AgentUnusable, unusable.0))?;
        Ok(self.chat.manager.connect(target).await.map(drop))
    }
}
