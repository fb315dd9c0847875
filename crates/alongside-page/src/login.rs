//! Logins: one-time keys in links, and the session that they grant.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use alongside_core::Secret;
use alongside_loopback::random_secret;
use parking_lot::Mutex;
use tempfile::TempPath;

use crate::proof::{Exchange, Side};

/// A link that has not been used.
struct Link {
    key: Secret,
    created: Instant,
    /// The file that redirects to it; removed together with the link.
    file: Option<TempPath>,
}

/// A bounded number of links, oldest first.
struct Links {
    entries: VecDeque<Link>,
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
        self.entries.push_back(Link {
            key: key.clone(),
            created: now,
            file: None,
        });
        Ok(key)
    }

    /// Uses up the link that a test accepts. Takes the same time wherever the link is.
    fn take(&mut self, now: Instant, mut is_wanted: impl FnMut(&Secret) -> bool) -> Option<Secret> {
        self.drop_expired(now);
        let mut found = None;
        // Not `position`, which would stop at the first match.
        for (index, link) in self.entries.iter().enumerate() {
            if is_wanted(&link.key) {
                found = Some(index);
            }
        }
        Some(self.entries.remove(found?)?.key)
    }

    fn drop_expired(&mut self, now: Instant) {
        let lifetime = self.lifetime;
        self.entries
            .retain(|link| now.saturating_duration_since(link.created) < lifetime);
    }
}

/// The unused login links, and the session that all logged-in pages share: they belong to the same user.
pub(crate) struct Logins {
    links: Mutex<Links>,
    session: Secret,
}

/// A page that has proved to be logged in, or to have a login link.
#[derive(Debug)]
pub(crate) struct Verified {
    /// Proves to the page that this is the companion it logged in to.
    pub(crate) proof: Secret,
    /// The session's secret, for a page that used a login link.
    pub(crate) session: Option<Secret>,
}

impl Logins {
    pub(crate) fn new(max_links: usize, link_lifetime: Duration, session: Secret) -> Self {
        Self {
            links: Mutex::new(Links::new(max_links, link_lifetime)),
            session,
        }
    }

    pub(crate) fn new_link(&self) -> io::Result<Secret> {
        self.links.lock().add(Instant::now())
    }

    /// Removes the file together with the link, or right away if the link no longer exists.
    pub(crate) fn attach(&self, key: &Secret, file: TempPath) {
        let mut links = self.links.lock();
        if let Some(link) = links.entries.iter_mut().find(|link| link.key == *key) {
            link.file = Some(file);
        }
    }

    pub(crate) fn link_lifetime(&self) -> Duration {
        self.links.lock().lifetime
    }

    pub(crate) fn drop_expired(&self) {
        self.links.lock().drop_expired(Instant::now());
    }

    pub(crate) fn drop_all(&self) {
        self.links.lock().entries.clear();
    }

    /// Checks a page's proof: that it knows the session, or the key of a link, which is used up.
    pub(crate) fn verify(&self, exchange: &Exchange<'_>, presented: &str) -> Option<Verified> {
        let is_proved = |secret: &Secret| {
            let expected = exchange.proof(secret, Side::Page);
            expected.is_some_and(|expected| expected.matches(presented))
        };
        let key = if is_proved(&self.session) {
            None
        } else {
            Some(self.links.lock().take(Instant::now(), is_proved)?)
        };
        Some(Verified {
            proof: exchange.proof(key.as_ref().unwrap_or(&self.session), Side::Companion)?,
            session: key.map(|_| self.session.clone()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn logins() -> Logins {
        Logins::new(2, Duration::from_mins(10), Secret::from_bytes([9; 32]))
    }

    /// Presents a proof that the page knows a secret.
    fn present(logins: &Logins, secret: &Secret, side: Side) -> Option<Verified> {
        let (one, other) = (Secret::from_bytes([1; 32]), Secret::from_bytes([2; 32]));
        let exchange = Exchange {
            host: "127.0.0.1:80",
            companion_nonce: &one,
            page_nonce: &other,
        };
        let proof = exchange.proof(secret, side).unwrap();
        let verified = logins.verify(&exchange, proof.reveal())?;
        assert_eq!(Some(&verified.proof), exchange.proof(secret, Side::Companion).as_ref());
        Some(verified)
    }

    #[test]
    fn key_grants_the_session_once() {
        let logins = logins();
        let link = logins.new_link().unwrap();
        let session = present(&logins, &link, Side::Page).unwrap().session.unwrap();
        assert!(present(&logins, &link, Side::Page).is_none());
        assert!(present(&logins, &session, Side::Page).unwrap().session.is_none());
        assert!(present(&logins, &session, Side::Page).is_some(), "as often as needed");
    }

    #[test]
    fn companions_own_proof_is_not_accepted() {
        let logins = logins();
        assert!(present(&logins, &logins.session, Side::Companion).is_none());
        let link = logins.new_link().unwrap();
        assert!(present(&logins, &link, Side::Companion).is_none());
        assert!(present(&logins, &link, Side::Page).is_some(), "not used up");
    }

    #[test]
    fn excess_link_invalidates_the_oldest() {
        let logins = logins();
        let links = [(); 3].map(|()| logins.new_link().unwrap());
        let found = links.map(|link| present(&logins, &link, Side::Page).is_some());
        assert_eq!(found, [false, true, true]);
    }

    #[test]
    fn link_expires() {
        let mut links = Links::new(4, Duration::from_mins(10));
        let start = Instant::now();
        let key = links.add(start).unwrap();
        let is_key = |known: &Secret| *known == key;
        links.drop_expired(start + Duration::from_secs(599));
        assert_eq!(links.entries.len(), 1);
        assert_eq!(links.take(start + Duration::from_mins(10), is_key), None);
    }
}
