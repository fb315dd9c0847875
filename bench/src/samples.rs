//! Figures of one program, by round.

use serde::{Deserialize, Serialize};

/// How many values a 99th percentile needs: with fewer, it is the largest of them or made up between two.
const MIN_FOR_P99: usize = 100;

/// All values of one program, by round. Round `n` of two programs took place one after the other, so they can be compared.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Samples {
    pub rounds: Vec<Vec<f64>>,
}

impl Samples {
    /// Adds a round with one or several values. A round without values is left out.
    pub fn push(&mut self, values: &[f64]) {
        if !values.is_empty() {
            self.rounds.push(values.to_vec());
        }
    }

    pub fn of(values: impl IntoIterator<Item = f64>) -> Self {
        let mut samples = Self::default();
        for value in values {
            samples.push(&[value]);
        }
        samples
    }

    /// The median of each round.
    pub fn medians(&self) -> Vec<f64> {
        self.rounds.iter().map(|round| quantile(round, 0.5)).collect()
    }

    pub fn median(&self) -> f64 {
        quantile(&self.medians(), 0.5)
    }

    /// The slow end of all values together, and what it is: their 99th percentile, or with too few of them, the largest.
    pub fn tail(&self) -> (&'static str, f64) {
        let all = self.rounds.concat();
        if all.len() < MIN_FOR_P99 {
            ("max", quantile(&all, 1.0))
        } else {
            ("99%", quantile(&all, 0.99))
        }
    }

    pub fn spread(&self) -> f64 {
        spread(&self.medians())
    }
}

/// The value below which this share of all values is, interpolated. NaN without values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let position = share.clamp(0.0, 1.0) * as_f64(last);
    // Not negative, and at most `last`.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss)]
    let below = (position.floor() as usize).min(last);
    let above = (below + 1).min(last);
    let rest = position - position.floor();
    sorted[below] + (sorted[above] - sorted[below]) * rest
}

/// The distance of the quartiles, relative to the median.
pub fn spread(values: &[f64]) -> f64 {
    let median = quantile(values, 0.5);
    let distance = quantile(values, 0.75) - quantile(values, 0.25);
    if distance == 0.0 { 0.0 } else { distance / median.abs() }
}

/// Counts and sizes are far below the 52 bits that fit.
#[expect(clippy::cast_precision_loss)]
pub fn as_f64(count: usize) -> f64 {
    count as f64
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "exact in binary")]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_interpolated() {
        let values = [4.0, 1.0, 3.0, 2.0, 5.0];
        assert_eq!(quantile(&values, 0.0), 1.0);
        assert_eq!(quantile(&values, 0.5), 3.0);
        assert_eq!(quantile(&values, 0.625), 3.5);
        assert_eq!(quantile(&values, 1.0), 5.0);
        assert_eq!(quantile(&[7.0], 0.99), 7.0);
        assert!(quantile(&[], 0.5).is_nan());
    }

    #[test]
    fn spread_is_relative_and_ignores_one_outlier() {
        assert_eq!(spread(&[8.0, 8.0, 8.0]), 0.0);
        assert_eq!(spread(&[6.0, 8.0, 10.0, 8.0, 800.0]), 0.25);
        assert_eq!(spread(&[0.0, 0.0]), 0.0);
    }

    #[test]
    fn one_bad_round_decides_nothing() {
        let mut samples = Samples::default();
        samples.push(&[1.0, 2.0, 3.0]);
        samples.push(&[100.0, 200.0, 300.0]);
        samples.push(&[1.5, 2.5, 3.5]);
        samples.push(&[]);
        assert_eq!(samples.medians(), [2.0, 200.0, 2.5]);
        assert_eq!(samples.median(), 2.5);
    }

    #[test]
    fn percentile_needs_a_hundred_values_of_all_rounds() {
        let mut samples = Samples::default();
        samples.push(&[1.0; 49]);
        samples.push(&[9.0; 50]);
        assert_eq!(samples.tail(), ("max", 9.0));
        samples.push(&[70.0]);
        let (name, value) = samples.tail();
        assert!(name == "99%" && (9.0..10.0).contains(&value), "{name} {value}");
    }
}
