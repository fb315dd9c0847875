//! The front-end protocol: how everything that a person uses speaks with the companion.
//!
//! Editor plugins, the scripted commands and pages all send the same small set of JSON-RPC requests and hear the same
//! notifications. [`protocol`] is the vocabulary, [`Desk`] is what the companion implements, [`connection`] carries one
//! conversation, [`websocket`] and [`stdio`] are its two carriers, and [`client`] is the other end. [`lsp`] is a front end
//! itself: for editors that speak the language server protocol and nothing of ours.
//!
//! `docs/PROTOCOL.md` is the public contract of what is here.

pub mod client;
pub mod connection;
mod rpc;
pub mod stdio;
pub mod websocket;
