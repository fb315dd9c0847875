//! What every answer has in common: the headers that bound what a browser may do with it.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

/// An answer with its whole body.
pub(crate) type Answer = Response<Full<Bytes>>;

/// The same for every answer.
const ALWAYS: [(&str, &str); 7] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("vary", "accept-encoding, cookie"),
];

/// For everything but the page itself: nothing may be loaded, and nobody may frame it.
const NOTHING_ALLOWED: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// What the page may do: load what comes from here and speak with this port.
///
/// The nonce is for the styles that the editor component makes; there is no inline script at all.
pub(crate) fn page_policy(nonce: &str, hosts: &[String]) -> String {
    // Not every browser lets 'self' stand for the WebSocket of the same port.
    let sockets = hosts.iter().fold(String::new(), |known, host| known + " ws://" + host);
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'{sockets}; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// An answer with the headers that every answer has; never kept by the browser unless the caller says so.
pub(crate) fn answer(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Answer {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in ALWAYS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(NOTHING_ALLOWED));
    response
}

/// A plain page.
pub(crate) fn page(status: StatusCode, html: &'static str) -> Answer {
    answer(status, "text/html; charset=utf-8", html)
}

/// A sentence.
pub(crate) fn sentence(status: StatusCode, text: &'static str) -> Answer {
    answer(status, "text/plain; charset=utf-8", text)
}
