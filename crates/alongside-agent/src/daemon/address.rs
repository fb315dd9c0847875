//! Where a daemon may be: on this machine, and nowhere else.
//!
//! A daemon reads files and runs commands for its clients, and the token travels in a header. So there is one rule, and one function
//! that applies it: [`DaemonAddress::parse`].

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::str::FromStr;

/// The default port of `qwen serve`.
pub const DEFAULT_PORT: u16 = 4170;

/// A valid address: http or https, on a loopback interface, without credentials.
#[derive(Clone, PartialEq, Eq)]
pub struct DaemonAddress {
    secure: bool,
    host: Host,
    port: u16,
    /// Precedes every path. Has no slash at its end.
    prefix: String,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Host {
    Localhost,
    Address(IpAddr),
}

/// Why an address is refused. The messages quote the host at most: anything else in the address may be a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    #[error("the daemon URL must use http or https")]
    Scheme,
    #[error("the daemon URL must not contain credentials: set the token in its own setting")]
    Credentials,
    #[error("the daemon URL must use a loopback address, not {host}")]
    NotLoopback {
        /// As written.
        host: String,
    },
    #[error("the daemon URL's port must be from 1 to 65535")]
    Port,
    /// Also for characters that a URL cannot contain.
    #[error("the daemon URL must not have a query or fragment")]
    Extra,
}

impl DaemonAddress {
    /// Checks and normalizes an address.
    ///
    /// ```
    /// use alongside_agent::daemon::DaemonAddress;
    ///
    /// let address = DaemonAddress::parse("http://127.0.0.1:4170").unwrap();
    /// assert_eq!(address.to_string(), "http://127.0.0.1:4170/");
    /// let refused = DaemonAddress::parse("http://example.com").unwrap_err();
    /// assert!(refused.to_string().ends_with("must use a loopback address, not example.com"));
    /// ```
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let (scheme, rest) = text.trim().split_once("://").ok_or(AddressError::Scheme)?;
        let secure = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            _ => return Err(AddressError::Scheme),
        };
        // Some parsers treat a backslash as a slash, and would find another host here.
        let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        if authority.contains('@') {
            return Err(AddressError::Credentials);
        }
        let prefix = path.trim_end_matches('/');
        let plain = |character: char| character.is_ascii_graphic() && !matches!(character, '?' | '#' | '\\');
        if !prefix.chars().all(plain) {
            return Err(AddressError::Extra);
        }
        let (host, port) = split_port(authority)?;
        let port = port.unwrap_or(if secure { 443 } else { 80 });
        let host = Host::parse(host).ok_or_else(|| AddressError::NotLoopback {
            host: host
                .chars()
                .filter(|character| !character.is_control())
                .take(100)
                .collect(),
        })?;
        Ok(Self {
            secure,
            host,
            port,
            prefix: prefix.to_owned(),
        })
    }

    /// Whether this is https.
    pub fn is_secure(&self) -> bool {
        self.secure
    }

    pub fn port(&self) -> u16 {
        self.port
    }

    /// The host for a resolver: without brackets.
    pub(crate) fn host(&self) -> String {
        match self.host {
            Host::Localhost => "localhost".to_owned(),
            Host::Address(address) => address.to_string(),
        }
    }

    /// For the `Host` header. The daemon requires the port.
    pub(crate) fn authority(&self) -> String {
        match self.host {
            Host::Address(IpAddr::V6(address)) => format!("[{address}]:{}", self.port),
            _ => format!("{}:{}", self.host(), self.port),
        }
    }

    /// The request target of a daemon path.
    pub(crate) fn path(&self, path: &str) -> String {
        format!("{}{path}", self.prefix)
    }
}

impl Default for DaemonAddress {
    /// Where `qwen serve` listens by default.
    fn default() -> Self {
        Self {
            secure: false,
            host: Host::Address(IpAddr::from([127, 0, 0, 1])),
            port: DEFAULT_PORT,
            prefix: String::new(),
        }
    }
}

impl Host {
    fn parse(host: &str) -> Option<Self> {
        if host.eq_ignore_ascii_case("localhost") {
            return Some(Self::Localhost);
        }
        let address = match host.strip_prefix('[') {
            Some(rest) => IpAddr::V6(Ipv6Addr::from_str(rest.strip_suffix(']')?).ok()?),
            None => IpAddr::V4(host.parse().ok()?),
        };
        // `::ffff:127.0.0.1` is the loopback, too.
        let address = address.to_canonical();
        address.is_loopback().then_some(Self::Address(address))
    }
}

fn split_port(authority: &str) -> Result<(&str, Option<u16>), AddressError> {
    let after_host = authority.rfind(']').map_or(0, |end| end + 1);
    let Some(colon) = authority[after_host..].find(':') else {
        return Ok((authority, None));
    };
    let (host, port) = authority.split_at(after_host + colon);
    let digits = &port[1..];
    if digits.is_empty() {
        return Ok((host, None));
    }
    let all_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
    let port: Option<u16> = digits.parse().ok().filter(|&port| port > 0 && all_digits);
    port.map(|port| (host, Some(port))).ok_or(AddressError::Port)
}

impl FromStr for DaemonAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        Self::parse(text)
    }
}

impl fmt::Display for DaemonAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.secure { "https" } else { "http" };
        write!(formatter, "{scheme}://{}{}/", self.authority(), self.prefix)
    }
}

impl fmt::Debug for DaemonAddress {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "DaemonAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn normal(text: &str) -> String {
        DaemonAddress::parse(text).map_or_else(|error| error.to_string(), |address| address.to_string())
    }

    #[test]
    fn loopback_address_is_accepted_in_every_spelling() {
        for (text, expected) in [
            ("http://127.0.0.1:4170", "http://127.0.0.1:4170/"),
            ("HTTP://127.8.9.10:1/", "http://127.8.9.10:1/"),
            ("http://LocalHost", "http://localhost:80/"),
            ("https://localhost:", "https://localhost:443/"),
            ("http://[::1]:4170//", "http://[::1]:4170/"),
            ("http://[::ffff:127.0.0.1]:4170", "http://127.0.0.1:4170/"),
            (
                " http://127.0.0.1:4170/behind/a/proxy/ ",
                "http://127.0.0.1:4170/behind/a/proxy/",
            ),
        ] {
            assert_eq!(normal(text), expected, "{text}");
        }
        assert_eq!(DaemonAddress::default().to_string(), "http://127.0.0.1:4170/");
    }

    #[test]
    fn only_http_and_https_are_accepted() {
        for text in [
            "file:///etc/passwd",
            "ws://127.0.0.1",
            "127.0.0.1:4170",
            "",
            "http:127.0.0.1",
            "://x",
        ] {
            assert_eq!(DaemonAddress::parse(text), Err(AddressError::Scheme), "{text}");
        }
        assert!(normal("file:///etc/passwd").contains("must use http or https"));
    }

    #[test]
    fn credentials_are_refused_and_not_quoted() {
        for text in [
            "http://user:secret@127.0.0.1:4170",
            "http://secret@localhost",
            "http://127.0.0.1@example.com/",
            "http://@127.0.0.1",
        ] {
            assert_eq!(DaemonAddress::parse(text), Err(AddressError::Credentials), "{text}");
            assert!(!normal(text).contains("secret"));
        }
        assert!(normal("http://u@localhost").contains("must not contain credentials"));
    }

    #[test]
    fn other_host_is_refused_by_name() {
        for host in [
            "example.com",
            "10.0.0.1",
            "0.0.0.0",
            "127.0.0.1.example.com",
            "localhost.example.com",
            "localhost.",
            "2130706433",
            "0x7f000001",
            "[::]",
            "[::2]",
            "[::ffff:10.0.0.1]",
            "",
        ] {
            let expected = AddressError::NotLoopback { host: host.to_owned() };
            assert_eq!(
                DaemonAddress::parse(&format!("http://{host}/")),
                Err(expected),
                "{host}"
            );
        }
        assert!(normal("http://example.com").contains("must use a loopback address, not example.com"));
    }

    #[test]
    fn disguised_host_is_refused() {
        assert_eq!(
            DaemonAddress::parse("http://127.0.0.1\\@example.com"),
            Err(AddressError::Extra)
        );
        assert_eq!(DaemonAddress::parse("http://127.0.0.1/?x"), Err(AddressError::Extra));
        assert_eq!(DaemonAddress::parse("http://127.0.0.1#x"), Err(AddressError::Extra));
        assert_eq!(DaemonAddress::parse("http://127.0.0.1/a b"), Err(AddressError::Extra));
        assert_eq!(DaemonAddress::parse("http://127.0.0.1:0"), Err(AddressError::Port));
        assert_eq!(DaemonAddress::parse("http://127.0.0.1:+80"), Err(AddressError::Port));
        assert_eq!(DaemonAddress::parse("http://127.0.0.1:70000"), Err(AddressError::Port));
    }
}
