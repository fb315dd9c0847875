//! Which requests are let in.
//!
//! A web page in a browser can reach a loopback port. It cannot hide its `Origin`, and a page that points its own name at
//! 127.0.0.1 (DNS rebinding) cannot hide that name in `Host`. Programs prove with a token that they may read the user's
//! files. Each of these headers must be unambiguous: a request that repeats one is refused.

use alongside_core::Secret;
use hyper::header::{AUTHORIZATION, HOST, HeaderName, ORIGIN};
use hyper::{HeaderMap, StatusCode, Uri};

use crate::{Seat, TooManyConnections};

/// Who may use a port.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Names of this machine that clients may use in `Host`; they must add the port.
    pub hosts: &'static [&'static str],
    pub origin: OriginPolicy,
    /// The bearer token that every request must carry; `None` if the listener authenticates in another way.
    pub token: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OriginPolicy {
    /// No web page may use the port: any `Origin` is refused.
    Refuse,
    /// The port serves a page: an `Origin` must be `http://` and the requested `Host`.
    SameOrigin,
}

/// Where a request carries the token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenHeader {
    /// `Authorization: Bearer <token>`
    Bearer,
    /// `Authorization: Nonce <token>`
    Nonce,
    /// A header of its own, which has the token and nothing else.
    Own(&'static str),
}

/// Checks the head of each request before anything else is read.
#[derive(Debug)]
pub struct Guard {
    hosts: Vec<String>,
    origin: OriginPolicy,
    token: Option<Secret>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuardError {
    Origin,
    MissingOrigin,
    Host,
    Token,
    TooManyConnections,
}

impl From<TooManyConnections> for GuardError {
    fn from(_: TooManyConnections) -> Self {
        Self::TooManyConnections
    }
}

impl GuardError {
    pub fn status(self) -> StatusCode {
        match self {
            Self::Origin | Self::MissingOrigin | Self::Host => StatusCode::FORBIDDEN,
            Self::Token => StatusCode::UNAUTHORIZED,
            Self::TooManyConnections => StatusCode::SERVICE_UNAVAILABLE,
        }
    }

    pub fn message(self) -> &'static str {
        match self {
            Self::Origin => "Requests from this Origin are not allowed.",
            Self::MissingOrigin => "The Origin header is missing.",
            Self::Host => "The Host header does not name this port on this machine.",
            Self::Token => "The bearer token is missing or wrong.",
            Self::TooManyConnections => "Too many connections; close one and try again.",
        }
    }
}

impl Guard {
    pub fn new(policy: Policy, port: u16) -> Self {
        Self {
            hosts: policy.hosts.iter().map(|host| format!("{host}:{port}")).collect(),
            origin: policy.origin,
            token: policy.token,
        }
    }

    /// For a socket, which has no port: clients name the machine only.
    pub fn for_socket(policy: Policy) -> Self {
        Self {
            hosts: policy.hosts.iter().map(|host| (*host).to_owned()).collect(),
            origin: policy.origin,
            token: policy.token,
        }
    }

    /// The values of `Host` that are let in.
    pub fn hosts(&self) -> &[String] {
        &self.hosts
    }

    /// For ports with a token: a client that presents it has authenticated.
    pub fn admit(
        &self,
        seat: &Seat,
        headers: &HeaderMap,
        target: &Uri,
        token_header: TokenHeader,
    ) -> Result<(), GuardError> {
        self.check_head(headers, target)?;
        let presented = match token_header {
            TokenHeader::Bearer => authorization(headers, "bearer"),
            TokenHeader::Nonce => authorization(headers, "nonce"),
            TokenHeader::Own(name) => single_value(headers, &HeaderName::from_static(name)),
        };
        let is_admitted = self
            .token
            .as_ref()
            .zip(presented)
            .is_some_and(|(token, presented)| token.matches(presented));
        if !is_admitted {
            return Err(GuardError::Token);
        }
        Ok(seat.authenticate()?)
    }

    pub fn check(&self, headers: &HeaderMap, target: &Uri) -> Result<(), GuardError> {
        self.check_head(headers, target)?;
        let bears = |token: &Secret| authorization(headers, "bearer").is_some_and(|presented| token.matches(presented));
        if !self.token.as_ref().is_none_or(bears) {
            return Err(GuardError::Token);
        }
        Ok(())
    }

    fn check_head(&self, headers: &HeaderMap, target: &Uri) -> Result<(), GuardError> {
        if headers.contains_key(ORIGIN) && !self.is_same_origin(headers) {
            return Err(GuardError::Origin);
        }
        let host = single_value(headers, &HOST).is_some_and(|host| self.is_host(host));
        let authority = target
            .authority()
            .is_none_or(|authority| self.is_host(authority.as_str()));
        if !host || !authority {
            return Err(GuardError::Host);
        }
        Ok(())
    }

    /// For `WebSocket`s that only the port's own page opens: browsers always send an `Origin` with them.
    pub fn require_origin(&self, headers: &HeaderMap) -> Result<(), GuardError> {
        if self.is_same_origin(headers) {
            Ok(())
        } else {
            Err(GuardError::MissingOrigin)
        }
    }

    fn is_host(&self, host: &str) -> bool {
        self.hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
    }

    /// The page at 127.0.0.1 and the page at localhost are different origins.
    fn is_same_origin(&self, headers: &HeaderMap) -> bool {
        let origin = single_value(headers, &ORIGIN).and_then(|origin| origin.strip_prefix("http://"));
        let same_host = origin
            .zip(single_value(headers, &HOST))
            .is_some_and(|(origin, host)| origin.eq_ignore_ascii_case(host) && self.is_host(origin));
        self.origin == OriginPolicy::SameOrigin && same_host
    }
}

fn authorization<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let (scheme, presented) = single_value(headers, &AUTHORIZATION)?.split_once(' ')?;
    scheme.eq_ignore_ascii_case(wanted).then(|| presented.trim())
}

/// The value of a header that must occur exactly once.
pub fn single_value<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let value = values.next()?.to_str().ok()?;
    values.next().is_none().then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PROGRAM: Policy = Policy {
        hosts: &["127.0.0.1", "localhost"],
        origin: OriginPolicy::Refuse,
        token: None,
    };

    fn check(policy: Policy, target: &str, headers: &[(&'static str, &str)]) -> Result<(), GuardError> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        Guard::new(policy, 80).check(&map, &target.parse().unwrap())
    }

    #[test]
    fn only_listed_hosts_with_the_port_are_let_in() {
        let host = |host| check(PROGRAM, "/", &[("host", host)]);
        assert_eq!(host("127.0.0.1:80"), Ok(()));
        assert_eq!(host("LocalHost:80"), Ok(()));
        for refused in ["127.0.0.1", "127.0.0.1:81", "evil.example:80", "localhost.:80", ""] {
            assert_eq!(host(refused), Err(GuardError::Host), "{refused}");
        }
        assert_eq!(check(PROGRAM, "/", &[]), Err(GuardError::Host));
    }

    #[test]
    fn absolute_target_must_name_a_listed_host() {
        let headers = [("host", "localhost:80")];
        assert_eq!(check(PROGRAM, "http://localhost:80/", &headers), Ok(()));
        assert_eq!(
            check(PROGRAM, "http://evil.example:80/", &headers),
            Err(GuardError::Host)
        );
    }

    #[test]
    fn repeated_headers_are_refused() {
        let policy = || Policy {
            origin: OriginPolicy::SameOrigin,
            token: Secret::new("token"),
            ..PROGRAM
        };
        let headers = [
            ("host", "localhost:80"),
            ("origin", "http://localhost:80"),
            ("authorization", "Bearer token"),
        ];
        assert_eq!(check(policy(), "/", &headers), Ok(()));
        let errors = [GuardError::Origin, GuardError::Origin, GuardError::Token];
        for (repeated, error) in headers.iter().zip(errors) {
            let headers = [&headers[..], &[*repeated]].concat();
            assert_eq!(check(policy(), "/", &headers), Err(error), "{repeated:?}");
        }
        let hosts = [("host", "localhost:80"), ("host", "localhost:80")];
        assert_eq!(check(PROGRAM, "/", &hosts), Err(GuardError::Host));
    }

    #[test]
    fn origin_follows_the_policy() {
        let page = Policy {
            origin: OriginPolicy::SameOrigin,
            ..PROGRAM
        };
        let origin =
            |policy: &Policy, origin| check(policy.clone(), "/", &[("host", "localhost:80"), ("origin", origin)]);
        assert_eq!(origin(&page, "http://localhost:80"), Ok(()));
        for refused in [
            "http://127.0.0.1:80",
            "https://localhost:80",
            "http://evil.example",
            "null",
            "",
        ] {
            assert_eq!(origin(&page, refused), Err(GuardError::Origin), "{refused}");
        }
        assert_eq!(origin(&PROGRAM, "http://localhost:80"), Err(GuardError::Origin));
    }

    #[test]
    fn token_must_be_a_bearer() {
        let policy = Policy {
            token: Secret::new("token"),
            ..PROGRAM
        };
        let bearer = |value| {
            check(
                policy.clone(),
                "/",
                &[("host", "localhost:80"), ("authorization", value)],
            )
        };
        assert_eq!(bearer("Bearer token"), Ok(()));
        assert_eq!(bearer("bearer token"), Ok(()));
        for refused in ["", "Bearer", "Bearer ", "Bearer toke", "Basic token", "token"] {
            assert_eq!(bearer(refused), Err(GuardError::Token), "{refused}");
        }
        assert_eq!(check(policy, "/", &[("host", "localhost:80")]), Err(GuardError::Token));
    }
}
