//! Reviews of what a local agent writes, through the companion or with its permission.
//!
//! The agent is a session of the core, and a write is a proposal of that session, so every front end shows it.

use std::path::Path;
use std::sync::{Arc, Weak};

use alongside_agent::acp::{ChangeRequests, ProposedWrite, ReviewGate, WriteDecision};
use alongside_core::SessionKey;
use alongside_core::dialect::ClientInfo;
use alongside_protocol::ChatWrites;
use alongside_protocol::chat::ConnectedSession;
use futures_util::future::BoxFuture;

use crate::Companion;
use crate::waiting::{self, Reviewed};

pub(super) fn client_of(session: &ConnectedSession) -> ClientInfo {
    ClientInfo {
        name: session.agent.clone(),
        version: session.agent_version.clone().unwrap_or_default(),
    }
}

pub(super) struct WriteReviewer(pub(super) Weak<Companion>);

impl ReviewGate for WriteReviewer {
    fn unsaved_text(&self, path: &Path) -> Option<String> {
        let companion = self.0.upgrade()?;
        companion.buffers.get(path).map(|text| text.as_ref().to_owned())
    }

    fn hidden(&self, path: &Path, real: &Path) -> Option<String> {
        let companion = self.0.upgrade()?;
        let rule = companion.core.lock().rule_hiding(path, real)?;
        Some(format!(
            "is hidden from agents by the pattern `{}` in {}",
            rule.pattern, rule.origin
        ))
    }

    fn change_requests(&self) -> ChangeRequests {
        match self.0.upgrade().map(|companion| companion.chat.writes()) {
            Some(ChatWrites::Allow) => ChangeRequests::Allow,
            Some(ChatWrites::Review) => ChangeRequests::Review,
            None => ChangeRequests::Ask,
        }
    }

    fn review(&self, write: ProposedWrite) -> BoxFuture<'static, WriteDecision> {
        let companion = self.0.clone();
        Box::pin(async move {
            match companion.upgrade() {
                Some(companion) => review(companion, write).await,
                None => refuse("the companion is shutting down"),
            }
        })
    }
}

fn refuse(reason: impl Into<String>) -> WriteDecision {
    WriteDecision::Refuse { reason: reason.into() }
}

async fn review(companion: Arc<Companion>, write: ProposedWrite) -> WriteDecision {
    if companion.chat.writes() == ChatWrites::Allow {
        return WriteDecision::Write(write.text);
    }
    let Some(path) = write.path.to_str().map(Arc::<str>::from) else {
        return refuse("the path is not valid UTF-8, so the change cannot be reviewed");
    };
    let text: Arc<str> = write.text.into();
    let session = SessionKey::Chat(write.session_id);
    match waiting::review(companion, session, path, Arc::clone(&text)).await {
        Ok(Reviewed::Unchanged) => WriteDecision::Write(text.as_ref().to_owned()),
        Ok(Reviewed::Accepted(content)) => WriteDecision::Write(content.as_ref().to_owned()),
        Ok(Reviewed::Rejected(None)) => refuse("the user rejected this change"),
        Ok(Reviewed::Rejected(Some(reason))) => refuse(format!("the user rejected this change: {reason}")),
        Ok(Reviewed::Replaced) => refuse("replaced by a newer change to the same file"),
        Err(reason) => refuse(reason),
    }
}
