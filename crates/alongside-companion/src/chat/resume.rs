//! A companion that was killed comes back, and so does its chat.
//!
//! | the agent | what was shown | what comes |
//! |---|---|---|
//! | in a daemon that lives on | stays | what was missed, each event once |
//! | in a daemon that was started again | stays, put together with what the daemon remembers | |
//! | a child that can open its sessions | stays; the turn that was going on has failed | |
//! | a child that cannot | stays, with a notice that the agent does not remember | |

use std::sync::Arc;
use std::time::Duration;

use alongside_agent::OpenSession;
use alongside_agent::{AgentError, Position};
use alongside_core::SessionId;
use alongside_protocol::Refusal;
use serde_json::json;
use tokio::time::Instant;

use super::agents::Choice;
use super::gate::Gate;
use super::log::Log;
use super::requests::{choice, refusal};
use crate::Companion;

/// How long a daemon that does not answer is waited for.
const PATIENCE: Duration = Duration::from_mins(2);
/// How long is waited before it is tried again, at first and at last.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);

/// What to go on with.
#[derive(Clone, Debug)]
pub(super) struct Resume {
    agent: String,
    session: String,
    position: Option<Position>,
    /// Whether the agent can open its sessions again.
    loads: bool,
}

impl Resume {
    /// What a log says: only who was connected to the end is connected to again.
    pub(super) fn of(agent: Option<&str>, log: &Log, position: Option<&Position>) -> Option<Self> {
        let connected = log.connected()?;
        Some(Self {
            agent: agent?.to_owned(),
            session: connected["sessionId"].as_str()?.to_owned(),
            position: position.cloned(),
            loads: connected["abilities"]["loadSessions"] == json!(true),
        })
    }
}

impl Companion {
    /// Goes on with the chat of the companion before, if it had one.
    pub(crate) async fn resume_chat(self: Arc<Self>) {
        let Some(resume) = self.chat.state.lock().resume.take() else {
            return;
        };
        let given_up = self.chat.given_up.notified();
        let chosen = choice(&self.settings.lock(), &resume.agent);
        let attempt = match &chosen {
            Ok(choice) => self.chat.attempt(choice),
            Err(_) => self.chat.state.lock().attempt,
        };
        let resumed = match chosen {
            Ok(choice) => tokio::select! {
                resumed = self.try_to_resume(&choice, &resume) => resumed,
                () = given_up => return,
            },
            Err(refusal) => Err(refusal),
        };
        if let Err(refusal) = resumed {
            self.chat.settle(&refusal.message);
            self.chat.failed(attempt, &refusal);
        }
    }

    async fn try_to_resume(&self, choice: &Choice, resume: &Resume) -> Result<(), Refusal> {
        if !choice.is_child() {
            let open = match &resume.position {
                Some(position) => OpenSession::Resume(Box::new(position.clone())),
                None => OpenSession::Load(SessionId::new(resume.session.as_str())),
            };
            return self.connect_patiently(choice, &open).await;
        }
        // It ended with the companion before.
        self.chat
            .settle("the companion restarted before the answer was complete");
        if resume.loads {
            let open = OpenSession::Load(SessionId::new(resume.session.as_str()));
            match self.connect_once(choice, &open).await? {
                Ok(()) => return Ok(()),
                Err(error) => tracing::info!(%error, "the agent did not reopen its session"),
            }
        }
        self.chat.state.lock().keep_text = true;
        self.connect_once(choice, &OpenSession::New)
            .await?
            .map_err(|error| refusal(&error))
    }

    /// Tries again as long as it may help: the daemon may be about to come back too.
    async fn connect_patiently(&self, choice: &Choice, open: &OpenSession) -> Result<(), Refusal> {
        let start = Instant::now();
        let mut pause = FIRST_PAUSE;
        loop {
            let Err(error) = self.connect_once(choice, open).await? else {
                return Ok(());
            };
            let transient = matches!(&error, AgentError::Daemon(error) if error.is_transient());
            if !transient || start.elapsed() > PATIENCE {
                return Err(refusal(&error));
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        }
    }

    async fn connect_once(&self, choice: &Choice, open: &OpenSession) -> Result<Result<(), AgentError>, Refusal> {
        let workspace = self.workspace().into_iter().next().unwrap_or_default();
        let gate = Arc::new(Gate(self.me.clone()));
        let target = choice
            .target(workspace, gate, open.clone())
            .map_err(|unusable| Refusal::new("agentUnusable", unusable.0))?;
        Ok(self.chat.manager.connect(target).await.map(drop))
    }
}
