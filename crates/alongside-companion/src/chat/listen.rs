//! Receives the agent's events: records them, and makes a local agent a session of the core.

use std::sync::Arc;

use alongside_core::{SessionEnd, SessionKey};
use alongside_protocol::chat::{AgentEvent, ConnectedSession};

use super::gate::client_of;
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
            if let AgentEvent::Connected(session) = &event {
                self.chat_entered(session);
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
        self.chat.state.lock().local = Some(id.clone());
        self.with_core(|core, now| {
            core.session_started(now, &id, Some(client_of(session)));
            core.stream_opened(now, &id);
        });
    }

    fn chat_left(&self) {
        let previous = self.chat.state.lock().local.take();
        if let Some(previous) = previous {
            self.with_core(|core, now| core.session_ended(now, &previous, &SessionEnd::Lost));
        }
    }
}
