//! Responses: the page, its files and the WebSocket handshake. None of them has a secret, so no login is needed for them.

use std::sync::Arc;

use alongside_loopback::{Closing, Guard, GuardError, random_secret, single_value, websocket_upgrade};
use hyper::body::Incoming as Body;
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HOST, HeaderValue,
    IF_NONE_MATCH, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode};

use crate::assets::{self, Asset, NONCE_PLACEHOLDER};
use crate::config::Config;
use crate::login::Logins;
use crate::pages;
use crate::responses::{PageResponse, html, page_policy, response, text};
use crate::socket::Upgrade;

/// The WebSocket endpoint of the front-end protocol.
const FRONT: &str = "/front";

/// Responds to requests; shared by all connections.
pub(crate) struct Endpoint {
    pub(crate) config: Config,
    pub(crate) guard: Guard,
    pub(crate) logins: Arc<Logins>,
    pub(crate) closing: Closing,
}

impl Endpoint {
    /// `upgrade` is set if the connection becomes a WebSocket after the response.
    pub(crate) fn respond(&self, request: Request<Body>, upgrade: &mut Option<Upgrade>) -> PageResponse {
        let (head, body) = request.into_parts();
        let is_head = head.method == Method::HEAD;
        let mut response = match self.check(&head) {
            Err(error) => text(error.status(), format!("{}\n", error.message())),
            Ok(()) if head.uri.path() == FRONT => open_socket(Request::from_parts(head, body), upgrade),
            Ok(()) => self.find(&head),
        };
        if is_head {
            *response.body_mut() = http_body_util::Full::default();
        }
        response
    }

    fn check(&self, head: &Parts) -> Result<(), GuardError> {
        self.guard.check(&head.headers, &head.uri)?;
        if head.uri.path() == FRONT {
            self.guard.require_origin(&head.headers)?;
        }
        Ok(())
    }

    fn find(&self, head: &Parts) -> PageResponse {
        if head.method != Method::GET && head.method != Method::HEAD {
            let mut response = text(StatusCode::METHOD_NOT_ALLOWED, pages::WRONG_METHOD);
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match head.uri.path() {
            "/" => self.page(),
            path => match path.strip_prefix('/').and_then(assets::find) {
                Some(asset) => file(&asset, &head.headers),
                None => text(StatusCode::NOT_FOUND, pages::NOT_FOUND),
            },
        }
    }

    fn page(&self) -> PageResponse {
        let nonce = match random_secret() {
            Ok(nonce) => nonce,
            Err(error) => {
                tracing::warn!(%error, "cannot get random bytes for the page");
                return text(StatusCode::SERVICE_UNAVAILABLE, pages::NO_RANDOMNESS);
            }
        };
        let Some(index) = assets::index() else {
            return text(StatusCode::NOT_FOUND, pages::NOT_FOUND);
        };
        let mut response = html(StatusCode::OK, index.replace(NONCE_PLACEHOLDER, nonce.reveal()));
        if let Ok(policy) = HeaderValue::from_str(&page_policy(nonce.reveal(), self.guard.hosts())) {
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        }
        response
    }
}

fn open_socket(mut request: Request<Body>, upgrade: &mut Option<Upgrade>) -> PageResponse {
    let Some(handshake) = websocket_upgrade(&mut request) else {
        let mut response = text(StatusCode::UPGRADE_REQUIRED, pages::NO_UPGRADE);
        let headers = response.headers_mut();
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
        return response;
    };
    let host = single_value(request.headers(), &HOST).unwrap_or_default().to_owned();
    *upgrade = Some(Upgrade {
        upgrading: handshake.upgrading,
        host,
    });
    let mut response = text(StatusCode::SWITCHING_PROTOCOLS, "");
    response.headers_mut().extend(handshake.headers);
    response
}

/// A file of the page, unless the browser has it already.
fn file(asset: &Asset, headers: &HeaderMap) -> PageResponse {
    let known = single_value(headers, &IF_NONE_MATCH).is_some_and(|tags| {
        tags.split(',')
            .any(|tag| tag.trim().trim_start_matches("W/") == asset.etag)
    });
    let gzip = asset.gzip.as_ref().filter(|_| accepts_gzip(headers));
    let mut response = match (known, gzip) {
        (true, _) => response(StatusCode::NOT_MODIFIED, asset.content_type, ""),
        (false, Some(gzip)) => response(StatusCode::OK, asset.content_type, gzip.clone()),
        (false, None) => response(StatusCode::OK, asset.content_type, asset.bytes.clone()),
    };
    let headers = response.headers_mut();
    if !known && gzip.is_some() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    // Cached, but revalidated each time: a new version of the program must show immediately.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("private, no-cache"));
    if let Ok(etag) = HeaderValue::from_str(&asset.etag) {
        headers.insert(ETAG, etag);
    }
    response
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter();
    accepted
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|coding| {
            let mut parts = coding.split(';').map(str::trim);
            let name = parts.next().unwrap_or_default();
            let refused = parts.any(|part| matches!(part, "q=0" | "q=0.0" | "q=0.00" | "q=0.000"));
            name.eq_ignore_ascii_case("gzip") && !refused
        })
}
