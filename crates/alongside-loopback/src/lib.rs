//! What the agents' port, the commands' port and the page have in common: where they listen, how much they accept, and
//! which clients they let in.
//!
//! A [`Listener`] binds to 127.0.0.1, limits the number of connections and serves each in its own task; a [`Server`] is a
//! listener that can be shut down. [`serve_http`] runs HTTP/1 on a connection. A [`Guard`] checks the head of every
//! request against a [`Policy`]: the policies differ, the code is the same.

mod guard;
mod http;
mod listener;

pub use guard::{Guard, GuardError, OriginPolicy, Policy, single_value};
pub use http::{HttpLimits, serve_http};
pub use listener::{Closing, Listener, Server};

use alongside_core::Secret;

/// Generates a secret from the system's random bytes.
pub fn random_secret() -> std::io::Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(std::io::Error::other)?;
    Ok(Secret::from_bytes(bytes))
}
