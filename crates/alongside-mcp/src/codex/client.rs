//! A client of a router: another companion, or the Codex extension of an editor.

use std::io;
use std::path::PathBuf;

use alongside_wire::length_prefixed::{read_frame, write_frame};
use serde_json::Value;
use tokio::net::UnixStream;
use tokio::time::timeout;

use super::message::{self, INITIALIZE, kind};
use super::{MAX_FRAME_BYTES, PEER_TIMEOUT, Provider, Role};

/// The id of our only request.
const INITIALIZE_ID: &str = "alongside-initialize";

/// Registers with a router and answers what it forwards. `Ok` when the router has closed the connection; an error if it did not
/// register us.
pub(super) async fn serve(provider: &Provider, mut stream: UnixStream, path: PathBuf) -> io::Result<()> {
    let registering = register(&mut stream);
    let client_id = timeout(PEER_TIMEOUT, registering).await??;
    tracing::debug!(path = %path.display(), "registered with Codex's router");
    provider.set_role(Role::Client(path));
    if let Err(error) = answer(provider, &mut stream, &client_id).await {
        tracing::debug!(%error, "lost Codex's router");
    }
    Ok(())
}

async fn register(stream: &mut UnixStream) -> io::Result<String> {
    send(stream, &message::initialize(INITIALIZE_ID)).await?;
    loop {
        let Some(message) = receive(stream).await? else {
            return Err(io::ErrorKind::UnexpectedEof.into());
        };
        if message["type"] == kind::RESPONSE && message["requestId"] == INITIALIZE_ID {
            let client_id = message["result"]["clientId"].as_str().map(str::to_owned);
            return client_id.ok_or_else(|| io::Error::other(format!("refused: {}", message["error"])));
        }
    }
}

async fn answer(provider: &Provider, stream: &mut UnixStream, client_id: &str) -> io::Result<()> {
    while let Some(message) = receive(stream).await? {
        let response = match message::text(&message, "type") {
            kind::DISCOVERY_REQUEST => message::discovery_response(&message, provider.can_handle(&message["request"])),
            kind::REQUEST if message["method"] != INITIALIZE => provider.respond(&message, client_id),
            _ => continue,
        };
        send(stream, &response).await?;
    }
    Ok(())
}

async fn receive(stream: &mut UnixStream) -> io::Result<Option<Value>> {
    let Some(frame) = read_frame(stream, MAX_FRAME_BYTES).await? else {
        return Ok(None);
    };
    let message = message::parse(&frame).ok_or(io::ErrorKind::InvalidData)?;
    Ok(Some(message))
}

/// A router that does not read is as good as gone.
async fn send(stream: &mut UnixStream, message: &Value) -> io::Result<()> {
    timeout(PEER_TIMEOUT, write_frame(stream, &message.to_string())).await?
}
