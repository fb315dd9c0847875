//! How long to wait before trying again.

use std::time::Duration;

/// The wait after the first failure.
const SHORTEST: Duration = Duration::from_millis(20);

/// The wait after many failures. The daemon is on this machine: whoever starts it again does not want to wait.
const LONGEST: Duration = Duration::from_secs(5);

/// Waits that double, with chance in them: clients that were cut off together shall not come back together.
#[derive(Debug)]
pub struct Backoff {
    failures: u32,
    chance: fn() -> u8,
}

impl Default for Backoff {
    fn default() -> Self {
        Self { failures: 0, chance }
    }
}

impl Backoff {
    /// Forgets the failures: something worked.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// The wait after one more failure. The other side may have asked for a longer one.
    pub fn next(&mut self, asked: Option<Duration>) -> Duration {
        let doubled = SHORTEST.saturating_mul(1 << self.failures.min(16));
        self.failures = self.failures.saturating_add(1);
        let chance = u32::from((self.chance)());
        // Half of the wait is certain. What was asked for is certain too, and chance comes on top.
        let usual = doubled.min(LONGEST);
        let usual = usual / 2 + usual / 2 * chance / 255;
        asked.map_or(usual, |asked| usual.max(asked + asked / 10 * chance / 255))
    }
}

/// A byte of chance; without a generator there is none.
fn chance() -> u8 {
    let mut byte = [0];
    if getrandom::fill(&mut byte).is_err() {
        byte = [255];
    }
    byte[0]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waits(chance: fn() -> u8) -> Vec<u128> {
        let mut backoff = Backoff { failures: 0, chance };
        (0..10).map(|_| backoff.next(None).as_millis()).collect()
    }

    #[test]
    fn waits_double_up_to_a_limit_and_half_of_each_is_chance() {
        assert_eq!(waits(|| 255), [20, 40, 80, 160, 320, 640, 1280, 2560, 5000, 5000]);
        assert_eq!(waits(|| 0), [10, 20, 40, 80, 160, 320, 640, 1280, 2500, 2500]);
    }

    #[test]
    fn what_the_other_side_asks_for_is_the_least() {
        let mut backoff = Backoff {
            failures: 0,
            chance: || 0,
        };
        assert_eq!(backoff.next(Some(Duration::from_mins(1))), Duration::from_mins(1));
        assert_eq!(backoff.next(Some(Duration::ZERO)), Duration::from_millis(20));
    }

    #[test]
    fn success_starts_it_over() {
        let mut backoff = Backoff {
            failures: 9,
            chance: || 255,
        };
        backoff.reset();
        assert_eq!(backoff.next(None), SHORTEST);
    }
}
