//! What can go wrong between a client and a companion. `doctor` has a hint for each.

use std::io;

#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    #[error("nothing is listening at {address}: {source}")]
    Refused { address: String, source: io::Error },
    #[error("the companion refused the token: {sentence}")]
    Unauthorized { sentence: String },
    #[error("the companion refused this host name: {sentence}")]
    Forbidden { sentence: String },
    /// Any other error status.
    #[error("the companion answered {status}: {sentence}")]
    Status { status: u16, sentence: String },
    #[error("not an MCP server: {0}")]
    NotMcp(String),
    #[error("no response within {0:?}")]
    Timeout(std::time::Duration),
    /// The response is an error.
    #[error("{message} (code {code})")]
    Rpc { code: i64, message: String },
    #[error("lost the connection: {0}")]
    Lost(#[from] hyper::Error),
    #[error("lost the connection: {0}")]
    Disconnected(String),
    /// A host, token or message that cannot be sent at all.
    #[error("cannot send the request: {0}")]
    Unsendable(String),
}
