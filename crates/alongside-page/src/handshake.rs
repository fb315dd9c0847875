//! The first messages on a page's WebSocket, by which both sides authenticate. The front-end protocol follows.
//!
//! ```text
//! companion → {"nonce": N}                    64 hexadecimal digits
//! page      → {"nonce": M, "proof": P}        the page knows the session's secret, or a link's key
//! companion → {"proof": Q, "session": S}      so does the companion; S only for a key
//! ```

use std::fmt;

use alongside_core::Secret;
use alongside_loopback::{TooManyConnections, random_secret};
use futures_util::{Sink, SinkExt, Stream, StreamExt};
use serde::{Deserialize, Serialize};
use tokio_tungstenite::tungstenite::Message;

use crate::login::{Logins, Verified};
use crate::proof::Exchange;

#[derive(Serialize)]
struct Challenge<'a> {
    nonce: &'a str,
}

#[derive(Deserialize)]
struct Response {
    nonce: Secret,
    proof: Secret,
}

#[derive(Serialize)]
struct Welcome<'a> {
    proof: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
}

/// Why a page is not let in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It knows neither the session's secret nor the key of an unused link.
    NotLoggedIn,
    /// It disconnected, or sent something else.
    NoLogin,
    TooManyPages,
    /// The system has no random bytes.
    NoRandomness,
}

/// Authenticates a page. `admit` is called before the page learns that it succeeded.
pub(crate) async fn authenticate<S, E>(
    socket: &mut S,
    host: &str,
    logins: &Logins,
    admit: impl FnOnce() -> Result<(), TooManyConnections>,
) -> Result<(), Refusal>
where
    S: Stream<Item = Result<Message, E>> + Sink<Message> + Unpin,
    E: fmt::Display,
{
    let nonce = random_secret().map_err(|error| {
        tracing::warn!(%error, "cannot get random bytes for a login");
        Refusal::NoRandomness
    })?;
    send(socket, &Challenge { nonce: nonce.reveal() }).await?;
    let response = loop {
        match socket.next().await {
            Some(Ok(Message::Text(text))) => break text,
            Some(Ok(Message::Ping(_) | Message::Pong(_))) => {}
            _ => return Err(Refusal::NoLogin),
        }
    };
    let Response {
        nonce: page_nonce,
        proof,
    } = serde_json::from_str(response.as_str()).map_err(|_| Refusal::NoLogin)?;
    let exchange = Exchange {
        host,
        companion_nonce: &nonce,
        page_nonce: &page_nonce,
    };
    let Verified { proof, session } = logins.verify(&exchange, proof.reveal()).ok_or(Refusal::NotLoggedIn)?;
    admit().map_err(|TooManyConnections| Refusal::TooManyPages)?;
    let welcome = Welcome {
        proof: proof.reveal(),
        session: session.as_ref().map(Secret::reveal),
    };
    send(socket, &welcome).await
}

async fn send<S: Sink<Message> + Unpin>(socket: &mut S, message: &impl Serialize) -> Result<(), Refusal> {
    let text = serde_json::to_string(message).map_err(|_| Refusal::NoLogin)?;
    socket.send(Message::text(text)).await.map_err(|_| Refusal::NoLogin)
}
