//! Charts as SVG, without scripts, and readable on light and on dark pages.

use std::fmt::Write as _;

use crate::row::{Row, Unit};
use crate::samples::Samples;
use crate::subject::Subject;
use crate::table::figure;

const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 360.0;
/// Text and lines: gray enough for both kinds of pages.
const INK: &str = "#7a828e";
const GRID: &str = "#8b949e";

/// Where the figures are drawn: left, top, right, bottom.
const AREA: (f64, f64, f64, f64) = (98.0, 74.0, 700.0, 310.0);

/// Rows of a series, as a line for each program.
struct Lines {
    file: &'static str,
    title: &'static str,
    scenario: &'static str,
    series: &'static str,
}

const LINES: [Lines; 4] = [
    Lines {
        file: "bench-open-diff.svg",
        title: "openDiff: time by size of the file",
        scenario: "openDiff",
        series: "time",
    },
    Lines {
        file: "bench-open-diff-cpu.svg",
        title: "openDiff with closeDiff: CPU time by size of the file",
        scenario: "openDiff",
        series: "cpu",
    },
    Lines {
        file: "bench-context.svg",
        title: "A context change: time until the last session has it, by sessions",
        scenario: "context",
        series: "time",
    },
    Lines {
        file: "bench-memory.svg",
        title: "Memory (RSS) by connected sessions",
        scenario: "memory",
        series: "memory",
    },
];

/// Every chart that the rows have figures for: its file name and its text.
pub fn all(rows: &[Row]) -> Vec<(&'static str, String)> {
    let mut charts = Vec::new();
    let single = ["start to discovery file", "idle memory (RSS)"];
    let bars: Vec<&Row> = single
        .iter()
        .filter_map(|name| rows.iter().find(|row| row.name == *name))
        .collect();
    if !bars.is_empty() {
        charts.push(("bench-start.svg", bar_chart("Start and idle memory", &bars)));
    }
    for lines in &LINES {
        let is_part = |row: &&Row| row.scenario == lines.scenario && row.series.as_deref() == Some(lines.series);
        let series: Vec<&Row> = rows.iter().filter(is_part).collect();
        if series.len() > 1 {
            charts.push((lines.file, line_chart(lines.title, &series)));
        }
    }
    charts
}

/// The title of a chart, for its description.
pub fn title(svg: &str) -> Option<&str> {
    svg.split_once("<title>")?
        .1
        .split_once("</title>")
        .map(|(title, _)| title)
}

fn color(subject: Subject) -> &'static str {
    match subject {
        Subject::Ours => "#2f81f7",
        Subject::Node => "#e5534b",
        Subject::Rmcp => "#c69026",
        Subject::Floor => "#57ab5a",
        Subject::FloorAndWrite => "#986ee2",
    }
}

/// Both axes are logarithmic: a straight line is a power, and one at 45° is linear if both have the same scale.
fn line_chart(title: &str, series: &[&Row]) -> String {
    let sizes: Vec<f64> = series.iter().filter_map(|row| row.size).collect();
    let medians = series.iter().flat_map(|row| row.figures.values().map(Samples::median));
    let x = Axis::around(sizes.iter().copied(), AREA.0 + 16.0, AREA.2 - 16.0);
    let y = Axis::around_decades(medians, AREA.3, AREA.1);
    let unit = series.first().map_or(Unit::Count, |row| row.unit);
    let mut body = String::new();
    for tick in y.decades() {
        let at = y.place(tick);
        let label = figure(tick, unit).replace(".00", "").replace(".0", "");
        let _ = write!(
            body,
            "<path d=\"M{:.1} {at:.1}H{:.1}\" stroke=\"{GRID}\" stroke-opacity=\".35\"/>\n{}",
            AREA.0,
            AREA.2,
            text(AREA.0 - 8.0, at + 4.0, "end", INK, &label)
        );
    }
    for row in series {
        let Some(size) = row.size else { continue };
        let label = row.name.rsplit(", ").next().unwrap_or(&row.name);
        // The title says what is counted.
        let label = label
            .trim_start_matches("memory with ")
            .trim_end_matches('s')
            .trim_end_matches(" session");
        body.push_str(&text(x.place(size), AREA.3 + 22.0, "middle", INK, label));
    }
    let subjects: Vec<Subject> = present(series);
    // Ours last, on top of the others.
    for subject in subjects.iter().rev() {
        let points: Vec<(f64, f64)> = series
            .iter()
            .filter_map(|row| Some((x.place(row.size?), y.place(row.of(*subject)?.median()))))
            .collect();
        let line: Vec<String> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let width = if *subject == Subject::Ours { 3.0 } else { 2.0 };
        let color = color(*subject);
        let _ = writeln!(
            body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{color}\" stroke-width=\"{width}\"/>",
            line.join(" ")
        );
        for (x, y) in points {
            let _ = writeln!(body, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{color}\"/>");
        }
    }
    body.push_str(&legend(&subjects));
    document(title, HEIGHT, &body)
}

/// For each row, a bar for each program.
fn bar_chart(title: &str, rows: &[&Row]) -> String {
    let mut body = String::new();
    let mut top = 58.0;
    for row in rows {
        body.push_str(&text(16.0, top + 14.0, "start", INK, &row.name));
        top += 24.0;
        let most = row.figures.values().map(Samples::median).fold(0.0, f64::max);
        for (subject, samples) in &row.figures {
            let width = (samples.median() / most * 460.0).max(1.0);
            let _ = writeln!(
                body,
                "<rect x=\"110\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"18\" rx=\"2\" fill=\"{}\"/>",
                color(*subject)
            );
            body.push_str(&text(102.0, top + 13.5, "end", INK, subject.title()));
            body.push_str(&text(
                118.0 + width,
                top + 13.5,
                "start",
                INK,
                &figure(samples.median(), row.unit),
            ));
            top += 24.0;
        }
        top += 14.0;
    }
    document(title, top, &body)
}

/// Programs with a figure in any of the rows.
fn present(rows: &[&Row]) -> Vec<Subject> {
    let has = |subject: &Subject| rows.iter().any(|row| row.figures.contains_key(subject));
    Subject::ALL.into_iter().filter(has).collect()
}

fn legend(subjects: &[Subject]) -> String {
    let mut body = String::new();
    let mut left = AREA.0;
    for subject in subjects {
        let title = subject.title();
        let _ = writeln!(
            body,
            "<rect x=\"{left:.1}\" y=\"46\" width=\"14\" height=\"4\" rx=\"2\" fill=\"{}\"/>",
            color(*subject)
        );
        body.push_str(&text(left + 20.0, 52.0, "start", INK, title));
        left += 44.0 + 7.2 * crate::samples::as_f64(title.len());
    }
    body
}

fn text(x: f64, y: f64, anchor: &str, fill: &str, content: &str) -> String {
    let content = escaped(content);
    format!("<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\" fill=\"{fill}\">{content}</text>\n")
}

fn document(title: &str, height: f64, body: &str) -> String {
    let title = escaped(title);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
         font-family=\"system-ui, -apple-system, 'Segoe UI', sans-serif\" font-size=\"13\">\n\
         <title>{title}</title>\n\
         <text x=\"16\" y=\"26\" font-size=\"16\" font-weight=\"600\" fill=\"{INK}\">{title}</text>\n{body}</svg>\n"
    )
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A logarithmic axis between two places.
struct Axis {
    least: f64,
    most: f64,
    from: f64,
    to: f64,
}

impl Axis {
    fn around(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let usable: Vec<f64> = values.filter(|value| *value > 0.0 && value.is_finite()).collect();
        let least = usable.iter().copied().fold(f64::INFINITY, f64::min);
        let most = usable.iter().copied().fold(0.0, f64::max);
        if least < most {
            Self { least, most, from, to }
        } else {
            Self {
                least: 0.5,
                most: 2.0,
                from,
                to,
            }
        }
    }

    /// From one power of ten to another.
    fn around_decades(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Self {
        let exact = Self::around(values, from, to);
        Self {
            least: 10_f64.powf(exact.least.log10().floor()),
            most: 10_f64.powf(exact.most.log10().ceil()),
            ..exact
        }
    }

    fn decades(&self) -> Vec<f64> {
        let mut ticks = vec![self.least];
        while let Some(last) = ticks.last().filter(|last| **last * 5.0 < self.most) {
            ticks.push(last * 10.0);
        }
        ticks
    }

    fn place(&self, value: f64) -> f64 {
        let share = (value / self.least).ln() / (self.most / self.least).ln();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows() -> Vec<Row> {
        let row = |count: f64| {
            let name = format!("memory with {count} sessions");
            let mut row = Row::new("memory", name, Unit::Kilobytes).in_series("memory", count);
            row.push(Subject::Ours, &[8000.0 + count]);
            row.push(Subject::Node, &[90_000.0 + 100.0 * count]);
            row
        };
        let mut rows: Vec<Row> = [1.0, 16.0, 256.0].into_iter().map(row).collect();
        let mut start = Row::new("start", "start to discovery file", Unit::Seconds);
        start.push(Subject::Ours, &[0.01]);
        start.push(Subject::Node, &[0.5]);
        rows.push(start);
        rows
    }

    #[test]
    fn charts_are_drawn_for_what_was_measured() {
        let charts = all(&rows());
        let names: Vec<&str> = charts.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["bench-start.svg", "bench-memory.svg"]);
        assert!(all(&[]).is_empty());
    }

    #[test]
    fn line_has_a_point_for_each_size() {
        let charts = all(&rows());
        let (_, svg) = &charts[1];
        assert_eq!(svg.matches("<circle").count(), 6);
        assert_eq!(svg.matches("<polyline").count(), 2);
        assert!(svg.contains(">256<") && svg.contains(">10,000 kB<"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("script"));
        assert_eq!(title(svg), Some("Memory (RSS) by connected sessions"));
    }

    #[test]
    fn axis_places_powers_evenly() {
        let axis = Axis::around_decades([0.02, 3.0].into_iter(), 0.0, 300.0);
        let places: Vec<f64> = axis.decades().iter().map(|tick| axis.place(*tick).round()).collect();
        assert_eq!(places, [0.0, 100.0, 200.0, 300.0]);
    }
}
