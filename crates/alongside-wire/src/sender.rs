//! Our half of a connection on which both sides send requests.
//!
//! The reader of the other half passes responses to [`RpcSender::resolve`], and calls [`RpcSender::close`] when it ends.

use serde::Serialize;
use serde_json::value::RawValue;

use crate::outgoing::{OutgoingSender, SendError};
use crate::pending::{PendingCall, PendingCalls};
use crate::rpc::{self, RequestId, Response, RpcError};

/// The result of a call, not deserialized yet.
pub type CallResult = Result<Box<RawValue>, RpcError>;

/// Sends requests, notifications and responses. Sending never waits; see [`crate::outgoing`] for what happens if the other side does
/// not read.
#[derive(Clone, Debug)]
pub struct RpcSender {
    messages: OutgoingSender,
    pending: PendingCalls<CallResult>,
}

impl RpcSender {
    pub fn new(messages: OutgoingSender) -> Self {
        Self {
            messages,
            pending: PendingCalls::new(),
        }
    }

    /// Sends a request. Its response is what the returned future waits for; dropping that gives up on it.
    pub fn call(&self, method: &str, params: &impl Serialize) -> Result<PendingCall<CallResult>, SendError> {
        let call = self.pending.start().map_err(|_| SendError::Closed)?;
        self.send_with_id(call.id(), method, params)?;
        Ok(call)
    }

    /// Sends a request whose response the reader recognizes by the returned id, for one that must be handled in order with what comes
    /// before it.
    pub fn send_request(&self, method: &str, params: &impl Serialize) -> Result<u64, SendError> {
        let id = self.pending.next_id();
        self.send_with_id(id, method, params)?;
        Ok(id)
    }

    pub fn notify(&self, method: &str, params: &impl Serialize) -> Result<(), SendError> {
        self.send(rpc::notification(method, Some(params)))
    }

    /// Answers a request.
    pub fn respond(&self, id: &RequestId, result: Result<impl Serialize, RpcError>) -> Result<(), SendError> {
        self.messages.send(match result {
            Ok(result) => rpc::response(id.as_raw(), &result),
            Err(error) => rpc::error_response(Some(id.as_raw()), &error),
        })
    }

    /// Sends a message that is already written, such as the response to an invalid one.
    pub fn send_text(&self, message: String) -> Result<(), SendError> {
        self.messages.send(message)
    }

    /// Delivers a response to its call. `false` if no call waits for it.
    pub fn resolve(&self, response: Response<'_>) -> bool {
        let Some(id) = response.number() else { return false };
        self.pending.resolve(id, response.result.map(ToOwned::to_owned))
    }

    /// No more responses will come: every pending call fails, and every later one.
    pub fn close(&self) {
        self.pending.close();
    }

    fn send_with_id(&self, id: u64, method: &str, params: &impl Serialize) -> Result<(), SendError> {
        self.send(rpc::request(id, method, Some(params)))
    }

    fn send(&self, message: serde_json::Result<String>) -> Result<(), SendError> {
        match message {
            Ok(message) => self.messages.send(message),
            Err(error) => {
                tracing::error!(%error, "cannot serialize a message");
                Err(SendError::Unserializable)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::outgoing::{Framing, outgoing};
    use crate::pending::ConnectionClosed;
    use crate::rpc::Message;

    #[tokio::test]
    async fn response_reaches_the_call_with_its_id() {
        let (messages, queue) = outgoing(1000);
        let sender = RpcSender::new(messages);
        let call = sender.call("one", &json!({})).unwrap();
        let Ok(Message::Response(response)) = Message::parse(r#"{"id":1,"result":[1]}"#) else {
            panic!("not a response");
        };
        assert!(sender.resolve(response.clone()));
        assert!(!sender.resolve(response));
        assert_eq!(call.await.unwrap().unwrap().get(), "[1]");
        assert_eq!(sender.send_request("two", &json!({})).unwrap(), 2);
        sender.notify("three", &json!({})).unwrap();
        let id = RequestId::from(RawValue::TRUE);
        sender.respond(&id, Ok(json!(null))).unwrap();
        sender.respond(&id, Err::<(), _>(RpcError::new(1, "no"))).unwrap();
        drop(sender);
        let mut written = Vec::new();
        queue.write_to(&mut written, Framing::Lines).await;
        assert_eq!(
            String::from_utf8(written).unwrap(),
            r#"{"jsonrpc":"2.0","id":1,"method":"one","params":{}}
{"jsonrpc":"2.0","id":2,"method":"two","params":{}}
{"jsonrpc":"2.0","method":"three","params":{}}
{"jsonrpc":"2.0","id":true,"result":null}
{"jsonrpc":"2.0","id":true,"error":{"code":1,"message":"no"}}
"#
        );
    }

    #[tokio::test]
    async fn closing_fails_calls_and_a_closed_queue_refuses_them() {
        let (messages, queue) = outgoing(1000);
        let sender = RpcSender::new(messages);
        let call = sender.call("one", &json!({})).unwrap();
        drop(queue);
        assert_eq!(sender.call("two", &json!({})).unwrap_err(), SendError::Closed);
        assert_eq!(sender.pending.len(), 1, "a call that was not sent leaves no entry");
        sender.close();
        assert_eq!(call.await.unwrap_err(), ConnectionClosed);
        assert_eq!(sender.call("three", &json!({})).unwrap_err(), SendError::Closed);
    }
}
