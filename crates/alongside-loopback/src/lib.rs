//! What the agents' port, the commands' port and the page have in common: where they listen, how much they accept, and
//! which clients they let in.
//!
//! A [`Listener`] binds to 127.0.0.1, refuses other users where the system tells them apart, and serves each connection in its
//! own task, as a [`Stream`] that is closed if its client stops reading. [`ConnectionLimits`] keep most connections for clients that have authenticated, which each says with its
//! [`Seat`]. A [`Server`] is a listener that can be shut down. [`serve_http`] runs HTTP/1 on a connection. A [`Guard`] checks the head of every
//! request against a [`Policy`]: the policies differ, the code is the same. [`websocket_upgrade`] is the handshake of a WebSocket.

mod guard;
mod http;
mod listener;
mod peer;
#[cfg(windows)]
mod pipe;
mod seats;
mod self_wakes;
mod stream;
mod upgrade;

pub use guard::{Guard, GuardError, OriginPolicy, Policy, TokenHeader, single_value};
pub use http::{Answer, HttpLimits, serve_http};
pub use listener::{Closing, Listener, Server};
pub use seats::{ConnectionLimits, Seat, TooManyConnections};
pub use stream::Stream;
pub use upgrade::{WebSocketUpgrade, websocket_upgrade};

use alongside_core::Secret;

/// Generates a secret from the system's random bytes.
pub fn random_secret() -> std::io::Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(Secret::from_bytes(bytes))
}
