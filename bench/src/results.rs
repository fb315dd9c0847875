//! The results of a whole run, kept in `bench/results.json` for the documents.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};

use crate::row::Row;

/// Relative to the root of the repository.
pub const PATH: &str = "bench/results.json";
/// What a whole run has measured so far, until it has finished.
pub const PARTIAL_PATH: &str = "bench/results.partial.json";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Results {
    /// Where it was measured: system, architecture and cores.
    pub machine: String,
    /// What was measured: its version, and its commit if that is known.
    pub program: String,
    pub node: String,
    /// The load averages of the last minute, before and after.
    pub load: (f64, f64),
    pub rows: Vec<Row>,
}

impl Results {
    pub fn read(root: &Path) -> Result<Self> {
        let path = root.join(PATH);
        let text = fs::read(&path)
            .with_context(|| format!("cannot read {}; run `cargo xtask bench` first", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("cannot parse {}", path.display()))
    }

    /// What could not be measured, because a program is not installed.
    pub fn missing(&self) -> impl Iterator<Item = &str> {
        let missing = self.rows.iter().filter(|row| row.figures.is_empty());
        missing.map(|row| row.name.as_str())
    }

    pub fn write(&self, root: &Path) -> Result<()> {
        self.write_to(&root.join(PATH))?;
        let _ = fs::remove_file(root.join(PARTIAL_PATH));
        Ok(())
    }

    pub fn write_partial(&self, root: &Path) -> Result<()> {
        self.write_to(&root.join(PARTIAL_PATH))
    }

    fn write_to(&self, path: &Path) -> Result<()> {
        fs::write(path, self.to_json()?).with_context(|| format!("cannot write {}", path.display()))
    }

    /// A row per line, so that a difference can be read.
    fn to_json(&self) -> Result<String> {
        let rows: Result<Vec<String>> = self
            .rows
            .iter()
            .map(|row| Ok(serde_json::to_string(&rounded(row))?))
            .collect();
        let machine = serde_json::to_string(&self.machine)?;
        let program = serde_json::to_string(&self.program)?;
        let node = serde_json::to_string(&self.node)?;
        let load = serde_json::to_string(&self.load)?;
        let rows = rows?.join(",\n");
        Ok(format!(
            "{{\n\"machine\": {machine},\n\"program\": {program},\n\"node\": {node},\n\"load\": {load},\n\"rows\": [\n{rows}\n]\n}}\n"
        ))
    }
}

/// With as many digits as mean anything.
fn rounded(row: &Row) -> Row {
    let mut row = row.clone();
    let rounds = row.figures.values_mut().flat_map(|samples| &mut samples.rounds);
    for value in rounds.flatten() {
        *value = significant(*value);
    }
    row
}

/// A number with five significant digits.
fn significant(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// The system, the architecture, the number of cores and their model.
pub fn machine() -> String {
    let cores = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    let machine = format!("{} {}, {cores} cores", std::env::consts::OS, std::env::consts::ARCH);
    let about = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = about
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "));
    model.map_or(machine.clone(), |(_, model)| format!("{machine} ({})", model.trim()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::judge::Bar;
    use crate::row::Unit;
    use crate::subject::Subject;

    #[test]
    fn results_are_read_as_they_were_written() {
        let mut row = Row::new("start", "start \"to\" file", Unit::Seconds)
            .in_series("time", 1024.0)
            .bar(Bar::times(0.025, Subject::Node))
            .bar(Bar::at_most(2.0));
        row.push(Subject::Ours, &[0.25, 0.5]);
        row.push(Subject::Ours, &[0.75]);
        row.push(Subject::FloorAndWrite, &[0.125]);
        let results = Results {
            machine: machine(),
            program: "alongside 1".to_owned(),
            node: "v1".to_owned(),
            load: (0.5, 1.5),
            rows: vec![row.clone(), row],
        };
        let text = results.to_json().unwrap();
        assert_eq!(serde_json::from_str::<Results>(&text).unwrap(), results);
        assert_eq!(text.lines().count(), 10);
    }

    #[test]
    fn partial_results_are_gone_once_the_run_has_finished() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir(root.path().join("bench")).unwrap();
        let results = Results {
            machine: machine(),
            program: String::new(),
            node: String::new(),
            load: (0.0, 0.0),
            rows: Vec::new(),
        };
        results.write_partial(root.path()).unwrap();
        assert!(Results::read(root.path()).is_err());
        results.write(root.path()).unwrap();
        assert_eq!(Results::read(root.path()).unwrap(), results);
        assert!(!root.path().join(PARTIAL_PATH).exists());
    }

    #[test]
    fn row_without_figures_is_missing() {
        let mut measured = Row::new("start", "start", Unit::Seconds);
        measured.push(Subject::Ours, &[0.5]);
        let results = Results {
            machine: machine(),
            program: String::new(),
            node: String::new(),
            load: (0.0, 0.0),
            rows: vec![measured, Row::new("page", "page: not measured", Unit::Seconds)],
        };
        assert_eq!(results.missing().collect::<Vec<_>>(), ["page: not measured"]);
    }

    #[test]
    #[expect(clippy::float_cmp, reason = "both are parsed")]
    fn figures_are_stored_with_five_digits() {
        assert_eq!(significant(0.000_123_456_789), 0.000_123_46);
        assert_eq!(significant(123_456.0), 123_460.0);
    }
}
