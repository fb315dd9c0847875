//! Who is let in: one-time login keys and the sessions that they become.

use std::collections::VecDeque;
use std::io;
use std::time::{Duration, Instant};

use alongside_core::Token;
use parking_lot::Mutex;

/// A bounded number of secrets, oldest first. Looking one up takes the same time wherever it is, or is not.
struct Secrets {
    entries: VecDeque<(Token, Instant)>,
    most: usize,
    lifetime: Option<Duration>,
}

impl Secrets {
    fn new(most: usize, lifetime: Option<Duration>) -> Self {
        let (entries, most) = (VecDeque::new(), most.max(1));
        Self {
            entries,
            most,
            lifetime,
        }
    }

    fn add(&mut self, now: Instant) -> io::Result<Token> {
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
        if let Some(lifetime) = self.lifetime {
            self.entries
                .retain(|(_, since)| now.saturating_duration_since(*since) < lifetime);
        }
    }
}

/// The login links that wait and the browsers that are logged in. Both end with the process.
pub(crate) struct Keys {
    links: Mutex<Secrets>,
    sessions: Mutex<Secrets>,
}

impl Keys {
    pub(crate) fn new(most_links: usize, link_lifetime: Duration, most_sessions: usize) -> Self {
        Self {
            links: Mutex::new(Secrets::new(most_links, Some(link_lifetime))),
            sessions: Mutex::new(Secrets::new(most_sessions, None)),
        }
    }

    /// Makes a key for a login link.
    pub(crate) fn new_link(&self) -> io::Result<Token> {
        self.links.lock().add(Instant::now())
    }

    /// Uses a key up. Gives a session if it was good, `None` if it was unknown, used or too old.
    pub(crate) fn log_in(&self, presented: &str) -> io::Result<Option<Token>> {
        let mut links = self.links.lock();
        let now = Instant::now();
        let Some(position) = links.position(now, presented) else {
            return Ok(None);
        };
        let session = self.sessions.lock().add(now)?;
        links.entries.remove(position);
        Ok(Some(session))
    }

    /// Whether this is the session of a browser that is logged in.
    pub(crate) fn knows(&self, presented: &str) -> bool {
        self.sessions.lock().position(Instant::now(), presented).is_some()
    }
}

/// 256 bits of the system's generator.
pub(crate) fn random_token() -> io::Result<Token> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes).map_err(io::Error::other)?;
    Ok(Token::from_bytes(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new(2, Duration::from_mins(10), 2)
    }

    #[test]
    fn a_key_works_once() {
        let keys = keys();
        let link = keys.new_link().unwrap();
        let session = keys.log_in(link.reveal()).unwrap().unwrap();
        assert!(keys.knows(session.reveal()));
        assert_eq!(keys.log_in(link.reveal()).unwrap(), None);
    }

    #[test]
    fn a_key_is_not_a_session_and_a_session_is_not_a_key() {
        let keys = keys();
        let link = keys.new_link().unwrap();
        assert!(!keys.knows(link.reveal()));
        let session = keys.log_in(link.reveal()).unwrap().unwrap();
        assert_eq!(keys.log_in(session.reveal()).unwrap(), None);
    }

    #[test]
    fn one_link_too_many_makes_the_oldest_useless() {
        let keys = keys();
        let links = [(); 3].map(|()| keys.new_link().unwrap());
        assert_eq!(keys.log_in(links[0].reveal()).unwrap(), None);
        assert!(keys.log_in(links[1].reveal()).unwrap().is_some());
        assert!(keys.log_in(links[2].reveal()).unwrap().is_some());
    }

    #[test]
    fn one_session_too_many_logs_out_the_first() {
        let keys = keys();
        let sessions = [(); 3].map(|()| {
            let link = keys.new_link().unwrap();
            keys.log_in(link.reveal()).unwrap().unwrap()
        });
        assert!(!keys.knows(sessions[0].reveal()));
        assert!(keys.knows(sessions[1].reveal()) && keys.knows(sessions[2].reveal()));
    }

    #[test]
    fn a_link_expires() {
        let mut secrets = Secrets::new(4, Some(Duration::from_mins(10)));
        let start = Instant::now();
        let token = secrets.add(start).unwrap();
        let just_before = start + Duration::from_secs(599);
        assert_eq!(secrets.position(just_before, token.reveal()), Some(0));
        assert_eq!(secrets.position(start + Duration::from_mins(10), token.reveal()), None);
    }
}
