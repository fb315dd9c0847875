//! Reading the messages of a local agent.

use alongside_wire::lines::{Line, LineReader};
use alongside_wire::rpc::Message;
use tokio::io::{AsyncRead, BufReader};

use crate::events::EventSender;

/// The longest message that is read. After a longer one the connection is closed.
const MAX_MESSAGE_BYTES: usize = 64 * 1024 * 1024;

/// Reads messages and handles each before the next, until the output ends.
///
/// While the reader of `events` is behind, nothing more is read.
pub(super) async fn read_messages(
    output: impl AsyncRead + Unpin,
    events: &EventSender,
    mut handle: impl FnMut(Message<'_>),
) {
    let mut lines = LineReader::new(BufReader::with_capacity(64 * 1024, output), MAX_MESSAGE_BYTES);
    loop {
        events.ready().await;
        let line = match lines.next().await {
            Ok(Some(Line::Complete(line))) => line,
            Ok(Some(Line::TooLong)) => {
                tracing::warn!("the agent sent a message longer than {MAX_MESSAGE_BYTES} bytes");
                return;
            }
            Ok(Some(Line::Unterminated(_)) | None) | Err(_) => return,
        };
        match Message::parse_bytes(line) {
            Ok(message) => handle(message),
            // Programs under Node print all sorts of things.
            Err(error) => {
                tracing::debug!(%error, bytes = line.len(), "ignoring a line from the agent that is not a message");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use alongside_protocol::chat::AgentEvent;
    use futures_util::FutureExt;

    use super::*;
    use crate::events::{MAX_QUEUED_EVENTS, event_channel};

    async fn read(text: &str) -> Vec<String> {
        let mut messages = Vec::new();
        let (events, _receiver) = event_channel();
        read_messages(text.as_bytes(), &events, |message| {
            messages.push(format!("{message:?}"));
        })
        .await;
        messages
    }

    #[tokio::test]
    async fn lines_that_are_not_messages_are_ignored() {
        let text = "Loaded cached credentials.\n[1]\n{}\n{\"id\":null,\"result\":1}\n{\"method\":7}\n\n";
        assert_eq!(read(text).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn requests_notifications_and_responses_are_recognized() {
        let text = "{\"id\":\"a\",\"method\":\"m\",\"params\":{}}\n{\"method\":\"n\"}\n{\"id\":3,\"result\":null}\n\
                    {\"id\":4,\"error\":{\"code\":-32603,\"message\":\"Internal error\",\"data\":{\"details\":\"why\"}}}\n";
        let messages = read(text).await;
        assert!(messages[0].starts_with("Request"), "{messages:?}");
        assert!(messages[1].starts_with("Notification"), "{messages:?}");
        assert!(messages[2].starts_with("Response"), "{messages:?}");
        assert!(messages[3].contains("why"), "{messages:?}");
    }

    #[tokio::test]
    async fn cut_off_message_is_ignored() {
        assert_eq!(read("{\"method\":\"n\"}\n{\"method\":\"n\"}").await.len(), 1);
    }
    #[test]
    fn full_event_queue_stops_reading() {
        let (events, mut receiver) = event_channel();
        let text = "{\"method\":\"n\"}\n".repeat(2 * MAX_QUEUED_EVENTS);
        let mut handled = 0;
        let mut reading = Box::pin(read_messages(text.as_bytes(), &events, |_| {
            handled += 1;
            events.send(AgentEvent::Reconnected, None);
        }));
        assert!(reading.as_mut().now_or_never().is_none());
        assert!(receiver.try_recv().is_some());
        assert!(reading.as_mut().now_or_never().is_none());
        drop(reading);
        assert_eq!(handled, MAX_QUEUED_EVENTS + 1);
    }
}
