//! How alongside talks to other programs, without knowing what they talk about.
//!
//! - [`rpc`]: the JSON-RPC 2.0 envelope. A message is scanned once; parameters and results stay raw JSON until their type is known.
//! - [`pending`]: the calls that wait for a response.
//! - [`lines`], [`content_length`] and [`length_prefixed`]: the framings, each with a limit on the size of a message.
//! - [`outgoing`]: the bounded queue in front of a writer.
//! - [`sender`]: requests, notifications and responses on a connection where both sides send requests.
//! - [`sse`]: server-sent events.
//! - [`http`]: an HTTP/1 client for one server on this machine. It never sends a request twice.
//!
//! Every reader and every queue here has a limit, and says what happens when it is reached.

pub mod content_length;
pub mod http;
pub mod length_prefixed;
pub mod lines;
pub mod outgoing;
pub mod pending;
pub mod rpc;
pub mod sender;
pub mod sse;
