//! The envelopes on Codex's socket.

use serde_json::{Value, json};

/// Of all methods that we know.
pub(super) const VERSION: u64 = 0;
pub(super) const INITIALIZE: &str = "initialize";
pub(super) const IDE_CONTEXT: &str = "ide-context";

/// The values of `type`.
pub(super) mod kind {
    pub(in super::super) const REQUEST: &str = "request";
    pub(in super::super) const RESPONSE: &str = "response";
    pub(in super::super) const BROADCAST: &str = "broadcast";
    pub(in super::super) const DISCOVERY_REQUEST: &str = "client-discovery-request";
    pub(in super::super) const DISCOVERY_RESPONSE: &str = "client-discovery-response";
}

/// Why a request failed. Codex has a sentence for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    NoClientFound,
    ClientDisconnected,
    RequestTimeout,
    VersionMismatch,
    NoHandler,
}

impl Failure {
    const fn name(self) -> &'static str {
        match self {
            Self::NoClientFound => "no-client-found",
            Self::ClientDisconnected => "client-disconnected",
            Self::RequestTimeout => "request-timeout",
            Self::VersionMismatch => "request-version-mismatch",
            Self::NoHandler => "no-handler-for-request",
        }
    }
}

pub(super) fn parse(frame: &[u8]) -> Option<Value> {
    serde_json::from_slice(frame).ok().filter(Value::is_object)
}

/// A field, unless it is missing or not a string.
pub(super) fn text<'a>(message: &'a Value, name: &str) -> &'a str {
    message[name].as_str().unwrap_or_default()
}

pub(super) fn initialize(id: &str) -> Value {
    json!({
        "type": kind::REQUEST,
        "requestId": id,
        "sourceClientId": "initializing-client",
        "version": VERSION,
        "method": INITIALIZE,
        // Routers know no other type that provides context.
        "params": { "clientType": "vscode" },
    })
}

pub(super) fn success(request: &Value, handled_by: &str, result: &Value) -> Value {
    json!({
        "type": kind::RESPONSE,
        "requestId": request["requestId"],
        "resultType": "success",
        "method": request["method"],
        "handledByClientId": handled_by,
        "result": result,
    })
}

pub(super) fn failure(request: &Value, failure: Failure) -> Value {
    json!({
        "type": kind::RESPONSE,
        "requestId": request["requestId"],
        "resultType": "error",
        "error": failure.name(),
    })
}

pub(super) fn discovery_request(id: &str, request: &Value) -> Value {
    json!({ "type": kind::DISCOVERY_REQUEST, "requestId": id, "request": request })
}

pub(super) fn discovery_response(request: &Value, can_handle: bool) -> Value {
    json!({
        "type": kind::DISCOVERY_RESPONSE,
        "requestId": request["requestId"],
        "response": { "canHandle": can_handle },
    })
}

pub(super) fn can_handle(discovery_response: &Value) -> bool {
    discovery_response["response"]["canHandle"] == true
}
