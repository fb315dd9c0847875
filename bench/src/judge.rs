//! Bars, and whether the figures reach them.
//!
//! A bar is judged by the quartiles of the rounds: it is met if even the worse quartile is within it, and missed if even the better one is
//! not. If the quartiles are far apart, every round has to agree: it is met if all of them are within half of it, and missed if all of
//! them are over it. A claim that the bar is met needs that margin; a claim that it is missed does not flatter the program.

use serde::{Deserialize, Serialize};

use crate::row::Row;
use crate::samples::{quantile, spread};
use crate::subject::Subject;

/// How far apart the quartiles of what is judged may be, relative to the median.
pub const MAX_SPREAD: f64 = 0.5;

/// How far below the bar all rounds have to be if they are further apart than that.
const MARGIN: f64 = 2.0;

/// What a figure of ours may be at most.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Bar {
    /// In the unit of the row.
    AtMost(f64),
    /// Relative to another program in the same round.
    Times { factor: f64, of: Subject },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Met,
    Missed,
    /// The bar is between the quartiles.
    Disagreement,
    /// The quartiles are further apart than [`MAX_SPREAD`], and not all rounds agree.
    WideSpread,
    /// Ours or the other program's figures are not there.
    NoFigures,
}

impl Bar {
    pub fn at_most(limit: f64) -> Self {
        Self::AtMost(limit)
    }

    /// At most this share of another program's figure, or this multiple.
    pub fn times(factor: f64, of: Subject) -> Self {
        Self::Times { factor, of }
    }

    /// What is compared with [`Bar::limit`], for every round.
    pub fn judged(&self, row: &Row) -> Vec<f64> {
        let rounds = |subject| {
            row.of(subject)
                .map(crate::samples::Samples::medians)
                .unwrap_or_default()
        };
        let ours = rounds(Subject::Ours);
        match self {
            Self::AtMost(_) => ours,
            Self::Times { of, .. } => ours.iter().zip(rounds(*of)).map(|(ours, other)| ours / other).collect(),
        }
    }

    pub fn limit(&self) -> f64 {
        match self {
            Self::AtMost(limit) => *limit,
            Self::Times { factor, .. } => *factor,
        }
    }

    pub fn verdict(&self, row: &Row) -> Verdict {
        let judged = self.judged(row);
        if judged.is_empty() || judged.iter().any(|value| !value.is_finite()) {
            return Verdict::NoFigures;
        }
        let limit = self.limit();
        let is_wide = spread(&judged) > MAX_SPREAD;
        let (better, worse, enough) = if is_wide {
            (quantile(&judged, 0.0), quantile(&judged, 1.0), limit / MARGIN)
        } else {
            (quantile(&judged, 0.25), quantile(&judged, 0.75), limit)
        };
        if worse <= enough {
            Verdict::Met
        } else if better > limit {
            Verdict::Missed
        } else if is_wide {
            Verdict::WideSpread
        } else {
            Verdict::Disagreement
        }
    }
}

impl Verdict {
    pub fn text(self) -> &'static str {
        match self {
            Self::Met => "met",
            Self::Missed => "missed",
            Self::Disagreement => "no conclusion: the rounds disagree",
            Self::WideSpread => "no conclusion: spread too wide",
            Self::NoFigures => "no conclusion: figures are missing",
        }
    }

    pub fn is_conclusion(self) -> bool {
        matches!(self, Self::Met | Self::Missed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::row::Unit;

    fn row(ours: &[f64], node: &[f64]) -> Row {
        let mut row = Row::new("test", "test", Unit::Count);
        for value in ours {
            row.push(Subject::Ours, &[*value]);
        }
        for value in node {
            row.push(Subject::Node, &[*value]);
        }
        row
    }

    #[test]
    fn bar_is_met_or_missed_if_both_quartiles_agree() {
        let row = row(&[9.0, 10.0, 11.0], &[]);
        assert_eq!(Bar::at_most(12.0).verdict(&row), Verdict::Met);
        assert_eq!(Bar::at_most(9.0).verdict(&row), Verdict::Missed);
        assert_eq!(Bar::at_most(10.0).verdict(&row), Verdict::Disagreement);
    }

    #[test]
    fn ratio_is_judged_round_by_round() {
        // Both programs were twice as slow in the second round: that does not matter.
        let row = row(&[10.0, 20.0, 10.0], &[100.0, 200.0, 100.0]);
        assert_eq!(Bar::times(0.125, Subject::Node).verdict(&row), Verdict::Met);
        assert_eq!(Bar::times(0.05, Subject::Node).verdict(&row), Verdict::Missed);
        assert_eq!(Bar::at_most(30.0).verdict(&row), Verdict::Met);
    }

    #[test]
    fn wide_spread_allows_no_conclusion_unless_every_round_agrees() {
        let row = row(&[4.0, 10.0, 16.0], &[]);
        assert_eq!(Bar::at_most(31.0).verdict(&row), Verdict::WideSpread);
        assert_eq!(Bar::at_most(10.0).verdict(&row), Verdict::WideSpread);
        assert_eq!(Bar::at_most(4.0).verdict(&row), Verdict::WideSpread);
    }

    #[test]
    fn wide_spread_is_met_with_a_margin_and_missed_without() {
        let row = row(&[4.0, 10.0, 16.0], &[]);
        assert_eq!(Bar::at_most(32.0).verdict(&row), Verdict::Met);
        assert_eq!(Bar::at_most(3.9).verdict(&row), Verdict::Missed);
    }

    #[test]
    fn missing_figures_allow_no_conclusion() {
        let times = Bar::times(0.5, Subject::Node);
        assert_eq!(times.verdict(&row(&[1.0], &[])), Verdict::NoFigures);
        assert_eq!(times.verdict(&row(&[1.0], &[0.0])), Verdict::NoFigures);
        assert_eq!(Bar::at_most(1.0).verdict(&row(&[], &[])), Verdict::NoFigures);
    }
}
