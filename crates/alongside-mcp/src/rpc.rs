//! JSON-RPC 2.0: reading a message without touching its parts, and writing replies that have nothing in excess.
//!
//! Command lines check the envelope strictly: one more key, or a `null`, and they disconnect. Ids go back byte for byte.

use std::borrow::Cow;

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// The text is not JSON.
pub(crate) const PARSE_ERROR: i32 = -32_700;
/// The JSON is not a message.
pub(crate) const INVALID_REQUEST: i32 = -32_600;
/// Nobody knows this method.
pub(crate) const METHOD_NOT_FOUND: i32 = -32_601;
/// The method's parameters are not what it needs.
pub(crate) const INVALID_PARAMS: i32 = -32_602;
/// We failed.
pub(crate) const INTERNAL_ERROR: i32 = -32_603;

/// What the body of a `POST` holds.
pub(crate) enum Incoming<'a> {
    One(Message<'a>),
    /// A batch, as in version 2025-03-26. Each part is right or wrong for itself.
    Many(Vec<Result<Message<'a>, RpcError<'a>>>),
}

/// One message.
pub(crate) enum Message<'a> {
    Request(Request<'a>),
    /// Something the client tells us. Nothing of it concerns us.
    Notification,
    /// What the client answers to a request of ours. We make none, but must accept it.
    Response,
}

/// A message that wants an answer.
pub(crate) struct Request<'a> {
    pub(crate) id: &'a RawValue,
    pub(crate) method: Cow<'a, str>,
    pub(crate) params: Option<&'a RawValue>,
}

/// An error, with the id of the request if that could be read.
#[derive(Debug)]
pub(crate) struct RpcError<'a> {
    pub(crate) id: Option<&'a RawValue>,
    pub(crate) code: i32,
    pub(crate) message: Cow<'static, str>,
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow)]
    jsonrpc: Option<Cow<'a, str>>,
    #[serde(borrow, default, deserialize_with = "present")]
    id: Option<&'a RawValue>,
    #[serde(borrow)]
    method: Option<Cow<'a, str>>,
    #[serde(borrow)]
    params: Option<&'a RawValue>,
    #[serde(borrow, default, deserialize_with = "present")]
    result: Option<&'a RawValue>,
    #[serde(borrow)]
    error: Option<&'a RawValue>,
}

/// Tells a value of `null` from no value.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// Reads a body.
pub(crate) fn parse(text: &str) -> Result<Incoming<'_>, RpcError<'_>> {
    if !text.trim_ascii_start().starts_with('[') {
        return parse_message(text).map(Incoming::One);
    }
    let parts: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|error| RpcError::new(PARSE_ERROR, format!("Invalid JSON: {error}.")))?;
    if parts.is_empty() {
        return Err(RpcError::new(INVALID_REQUEST, "The batch is empty."));
    }
    Ok(Incoming::Many(
        parts.into_iter().map(|part| parse_message(part.get())).collect(),
    ))
}

fn parse_message(text: &str) -> Result<Message<'_>, RpcError<'_>> {
    let not_json = |error: &serde_json::Error| RpcError::new(PARSE_ERROR, format!("Invalid JSON: {error}."));
    // Serde would also read an array into the fields of a structure.
    if !text.trim_ascii_start().starts_with('{') {
        return Err(match serde_json::from_str::<&RawValue>(text) {
            Ok(_) => RpcError::new(INVALID_REQUEST, "A message must be a JSON object."),
            Err(error) => not_json(&error),
        });
    }
    let envelope: Envelope<'_> = serde_json::from_str(text).map_err(|error| {
        if error.is_data() {
            RpcError::new(INVALID_REQUEST, format!("Invalid JSON-RPC message: {error}."))
        } else {
            not_json(&error)
        }
    })?;
    let id = envelope.id.filter(|id| is_id(id));
    let invalid = |message: &'static str| RpcError {
        id,
        code: INVALID_REQUEST,
        message: message.into(),
    };
    if envelope.jsonrpc.as_deref() != Some("2.0") {
        return Err(invalid("`jsonrpc` must be \"2.0\"."));
    }
    if envelope.id.is_some() && id.is_none() {
        return Err(invalid("`id` must be a string or a number."));
    }
    match (id, envelope.method) {
        (Some(id), Some(method)) => Ok(Message::Request(Request {
            id,
            method,
            params: envelope.params,
        })),
        (None, Some(_)) => Ok(Message::Notification),
        (Some(_), None) if envelope.result.is_some() != envelope.error.is_some() => Ok(Message::Response),
        (_, None) => Err(invalid(
            "A message must have a `method`, or an `id` and a result or error.",
        )),
    }
}

fn is_id(value: &RawValue) -> bool {
    let first = value.get().as_bytes().first();
    first.is_some_and(|byte| matches!(byte, b'"' | b'-' | b'0'..=b'9'))
}

impl RpcError<'_> {
    /// An error in something that has no readable id.
    pub(crate) fn new(code: i32, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            id: None,
            code,
            message: message.into(),
        }
    }

    /// The reply. `id` is null only where JSON-RPC says that it must be: where none could be read.
    pub(crate) fn to_json(&self) -> String {
        #[derive(Serialize)]
        struct Reply<'a> {
            jsonrpc: &'static str,
            id: Option<&'a RawValue>,
            error: Details<'a>,
        }

        #[derive(Serialize)]
        struct Details<'a> {
            code: i32,
            message: &'a str,
        }

        to_json(&Reply {
            jsonrpc: "2.0",
            id: self.id,
            error: Details {
                code: self.code,
                message: &self.message,
            },
        })
    }
}

impl<'a> Request<'a> {
    /// The reply to a request that went well.
    pub(crate) fn result(&self, result: &impl Serialize) -> String {
        #[derive(Serialize)]
        struct Reply<'a, R> {
            jsonrpc: &'static str,
            id: &'a RawValue,
            result: &'a R,
        }

        to_json(&Reply {
            jsonrpc: "2.0",
            id: self.id,
            result,
        })
    }

    /// The reply to a request that did not.
    pub(crate) fn error(&self, code: i32, message: impl Into<Cow<'static, str>>) -> RpcError<'a> {
        RpcError {
            id: Some(self.id),
            code,
            message: message.into(),
        }
    }

    /// Reads the parameters.
    pub(crate) fn parameters<P: Deserialize<'a>>(&self) -> Result<P, RpcError<'a>> {
        let text = self.params.map_or("{}", RawValue::get);
        if !text.starts_with('{') {
            return Err(self.error(INVALID_PARAMS, "`params` must be an object."));
        }
        serde_json::from_str(text).map_err(|error| {
            self.error(
                INVALID_PARAMS,
                format!("The parameters of {} are wrong: {error}.", self.method),
            )
        })
    }
}

fn to_json(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_else(|error| {
        // What we serialise is text and numbers, so this does not happen; an agent must get an answer even so.
        tracing::error!(%error, "a reply could not be serialised");
        format!(r#"{{"jsonrpc":"2.0","id":null,"error":{{"code":{INTERNAL_ERROR},"message":"The reply could not be written."}}}}"#)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn code(text: &str) -> i32 {
        match parse(text) {
            Err(error) => error.code,
            Ok(_) => 0,
        }
    }

    #[test]
    fn what_is_not_json_and_what_is_not_a_message_are_told_apart() {
        for text in ["", "{", "nonsense", "{} {}", "[1,", r#"{"a":1} x"#] {
            assert_eq!(code(text), PARSE_ERROR, "{text}");
        }
        for text in [
            "1",
            "null",
            "[]",
            "{}",
            r#"{"jsonrpc":"1.0","id":1,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":[1],"method":"ping"}"#,
            r#"{"jsonrpc":"2.0","id":1,"method":5}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#,
        ] {
            assert_eq!(code(text), INVALID_REQUEST, "{text}");
        }
    }

    #[test]
    fn an_id_goes_back_byte_for_byte() {
        for id in ["1", "-5", "12345678901234567890123", "1.50", r#""\u0061\/b""#, r#""""#] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"ping"}}"#);
            let Ok(Incoming::One(Message::Request(request))) = parse(&text) else {
                panic!("not a request: {text}");
            };
            assert_eq!(
                request.result(&"yes"),
                format!(r#"{{"jsonrpc":"2.0","id":{id},"result":"yes"}}"#)
            );
        }
    }

    #[test]
    fn answers_and_notifications_are_recognised() {
        for text in [
            r#"{"jsonrpc":"2.0","id":1,"result":{}}"#,
            r#"{"jsonrpc":"2.0","id":1,"result":null}"#,
            r#"{"jsonrpc":"2.0","id":"a","error":{"code":1,"message":"no"}}"#,
        ] {
            assert!(matches!(parse(text), Ok(Incoming::One(Message::Response))), "{text}");
        }
        let text = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        assert!(matches!(parse(text), Ok(Incoming::One(Message::Notification))));
    }
}
