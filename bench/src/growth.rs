//! How figures grow with a size.

use crate::samples::Samples;

/// How few sizes say nothing about growth.
pub const MIN_SIZES: usize = 4;

/// The exponent `e` of `figure = c * size^e`, fitted to logarithms by least squares: 1 is linear. `None` with fewer than
/// [`MIN_SIZES`] usable points.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let is_usable = |point: &&(f64, f64)| point.0 > 0.0 && point.1 > 0.0 && point.1.is_finite();
    let logs: Vec<(f64, f64)> = points.iter().filter(is_usable).map(|(x, y)| (x.ln(), y.ln())).collect();
    if logs.len() < MIN_SIZES {
        return None;
    }
    let count = crate::samples::as_f64(logs.len());
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
    let covariance: f64 = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum();
    let variance: f64 = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
    (variance > 0.0).then(|| covariance / variance)
}

/// The exponent between the two largest sizes: what is the same at every size hides the growth of the rest at the smaller ones.
fn last_exponent(points: &[(f64, f64)]) -> Option<f64> {
    let &[.., (small, before), (large, after)] = points else {
        return None;
    };
    let exponent = (after / before).ln() / (large / small).ln();
    exponent.is_finite().then_some(exponent)
}

/// The exponent of each round, for figures at several sizes with as many rounds each.
pub fn exponents(sizes: &[(f64, &Samples)]) -> Samples {
    of_rounds(sizes, exponent)
}

/// The same between the two largest sizes.
pub fn last_exponents(sizes: &[(f64, &Samples)]) -> Samples {
    of_rounds(sizes, last_exponent)
}

fn of_rounds(sizes: &[(f64, &Samples)], exponent: impl Fn(&[(f64, f64)]) -> Option<f64>) -> Samples {
    let sizes: Vec<(f64, Vec<f64>)> = sizes.iter().map(|(size, samples)| (*size, samples.medians())).collect();
    let rounds = sizes.iter().map(|(_, medians)| medians.len()).min().unwrap_or(0);
    Samples::of((0..rounds).filter_map(|round| {
        let points: Vec<(f64, f64)> = sizes.iter().map(|(size, medians)| (*size, medians[round])).collect();
        exponent(&points)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exponent_of_powers_is_found() {
        for power in [0.0, 0.5, 1.0, 2.0] {
            let points = [1.0_f64, 10.0, 64.0, 256.0].map(|size| (size, 3.0 * size.powf(power)));
            let found = exponent(&points).unwrap();
            assert!((found - power).abs() < 1e-9, "{power}: {found}");
        }
    }

    #[test]
    fn fewer_than_four_sizes_have_no_exponent() {
        assert_eq!(exponent(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]), None);
        assert_eq!(exponent(&[(1.0, 1.0), (2.0, 2.0), (3.0, 3.0), (4.0, 0.0)]), None);
        assert_eq!(exponent(&[(1.0, 1.0); 5]), None);
    }

    #[test]
    fn last_exponent_is_that_of_the_two_largest_sizes() {
        let found = last_exponent(&[(1.0, 100.0), (2.0, 100.0), (4.0, 101.0), (8.0, 404.0)]).unwrap();
        assert!((found - 2.0).abs() < 1e-9, "{found}");
        assert_eq!(last_exponent(&[(1.0, 1.0)]), None);
        assert_eq!(last_exponent(&[(1.0, 0.0), (2.0, 1.0)]), None);
    }

    #[test]
    fn each_round_has_its_exponent() {
        let at = |values: [f64; 2]| Samples::of(values);
        let sizes = [at([1.0, 1.0]), at([2.0, 4.0]), at([4.0, 16.0]), at([8.0, 64.0])];
        let sizes: Vec<(f64, &Samples)> = [1.0, 2.0, 4.0, 8.0].into_iter().zip(&sizes).collect();
        let found = exponents(&sizes).medians();
        assert!(
            (found[0] - 1.0).abs() < 1e-9 && (found[1] - 2.0).abs() < 1e-9,
            "{found:?}"
        );
    }
}
