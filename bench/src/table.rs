//! The table of all rows, for the terminal and for documents.

use std::fmt::Write as _;

use crate::judge::{Bar, Verdict};
use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::subject::Subject;

/// A figure with its unit, in three digits.
pub fn figure(value: f64, unit: Unit) -> String {
    if !value.is_finite() {
        return "?".to_owned();
    }
    let (scaled, suffix) = match unit {
        Unit::Seconds => match value.abs() {
            size if size < 0.999_5e-6 => (value * 1e9, " ns"),
            size if size < 0.999_5e-3 => (value * 1e6, " µs"),
            size if size < 0.999_5 => (value * 1e3, " ms"),
            _ => (value, " s"),
        },
        Unit::Kilobytes if value.abs() >= 999.5 => return format!("{} kB", thousands(value)),
        Unit::Kilobytes => (value, " kB"),
        Unit::Count | Unit::Exponent => (value, ""),
    };
    let digits = match scaled.abs() {
        size if unit == Unit::Exponent || size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    format!("{scaled:.digits$}{suffix}")
}

/// Rounded, with commas.
fn thousands(value: f64) -> String {
    let digits = format!("{:.0}", value.abs());
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    if value < 0.0 { format!("-{text}") } else { text }
}

/// Another program's figure as a multiple of ours: `8.3×`.
pub fn multiple(other: f64, ours: f64) -> String {
    let ratio = other / ours;
    match ratio {
        ratio if !ratio.is_finite() => "?".to_owned(),
        ratio if ratio < 9.95 => format!("{ratio:.2}×"),
        ratio => format!("{ratio:.0}×"),
    }
}

/// What a bar demands.
pub fn demand(bar: &Bar, unit: Unit) -> String {
    match bar {
        Bar::AtMost(limit) => format!("≤ {}", figure(*limit, unit)),
        Bar::Times { factor, of } if *factor < 1.0 => format!(
            "≤ 1/{} of {}",
            figure(1.0 / factor, Unit::Count)
                .trim_end_matches(".00")
                .trim_end_matches(".0"),
            of.title()
        ),
        Bar::Times { factor, of } => format!("≤ {factor} × {}", of.title()),
    }
}

/// The cells of a row: name, a figure for each program, bars.
fn cells(row: &Row) -> Vec<String> {
    let mut cells = vec![row.name.clone()];
    let ours = row.of(Subject::Ours).map(Samples::median);
    for subject in Subject::ALL {
        let Some(samples) = row.of(subject) else {
            cells.push(String::new());
            continue;
        };
        let mut text = figure(samples.median(), row.unit);
        if row.has_tail {
            let (name, value) = samples.tail();
            text.push_str(&format!(", {name} {}", figure(value, row.unit)));
        }
        // A figure below idle has no meaningful ratio to one above it.
        let is_multiple = subject != Subject::Ours && row.unit != Unit::Exponent && samples.median() > 0.0;
        if let Some(ours) = ours.filter(|ours| is_multiple && *ours > 0.0) {
            text.push_str(&format!(" ({})", multiple(samples.median(), ours)));
        }
        text.push_str(&format!(" ±{:.0}%", samples.spread() * 50.0));
        cells.push(text);
    }
    let bars: Vec<String> = row
        .bars
        .iter()
        .map(|bar| format!("{}: {}", demand(bar, row.unit), bar.verdict(row).text()))
        .collect();
    cells.push(bars.join("; "));
    cells
}

fn titles() -> Vec<String> {
    let subjects = Subject::ALL.iter().map(|subject| subject.title().to_owned());
    [String::new()]
        .into_iter()
        .chain(subjects)
        .chain(["bar".to_owned()])
        .collect()
}

/// Aligned columns.
pub fn text(rows: &[Row]) -> String {
    let lines: Vec<Vec<String>> = std::iter::once(titles()).chain(rows.iter().map(cells)).collect();
    let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..lines[0].len()).map(width).collect();
    let mut text = String::new();
    for line in lines {
        let mut padded = String::new();
        for (cell, width) in line.iter().zip(&widths) {
            let _ = write!(padded, "{cell:width$}  ");
        }
        text.push_str(padded.trim_end());
        text.push('\n');
    }
    text
}

/// A table in Markdown.
pub fn markdown(rows: &[Row]) -> String {
    let titles = titles();
    let mut text = format!("| {} |\n|{}\n", titles.join(" | "), "---|".repeat(titles.len()));
    for row in rows {
        text.push_str(&format!("| {} |\n", cells(row).join(" | ")));
    }
    text
}

/// A short table in Markdown, with only the headlines, for the README.
pub fn headlines(rows: &[Row]) -> String {
    let mut text = "| | alongside | a companion on Node | |\n|---|---|---|---|\n".to_owned();
    for row in rows.iter().filter(|row| row.is_headline) {
        let (Some(ours), Some(node)) = (row.of(Subject::Ours), row.of(Subject::Node)) else {
            continue;
        };
        let (ours, node) = (ours.median(), node.median());
        let (name, ratio) = (&row.name, multiple(node, ours));
        text.push_str(&format!(
            "| {name} | {} | {} | {ratio} |\n",
            figure(ours, row.unit),
            figure(node, row.unit)
        ));
    }
    text
}

/// Every bar that is not met, with its verdict.
pub fn open_bars(rows: &[Row]) -> Vec<(Verdict, String)> {
    let of_row = |row: &Row| {
        let judged = row.bars.iter().map(|bar| (bar.verdict(row), bar));
        let open = judged.filter(|(verdict, _)| *verdict != Verdict::Met);
        open.map(|(verdict, bar)| (verdict, format!("{}: {}", row.name, demand(bar, row.unit))))
            .collect::<Vec<_>>()
    };
    rows.iter().flat_map(of_row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_three_digits_and_a_fitting_unit() {
        for (value, unit, text) in [
            (0.000_000_25, Unit::Seconds, "250 ns"),
            (0.000_061_24, Unit::Seconds, "61.2 µs"),
            (0.000_999_9, Unit::Seconds, "1.00 ms"),
            (0.412, Unit::Seconds, "412 ms"),
            (1.5, Unit::Seconds, "1.50 s"),
            (8990.0, Unit::Kilobytes, "8,990 kB"),
            (-1_234_567.0, Unit::Kilobytes, "-1,234,567 kB"),
            (18.4, Unit::Kilobytes, "18.4 kB"),
            (0.98, Unit::Exponent, "0.98"),
            (f64::NAN, Unit::Seconds, "?"),
        ] {
            assert_eq!(figure(value, unit), text);
        }
    }

    #[test]
    fn demands_read_as_they_are_spoken_of() {
        assert_eq!(
            demand(&Bar::times(1.0 / 40.0, Subject::Node), Unit::Seconds),
            "≤ 1/40 of Node"
        );
        assert_eq!(
            demand(&Bar::times(1.5, Subject::FloorAndWrite), Unit::Seconds),
            "≤ 1.5 × floor + write"
        );
        assert_eq!(demand(&Bar::at_most(9000.0), Unit::Kilobytes), "≤ 9,000 kB");
    }

    #[test]
    fn table_has_every_program_and_the_verdict() {
        let mut row = Row::new("start", "start", Unit::Seconds).bar(Bar::times(0.1, Subject::Node));
        row.push(Subject::Ours, &[0.01]);
        row.push(Subject::Node, &[0.5]);
        let table = text(&[row.clone()]);
        assert!(table.contains("10.0 ms ±0%"), "{table}");
        assert!(table.contains("500 ms (50×) ±0%"), "{table}");
        assert!(table.contains("≤ 1/10 of Node: met"), "{table}");
        let table = markdown(&[row]);
        assert_eq!(table.lines().count(), 3);
        assert!(table.lines().all(|line| line.matches('|').count() == 8), "{table}");
    }

    #[test]
    fn headlines_compare_with_node() {
        let mut row = Row::new("start", "start", Unit::Seconds).headline();
        row.push(Subject::Ours, &[0.01]);
        let mut other = row.clone();
        other.push(Subject::Node, &[0.5]);
        let table = headlines(&[row, other]);
        assert!(
            table.ends_with("|---|\n| start | 10.0 ms | 500 ms | 50× |\n"),
            "{table}"
        );
    }
}
