//! Who may speak: agents on this machine that know the token, and never a web page.
//!
//! A page in a browser can reach a loopback port. It cannot hide its `Origin`, so any origin is refused; and a page that
//! points its own name at 127.0.0.1 cannot hide that name, so a foreign `Host` is refused too.

use alongside_core::Secret;
use hyper::header::{AUTHORIZATION, HOST, ORIGIN};
use hyper::http::request::Parts;
use hyper::{HeaderMap, StatusCode};

/// Checks the head of every request, before anything else of it is looked at.
pub(crate) struct Guard {
    hosts: [String; 4],
    token: Secret,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    Origin,
    Host,
    Bearer,
}

impl Refusal {
    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::Origin | Self::Host => StatusCode::FORBIDDEN,
            Self::Bearer => StatusCode::UNAUTHORIZED,
        }
    }

    pub(crate) fn sentence(self) -> &'static str {
        match self {
            Self::Origin => "This port is for agents; requests with an Origin header are refused.",
            Self::Host => "The Host header does not name this port on this machine.",
            Self::Bearer => "The bearer token is missing or wrong; it is in the companion's discovery file.",
        }
    }
}

impl Guard {
    pub(crate) fn new(port: u16, token: Secret) -> Self {
        // The last is this machine as seen from inside of a container.
        let hosts = ["127.0.0.1", "localhost", "[::1]", "host.docker.internal"].map(|host| format!("{host}:{port}"));
        Self { hosts, token }
    }

    /// Lets a request pass or says why not.
    pub(crate) fn check(&self, head: &Parts) -> Result<(), Refusal> {
        if head.headers.contains_key(ORIGIN) {
            return Err(Refusal::Origin);
        }
        if !self.host_is_ours(head) {
            return Err(Refusal::Host);
        }
        if !self.bearer_is_ours(&head.headers) {
            return Err(Refusal::Bearer);
        }
        Ok(())
    }

    fn host_is_ours(&self, head: &Parts) -> bool {
        let ours = |host: &str| self.hosts.iter().any(|ours| ours.eq_ignore_ascii_case(host));
        let header = only_value(&head.headers, &HOST).is_some_and(ours);
        let target = head.uri.authority().is_none_or(|authority| ours(authority.as_str()));
        header && target
    }

    fn bearer_is_ours(&self, headers: &HeaderMap) -> bool {
        let presented = only_value(headers, &AUTHORIZATION).and_then(|value| value.split_once(' '));
        presented
            .is_some_and(|(scheme, token)| scheme.eq_ignore_ascii_case("bearer") && self.token.matches(token.trim()))
    }
}

/// The value of a header that must be there exactly once.
fn only_value<'a>(headers: &'a HeaderMap, name: &hyper::header::HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}
