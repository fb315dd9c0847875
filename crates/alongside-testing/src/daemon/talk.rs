//! Answers to prompts, without the test's help.

use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};

use super::{SESSION, Shared, chunk};

/// How the daemon answers prompts. It answers one at a time.
#[derive(Clone, Copy)]
pub struct Talk {
    /// The pause before an answer.
    pub before: Duration,
    /// The pause after each word.
    pub between: Duration,
    /// The words of the answer to a prompt. Called after the first pause.
    pub words: fn(&str) -> Vec<String>,
}

impl Talk {
    pub(super) async fn run(self, shared: Arc<Shared>) {
        loop {
            let prompted = shared.prompted.notified();
            let next = {
                let mut state = shared.state.lock();
                let next = state.queue.pop_front();
                state.running = next.as_ref().map(|(id, _)| id.clone());
                next
            };
            let Some((id, text)) = next else {
                prompted.await;
                continue;
            };
            pause(self.before).await;
            let words = (self.words)(&text);
            for word in &words {
                shared.publish(&id, "session_update", &chunk("agent_message_chunk", word));
                pause(self.between).await;
            }
            let end = json!({"sessionId": SESSION, "stopReason": "end_turn"});
            shared.publish(&id, "turn_complete", &end);
            let answer = chunk("agent_message_chunk", &words.concat());
            shared.state.lock().history.push(stored(&answer));
        }
    }
}

impl Shared {
    fn publish(&self, prompt: &str, name: &str, data: &Value) {
        let event = json!({"v": 1, "type": name, "promptId": prompt, "data": data});
        self.state.lock().push(event);
        self.grown.notify_waiters();
    }
}

/// Without a timer if there is nothing to wait for: the shortest one takes a millisecond.
async fn pause(duration: Duration) {
    if duration.is_zero() {
        tokio::task::yield_now().await;
    } else {
        tokio::time::sleep(duration).await;
    }
}

/// An event of the history.
pub(super) fn stored(data: &Value) -> Value {
    json!({"v": 1, "type": "session_update", "data": data})
}
