//! What can go wrong between a client and a companion, told apart so that `doctor` can say what to do.

use std::io;

/// Why a client did not get what it asked for.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nobody listens there, or the name leads nowhere.
    #[error("nothing is listening at {address}: {source}")]
    Refused {
        /// Host and port.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// The token is not the companion's.
    #[error("the companion refused the token: {sentence}")]
    Unauthorised {
        /// What it says.
        sentence: String,
    },
    /// The companion does not answer under this host name.
    #[error("the companion refused this host name: {sentence}")]
    Forbidden {
        /// What it says.
        sentence: String,
    },
    /// Any other status that is not a success.
    #[error("the companion answered {status}: {sentence}")]
    Status {
        /// The HTTP status.
        status: u16,
        /// What it says.
        sentence: String,
    },
    /// Something answers, but not as an MCP server does.
    #[error("not an MCP server: {0}")]
    NotMcp(String),
    /// There was no answer in time.
    #[error("no response within {0:?}")]
    Timeout(std::time::Duration),
    /// The request was understood and answered with an error.
    #[error("{message} (code {code})")]
    Rpc {
        /// The JSON-RPC error code.
        code: i64,
        /// What the server says.
        message: String,
    },
    /// The connection broke off.
    #[error("lost the connection: {0}")]
    Lost(#[from] hyper::Error),
    /// A host, token or message that cannot be sent at all.
    #[error("cannot send the request: {0}")]
    Unsendable(String),
}
