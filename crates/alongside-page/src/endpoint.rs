//! What is answered to whom: the login, the page, its files and the WebSocket.

use std::sync::Arc;

use hyper::body::Incoming as Body;
use hyper::header::{
    ACCEPT_ENCODING, ALLOW, CACHE_CONTROL, CONNECTION, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, ETAG, HeaderValue,
    IF_NONE_MATCH, LOCATION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, SET_COOKIE, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{HeaderMap, Method, Request, StatusCode};
use tokio::sync::{Semaphore, watch};
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

use crate::assets::{self, Asset, NONCE_PLACE};
use crate::config::Config;
use crate::guard::{Guard, Refusal, only_value};
use crate::keys::{self, Keys};
use crate::pages;
use crate::responses::{Answer, answer, page, page_policy, sentence};
use crate::socket::Conversations;

/// Where the front-end protocol is spoken.
const FRONT: &str = "/front";

/// Answers requests.
pub(crate) struct Endpoint {
    pub(crate) config: Config,
    pub(crate) guard: Guard,
    pub(crate) keys: Arc<Keys>,
    pub(crate) conversations: Conversations,
    pub(crate) places: Arc<Semaphore>,
    pub(crate) closing: watch::Receiver<bool>,
}

impl Endpoint {
    /// Ends when the port closes.
    pub(crate) async fn closing(&self) {
        // An error means that the server is gone, which is the same.
        let _ = self.closing.clone().wait_for(|closing| *closing).await;
    }

    pub(crate) fn answer(&self, request: Request<Body>) -> Answer {
        let (head, body) = request.into_parts();
        let without_body = head.method == Method::HEAD;
        let mut response = match self.check(&head) {
            Err(refusal) => refuse(refusal),
            Ok(()) if head.uri.path() == FRONT => self.open_socket(Request::from_parts(head, body)),
            Ok(()) => self.find(&head),
        };
        if without_body {
            *response.body_mut() = http_body_util::Full::default();
        }
        response
    }

    fn check(&self, head: &Parts) -> Result<(), Refusal> {
        self.guard.check_place(head)?;
        if head.uri.path() != "/login" {
            self.guard.check_login(head, &self.keys)?;
        }
        if head.uri.path() == FRONT {
            self.guard.check_socket(head)?;
        }
        Ok(())
    }

    fn find(&self, head: &Parts) -> Answer {
        if head.method != Method::GET && head.method != Method::HEAD {
            let mut response = sentence(StatusCode::METHOD_NOT_ALLOWED, pages::WRONG_METHOD);
            response
                .headers_mut()
                .insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
            return response;
        }
        match head.uri.path() {
            "/login" => self.log_in(head),
            "/" => self.page(),
            path => match path.strip_prefix('/').and_then(assets::find) {
                Some(asset) => file(&asset, &head.headers),
                None => sentence(StatusCode::NOT_FOUND, pages::NOT_FOUND),
            },
        }
    }

    /// Turns a one-time key into a session. `HEAD` asks without using the key up.
    fn log_in(&self, head: &Parts) -> Answer {
        let query = head.uri.query().unwrap_or_default();
        let key = query.split('&').find_map(|pair| pair.strip_prefix("key="));
        let Some(key) = key.filter(|_| head.method == Method::GET) else {
            return page(StatusCode::FORBIDDEN, pages::USED_LINK);
        };
        let Some(session) = self.keys.log_in(key) else {
            return page(StatusCode::FORBIDDEN, pages::USED_LINK);
        };
        let name = self.guard.cookie_name();
        let cookie = format!("{name}={}; HttpOnly; SameSite=Strict; Path=/", session.reveal());
        let mut response = sentence(StatusCode::SEE_OTHER, "");
        response.headers_mut().insert(LOCATION, HeaderValue::from_static("/"));
        if let Ok(mut cookie) = HeaderValue::from_str(&cookie) {
            cookie.set_sensitive(true);
            response.headers_mut().insert(SET_COOKIE, cookie);
        }
        response
    }

    fn page(&self) -> Answer {
        let nonce = match keys::random_token() {
            Ok(nonce) => nonce,
            Err(error) => return no_randomness(&error),
        };
        let Some(index) = assets::index() else {
            return sentence(StatusCode::NOT_FOUND, pages::NOT_FOUND);
        };
        let html = index.replace(NONCE_PLACE, nonce.reveal());
        let mut response = answer(StatusCode::OK, "text/html; charset=utf-8", html);
        if let Ok(policy) = HeaderValue::from_str(&page_policy(nonce.reveal(), self.guard.hosts())) {
            response.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
        }
        response
    }

    fn open_socket(&self, mut request: Request<Body>) -> Answer {
        let headers = request.headers();
        let upgrade = only_value(headers, &UPGRADE).is_some_and(|value| value.eq_ignore_ascii_case("websocket"));
        let version = only_value(headers, &SEC_WEBSOCKET_VERSION) == Some("13");
        let key = only_value(headers, &SEC_WEBSOCKET_KEY).map(|key| derive_accept_key(key.as_bytes()));
        let key = key.and_then(|key| HeaderValue::from_str(&key).ok());
        let (Some(key), true, true, &Method::GET) = (key, upgrade, version, request.method()) else {
            let mut response = sentence(StatusCode::UPGRADE_REQUIRED, pages::NO_UPGRADE);
            let headers = response.headers_mut();
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            return response;
        };
        let Ok(place) = self.places.clone().try_acquire_owned() else {
            return sentence(StatusCode::SERVICE_UNAVAILABLE, pages::TOO_MANY_PAGES);
        };
        let upgrading = hyper::upgrade::on(&mut request);
        self.conversations
            .start(upgrading, self.config.clone(), self.closing.clone(), place);
        let mut response = sentence(StatusCode::SWITCHING_PROTOCOLS, "");
        let headers = response.headers_mut();
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
        headers.insert(SEC_WEBSOCKET_ACCEPT, key);
        response
    }
}

fn refuse(refusal: Refusal) -> Answer {
    match refusal {
        Refusal::Host => sentence(StatusCode::FORBIDDEN, pages::WRONG_HOST),
        Refusal::Origin => sentence(StatusCode::FORBIDDEN, pages::WRONG_ORIGIN),
        Refusal::NoOrigin => sentence(StatusCode::FORBIDDEN, pages::NO_ORIGIN),
        Refusal::NotLoggedIn => page(StatusCode::UNAUTHORIZED, pages::NOT_LOGGED_IN),
    }
}

fn no_randomness(error: &std::io::Error) -> Answer {
    tracing::warn!(%error, "cannot get random bytes for a login");
    sentence(StatusCode::SERVICE_UNAVAILABLE, pages::NO_RANDOMNESS)
}

/// A file of the page, unless the browser has it already.
fn file(asset: &Asset, headers: &HeaderMap) -> Answer {
    let known = only_value(headers, &IF_NONE_MATCH).is_some_and(|tags| {
        tags.split(',')
            .any(|tag| tag.trim().trim_start_matches("W/") == asset.etag)
    });
    let gzip = asset.gzip.as_ref().filter(|_| accepts_gzip(headers));
    let mut response = match (known, gzip) {
        (true, _) => answer(StatusCode::NOT_MODIFIED, asset.content_type, ""),
        (false, Some(gzip)) => answer(StatusCode::OK, asset.content_type, gzip.clone()),
        (false, None) => answer(StatusCode::OK, asset.content_type, asset.bytes.clone()),
    };
    let headers = response.headers_mut();
    if !known && gzip.is_some() {
        headers.insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
    }
    // Kept, but asked for again each time: a new version of the program must show at once.
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
