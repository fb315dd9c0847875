//! Delays between reconnection attempts.

use std::time::Duration;

const MIN_DELAY: Duration = Duration::from_millis(20);

/// Short, because the daemon is on this machine, and a user who restarts it does not want to wait.
const MAX_DELAY: Duration = Duration::from_secs(5);

/// Exponential backoff with jitter, so that clients that were disconnected together do not reconnect together.
#[derive(Debug)]
pub struct Backoff {
    failures: u32,
    random: fn() -> u8,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { failures: 0, random }
    }
}

impl Backoff {
    /// Starts over after a success.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The delay after another failure. `asked` is the daemon's `Retry-After`.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        let doubled = MIN_DELAY.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let random = u32::from((self.random)());
        // Equal jitter: half fixed, half random. A requested delay is a minimum, plus up to 10%.
        let delay = doubled.min(MAX_DELAY);
        let delay = delay / 2 + delay / 2 * random / 255;
        asked.map_or(delay, |asked| delay.max(asked + asked / 10 * random / 255))
    }
}

/// A random byte. Without a generator, the delay is the longest.
fn random() -> u8 {
    let mut byte = [0];
    if getrandom::fill(&mut byte).is_err() {
        byte = [255];
    }
    byte[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(random: fn() -> u8) -> Vec<u128> {
        let mut backoff = Backoff { failures: 0, random };
        (0..10).map(|_| backoff.next(None).as_millis()).collect()
    }

    #[test]
    fn delay_doubles_up_to_a_limit_with_jitter() {
        assert_eq!(waits(|| 255), [20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000]);
        assert_eq!(waits(|| 0), [10, 20, 40, 80, 160, 320, 640, 1280, 2500, 2500]);
    }

    #[test]
    fn requested_delay_is_a_minimum() {
        let mut backoff = Backoff {
            failures: 0,
            random: || 0,
        };
        assert_eq!(backoff.next(Some(Duration::from_mins(1))), Duration::from_mins(1));
        assert_eq!(backoff.next(Some(Duration::ZERO)), Duration::from_millis(20));
    }

    #[test]
    fn success_resets_the_delay() {
        let mut backoff = Backoff {
            failures: 9,
            random: || 255,
        };
        backoff.reset();
        assert_eq!(backoff.next(None), MIN_DELAY);
    }
}
