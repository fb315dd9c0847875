//! The handshake of a WebSocket.

use hyper::body::Incoming;
use hyper::header::{
    CONNECTION, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::upgrade::OnUpgrade;
use hyper::{Method, Request};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::single_value;

/// A connection that becomes a WebSocket after a response with status 101.
pub struct WebSocketUpgrade {
    pub upgrading: OnUpgrade,
    /// For the response.
    pub headers: [(HeaderName, HeaderValue); 3],
}

/// `None` if the request does not ask for a WebSocket.
pub fn websocket_upgrade(request: &mut Request<Incoming>) -> Option<WebSocketUpgrade> {
    let headers = request.headers();
    let is_upgrade = single_value(headers, &UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
    let version = single_value(headers, &SEC_WEBSOCKET_VERSION) == Some("13");
    if !is_upgrade || !version || request.method() != Method::GET {
        return None;
    }
    let key = derive_accept_key(single_value(headers, &SEC_WEBSOCKET_KEY)?.as_bytes());
    let headers = [
        (CONNECTION, HeaderValue::from_static("upgrade")),
        (UPGRADE, HeaderValue::from_static("websocket")),
        (SEC_WEBSOCKET_ACCEPT, HeaderValue::from_str(&key).ok()?),
    ];
    Some(WebSocketUpgrade {
        upgrading: hyper::upgrade::on(request),
        headers,
    })
}
