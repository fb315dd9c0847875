//! Who may speak: a browser on this machine that shows our own page and is logged in.
//!
//! A foreign page in the same browser can reach a loopback port. It cannot hide its `Origin`, and a page that points its
//! own name at 127.0.0.1 cannot hide that name in `Host`. The cookie is `SameSite=Strict`, so what a foreign page asks
//! for comes without it.

use hyper::HeaderMap;
use hyper::header::{COOKIE, HOST, HeaderName, ORIGIN};
use hyper::http::request::Parts;

use crate::keys::Keys;

/// Checks the head of every request, before anything else of it is looked at.
pub(crate) struct Guard {
    hosts: [String; 2],
    cookie_name: String,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Host,
    Origin,
    NoOrigin,
    NotLoggedIn,
}

impl Guard {
    pub(crate) fn new(port: u16) -> Self {
        Self {
            hosts: ["127.0.0.1", "localhost"].map(|host| format!("{host}:{port}")),
            // Cookies ignore ports: two companions must not log each other's pages out.
            cookie_name: format!("alongside-{port}"),
        }
    }

    /// The name of the session cookie.
    pub(crate) fn cookie_name(&self) -> &str {
        &self.cookie_name
    }

    /// The names under which this port may be asked for.
    pub(crate) fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// Whether the request came for us, and from nowhere else than our own page.
    pub(crate) fn check_place(&self, head: &Parts) -> Result<(), Refusal> {
        let ours = |host: &str| self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
        let host = only_value(&head.headers, &HOST).is_some_and(ours);
        let target = head.uri.authority().is_none_or(|authority| ours(authority.as_str()));
        if !host || !target {
            return Err(Refusal::Host);
        }
        if head.headers.contains_key(ORIGIN) && !self.origin_is_ours(&head.headers) {
            return Err(Refusal::Origin);
        }
        Ok(())
    }

    /// Whether a browser says that our own page opens this WebSocket.
    pub(crate) fn check_socket(&self, head: &Parts) -> Result<(), Refusal> {
        if self.origin_is_ours(&head.headers) {
            Ok(())
        } else {
            Err(Refusal::NoOrigin)
        }
    }

    /// Whether the browser is logged in.
    pub(crate) fn check_login(&self, head: &Parts, keys: &Keys) -> Result<(), Refusal> {
        let cookies = head.headers.get_all(COOKIE);
        let mut pairs = cookies
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='));
        // Several of one name can only come from somebody who tries.
        let mut ours = pairs.by_ref().filter(|(name, _)| *name == self.cookie_name);
        match (ours.next(), ours.next()) {
            (Some((_, value)), None) if keys.knows(value) => Ok(()),
            _ => Err(Refusal::NotLoggedIn),
        }
    }

    /// The page at 127.0.0.1 is not the page at localhost: an origin must be the very host that was asked.
    fn origin_is_ours(&self, headers: &HeaderMap) -> bool {
        let origin = only_value(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        let host = only_value(headers, &HOST);
        match (origin, host) {
            (Some(origin), Some(host)) => {
                origin.eq_ignore_ascii_case(host) && self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(origin))
            }
            _ => false,
        }
    }
}

/// The value of a header that must be there exactly once.
pub(crate) fn only_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
