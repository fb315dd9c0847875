//! What can fail with a daemon. Each kind of failure has its own hint.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::address::AddressError;

/// What is kept of a response that is not JSON.
const MAX_TEXT_CHARS: usize = 300;

#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    #[error(transparent)]
    Address(#[from] AddressError),
    #[error("cannot reach the daemon at {address}: {source}")]
    Unreachable {
        /// Normalized.
        address: String,
        source: io::Error,
    },
    #[error("the daemon did not answer within {0:?}")]
    Timeout(Duration),
    #[error("lost the connection to the daemon: {0}")]
    Lost(String),
    #[error(transparent)]
    Refused(#[from] Box<ErrorResponse>),
    /// Something responds, but it is not a daemon.
    #[error("not a `qwen serve` daemon: {0}")]
    NotADaemon(String),
    #[error("cannot send the request: {0}")]
    Unsendable(&'static str),
    #[error("the daemon's certificate is not trusted: {0}")]
    Untrusted(String),
    #[error("cannot connect to the daemon over https: {0}")]
    Tls(String),
    #[error("cannot use daemon.ca-file {}: {source}", path.display())]
    CaFile { path: PathBuf, source: io::Error },
    #[error("this session's events are already being read")]
    AlreadySubscribed,
    #[error("the daemon does not support `{0}`")]
    MissingFeature(&'static str),
    #[error("the daemon is running in {}, not in {wanted}", offered.join(", "))]
    WorkspaceMismatch { wanted: String, offered: Vec<String> },
    #[error("the daemon uses protocol version {0}, but only version 1 is supported")]
    Version(Value),
    #[error("the session ended: {0}")]
    SessionEnded(String),
    /// The response to a prompt was lost, and no event shows what became of the prompt.
    #[error("{0}; the prompt may have been received")]
    Unconfirmed(Box<DaemonError>),
}

impl DaemonError {
    /// The daemon's response, if there was one.
    pub fn response(&self) -> Option<&ErrorResponse> {
        match self {
            Self::Refused(response) => Some(response),
            _ => None,
        }
    }

    pub fn status(&self) -> Option<u16> {
        self.response().map(|response| response.status)
    }

    /// Whether the response has this `code` or `errorKind`.
    pub fn has_code(&self, name: &str) -> bool {
        self.response()
            .and_then(|response| response.code.as_ref())
            .is_some_and(|code| *code == *name)
    }

    /// The session is not live: it crashed, was closed, or the daemon was restarted.
    pub fn is_session_gone(&self) -> bool {
        self.status() == Some(404) && self.has_code("session_not_found")
    }

    /// The token is missing or wrong.
    pub fn is_unauthorized(&self) -> bool {
        self.status() == Some(401)
    }

    /// There was no response to a request that may have been carried out.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Timeout(_) | Self::Lost(_))
    }

    /// The same request may succeed later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout(_) | Self::Lost(_) => true,
            Self::Refused(response) => {
                let restoring = response.details.get("retryable") == Some(&Value::Bool(true));
                matches!(response.status, 408 | 425 | 429 | 502 | 503 | 504) || restoring
            }
            _ => false,
        }
    }

    pub fn retry_after(&self) -> Option<Duration> {
        self.response().and_then(|response| response.retry_after)
    }

    /// What the user can do about it.
    pub fn hint(&self) -> Option<&'static str> {
        if self.is_unauthorized() || self.has_code("token_required") {
            return Some("Set the token that `qwen serve` was started with (QWEN_SERVER_TOKEN).");
        }
        if self.is_session_gone() {
            return Some("The session is no longer active. Reopen it to continue from its history.");
        }
        if self.has_code("prompt_queue_full") {
            return Some("The prompt queue is full. Wait for one to finish, or remove one from the queue.");
        }
        match self {
            Self::Unreachable { .. } => Some("Start `qwen serve` in the project directory."),
            Self::WorkspaceMismatch { .. } => Some("Start `qwen serve` with --workspace for this directory."),
            Self::Untrusted(_) => Some(
                "Set daemon.ca-file to the daemon's certificate (the one passed to --tls-cert), or to the CA certificate that signed it.",
            ),
            Self::Tls(_) => Some("Use an http URL, unless `qwen serve` was started with --tls-cert."),
            _ if self.has_code("workspace_mismatch") => Some("Start `qwen serve` with --workspace for this directory."),
            _ => None,
        }
    }
}

/// A response with an error status.
#[derive(Clone, Debug, PartialEq)]
pub struct ErrorResponse {
    pub status: u16,
    /// The `code`, or the `errorKind` where a route has that instead.
    pub code: Option<ErrorCode>,
    /// The most specific message of the response.
    pub message: String,
    pub retry_after: Option<Duration>,
    /// All fields of the response, such as `limit` or `boundWorkspace`.
    pub details: Map<String, Value>,
}

/// The daemon's codes are names; those of its agent are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// Such as `session_not_found`.
    Name(String),
    /// Such as `-32603`.
    Number(i64),
}

impl ErrorResponse {
    /// Reads a response: JSON in one of several shapes, HTML, or nothing.
    pub fn read(status: u16, retry_after: Option<Duration>, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let Ok(Value::Object(mut fields)) = serde_json::from_str(&text) else {
            return Self {
                status,
                code: None,
                message: sentence_of_page(&text),
                retry_after,
                details: Map::new(),
            };
        };
        let code = ["code", "errorKind"]
            .iter()
            .find_map(|name| fields.get(*name).and_then(ErrorCode::read));
        // "Internal error" explains nothing: the agent's message is one level below.
        let nested = fields
            .get("data")
            .and_then(|data| data.get("details"))
            .and_then(Value::as_str);
        let outer = fields.get("error").or_else(|| fields.get("message"));
        let outer = outer.and_then(|error| error.as_str().or_else(|| error.get("message")?.as_str()));
        let message = nested.or(outer).unwrap_or_default().trim();
        let message: String = message.chars().take(MAX_TEXT_CHARS * 10).collect();
        let asked = fields
            .get("retryAfterMs")
            .and_then(Value::as_u64)
            .map(Duration::from_millis);
        for known in ["code", "errorKind", "error", "message", "data", "status"] {
            fields.remove(known);
        }
        Self {
            status,
            code,
            message,
            retry_after: asked.or(retry_after),
            details: fields,
        }
    }

    /// A string field of the response.
    pub fn detail(&self, name: &str) -> Option<&str> {
        self.details.get(name).and_then(Value::as_str)
    }
}

impl fmt::Display for ErrorResponse {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "the daemon answered {}", self.status)?;
        if !self.message.is_empty() {
            write!(formatter, ": {}", self.message)?;
        }
        match &self.code {
            Some(code) => write!(formatter, " ({code})"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for ErrorResponse {}

impl ErrorCode {
    /// Reads a `code`; `None` unless it is a string or an integer.
    pub fn read(value: &Value) -> Option<Self> {
        match value {
            Value::String(name) if !name.is_empty() => Some(Self::Name(name.clone())),
            Value::Number(number) => number.as_i64().map(Self::Number),
            _ => None,
        }
    }
}

impl PartialEq<str> for ErrorCode {
    fn eq(&self, name: &str) -> bool {
        matches!(self, Self::Name(own) if own == name)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => formatter.write_str(name),
            Self::Number(number) => write!(formatter, "{number}"),
        }
    }
}

/// The text of an HTML page, or the start of any other text.
fn sentence_of_page(text: &str) -> String {
    let mut plain = String::new();
    let mut in_tag = false;
    // The title in the head is only "Error".
    let body = text
        .split_once("<body")
        .map_or(text, |(_, body)| body.split_once('>').map_or(body, |(_, rest)| rest));
    for character in body.chars() {
        match character {
            '<' => in_tag = true,
            '>' if in_tag => in_tag = false,
            _ if !in_tag => plain.push(character),
            _ => {}
        }
    }
    let words: Vec<&str> = plain.split_whitespace().collect();
    words.join(" ").chars().take(MAX_TEXT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(status: u16, body: &str) -> ErrorResponse {
        ErrorResponse::read(status, None, body.as_bytes())
    }

    #[test]
    fn error_code_may_be_string_number_or_absent() {
        let named = read(
            404,
            r#"{"error":"No session with id \"x\"","code":"session_not_found","sessionId":"x"}"#,
        );
        assert_eq!(named.code, Some(ErrorCode::Name("session_not_found".to_owned())));
        assert_eq!(named.detail("sessionId"), Some("x"));
        let numbered = read(
            500,
            r#"{"error":"Internal error","code":-32603,"data":{"details":"Model 'x' not found"}}"#,
        );
        assert_eq!(numbered.code, Some(ErrorCode::Number(-32603)));
        assert_eq!(numbered.message, "Model 'x' not found");
        let bare = read(401, r#"{"error":"Unauthorized"}"#);
        assert_eq!((bare.code, bare.message.as_str()), (None, "Unauthorized"));
    }

    #[test]
    fn file_error_kind_is_its_code() {
        let error = DaemonError::from(Box::new(read(
            404,
            r#"{"errorKind":"path_not_found","error":"path does not exist: a","status":404}"#,
        )));
        assert!(error.has_code("path_not_found"));
        assert!(!error.is_session_gone());
    }

    #[test]
    fn html_page_is_reduced_to_its_text() {
        let page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>Error</title>\n</head>\n<body>\n<pre>Cannot GET \
                    /nope</pre>\n</body>\n</html>\n";
        let response = read(404, page);
        assert_eq!(response.message, "Cannot GET /nope");
        assert_eq!(response.to_string(), "the daemon answered 404: Cannot GET /nope");
        assert_eq!(read(502, "").to_string(), "the daemon answered 502");
    }

    #[test]
    fn retry_delay_is_read_from_body_or_header() {
        let limited =
            r#"{"error":"Rate limit exceeded","code":"rate_limit_exceeded","tier":"prompt","retryAfterMs":59967}"#;
        let response = ErrorResponse::read(429, Some(Duration::from_mins(1)), limited.as_bytes());
        assert_eq!(response.retry_after, Some(Duration::from_millis(59967)));
        let full = ErrorResponse::read(503, Some(Duration::from_secs(5)), br#"{"code":"prompt_queue_full"}"#);
        assert_eq!(full.retry_after, Some(Duration::from_secs(5)));
        assert!(DaemonError::from(Box::new(full)).is_transient());
    }

    #[test]
    fn permanent_error_is_not_transient() {
        for (status, body, transient) in [
            (401, json!({"error": "Unauthorized"}), false),
            (400, json!({"code": "workspace_mismatch"}), false),
            (404, json!({"code": "session_not_found"}), false),
            (409, json!({"code": "restore_in_progress", "retryable": true}), true),
            (409, json!({"code": "session_archived"}), false),
            (504, json!({"code": "session_restore_timeout"}), true),
        ] {
            let error = DaemonError::from(Box::new(read(status, &body.to_string())));
            assert_eq!(error.is_transient(), transient, "{error}");
        }
    }
}
