//! The seam between this crate and the binary: what the binary is told, what it is asked, and the words for it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;

use alongside_core::dialect::ClientInfo;
use alongside_core::{Decision, SessionId};
use serde::Serialize;

/// The longest session id that is taken up again. Ours have 32 characters.
const LONGEST_SESSION_ID: usize = 128;

/// What the binary does for agents.
///
/// `session_started`, `stream_opened`, `stream_closed` and `session_ended` are called one at a time, in the order in which
/// things happened, from a task that does nothing else; they should return soon. Every `stream_opened` is followed by one
/// `stream_closed` before the next: a stream that replaces another closes it first. A tool is called only after everything
/// that happened before it was told.
pub trait Companion: Send + Sync + 'static {
    /// An agent has introduced itself; or, with `None`, an agent that we do not know went on with a session from before a
    /// restart.
    fn session_started(&self, session: &SessionId, client: Option<&ClientInfo>);

    /// Who the agent was, asked when a session from before a restart is taken up again.
    fn known_client(&self, session: &SessionId) -> Option<ClientInfo>;

    /// The session listens.
    fn stream_opened(&self, session: &SessionId);

    /// The session listens no longer. It may come back: what it is told meanwhile waits for it.
    fn stream_closed(&self, session: &SessionId);

    /// The session is over. `undelivered` are the decisions that were never written to a stream of it, in order.
    fn session_ended(&self, session: &SessionId, undelivered: Vec<Decision>);

    /// Shows a proposed text to the person. The answer goes to the agent as soon as the future is ready, so it must not
    /// wait for the person. An error is a sentence for the agent. The future is dropped if the agent hangs up.
    fn open_diff(
        &self,
        session: &SessionId,
        file_path: Arc<str>,
        new_content: Arc<str>,
    ) -> impl Future<Output = Result<(), String>> + Send;

    /// Closes what [`open_diff`](Self::open_diff) opened and gives the final text; `None` if nothing is open.
    fn close_diff(&self, session: &SessionId, file_path: &str) -> Option<Arc<str>>;
}

/// A session id that nobody can guess.
pub(crate) fn random_session() -> Result<SessionId, getrandom::Error> {
    random_hexadecimal::<16>().map(SessionId::new)
}

/// Takes a session id that an agent presents; `None` unless it is short and made of visible ASCII.
pub(crate) fn sane_session(text: &str) -> Option<SessionId> {
    let sane = (1..=LONGEST_SESSION_ID).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic());
    sane.then(|| SessionId::new(text))
}

/// `LENGTH` bytes of the system's generator, in hexadecimal.
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

/// About how many bytes a decision holds.
pub(crate) fn size(decision: &Decision) -> usize {
    match decision {
        Decision::Accepted { path, content } => path.len() + content.len(),
        Decision::Rejected { path } => path.len(),
    }
}

/// The JSON-RPC message that tells a decision. The path goes back exactly as it came.
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
    fn an_issued_session_id_has_128_bits_and_is_sane() {
        let session = random_session().unwrap();
        assert_eq!(session.as_str().len(), 32);
        assert_eq!(sane_session(session.as_str()), Some(session));
    }

    #[test]
    fn an_insane_session_id_is_not_taken_up() {
        for text in ["", "a b", "a\nb", "é", &"a".repeat(129)] {
            assert_eq!(sane_session(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_verdict_has_nothing_that_it_does_not_need() {
        let rejected = Decision::Rejected { path: "/a\n".into() };
        assert_eq!(
            String::from_utf8(to_json(&rejected).unwrap()).unwrap(),
            r#"{"jsonrpc":"2.0","method":"ide/diffRejected","params":{"filePath":"/a\n"}}"#
        );
    }
}
