//! Receives the agent's events: records them, and makes a local agent a session of the core.

use std::sync::Arc;

use alongside_core::{SessionEnd, SessionKey};
use alongside_protocol::ChatWrites;
use alongside_protocol::chat::{AgentCommand, AgentEvent, ConnectedSession, Modes};

use super::gate::client_of;
use super::record::LocalAgent;
use crate::Companion;

impl Companion {
    pub(crate) async fn listen_to_chat(self: Arc<Self>) {
        let Some(mut events) = self.chat.events.lock().take() else {
            return;
        };
        while let Some(event) = events.recv().await {
            // A slow disk slows the agent down instead of filling the queue.
            self.chat.writer.ready().await;
            // Before front ends are notified, so that they find the agent gone.
            if matches!(event, AgentEvent::Disconnected { .. }) {
                self.chat_left();
            }
            self.chat.take(event.clone(), events.position());
            match &event {
                AgentEvent::Connected(session) => self.chat_entered(session),
                AgentEvent::Modes(modes) => self.switch_to_review_mode(modes),
                _ => {}
            }
        }
    }

    /// A local agent is listed like every other, and its writes are reviewed. A daemon writes files itself.
    fn chat_entered(&self, session: &ConnectedSession) {
        self.chat_left();
        if !session.abilities.reviews_writes {
            return;
        }
        let id = SessionKey::Chat(session.session_id.clone());
        {
            let mut state = self.chat.state.lock();
            let mode_pending = state.writes == ChatWrites::Review;
            let session = id.clone();
            state.local = Some(LocalAgent { session, mode_pending });
        }
        self.with_core(|core, now| {
            core.session_started(now, &id, Some(client_of(session)));
            core.stream_opened(now, &id);
        });
    }

    fn chat_left(&self) {
        let previous = self.chat.state.lock().local.take();
        if let Some(previous) = previous {
            self.with_core(|core, now| core.session_ended(now, &previous.session, &SessionEnd::Lost));
        }
    }

    /// When every write is reviewed, the agent does not have to ask for permission to edit as well.
    fn switch_to_review_mode(&self, modes: &Modes) {
        let mut state = self.chat.state.lock();
        let pending = state.local.as_mut().map(|local| &mut local.mode_pending);
        let pending = pending.is_some_and(std::mem::take);
        drop(state);
        let Some(mode_id) = review_mode(modes).filter(|_| pending) else {
            return;
        };
        let manager = self.chat.manager.clone();
        tokio::spawn(async move {
            if let Err(error) = manager.execute(AgentCommand::SetMode { mode_id }).await {
                // The agent then asks too, so the user decides twice.
                tracing::info!(%error, "cannot switch the agent's mode");
            }
        });
    }
}

/// The mode that asks about everything but edits, if the agent is in its default mode. A mode that the user selected stays.
fn review_mode(modes: &Modes) -> Option<String> {
    let plain = |id: &str| id.to_lowercase().replace(['-', '_'], "");
    if modes.current.as_deref().map(plain).as_deref() != Some("default") {
        return None;
    }
    let mut available = modes.available.iter();
    available
        .find(|mode| plain(&mode.id) == "autoedit")
        .map(|mode| mode.id.clone())
}

#[cfg(test)]
mod tests {
    use alongside_protocol::chat::ModeInfo;

    use super::*;

    fn modes(current: &str, available: &[&str]) -> Modes {
        let mode = |id: &&str| ModeInfo {
            id: (*id).to_owned(),
            name: (*id).to_owned(),
            description: None,
        };
        Modes {
            current: Some(current.to_owned()),
            available: available.iter().map(mode).collect(),
        }
    }

    #[test]
    fn default_mode_switches_to_auto_edit() {
        let review = |current, available: &[&str]| review_mode(&modes(current, available));
        let qwen = ["plan", "default", "auto-edit", "yolo"];
        assert_eq!(review("default", &qwen).as_deref(), Some("auto-edit"));
        assert_eq!(review("default", &["default", "autoEdit"]).as_deref(), Some("autoEdit"));
        assert_eq!(review("plan", &qwen), None, "the user selected it");
        assert_eq!(review("default", &["default"]), None);
    }
}
