//! What can go wrong between us and a daemon, told apart so that a person can be told what to do.

use std::fmt;
use std::io;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Map, Value};

use super::address::AddressError;

/// How much of an answer that is no JSON is kept.
const LONGEST_TEXT: usize = 300;

/// Why a daemon did not do what it was asked.
#[derive(Debug, thiserror::Error)]
pub enum DaemonError {
    /// The address breaks the rule.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Nobody listens there.
    #[error("cannot reach the daemon at {address}: {source}")]
    Unreachable {
        /// The normalised address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// There was no answer in time.
    #[error("the daemon did not answer within {0:?}")]
    Timeout(Duration),
    /// The connection broke off.
    #[error("lost the connection to the daemon: {0}")]
    Lost(String),
    /// The daemon answered with a status that is not a success.
    #[error(transparent)]
    Refused(#[from] Box<Refusal>),
    /// Something answers, but not as a daemon does.
    #[error("not a `qwen serve` daemon: {0}")]
    NotADaemon(String),
    /// A token, id or body that cannot be sent at all.
    #[error("cannot send the request: {0}")]
    Unsendable(&'static str),
    /// The daemon's certificate will not do.
    #[error("the daemon's certificate is not trusted: {0}")]
    Untrusted(String),
    /// There is no TLS with what answers there.
    #[error("cannot connect to the daemon over https: {0}")]
    Tls(String),
    /// The file with certificates cannot be used.
    #[error("cannot use daemon.ca-file {}: {source}", path.display())]
    CaFile {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: io::Error,
    },
    /// There is one stream of events for a session client already.
    #[error("this session's events are already being read")]
    AlreadySubscribed,
    /// The daemon lacks something that is needed.
    #[error("the daemon does not support `{0}`")]
    MissingFeature(&'static str),
    /// The daemon works in another directory.
    #[error("the daemon is running in {}, not in {wanted}", offered.join(", "))]
    WorkspaceMismatch {
        /// The directory that was asked for.
        wanted: String,
        /// The directories that the daemon works in.
        offered: Vec<String>,
    },
    /// The protocol of the daemon is none that we speak.
    #[error("the daemon uses protocol version {0}, but only version 1 is supported")]
    Version(Value),
    /// The session ended while something was waited for.
    #[error("the session ended: {0}")]
    SessionEnded(String),
}

impl DaemonError {
    /// The answer, if there was one.
    pub fn refusal(&self) -> Option<&Refusal> {
        match self {
            Self::Refused(refusal) => Some(refusal),
            _ => None,
        }
    }

    /// The HTTP status, if there was an answer.
    pub fn status(&self) -> Option<u16> {
        self.refusal().map(|refusal| refusal.status)
    }

    /// Whether the answer has this `code` or `errorKind`.
    pub fn has_code(&self, name: &str) -> bool {
        self.refusal()
            .and_then(|refusal| refusal.code.as_ref())
            .is_some_and(|code| *code == *name)
    }

    /// The session is not live: it died, was closed, or the daemon has been restarted since.
    pub fn is_session_gone(&self) -> bool {
        self.status() == Some(404) && self.has_code("session_not_found")
    }

    /// The daemon wants another token.
    pub fn is_unauthorized(&self) -> bool {
        self.status() == Some(401)
    }

    /// The same request may succeed a little later.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Timeout(_) | Self::Lost(_) => true,
            Self::Refused(refusal) => {
                let restoring = refusal.details.get("retryable") == Some(&Value::Bool(true));
                matches!(refusal.status, 408 | 425 | 429 | 502 | 503 | 504) || restoring
            }
            _ => false,
        }
    }

    /// How long the daemon asks to wait.
    pub fn retry_after(&self) -> Option<Duration> {
        self.refusal().and_then(|refusal| refusal.retry_after)
    }

    /// What a person can do about it, if anything.
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

/// An answer that is not a success.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The `code`, or the `errorKind` where a route has that instead.
    pub code: Option<ErrorCode>,
    /// What the daemon says: the most telling sentence of its answer.
    pub message: String,
    /// How long it asks to wait.
    pub retry_after: Option<Duration>,
    /// The other fields of its answer, such as `limit` or `boundWorkspace`.
    pub details: Map<String, Value>,
}

/// The daemon's own codes are names; those of the agent behind it are numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ErrorCode {
    /// `session_not_found` and the like.
    Name(String),
    /// `-32603` and the like.
    Number(i64),
}

impl Refusal {
    /// Reads an answer. It may be JSON of several shapes, HTML, or nothing.
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
        // "Internal error" tells nothing: what the agent really says is one level below.
        let nested = fields
            .get("data")
            .and_then(|data| data.get("details"))
            .and_then(Value::as_str);
        let outer = fields.get("error").or_else(|| fields.get("message"));
        let outer = outer.and_then(|error| error.as_str().or_else(|| error.get("message")?.as_str()));
        let message = nested.or(outer).unwrap_or_default().trim();
        let message: String = message.chars().take(LONGEST_TEXT * 10).collect();
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

    /// A field of the answer that is a text.
    pub fn detail(&self, name: &str) -> Option<&str> {
        self.details.get(name).and_then(Value::as_str)
    }
}

impl fmt::Display for Refusal {
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

impl std::error::Error for Refusal {}

impl ErrorCode {
    /// Reads a `code`; anything but a text or a whole number is none.
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

/// What a page of HTML says, or the start of any other text.
fn sentence_of_page(text: &str) -> String {
    let mut plain = String::new();
    let mut in_tag = false;
    // The head of a page holds a title that says "Error" and nothing else.
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
    words.join(" ").chars().take(LONGEST_TEXT).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(status: u16, body: &str) -> Refusal {
        Refusal::read(status, None, body.as_bytes())
    }

    #[test]
    fn a_code_may_be_a_name_a_number_or_absent() {
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
    fn the_kind_of_a_file_error_counts_as_its_code() {
        let error = DaemonError::from(Box::new(read(
            404,
            r#"{"errorKind":"path_not_found","error":"path does not exist: a","status":404}"#,
        )));
        assert!(error.has_code("path_not_found"));
        assert!(!error.is_session_gone());
    }

    #[test]
    fn a_page_of_html_is_read_for_its_sentence() {
        let page = "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<title>Error</title>\n</head>\n<body>\n<pre>Cannot GET \
                    /nope</pre>\n</body>\n</html>\n";
        let refusal = read(404, page);
        assert_eq!(refusal.message, "Cannot GET /nope");
        assert_eq!(refusal.to_string(), "the daemon answered 404: Cannot GET /nope");
        assert_eq!(read(502, "").to_string(), "the daemon answered 502");
    }

    #[test]
    fn how_long_to_wait_comes_from_the_body_or_the_header() {
        let limited =
            r#"{"error":"Rate limit exceeded","code":"rate_limit_exceeded","tier":"prompt","retryAfterMs":59967}"#;
        let refusal = Refusal::read(429, Some(Duration::from_mins(1)), limited.as_bytes());
        assert_eq!(refusal.retry_after, Some(Duration::from_millis(59967)));
        let full = Refusal::read(503, Some(Duration::from_secs(5)), br#"{"code":"prompt_queue_full"}"#);
        assert_eq!(full.retry_after, Some(Duration::from_secs(5)));
        assert!(DaemonError::from(Box::new(full)).is_transient());
    }

    #[test]
    fn a_refusal_that_waiting_cannot_change_is_not_transient() {
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
