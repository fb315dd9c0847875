//! The interface to the companion: the events it receives, the tools it runs, and the decisions it sends.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::sync::Arc;

use alongside_core::diagnostics::FileDiagnostics;
use alongside_core::dialect::ClientInfo;
use alongside_core::{Decision, DeliveryId, SessionEnd, SessionId, SessionKey};
use serde::Serialize;

/// Ours have 32; a resumed session may have another origin.
const MAX_SESSION_ID_BYTES: usize = 128;

/// What the companion does for agents.
///
/// `session_started`, `stream_opened`, `stream_closed`, `settled` and `session_ended` are called one at a time and in order, from
/// a task of their own; they should return soon, because requests wait when too many calls are queued
/// ([`Limits::queued_events`](crate::Limits::queued_events)). Every `stream_opened` is followed by one `stream_closed`
/// before the next: a stream that replaces another closes it first. A tool is called only after all earlier events.
pub trait Companion: Send + Sync + 'static {
    /// An agent connected; with `None`, an unknown agent resumed a session from before a restart.
    /// The agent gets the response to `initialize` when the future is ready.
    fn session_started(&self, session: &SessionKey, client: Option<&ClientInfo>) -> impl Future<Output = ()> + Send;

    /// The agent of a session from before a restart, which is being resumed.
    fn known_client(&self, session: &SessionKey) -> Option<ClientInfo>;

    fn stream_opened(&self, session: &SessionKey);

    /// The agent may reconnect: decisions are queued for it until then.
    fn stream_closed(&self, session: &SessionKey);

    /// The agent has received these decisions, or they are no longer kept.
    fn settled(&self, session: &SessionKey, deliveries: &[DeliveryId]);

    fn session_ended(&self, session: &SessionKey, end: &SessionEnd);

    /// Opens a review of a proposed text. The agent gets the response as soon as the future is ready: for a session that
    /// [waits](SessionKey::is_waiting) with the decision, for others at once. An error is shown to the agent. The future is dropped if
    /// the agent disconnects or closes the review.
    fn open_diff(
        &self,
        session: &SessionKey,
        file_path: Arc<str>,
        new_content: Arc<str>,
    ) -> impl Future<Output = Result<DiffOutcome, String>> + Send;

    /// What editors report about a file, or about all files, as far as agents may see it. Must not wait.
    fn diagnostics(&self, path: Option<&Path>) -> Vec<FileDiagnostics>;

    /// Closes what [`open_diff`](Self::open_diff) opened and returns the draft; `None` if nothing is open. An error is shown to
    /// the agent.
    fn close_diff(
        &self,
        session: &SessionKey,
        file_path: &str,
    ) -> impl Future<Output = Result<Option<Arc<str>>, String>> + Send;
}

/// What became of a proposal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DiffOutcome {
    /// The review is open, and the decision follows through [`AgentHub::notify`](crate::AgentHub::notify).
    Opened,
    Accepted {
        content: Arc<str>,
        /// Whether the file did not exist when it was proposed.
        is_new_file: bool,
    },
    Rejected,
}

/// A decision to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outgoing {
    /// What the session confirms, if anything. Must grow from call to call.
    pub delivery: Option<DeliveryId>,
    pub decision: Decision,
    /// Whether the agent may not be waiting for it: it may have received it before a restart, or be another one.
    pub repeated: bool,
}

impl From<Decision> for Outgoing {
    fn from(decision: Decision) -> Self {
        Self {
            delivery: None,
            decision,
            repeated: false,
        }
    }
}

pub(crate) fn random_session() -> Result<SessionId, getrandom::Error> {
    random_hexadecimal::<16>().map(SessionId::new)
}

/// A session id from an agent; `None` unless it is short, visible ASCII.
pub(crate) fn parse_session(text: &str) -> Option<SessionId> {
    let is_valid = (1..=MAX_SESSION_ID_BYTES).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    is_valid.then(|| SessionId::new(text))
}

/// `LENGTH` random bytes from the system, in hexadecimal.
pub(crate) fn random_hexadecimal<const LENGTH: usize>() -> Result<String, getrandom::Error> {
    use fmt::Write;

    let mut bytes = [0; LENGTH];
    getrandom::fill(&mut bytes)?;
    let mut text = String::with_capacity(2 * LENGTH);
    for byte in bytes {
        // Writing to a string cannot fail.
        let _ = write!(text, "{byte:02x}");
    }
    Ok(text)
}

/// Approximate size in bytes.
pub(crate) fn size(decision: &Decision) -> usize {
    match decision {
        Decision::Accepted { path, content } => path.len() + content.len(),
        Decision::Rejected { path, .. } => path.len(),
    }
}

/// The JSON-RPC message for a decision. The path is returned exactly as the agent sent it.
pub(crate) fn to_json(decision: &Decision) -> Result<Vec<u8>, serde_json::Error> {
    #[derive(Serialize)]
    struct Message<'a> {
        jsonrpc: &'static str,
        method: &'static str,
        params: Parameters<'a>,
    }

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct Parameters<'a> {
        file_path: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        content: Option<&'a str>,
    }

    let (method, content) = match decision {
        Decision::Accepted { content, .. } => ("ide/diffAccepted", Some(&**content)),
        Decision::Rejected { .. } => ("ide/diffRejected", None),
    };
    let params = Parameters {
        file_path: decision.path(),
        content,
    };
    serde_json::to_vec(&Message {
        jsonrpc: "2.0",
        method,
        params,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issued_session_id_has_128_bits_and_is_valid() {
        let session = random_session().unwrap();
        assert_eq!(session.as_str().len(), 32);
        assert_eq!(parse_session(session.as_str()), Some(session));
    }

    #[test]
    fn invalid_session_id_is_refused() {
        for text in ["", "a b", "a\nb", "é", &"a".repeat(129)] {
            assert_eq!(parse_session(text), None, "{text:?}");
        }
    }

    #[test]
    fn rejection_has_no_content() {
        let rejected = Decision::rejected("/a\n");
        assert_eq!(
            String::from_utf8(to_json(&rejected).unwrap()).unwrap(),
            r#"{"jsonrpc":"2.0","method":"ide/diffRejected","params":{"filePath":"/a\n"}}"#
        );
    }
}
