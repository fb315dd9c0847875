//! One line of the table: a figure of every program, and what it has to reach.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::growth;
use crate::judge::Bar;
use crate::samples::Samples;
use crate::subject::Subject;

/// What counts as linear: sorting takes a little more, and so does a text that no longer fits into the processor's caches.
const MAX_EXPONENT: f64 = 1.15;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Unit {
    /// Shown as ns, µs, ms or s.
    Seconds,
    /// As `/proc` has them: of 1,024 bytes.
    Kilobytes,
    Count,
    /// Of a fitted growth: 1 is linear.
    Exponent,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// The scenario that measured it.
    pub scenario: String,
    pub name: String,
    pub unit: Unit,
    /// What the name says about a size, for charts: bytes or sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<f64>,
    /// What rows of the same series have in common, for charts and growth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<String>,
    /// Whether the short table in the README has it.
    #[serde(default)]
    pub is_headline: bool,
    /// Whether each value is of one call, so that the slowest ones mean something.
    #[serde(default)]
    pub has_tail: bool,
    pub figures: BTreeMap<Subject, Samples>,
    #[serde(default)]
    pub bars: Vec<Bar>,
}

impl Row {
    pub fn new(scenario: &str, name: impl Into<String>, unit: Unit) -> Self {
        Self {
            scenario: scenario.to_owned(),
            name: name.into(),
            unit,
            size: None,
            series: None,
            is_headline: false,
            has_tail: false,
            figures: BTreeMap::new(),
            bars: Vec::new(),
        }
    }

    /// One of several rows that differ in a size.
    #[must_use]
    pub fn in_series(mut self, series: &str, size: f64) -> Self {
        self.series = Some(series.to_owned());
        self.size = Some(size);
        self
    }

    #[must_use]
    pub fn headline(mut self) -> Self {
        self.is_headline = true;
        self
    }

    #[must_use]
    pub fn with_tail(mut self) -> Self {
        self.has_tail = true;
        self
    }

    #[must_use]
    pub fn bar(mut self, bar: Bar) -> Self {
        self.bars.push(bar);
        self
    }

    /// Adds a round of one program.
    pub fn push(&mut self, subject: Subject, values: &[f64]) {
        self.figures.entry(subject).or_default().push(values);
    }

    pub fn of(&self, subject: Subject) -> Option<&Samples> {
        self.figures.get(&subject)
    }

    /// How the figures of a series grow with its size, for every program that has them all: fitted to all sizes, which is judged, and
    /// between the two largest.
    pub fn growth(scenario: &str, name: impl Into<String>, series: &[Row]) -> [Self; 2] {
        let name = name.into();
        let mut fitted = Self::new(scenario, name.clone(), Unit::Exponent).bar(Bar::at_most(MAX_EXPONENT));
        let mut last = Self::new(scenario, format!("{name}, two largest"), Unit::Exponent);
        for subject in Subject::ALL {
            let sizes: Option<Vec<(f64, &Samples)>> = series
                .iter()
                .map(|row| Some((row.size?, row.figures.get(&subject)?)))
                .collect();
            let Some(sizes) = sizes else { continue };
            for (row, exponents) in [
                (&mut fitted, growth::exponents(&sizes)),
                (&mut last, growth::last_exponents(&sizes)),
            ] {
                if !exponents.rounds.is_empty() {
                    row.figures.insert(subject, exponents);
                }
            }
        }
        [fitted, last]
    }
}
