//! How front ends reach the companion: one connection each, over a WebSocket or stdio.
//!
//! Editor plugins, the commands and the page all send the same JSON-RPC requests, defined in `alongside-protocol`. [`connection`] serves
//! one front end from a [`Backend`](alongside_protocol::Backend), [`websocket`] and [`stdio`] are the transports, and [`client`] is
//! the other end.

pub mod client;
pub mod connection;
mod rpc;
pub mod stdio;
pub mod websocket;
