//! The transport for commands: a WebSocket on its own loopback port.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use alongside_core::Token;
use futures_util::{SinkExt, StreamExt, future};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio_tungstenite::tungstenite::Message;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::{HeaderMap, StatusCode, header};
use tokio_tungstenite::tungstenite::protocol::WebSocketConfig;

use crate::connection;
use alongside_protocol::Backend;

/// Where the protocol is spoken.
pub const PATH: &str = "/front";
/// A proposal may have 32 MiB and grows when it is written as JSON.
pub(crate) const LARGEST_MESSAGE: usize = 96 * 1024 * 1024;
const MOST_CONNECTIONS: usize = 64;
const HANDSHAKE_TIME: Duration = Duration::from_secs(10);

/// The people's port.
#[derive(Debug)]
pub struct Listener {
    listener: TcpListener,
    port: u16,
}

impl Listener {
    /// Listens on a loopback port that the system chooses.
    pub async fn bind() -> std::io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let port = listener.local_addr()?.port();
        Ok(Self { listener, port })
    }

    /// The port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Serves front ends that know the token, until the returned future is dropped.
    pub async fn serve<B: Backend>(self, backend: Arc<B>, token: Token) {
        let token = Arc::new(token);
        let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
        // Conversations end with the listener.
        let mut conversations = JoinSet::new();
        loop {
            while conversations.try_join_next().is_some() {}
            let Ok(place) = places.clone().acquire_owned().await else {
                return;
            };
            let stream = match self.listener.accept().await {
                Ok((stream, _)) => stream,
                Err(error) => {
                    // Out of file descriptors, most likely: wait for some to come back instead of spinning.
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            };
            let (backend, token, port) = (backend.clone(), token.clone(), self.port);
            conversations.spawn(async move {
                converse(stream, backend, &token, port).await;
                drop(place);
            });
        }
    }
}

async fn converse<B: Backend>(stream: TcpStream, backend: Arc<B>, token: &Token, port: u16) {
    // Small messages must not wait for the acknowledgement of the one before.
    let _ = stream.set_nodelay(true);
    #[expect(clippy::result_large_err, reason = "the signature is the library's")]
    let check = |request: &Request, response: Response| {
        check(request, token, port)
            .map(|()| response)
            .map_err(|(status, sentence)| {
                let mut refusal = ErrorResponse::new(Some(format!("{sentence}\n")));
                *refusal.status_mut() = status;
                refusal
            })
    };
    let handshake = tokio_tungstenite::accept_hdr_async_with_config(stream, check, Some(config()));
    let Ok(Ok(socket)) = tokio::time::timeout(HANDSHAKE_TIME, handshake).await else {
        return;
    };
    let (outgoing, incoming) = socket.split();
    let incoming = incoming
        .take_while(|message| future::ready(matches!(message, Ok(message) if !message.is_close())))
        .filter_map(|message| future::ready(message.ok().and_then(|message| message.into_text().ok())))
        .filter(|text| future::ready(!text.is_empty()));
    let outgoing = outgoing
        .with(|text: String| future::ready(Ok::<_, tokio_tungstenite::tungstenite::Error>(Message::text(text))));
    connection::serve(backend, incoming, outgoing).await;
}

pub(crate) fn config() -> WebSocketConfig {
    WebSocketConfig::default()
        .max_message_size(Some(LARGEST_MESSAGE))
        .max_frame_size(Some(LARGEST_MESSAGE))
}

/// A browser sends an Origin, and no page may speak here; a name that is not ours is a rebinding attack.
fn check(request: &Request, token: &Token, port: u16) -> Result<(), (StatusCode, &'static str)> {
    let text = |headers: &HeaderMap, name| {
        headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .map(str::to_owned)
    };
    let headers = request.headers();
    if headers.contains_key(header::ORIGIN) {
        return Err((StatusCode::FORBIDDEN, "web pages cannot use this port"));
    }
    let host = text(headers, header::HOST).unwrap_or_default();
    if ![format!("127.0.0.1:{port}"), format!("localhost:{port}")].contains(&host) {
        return Err((StatusCode::FORBIDDEN, "the Host header does not name this machine"));
    }
    let authorisation = text(headers, header::AUTHORIZATION).unwrap_or_default();
    if !authorisation
        .strip_prefix("Bearer ")
        .is_some_and(|presented| token.matches(presented))
    {
        return Err((StatusCode::UNAUTHORIZED, "the token is missing or wrong"));
    }
    if request.uri().path() != PATH {
        return Err((StatusCode::NOT_FOUND, "not found; the WebSocket endpoint is /front"));
    }
    Ok(())
}
