//! The headers that all responses share: they limit what a browser may do.

use bytes::Bytes;
use http_body_util::Full;
use hyper::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};

pub(crate) type PageResponse = Response<Full<Bytes>>;

const COMMON_HEADERS: [(&str, &str); 7] = [
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "no-referrer"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", "camera=(), geolocation=(), microphone=()"),
    ("vary", "accept-encoding"),
];

/// For everything except the page itself: nothing may be loaded, and no page may frame it.
const DENY_ALL_POLICY: &str = "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// The page may load its own files and connect to this port.
///
/// The nonce is for the styles that the editor component creates; inline scripts are not allowed at all.
pub(crate) fn page_policy(nonce: &str, hosts: &[String]) -> String {
    // Not every browser matches a WebSocket on the same port with 'self'.
    let sockets = hosts.iter().fold(String::new(), |known, host| known + " ws://" + host);
    format!(
        "default-src 'none'; script-src 'self'; style-src 'self' 'nonce-{nonce}'; connect-src 'self'{sockets}; \
         img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    )
}

/// Not cached, unless the caller changes that.
pub(crate) fn response(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> PageResponse {
    let mut response = Response::new(Full::new(body.into()));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    for (name, value) in COMMON_HEADERS {
        headers.insert(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(DENY_ALL_POLICY));
    response
}

pub(crate) fn html(status: StatusCode, html: impl Into<Bytes>) -> PageResponse {
    response(status, "text/html; charset=utf-8", html)
}

pub(crate) fn text(status: StatusCode, text: impl Into<Bytes>) -> PageResponse {
    response(status, "text/plain; charset=utf-8", text)
}
