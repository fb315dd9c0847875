//! Listens to the agent: takes down what it tells, and lets the core know of it.

use std::sync::Arc;

use alongside_agent::conversation::Modes;
use alongside_agent::{AgentCommand, AgentEvent, ConnectedSession};
use alongside_core::{SessionId, SessionKey};
use alongside_protocol::ChatWrites;

use super::gate::client_of;
use crate::Companion;

impl Companion {
    /// Takes down what the agent tells, as long as somebody holds this.
    pub(crate) async fn listen_to_chat(self: Arc<Self>) {
        let Some(mut events) = self.chat.events.lock().take() else {
            return;
        };
        while let Some(event) = events.recv().await {
            self.chat.take(&event, events.position());
            match &event {
                AgentEvent::Connected(session) => self.chat_entered(session),
                AgentEvent::Disconnected { .. } => self.chat_left(),
                AgentEvent::Modes(modes) => self.begin_in_fitting_mode(modes),
                _ => {}
            }
        }
    }

    /// A child is an agent like another: it is listed, and its changes are reviewed. A daemon writes by itself.
    fn chat_entered(&self, session: &ConnectedSession) {
        self.chat_left();
        if !session.abilities.reviews_writes {
            return;
        }
        let id = SessionKey::Chat(SessionId::new(session.session_id.as_str()));
        {
            let mut state = self.chat.state.lock();
            state.core_session = Some(id.clone());
            state.mode_pending = state.writes == ChatWrites::Review;
        }
        self.with_core(|core, now| {
            core.session_started(now, &id, Some(client_of(session)));
            core.stream_opened(&id);
        });
    }

    fn chat_left(&self) {
        let former = self.chat.state.lock().core_session.take();
        if let Some(former) = former {
            self.with_core(|core, _| core.session_ended(&former, Vec::new()));
        }
    }

    /// Where every change is reviewed, an agent need not ask about changes before it proposes them.
    fn begin_in_fitting_mode(&self, modes: &Modes) {
        let pending = std::mem::take(&mut self.chat.state.lock().mode_pending);
        let Some(mode_id) = fitting_mode(modes).filter(|_| pending) else {
            return;
        };
        let manager = self.chat.manager.clone();
        tokio::spawn(async move {
            if let Err(error) = manager.execute(AgentCommand::SetMode { mode_id }).await {
                // Then the agent asks, and so a person is asked twice.
                tracing::info!(%error, "cannot switch the agent's mode");
            }
        });
    }
}

/// The mode in which an agent asks about everything but edits, if it is in its usual one, which asks about everything. A mode that a
/// person has chosen stays.
fn fitting_mode(modes: &Modes) -> Option<String> {
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
    use alongside_agent::conversation::ModeInfo;

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
    fn an_agent_that_asks_about_everything_need_not_ask_about_edits() {
        let fitting = |current, available: &[&str]| fitting_mode(&modes(current, available));
        let qwen = ["plan", "default", "auto-edit", "yolo"];
        assert_eq!(fitting("default", &qwen).as_deref(), Some("auto-edit"));
        assert_eq!(
            fitting("default", &["default", "autoEdit"]).as_deref(),
            Some("autoEdit")
        );
        assert_eq!(fitting("plan", &qwen), None, "somebody has chosen it");
        assert_eq!(fitting("default", &["default"]), None);
    }
}
