//! Who is let in: one-time login keys and the sessions that they become.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use alongside_core::Secret;
use parking_lot::Mutex;

/// A bounded number of secrets, oldest first. Looking one up takes the same time wherever it is, or is not.
struct Secrets {
    entries: VecDeque<(Secret, Instant)>,
    most: usize,
    lifetime: Duration,
}

impl Secrets {
    fn new(most: usize, lifetime: Duration) -> Self {
        let (entries, most) = (VecDeque::new(), most.max(1));
        Self {
            entries,
            most,
            lifetime,
        }
    }

    fn add(&mut self, now: Instant) -> io::Result<Secret> {
        let token = random_token()?;
        self.forget_old(now);
        while self.entries.len() >= self.most {
            self.entries.pop_front();
        }
        self.entries.push_back((token.clone(), now));
        Ok(token)
    }

    fn position(&mut self, now: Instant, presented: &str) -> Option<usize> {
        self.forget_old(now);
        let mut found = None;
        // Not `position`, which would stop at the first that matches.
        for (index, (token, _)) in self.entries.iter().enumerate() {
            if token.matches(presented) {
                found = Some(index);
            }
        }
        found
    }

    fn forget_old(&mut self, now: Instant) {
        let lifetime = self.lifetime;
        self.entries
            .retain(|(_, since)| now.saturating_duration_since(*since) < lifetime);
    }
}

/// The login links that wait, and the one secret of all browsers that are logged in: they are all the same person's.
pub(crate) struct Keys {
    links: Mutex<Secrets>,
    session: Secret,
}

impl Keys {
    pub(crate) fn new(most_links: usize, link_lifetime: Duration, session: Secret) -> Self {
        Self {
            links: Mutex::new(Secrets::new(most_links, link_lifetime)),
            session,
        }
    }

    /// Makes a key for a login link.
    pub(crate) fn new_link(&self) -> io::Result<Secret> {
        self.links.lock().add(Instant::now())
    }

    /// Uses a key up. Gives the session if it was good, `None` if it was unknown, used or too old.
    pub(crate) fn log_in(&self, presented: &str) -> Option<Secret> {
        let mut links = self.links.lock();
        let position = links.position(Instant::now(), presented)?;
        links.entries.remove(position);
        Some(self.session.clone())
    }

    /// Whether this is what a browser that is logged in sends.
    pub(crate) fn knows(&self, presented: &str) -> bool {
        self.session.matches(presented)
    }
}

/// 256 bits of the system's generator.
pub(crate) fn random_token() -> io::Result<Secret> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(Secret::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(2, Duration::from_mins(10), Secret::from_bytes([9; 32]))
    }

    #[test]
    fn a_key_works_once() {
        let keys = keys();
        let link = keys.new_link().unwrap();
        let session = keys.log_in(link.reveal()).unwrap();
        assert!(keys.knows(session.reveal()));
        assert_eq!(keys.log_in(link.reveal()), None);
    }

    #[test]
    fn a_key_is_not_a_session_and_a_session_is_not_a_key() {
        let keys = keys();
        let link = keys.new_link().unwrap();
        assert!(!keys.knows(link.reveal()));
        let session = keys.log_in(link.reveal()).unwrap();
        assert_eq!(keys.log_in(session.reveal()), None);
    }

    #[test]
    fn one_link_too_many_makes_the_oldest_useless() {
        let keys = keys();
        let links = [(); 3].map(|()| keys.new_link().unwrap());
        assert_eq!(keys.log_in(links[0].reveal()), None);
        assert!(keys.log_in(links[1].reveal()).is_some());
        assert!(keys.log_in(links[2].reveal()).is_some());
    }

    #[test]
    fn a_link_expires() {
        let mut secrets = Secrets::new(4, Duration::from_mins(10));
        let start = Instant::now();
        let token = secrets.add(start).unwrap();
        let just_before = start + Duration::from_secs(599);
        assert_eq!(secrets.position(just_before, token.reveal()), Some(0));
        assert_eq!(secrets.position(start + Duration::from_mins(10), token.reveal()), None);
    }
}
