//! What is wrong with a message, and what is wrong with a request.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use super::write::error_response;

/// The text is not JSON.
pub const PARSE_ERROR: i64 = -32_700;
/// The JSON is not a message.
pub const INVALID_REQUEST: i64 = -32_600;
pub const METHOD_NOT_FOUND: i64 = -32_601;
pub const INVALID_PARAMS: i64 = -32_602;
pub const INTERNAL_ERROR: i64 = -32_603;

/// The error of a failed request, ours or theirs.
#[derive(Clone, Debug, PartialEq, Serialize, thiserror::Error)]
#[error("{message} (code {code})")]
pub struct RpcError {
    pub code: i64,
    pub message: Cow<'static, str>,
    /// `null` is not written.
    #[serde(skip_serializing_if = "Value::is_null")]
    pub data: Value,
}

impl RpcError {
    pub fn new(code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            data: Value::Null,
        }
    }

    #[must_use]
    pub fn with_data(self, data: Value) -> Self {
        Self { data, ..self }
    }

    /// Reads the `error` of a response. This never fails: an error of the wrong shape is still an error.
    pub fn read(error: &RawValue) -> Self {
        let mut error: Value = serde_json::from_str(error.get()).unwrap_or_default();
        let code = error.get("code").and_then(Value::as_i64).unwrap_or_default();
        let message = match error.get_mut("message").map(Value::take) {
            Some(Value::String(message)) => message,
            _ => error.as_str().unwrap_or_default().to_owned(),
        };
        Self {
            code,
            message: message.into(),
            data: error.get_mut("data").map(Value::take).unwrap_or_default(),
        }
    }
}

/// A text that is not a message, with the id of the request if that could be read.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{}", error.message)]
pub struct InvalidMessage<'a> {
    pub id: Option<&'a RawValue>,
    #[source]
    pub error: RpcError,
}

impl<'a> InvalidMessage<'a> {
    pub fn new(id: Option<&'a RawValue>, code: i64, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            id,
            error: RpcError::new(code, message),
        }
    }

    /// The response that reports it.
    pub fn to_response(&self) -> String {
        error_response(self.id, &self.error)
    }
}
