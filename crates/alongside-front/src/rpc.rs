//! The JSON-RPC envelope.

use serde::Deserialize;
use serde_json::{Value, json};

use alongside_protocol::Refusal;
use alongside_protocol::{METHODS, Notification, Request};

/// A message from a front end.
#[derive(Debug)]
pub(crate) struct Message {
    /// Absent if no answer is wanted.
    pub(crate) id: Option<Value>,
    pub(crate) request: Request,
}

/// A message that could not be understood.
#[derive(Debug, PartialEq)]
pub(crate) struct Misunderstood {
    /// Whom to answer; absent if not even that could be read.
    id: Option<Value>,
    code: i32,
    message: String,
}

#[derive(Deserialize)]
struct Envelope {
    jsonrpc: Option<String>,
    #[serde(default)]
    id: Option<Value>,
    method: Option<String>,
    #[serde(default)]
    params: Option<Value>,
}

impl Message {
    pub(crate) fn parse(text: &str) -> Result<Self, Misunderstood> {
        let envelope: Envelope = serde_json::from_str(text).map_err(|error| {
            let code = if error.is_syntax() || error.is_eof() {
                -32700
            } else {
                -32600
            };
            Misunderstood {
                id: None,
                code,
                message: format!("invalid JSON-RPC message: {error}"),
            }
        })?;
        let refuse = |code, message| Misunderstood {
            id: envelope.id.clone(),
            code,
            message,
        };
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(refuse(-32600, "`jsonrpc` must be \"2.0\"".to_owned()));
        }
        let Some(method) = &envelope.method else {
            return Err(refuse(-32600, "missing `method`".to_owned()));
        };
        if !METHODS.contains(&method.as_str()) {
            return Err(refuse(
                -32601,
                format!("unknown method `{method}`; available methods: {}", METHODS.join(", ")),
            ));
        }
        let params = envelope.params.clone().unwrap_or_else(|| json!({}));
        let request = serde_json::from_value(json!({ "method": method, "params": params }))
            .map_err(|error| refuse(-32602, format!("invalid parameters for `{method}`: {error}")))?;
        Ok(Self {
            id: envelope.id,
            request,
        })
    }
}

impl Misunderstood {
    pub(crate) fn to_text(&self) -> String {
        let error = json!({ "code": self.code, "message": self.message });
        json!({ "jsonrpc": "2.0", "id": self.id, "error": error }).to_string()
    }
}

/// The answer to a request.
pub(crate) fn answer(id: &Value, result: Result<Value, Refusal>) -> String {
    match result {
        Ok(result) => json!({ "jsonrpc": "2.0", "id": id, "result": result }),
        Err(refusal) => {
            let error = json!({ "code": 1, "message": refusal.message, "data": { "kind": refusal.kind } });
            json!({ "jsonrpc": "2.0", "id": id, "error": error })
        }
    }
    .to_string()
}

/// A notification of the companion.
pub(crate) fn notification(notification: &Notification) -> String {
    with_version(notification)
}

/// A request of a front end.
pub(crate) fn request(id: u64, request: &Request) -> String {
    let mut text = with_version(request);
    text.insert_str(1, &format!("\"id\":{id},"));
    text
}

fn with_version(message: &impl serde::Serialize) -> String {
    // Our own types always serialise to an object.
    let mut text = serde_json::to_string(message).unwrap_or_else(|_| "{}".to_owned());
    text.insert_str(1, "\"jsonrpc\":\"2.0\",");
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use alongside_protocol::{FilePath, Nothing};

    #[test]
    fn a_request_survives_the_wire() {
        let sent = Request::ContextOpen(FilePath {
            path: "/a \"b\"".into(),
        });
        let message = Message::parse(&request(7, &sent)).unwrap();
        assert_eq!((message.id, message.request), (Some(json!(7)), sent));
    }

    #[test]
    fn parameters_may_be_left_out_where_there_are_none() {
        let message = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"review/list"}"#).unwrap();
        assert_eq!(message.request, Request::ReviewList(Nothing {}));
    }

    #[test]
    fn every_named_method_is_a_request() {
        for method in METHODS {
            let error = Message::parse(&json!({ "jsonrpc": "2.0", "method": method, "params": 3 }).to_string());
            assert!(!format!("{error:?}").contains("unknown variant"), "{method}: {error:?}");
        }
    }

    #[test]
    fn what_cannot_be_understood_is_answered_with_the_reason() {
        let answer = |text: &str| Message::parse(text).unwrap_err().to_text();
        assert!(answer("{").contains("-32700"));
        assert!(answer("[]").contains("-32600"));
        assert!(answer(r#"{"id":1,"method":"hello"}"#).contains("`jsonrpc` must be"));
        let unknown = answer(r#"{"jsonrpc":"2.0","id":5,"method":"diff/list"}"#);
        assert!(unknown.contains("-32601") && unknown.contains("review/list") && unknown.contains("\"id\":5"));
        assert!(answer(r#"{"jsonrpc":"2.0","id":1,"method":"context/open","params":{}}"#).contains("missing field"));
    }
}
