//! The WebSocket transport: the commands' port, on loopback.

use std::sync::Arc;

use alongside_core::Secret;
use alongside_loopback::{Closing, ConnectionLimits, Guard, OriginPolicy, Policy, Seat, Server, Stream, TokenHeader};
use futures_util::{SinkExt, StreamExt, future};
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::StatusCode;
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::connection;
use alongside_protocol::Backend;

/// The path of the endpoint.
pub const PATH: &str = "/front";
/// A proposal may have 32 MiB, and JSON escapes make it longer.
pub(crate) const MAX_MESSAGE_BYTES: usize = 96 * 1024 * 1024;
const LIMITS: ConnectionLimits = ConnectionLimits::with_authenticated(64);

/// The commands' port.
#[derive(Debug)]
pub struct Listener(alongside_loopback::Listener);

impl Listener {
    /// Listens on a loopback port that the system chooses.
    pub async fn bind() -> std::io::Result<Self> {
        alongside_loopback::Listener::bind(None).await.map(Self)
    }

    pub fn port(&self) -> u16 {
        self.0.port()
    }

    /// Serves front ends that present the token. A request that is being handled when the port closes is answered.
    pub fn serve<B: Backend>(self, backend: Arc<B>, token: Secret) -> Server {
        let policy = Policy {
            hosts: &["127.0.0.1", "localhost"],
            origin: OriginPolicy::Refuse,
            token: Some(token),
        };
        let guard = Arc::new(Guard::new(policy, self.port()));
        Server::start(self.0, LIMITS, |closing| {
            move |stream, seat| serve(stream, seat, backend.clone(), guard.clone(), closing.clone())
        })
    }
}

async fn serve<B: Backend>(stream: Stream, seat: Seat, backend: Arc<B>, guard: Arc<Guard>, closing: Closing) {
    #[expect(clippy::result_large_err, reason = "the signature is the library's")]
    let check = |request: &Request, response: Response| {
        check(request, &seat, &guard)
            .map(|()| response)
            .map_err(|(status, message)| {
                let mut refusal = ErrorResponse::new(Some(format!("{message}\n")));
                *refusal.status_mut() = status;
                refusal
            })
    };
    let handshake = tokio_tungstenite::accept_hdr_async_with_config(stream, check, Some(config()));
    let socket = tokio::select! {
        socket = handshake => socket,
        () = closing.wait() => return,
    };
    let Ok(socket) = socket else {
        return;
    };
    let (outgoing, incoming) = socket.split();
    let incoming = incoming
        .take_while(|message| future::ready(matches!(message, Ok(message) if !message.is_close())))
        .filter_map(|message| future::ready(message.ok().and_then(|message| message.into_text().ok())))
        .filter(|text| future::ready(!text.is_empty()))
        .take_until(closing.wait());
    let outgoing = outgoing
        .with(|text: String| future::ready(Ok::<_, tokio_tungstenite::tungstenite::Error>(Message::text(text))));
    connection::serve(backend, incoming, outgoing).await;
}

pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(MAX_MESSAGE_BYTES))
        .max_frame_size(Some(MAX_MESSAGE_BYTES))
}

fn check(request: &Request, seat: &Seat, guard: &Guard) -> Result<(), (StatusCode, &'static str)> {
    guard
        .admit(seat, request.headers(), request.uri(), TokenHeader::Bearer)
        .map_err(|error| (error.status(), error.message()))?;
    if request.uri().path() == PATH {
        Ok(())
    } else {
        Err((StatusCode::NOT_FOUND, "Not found; the WebSocket endpoint is /front."))
    }
}
