//! The JSON-RPC 2.0 envelope.
//!
//! Parsing borrows from the text: ids, parameters and results stay raw JSON. Nothing is copied, ids are returned byte for byte, and
//! parameters are deserialized once, straight into their type. What is written has no extra keys: Gemini CLI and Qwen Code
//! disconnect on them.
//!
//! There are two degrees of strictness. [`Message::parse_strict`] is for a port whose clients must follow the specification.
//! [`Message::parse`] accepts what real agents and editors send: a missing `jsonrpc`, `"id": null` for no id, `"error": null`
//! next to a result, and a response without a result.

mod error;
mod typed;
mod write;

#[cfg(test)]
mod tests;

use std::borrow::Cow;
use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

pub use error::{
    INTERNAL_ERROR, INVALID_PARAMS, INVALID_REQUEST, InvalidMessage, METHOD_NOT_FOUND, PARSE_ERROR, RpcError,
};
pub use typed::{parse_call, parse_params};
pub use write::{error_response, notification, request, response, response_of_size, write_call};

const NEITHER_CALL_NOR_RESPONSE: &str = "a message must have a `method`, or an `id` and a result or error";

/// One message, classified.
#[derive(Clone, Debug)]
pub enum Message<'a> {
    Request(Request<'a>),
    Notification(Notification<'a>),
    Response(Response<'a>),
}

/// A call that wants a response.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    pub id: &'a RawValue,
    pub method: Cow<'a, str>,
    /// `null` and absent are both `None`.
    pub params: Option<&'a RawValue>,
}

/// A call without a response.
#[derive(Clone, Debug)]
pub struct Notification<'a> {
    pub method: Cow<'a, str>,
    /// `null` and absent are both `None`.
    pub params: Option<&'a RawValue>,
}

#[derive(Clone, Debug)]
pub struct Response<'a> {
    /// `null` in an error about a request whose id could not be read.
    pub id: &'a RawValue,
    /// A missing result is `null`.
    pub result: Result<&'a RawValue, RpcError>,
}

/// The body of an HTTP request: one message, or a batch as in MCP 2025-03-26.
#[derive(Debug)]
pub enum Payload<'a> {
    One(Message<'a>),
    /// Each message is valid or invalid on its own.
    Batch(Vec<Result<Message<'a>, InvalidMessage<'a>>>),
}

/// The id of a request of the other side, kept exactly as it was written.
#[derive(Clone)]
pub struct RequestId(Box<RawValue>);

/// A JSON object with the keys of JSON-RPC, before it is classified.
#[derive(Clone, Debug, Deserialize)]
pub struct Envelope<'a> {
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

/// Keeps `null` apart from a missing key.
fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

impl<'a> Envelope<'a> {
    pub fn parse(text: &'a str) -> Result<Self, InvalidMessage<'a>> {
        let not_json =
            |error: &serde_json::Error| InvalidMessage::new(None, PARSE_ERROR, format!("invalid JSON: {error}"));
        // Serde would also read an array into the fields of a structure.
        if !text.trim_ascii_start().starts_with('{') {
            return Err(match serde_json::from_str::<&RawValue>(text) {
                Ok(_) => InvalidMessage::new(None, INVALID_REQUEST, "a message must be a JSON object"),
                Err(error) => not_json(&error),
            });
        }
        serde_json::from_str(text).map_err(|error| {
            if error.is_data() {
                InvalidMessage::new(None, INVALID_REQUEST, format!("invalid JSON-RPC message: {error}"))
            } else {
                not_json(&error)
            }
        })
    }

    /// The same for bytes; JSON is UTF-8.
    pub fn parse_bytes(bytes: &'a [u8]) -> Result<Self, InvalidMessage<'a>> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::parse(text),
            Err(_) => Err(InvalidMessage::new(None, PARSE_ERROR, "the message is not valid UTF-8")),
        }
    }

    /// The id as it was written; `null` and absent are both `None`.
    pub fn id(&self) -> Option<&'a RawValue> {
        self.id.filter(|id| id.get() != "null")
    }

    pub fn method(&self) -> Option<&str> {
        self.method.as_deref()
    }

    /// Whether there is a result or an error.
    pub fn is_response(&self) -> bool {
        self.result.is_some() || self.error.is_some()
    }

    /// Insists on `"jsonrpc": "2.0"`.
    pub fn require_version(self) -> Result<Self, InvalidMessage<'a>> {
        if self.jsonrpc.as_deref() == Some("2.0") {
            Ok(self)
        } else {
            Err(self.invalid("`jsonrpc` must be \"2.0\""))
        }
    }

    /// Classifies a message leniently.
    pub fn into_message(self) -> Result<Message<'a>, InvalidMessage<'a>> {
        let id = self.id();
        if id.is_some_and(|id| !is_id(id)) {
            return Err(self.invalid("`id` must be a string or a number"));
        }
        let params = self.params;
        match (id, self.method) {
            (Some(id), Some(method)) => Ok(Message::Request(Request { id, method, params })),
            (None, Some(method)) => Ok(Message::Notification(Notification { method, params })),
            (Some(id), None) => {
                let result = match self.error {
                    Some(error) => Err(RpcError::read(error)),
                    None => Ok(self.result.unwrap_or(RawValue::NULL)),
                };
                Ok(Message::Response(Response { id, result }))
            }
            (None, None) => match self.error {
                // The response to a request whose id could not be read.
                Some(error) => Ok(Message::Response(Response {
                    id: RawValue::NULL,
                    result: Err(RpcError::read(error)),
                })),
                None => Err(InvalidMessage::new(None, INVALID_REQUEST, NEITHER_CALL_NOR_RESPONSE)),
            },
        }
    }

    /// Classifies a message by the letter of the specification.
    pub fn into_strict_message(self) -> Result<Message<'a>, InvalidMessage<'a>> {
        let envelope = self.require_version()?;
        if envelope.id.is_some_and(|id| !is_id(id)) {
            return Err(envelope.invalid("`id` must be a string or a number"));
        }
        let is_response = envelope.id.is_some() && envelope.result.is_some() != envelope.error.is_some();
        if envelope.method.is_none() && !is_response {
            return Err(envelope.invalid(NEITHER_CALL_NOR_RESPONSE));
        }
        envelope.into_message()
    }

    fn invalid(&self, message: &'static str) -> InvalidMessage<'a> {
        InvalidMessage::new(self.id.filter(|id| is_id(id)), INVALID_REQUEST, message)
    }
}

impl<'a> Message<'a> {
    /// Parses a message leniently.
    pub fn parse(text: &'a str) -> Result<Self, InvalidMessage<'a>> {
        Envelope::parse(text)?.into_message()
    }

    /// Parses a message leniently.
    pub fn parse_bytes(bytes: &'a [u8]) -> Result<Self, InvalidMessage<'a>> {
        Envelope::parse_bytes(bytes)?.into_message()
    }

    /// Parses a message by the letter of the specification.
    pub fn parse_strict(text: &'a str) -> Result<Self, InvalidMessage<'a>> {
        Envelope::parse(text)?.into_strict_message()
    }
}

impl<'a> Payload<'a> {
    /// Parses one message or a batch by the letter of the specification.
    pub fn parse_strict(text: &'a str) -> Result<Self, InvalidMessage<'a>> {
        if !text.trim_ascii_start().starts_with('[') {
            return Message::parse_strict(text).map(Self::One);
        }
        let messages: Vec<&RawValue> = serde_json::from_str(text)
            .map_err(|error| InvalidMessage::new(None, PARSE_ERROR, format!("invalid JSON: {error}")))?;
        if messages.is_empty() {
            return Err(InvalidMessage::new(None, INVALID_REQUEST, "the batch is empty"));
        }
        Ok(Self::Batch(
            messages
                .into_iter()
                .map(|message| Message::parse_strict(message.get()))
                .collect(),
        ))
    }
}

impl<'a> Request<'a> {
    /// Deserializes the parameters; see [`parse_params`].
    pub fn params<P: Deserialize<'a>>(&self) -> Result<P, RpcError> {
        parse_params(&self.method, self.params)
    }

    /// The text of a successful response.
    pub fn response(&self, result: &impl Serialize) -> String {
        response(self.id, result)
    }

    /// The same for a result of about this many bytes, whose text is allocated once.
    pub fn response_of_size(&self, result: &impl Serialize, bytes: usize) -> String {
        response_of_size(self.id, result, bytes)
    }

    /// The text of a failed response.
    pub fn error(&self, error: &RpcError) -> String {
        error_response(Some(self.id), error)
    }
}

impl<'a> Notification<'a> {
    /// Deserializes the parameters; see [`parse_params`].
    pub fn params<P: Deserialize<'a>>(&self) -> Result<P, RpcError> {
        parse_params(&self.method, self.params)
    }
}

impl Response<'_> {
    /// The id, if it is one of ours: we number our requests.
    pub fn number(&self) -> Option<u64> {
        self.id.get().parse().ok()
    }
}

impl RequestId {
    pub fn as_raw(&self) -> &RawValue {
        &self.0
    }
}

impl From<&RawValue> for RequestId {
    fn from(id: &RawValue) -> Self {
        Self(id.to_owned())
    }
}

impl Serialize for RequestId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl PartialEq for RequestId {
    fn eq(&self, other: &Self) -> bool {
        self.0.get() == other.0.get()
    }
}

impl Eq for RequestId {}

impl fmt::Debug for RequestId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "RequestId({})", self.0.get())
    }
}

/// Whether an id is a string or a number.
pub fn is_id(id: &RawValue) -> bool {
    matches!(id.get().as_bytes().first(), Some(b'"' | b'-' | b'0'..=b'9'))
}
