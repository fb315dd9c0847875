//! JSON-RPC, one message a line, in both directions.
//!
//! The crate agent-client-protocol is not used: its schema has neither the `models` of a session nor `session/set_model`, which
//! is how the real programs offer models; it refuses updates that it does not know, which are to be kept; and it switches
//! `serde_json` to another order of fields for everything that is built together with it.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::{mpsc, oneshot};

use super::error::AcpError;
use crate::events::EventSender;

/// The longest message that is read.
const LONGEST_MESSAGE: u64 = 64 * 1024 * 1024;

/// What came in.
#[derive(Debug)]
pub(super) enum Message {
    /// The agent wants something.
    Request { id: Value, method: String, params: Value },
    /// The agent tells something.
    Notification { method: String, params: Value },
    /// The agent answers.
    Response { id: u64, result: Result<Value, AcpError> },
}

/// The side that speaks.
pub(super) struct Speaker {
    lines: mpsc::UnboundedSender<String>,
    next: AtomicU64,
    waiting: Mutex<HashMap<u64, oneshot::Sender<Result<Value, AcpError>>>>,
}

impl Speaker {
    /// A speaker, and the lines that it wants written.
    pub(super) fn new() -> (Self, mpsc::UnboundedReceiver<String>) {
        let (lines, receiver) = mpsc::unbounded_channel();
        let speaker = Self {
            lines,
            next: AtomicU64::new(1),
            waiting: Mutex::default(),
        };
        (speaker, receiver)
    }

    /// Asks. The answer is given to [`Speaker::resolve`] by whoever reads, unless the caller looks out for it there.
    pub(super) fn ask(&self, method: &str, params: &Value) -> u64 {
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        id
    }

    /// Asks, and gives where the answer will be.
    pub(super) fn request(&self, method: &str, params: &Value) -> oneshot::Receiver<Result<Value, AcpError>> {
        let (sender, receiver) = oneshot::channel();
        let id = self.next.fetch_add(1, Ordering::Relaxed);
        self.waiting.lock().insert(id, sender);
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        receiver
    }

    /// Tells something.
    pub(super) fn notify(&self, method: &str, params: &Value) {
        self.send(&json!({"jsonrpc": "2.0", "method": method, "params": params}));
    }

    /// Answers.
    pub(super) fn answer(&self, id: &Value, result: Result<Value, Value>) {
        let (name, value) = match result {
            Ok(result) => ("result", result),
            Err(error) => ("error", error),
        };
        self.send(&json!({"jsonrpc": "2.0", "id": id, name: value}));
    }

    /// Gives an answer to whoever waits for it; nobody may.
    pub(super) fn resolve(&self, id: u64, result: Result<Value, AcpError>) {
        if let Some(waiting) = self.waiting.lock().remove(&id) {
            let _ = waiting.send(result);
        }
    }

    /// No more answers will come: whoever waits sees the channel closed.
    pub(super) fn close(&self) {
        self.waiting.lock().clear();
    }

    fn send(&self, message: &Value) {
        // If nobody writes any more the agent has ended, and everybody is told so.
        let _ = self.lines.send(message.to_string());
    }
}

/// Writes lines until there are no more, or nobody reads them.
pub(super) async fn write_lines(mut lines: mpsc::UnboundedReceiver<String>, mut writer: impl AsyncWrite + Unpin) {
    while let Some(mut line) = lines.recv().await {
        line.push('\n');
        let written = writer.write_all(line.as_bytes()).await;
        if written.is_err() || writer.flush().await.is_err() {
            return;
        }
    }
}

/// Reads messages and hands on each before the next is looked at, until there are no more.
pub(super) async fn read_messages(
    reader: impl AsyncRead + Unpin,
    events: &EventSender,
    mut take: impl FnMut(Message),
) {
    let mut reader = BufReader::with_capacity(64 * 1024, reader);
    let mut line = Vec::new();
    loop {
        line.clear();
        // While the reader of the events is behind, nothing more is read.
        events.ready().await;
        let mut limited = tokio::io::AsyncReadExt::take(&mut reader, LONGEST_MESSAGE);
        match limited.read_until(b'\n', &mut line).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
        if line.last() != Some(&b'\n') {
            tracing::warn!(bytes = line.len(), "the agent sent a message that is too long");
            return;
        }
        if let Some(message) = serde_json::from_slice(&line).ok().and_then(read_message) {
            take(message);
        } else {
            // Programs under Node print all sorts of things.
            tracing::debug!(
                bytes = line.len(),
                "ignoring a line from the agent that is not a message"
            );
        }
    }
}

fn read_message(message: Value) -> Option<Message> {
    let Value::Object(mut message) = message else {
        return None;
    };
    let id = message.remove("id").filter(|id| !id.is_null());
    let params = message.remove("params").unwrap_or_default();
    match (message.remove("method"), id) {
        (Some(Value::String(method)), Some(id)) => Some(Message::Request { id, method, params }),
        (Some(Value::String(method)), None) => Some(Message::Notification { method, params }),
        (None, Some(id)) => {
            let result = match message.remove("error") {
                Some(error) if !error.is_null() => Err(AcpError::read(&error)),
                _ => Ok(message.remove("result").unwrap_or_default()),
            };
            Some(Message::Response {
                id: id.as_u64()?,
                result,
            })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> Vec<String> {
        let mut messages = Vec::new();
        let (events, _receiver) = crate::events::event_channel();
        read_messages(text.as_bytes(), &events, |message| messages.push(format!("{message:?}"))).await;
        messages
    }

    #[tokio::test]
    async fn what_is_no_message_is_left_out() {
        let text = "Loaded cached credentials.\n[1]\n{}\n{\"id\":null,\"result\":1}\n{\"method\":7}\n\n";
        assert_eq!(read(text).await, Vec::<String>::new());
    }

    #[tokio::test]
    async fn requests_notifications_and_answers_are_told_apart() {
        let text = "{\"id\":\"a\",\"method\":\"m\",\"params\":{}}\n{\"method\":\"n\"}\n{\"id\":3,\"result\":null}\n\
                    {\"id\":4,\"error\":{\"code\":-32603,\"message\":\"Internal error\",\"data\":{\"details\":\"why\"}}}\n";
        let messages = read(text).await;
        assert!(messages[0].starts_with("Request"), "{messages:?}");
        assert!(messages[1].starts_with("Notification"), "{messages:?}");
        assert_eq!(messages[2], "Response { id: 3, result: Ok(Null) }");
        assert!(messages[3].contains("why"), "{messages:?}");
    }

    #[tokio::test]
    async fn a_message_that_is_cut_is_none() {
        assert_eq!(read("{\"method\":\"n\"}\n{\"method\":\"n\"}").await.len(), 1);
    }
}
