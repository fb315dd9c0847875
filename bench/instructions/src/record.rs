//! The committed counts, and how new ones compare with them.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

/// `bench/instructions.json`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Record {
    /// How many percent a count may differ.
    pub(crate) tolerance_percent: f64,
    /// Compiler, C library and processor: with others, the counts are others too.
    pub(crate) measured_with: String,
    pub(crate) instructions: BTreeMap<String, u64>,
}

impl Default for Record {
    fn default() -> Self {
        Self {
            tolerance_percent: 3.0,
            measured_with: String::new(),
            instructions: BTreeMap::new(),
        }
    }
}

impl Record {
    pub(crate) fn read(file: &Path) -> Result<Self> {
        let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
        serde_json::from_str(&text).with_context(|| format!("cannot read the counts in {}", file.display()))
    }

    pub(crate) fn write(&self, file: &Path) -> Result<()> {
        let text = serde_json::to_string_pretty(self)?;
        fs::write(file, text + "\n").with_context(|| format!("cannot write {}", file.display()))
    }
}

pub(crate) struct Comparison(Vec<Row>);

struct Row {
    name: String,
    before: Option<u64>,
    now: Option<u64>,
    verdict: Verdict,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Same,
    Worse,
    /// Only a warning: what was gained can be lost again unnoticed until the counts are updated.
    Better,
    /// Not in the file yet.
    Unknown,
    /// Only in the file.
    Removed,
}

impl Comparison {
    pub(crate) fn new(record: &Record, counts: &BTreeMap<String, u64>) -> Self {
        let names: BTreeSet<&String> = record.instructions.keys().chain(counts.keys()).collect();
        let row = |name: &String| {
            let (before, now) = (record.instructions.get(name).copied(), counts.get(name).copied());
            let verdict = match (before, now) {
                (Some(before), Some(now)) => judge(percent(before, now), record.tolerance_percent),
                (None, _) => Verdict::Unknown,
                (_, None) => Verdict::Removed,
            };
            Row {
                name: name.clone(),
                before,
                now,
                verdict,
            }
        };
        Self(names.into_iter().map(row).collect())
    }

    /// Whether anything got worse, or the file does not list what was counted.
    pub(crate) fn has_regression(&self) -> bool {
        self.0
            .iter()
            .any(|row| !matches!(row.verdict, Verdict::Same | Verdict::Better))
    }
}

fn judge(percent: f64, tolerance: f64) -> Verdict {
    if percent > tolerance {
        Verdict::Worse
    } else if percent < -tolerance {
        Verdict::Better
    } else {
        Verdict::Same
    }
}

#[allow(clippy::cast_precision_loss, reason = "for a percentage")]
fn percent(before: u64, now: u64) -> f64 {
    (now as f64 / before as f64 - 1.0) * 100.0
}

impl fmt::Display for Comparison {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = self.0.iter().map(|row| row.name.len()).max().unwrap_or(0);
        writeln!(
            formatter,
            "{:width$}  {:>15}  {:>15}  {:>9}",
            "instructions", "before", "now", "change"
        )?;
        for row in &self.0 {
            let change = row.before.zip(row.now).map(|(before, now)| percent(before, now));
            let change = change.map_or_else(String::new, |change| format!("{change:+.2} %"));
            let note = match row.verdict {
                Verdict::Same => "",
                Verdict::Worse => "  WORSE",
                Verdict::Better => "  better: run `cargo xtask instructions --write` to keep it",
                Verdict::Unknown => "  NEW",
                Verdict::Removed => "  REMOVED",
            };
            let (before, now) = (grouped(row.before), grouped(row.now));
            writeln!(
                formatter,
                "{:width$}  {before:>15}  {now:>15}  {change:>9}{note}",
                row.name
            )?;
        }
        Ok(())
    }
}

/// With a comma after each three digits.
fn grouped(count: Option<u64>) -> String {
    let digits = count.map_or_else(|| "–".to_owned(), |count| count.to_string());
    let mut text = String::new();
    for (position, digit) in digits.chars().enumerate() {
        if position > 0 && (digits.len() - position).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn compare(before: &[(&str, u64)], now: &[(&str, u64)]) -> Comparison {
        let map = |counts: &[(&str, u64)]| {
            counts
                .iter()
                .map(|(name, count)| ((*name).to_owned(), *count))
                .collect()
        };
        let record = Record {
            instructions: map(before),
            ..Record::default()
        };
        Comparison::new(&record, &map(now))
    }

    #[test]
    fn only_more_than_the_tolerance_fails() {
        assert!(!compare(&[("a", 1000)], &[("a", 1029)]).has_regression());
        assert!(compare(&[("a", 1000)], &[("a", 1031)]).has_regression());
        assert!(!compare(&[("a", 1000)], &[("a", 10)]).has_regression());
    }

    #[test]
    fn path_that_the_file_does_not_list_fails() {
        assert!(compare(&[], &[("a", 1)]).has_regression());
        assert!(compare(&[("a", 1)], &[]).has_regression());
    }

    #[test]
    fn table_shows_before_now_and_change() {
        let table = compare(&[("a", 1000)], &[("a", 1_234_567)]).to_string();
        assert!(
            table.contains("1,000        1,234,567") && table.contains("WORSE"),
            "{table}"
        );
    }
}
