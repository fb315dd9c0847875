//! Logins: one-time keys in links, and the session cookie that they grant.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use alongside_core::Secret;
use alongside_loopback::random_secret;
use hyper::HeaderMap;
use hyper::header::COOKIE;
use parking_lot::Mutex;

/// A bounded number of secrets, oldest first. A lookup takes the same time wherever the secret is.
struct Links {
    entries: VecDeque<(Secret, Instant)>,
    limit: usize,
    lifetime: Duration,
}

impl Links {
    fn new(limit: usize, lifetime: Duration) -> Self {
        Self {
            entries: VecDeque::new(),
            limit: limit.max(1),
            lifetime,
        }
    }

    fn add(&mut self, now: Instant) -> io::Result<Secret> {
        let key = random_secret()?;
        self.drop_expired(now);
        while self.entries.len() >= self.limit {
            self.entries.pop_front();
        }
        self.entries.push_back((key.clone(), now));
        Ok(key)
    }

    fn position(&mut self, now: Instant, presented: &str) -> Option<usize> {
        self.drop_expired(now);
        let mut found = None;
        // Not `position`, which would stop at the first match.
        for (index, (key, _)) in self.entries.iter().enumerate() {
            if key.matches(presented) {
                found = Some(index);
            }
        }
        found
    }

    fn drop_expired(&mut self, now: Instant) {
        let lifetime = self.lifetime;
        self.entries
            .retain(|(_, since)| now.saturating_duration_since(*since) < lifetime);
    }
}

/// The unused login links, and the session that all logged-in browsers share: they belong to the same user.
pub(crate) struct Keys {
    links: Mutex<Links>,
    cookie_name: String,
    session: Secret,
}

impl Keys {
    pub(crate) fn new(max_links: usize, link_lifetime: Duration, port: u16, session: Secret) -> Self {
        Self {
            links: Mutex::new(Links::new(max_links, link_lifetime)),
            // Cookies ignore ports: two companions must not log out each other's pages.
            cookie_name: format!("alongside-{port}"),
            session,
        }
    }

    pub(crate) fn new_link(&self) -> io::Result<Secret> {
        self.links.lock().add(Instant::now())
    }

    /// Uses up a key and returns the session cookie; `None` if the key is unknown, used or expired.
    pub(crate) fn log_in(&self, presented: &str) -> Option<String> {
        let mut links = self.links.lock();
        let position = links.position(Instant::now(), presented)?;
        links.entries.remove(position);
        Some(format!("{}={}", self.cookie_name, self.session.reveal()))
    }

    pub(crate) fn is_logged_in(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE);
        let mut sessions = cookies
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .filter(|(name, _)| *name == self.cookie_name);
        // Browsers send one cookie of a name and path.
        match (sessions.next(), sessions.next()) {
            (Some((_, value)), None) => self.session.matches(value),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(2, Duration::from_mins(10), 80, Secret::from_bytes([9; 32]))
    }

    fn is_logged_in(keys: &Keys, cookie: &str) -> bool {
        let headers = [(COOKIE, cookie.parse().unwrap())].into_iter().collect();
        keys.is_logged_in(&headers)
    }

    #[test]
    fn key_works_once() {
        let keys = keys();
        let link = keys.new_link().unwrap();
        let cookie = keys.log_in(link.reveal()).unwrap();
        assert!(is_logged_in(&keys, &cookie));
        assert_eq!(keys.log_in(link.reveal()), None);
    }

    #[test]
    fn key_and_session_are_not_interchangeable() {
        let keys = keys();
        let link = keys.new_link().unwrap();
        assert!(!is_logged_in(&keys, &format!("alongside-80={}", link.reveal())));
        let cookie = keys.log_in(link.reveal()).unwrap();
        assert_eq!(keys.log_in(cookie.split_once('=').unwrap().1), None);
    }

    #[test]
    fn excess_link_invalidates_the_oldest() {
        let keys = keys();
        let links = [(); 3].map(|()| keys.new_link().unwrap());
        assert_eq!(keys.log_in(links[0].reveal()), None);
        assert!(keys.log_in(links[1].reveal()).is_some());
        assert!(keys.log_in(links[2].reveal()).is_some());
    }

    #[test]
    fn link_expires() {
        let mut links = Links::new(4, Duration::from_mins(10));
        let start = Instant::now();
        let key = links.add(start).unwrap();
        let just_before = start + Duration::from_secs(599);
        assert_eq!(links.position(just_before, key.reveal()), Some(0));
        assert_eq!(links.position(start + Duration::from_mins(10), key.reveal()), None);
    }
}
