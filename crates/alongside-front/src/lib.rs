//! The front-end protocol's transports: how everything that a user interacts with talks to the companion.
//!
//! Editor plugins, the commands and the page all send the same small set of JSON-RPC requests and receive the same notifications.
//! [`alongside_protocol`] is the vocabulary, [`alongside_protocol::Backend`] is what the companion implements, [`connection`] serves one
//! front end, [`websocket`] and [`stdio`] are the two transports, and [`client`] is the other end.
//!
//! `docs/PROTOCOL.md` is the public contract of what is here.

pub mod client;
pub mod connection;
mod message;
pub mod stdio;
pub mod websocket;
