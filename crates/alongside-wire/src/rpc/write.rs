//! Writing messages.

use serde::Serialize;
use serde_json::value::RawValue;

use super::error::{INTERNAL_ERROR, RpcError};

#[derive(Serialize)]
struct Outgoing<'a, Id, Params> {
    jsonrpc: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<Id>,
    method: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    params: Option<&'a Params>,
}

/// The text of a request.
pub fn request(id: u64, method: &str, params: Option<&impl Serialize>) -> serde_json::Result<String> {
    serde_json::to_string(&Outgoing {
        jsonrpc: "2.0",
        id: Some(id),
        method,
        params,
    })
}

/// The text of a notification.
pub fn notification(method: &str, params: Option<&impl Serialize>) -> serde_json::Result<String> {
    serde_json::to_string(&Outgoing {
        jsonrpc: "2.0",
        id: None::<u64>,
        method,
        params,
    })
}

/// The text of a call that is an enum of all calls, tagged by `method` with its content in `params`; see
/// [`parse_call`](super::parse_call). Without an id it is a notification.
pub fn write_call(id: Option<u64>, call: &impl Serialize) -> serde_json::Result<String> {
    #[derive(Serialize)]
    struct Tagged<'a, C> {
        jsonrpc: &'static str,
        #[serde(skip_serializing_if = "Option::is_none")]
        id: Option<u64>,
        #[serde(flatten)]
        call: &'a C,
    }

    serde_json::to_string(&Tagged {
        jsonrpc: "2.0",
        id,
        call,
    })
}

/// The text of a successful response. A result that cannot be serialized becomes an error response: the other side waits for one.
pub fn response(id: &RawValue, result: &impl Serialize) -> String {
    response_of_size(id, result, 0)
}

/// The same for a result of about this many bytes, whose text is allocated once.
pub fn response_of_size(id: &RawValue, result: &impl Serialize, bytes: usize) -> String {
    #[derive(Serialize)]
    struct Success<'a, R> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        result: &'a R,
    }

    let success = Success {
        jsonrpc: "2.0",
        id,
        result,
    };
    let mut text = Vec::with_capacity(bytes.max(128));
    let written = serde_json::to_writer(&mut text, &success).map(|()| text);
    let text = written.and_then(|text| String::from_utf8(text).map_err(serde::ser::Error::custom));
    text.unwrap_or_else(|error| {
        tracing::error!(%error, "cannot serialize a response");
        error_response(
            Some(id),
            &RpcError::new(INTERNAL_ERROR, "the response cannot be serialized"),
        )
    })
}

/// The text of a failed response. The id is `null` only if it could not be read, as the specification wants.
pub fn error_response(id: Option<&RawValue>, error: &RpcError) -> String {
    #[derive(Serialize)]
    struct Failure<'a> {
        jsonrpc: &'static str,
        id: &'a RawValue,
        error: &'a RpcError,
    }

    let id = id.unwrap_or(RawValue::NULL);
    let failure = Failure {
        jsonrpc: "2.0",
        id,
        error,
    };
    serde_json::to_string(&failure).unwrap_or_else(|error| {
        tracing::error!(%error, "cannot serialize an error");
        let id = id.get();
        format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":{INTERNAL_ERROR},"message":"internal error"}}}}"#)
    })
}
