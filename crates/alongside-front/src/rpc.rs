//! The JSON-RPC envelope. Parameters and results stay raw text until their type is known.

use std::borrow::Cow;

use alongside_protocol::{Notification, ParseError, Request, RequestError, Response};
use serde::{Deserialize, Serialize};
use serde_json::json;
use serde_json::value::RawValue;

/// A message from a front end.
#[derive(Debug)]
pub(crate) struct Message {
    /// Absent if no response is wanted.
    pub(crate) id: Option<Box<RawValue>>,
    pub(crate) request: Request,
}

/// A message that could not be parsed.
#[derive(Debug)]
pub(crate) struct InvalidMessage {
    id: Option<Box<RawValue>>,
    code: i32,
    message: String,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow)]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
}

impl Message {
    pub(crate) fn parse(text: &str) -> Result<Self, InvalidMessage> {
        let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
            let code = if error.is_syntax() || error.is_eof() {
                -32700
            } else {
                -32600
            };
            InvalidMessage {
                id: None,
                code,
                message: format!("invalid JSON-RPC message: {error}"),
            }
        })?;
        let invalid = |code, message| InvalidMessage {
            id: envelope.id.map(ToOwned::to_owned),
            code,
            message,
        };
        if envelope.jsonrpc.as_deref() != Some("2.0") {
            return Err(invalid(-32600, "`jsonrpc` must be \"2.0\"".to_owned()));
        }
        let Some(method) = &envelope.method else {
            return Err(invalid(-32600, "missing `method`".to_owned()));
        };
        let request = Request::parse(method, envelope.params).map_err(|error| {
            let code = match error {
                ParseError::UnknownMethod(_) => -32601,
                ParseError::Params { .. } => -32602,
            };
            invalid(code, error.to_string())
        })?;
        Ok(Self {
            id: envelope.id.map(ToOwned::to_owned),
            request,
        })
    }
}

impl InvalidMessage {
    pub(crate) fn to_text(&self) -> String {
        let error = json!({ "code": self.code, "message": self.message });
        to_text(&json!({ "jsonrpc": "2.0", "id": self.id, "error": error }))
    }
}

pub(crate) fn response(id: &RawValue, result: Result<Response, RequestError>) -> String {
    #[derive(Serialize)]
    struct Success<'a> {
        jsonrpc: &'a str,
        id: &'a RawValue,
        result: Response,
    }
    match result {
        Ok(result) => to_text(&Success {
            jsonrpc: "2.0",
            id,
            result,
        }),
        Err(error) => {
            let error = json!({ "code": 1, "message": error.message, "data": { "kind": error.kind } });
            to_text(&json!({ "jsonrpc": "2.0", "id": id, "error": error }))
        }
    }
}

pub(crate) fn notification(notification: &Notification) -> String {
    with_version(notification)
}

pub(crate) fn request(id: u64, request: &Request) -> String {
    let mut text = with_version(request);
    text.insert_str(1, &format!("\"id\":{id},"));
    text
}

fn with_version(message: &impl Serialize) -> String {
    let mut text = to_text(message);
    text.insert_str(1, "\"jsonrpc\":\"2.0\",");
    text
}

fn to_text(message: &impl Serialize) -> String {
    // Our own types always serialize to an object.
    serde_json::to_string(message).unwrap_or_else(|_| "{}".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alongside_protocol::{Empty, FilePath};

    #[test]
    fn written_request_is_parsed_back() {
        let sent = Request::ContextOpen(FilePath {
            path: "/a \"b\"".into(),
        });
        let message = Message::parse(&request(7, &sent)).unwrap();
        assert_eq!((message.id.unwrap().get(), message.request), ("7", sent));
    }

    #[test]
    fn parameters_may_be_omitted() {
        let message = Message::parse(r#"{"jsonrpc":"2.0","id":1,"method":"review/list"}"#).unwrap();
        assert_eq!(message.request, Request::ReviewList(Empty {}));
    }

    #[test]
    fn invalid_message_gets_the_reason() {
        let answer = |text: &str| Message::parse(text).unwrap_err().to_text();
        assert!(answer("{").contains("-32700"));
        assert!(answer("[]").contains("-32600"));
        assert!(answer(r#"{"id":1,"method":"hello"}"#).contains("`jsonrpc` must be"));
        let unknown = answer(r#"{"jsonrpc":"2.0","id":5,"method":"diff/list"}"#);
        assert!(unknown.contains("-32601") && unknown.contains("review/list") && unknown.contains("\"id\":5"));
        assert!(answer(r#"{"jsonrpc":"2.0","id":1,"method":"context/open","params":{}}"#).contains("missing field"));
    }
}
