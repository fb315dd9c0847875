//! Numbers that look random and are the same for the same seed.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

/// A generator (`SplitMix64`).
#[derive(Clone, Debug)]
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// With the seed in `ALONGSIDE_SEED`, or else a fresh one; printed, so that a run can be repeated.
    pub fn from_environment() -> Self {
        let given = std::env::var("ALONGSIDE_SEED").ok().and_then(|seed| seed.parse().ok());
        let seed = given.unwrap_or_else(Self::fresh_seed);
        println!("ALONGSIDE_SEED={seed}");
        Self(seed)
    }

    /// A seed that differs from run to run.
    pub fn fresh_seed() -> u64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        u64::from(now.subsec_nanos()) ^ now.as_secs()
    }

    pub fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit.max(1)
    }

    pub fn milliseconds(&mut self, limit: u64) -> Duration {
        Duration::from_millis(self.below(limit))
    }

    /// One of several values, each as likely as its weight.
    pub fn pick<T: Copy>(&mut self, weighted: &[(u64, T)]) -> T {
        let sum = weighted.iter().map(|(weight, _)| weight).sum();
        let mut left = self.below(sum);
        for (weight, value) in weighted {
            if left < *weight {
                return *value;
            }
            left -= weight;
        }
        weighted[0].1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_yields_same_numbers() {
        let numbers = |seed| {
            let mut dice = Dice::new(seed);
            std::array::from_fn::<u64, 8, _>(|_| dice.below(1000))
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
    }

    #[test]
    fn weights_are_respected() {
        let mut dice = Dice::new(1);
        let picks: Vec<bool> = (0..1000).map(|_| dice.pick(&[(9, true), (1, false)])).collect();
        let often = picks.iter().filter(|pick| **pick).count();
        assert!((800..1000).contains(&often), "{often}");
    }
}
