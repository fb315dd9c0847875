//! The README's tables of editors and agents: what the tests have proven for each, and on which version.
//!
//! The tests record what they prove (`e2e/src/proof.rs`). The tables are generated from those records alone, so they cannot
//! claim more than a run has shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::{root, target_directory};

/// A generated table.
#[derive(Debug)]
struct Table {
    /// The line before it.
    begin: &'static str,
    /// The file with the tests' records.
    records: &'static str,
    /// The title of the first column.
    subject: &'static str,
    /// Capability name in the tests, and title in the table.
    columns: &'static [(&'static str, &'static str)],
    /// Capabilities that are part of one: name, the column's name, and what the column then says.
    partial: &'static [(&'static str, &'static str, &'static str)],
}

const END: &str = "<!-- end of generated table -->";

const AGENTS: Table = Table {
    begin: "<!-- agents, generated from test results by `cargo xtask table --write` -->",
    records: "agents.tsv",
    subject: "Agent",
    columns: &[
        ("Found", "found automatically"),
        ("Context", "context"),
        ("Review", "review"),
        ("Hunk", "hunks"),
        ("Edit", "edits"),
        ("Reason", "reason to the model"),
        ("Diagnostics", "diagnostics"),
    ],
    partial: &[("FoundAfterIde", "Found", "after `/ide`")],
};

const EDITORS: Table = Table {
    begin: "<!-- generated from test results by `cargo xtask table --write` -->",
    records: "editors.tsv",
    subject: "Editor",
    columns: &[
        ("Context", "context"),
        ("Review", "review"),
        ("Hunk", "hunks"),
        ("Edit", "edits"),
        ("Install", "installer"),
    ],
    partial: &[],
};

const TABLES: [&Table; 2] = [&AGENTS, &EDITORS];

/// Proven capabilities by editor or agent, and version.
#[derive(Debug, Default, PartialEq, Eq)]
struct Proven(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

/// Deletes the records of previous runs.
pub(crate) fn delete_records() -> Result<(), String> {
    for table in TABLES {
        let path = table.records_path()?;
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != std::io::ErrorKind::NotFound
        {
            return Err(format!("cannot remove {}: {error}", path.display()));
        }
    }
    Ok(())
}

/// Checks that the README's tables match the last run.
pub(crate) fn check() -> Result<(), String> {
    let readme = read_readme()?;
    for table in TABLES {
        let (_, shown, _) = table.split(&readme)?;
        let proven = table.format(&table.read()?);
        if without_versions(shown) != without_versions(&proven) {
            return Err(format!(
                "a table in README.md is out of date; expected\n\n{proven}\nRun `cargo xtask table --write` to update it"
            ));
        }
        if shown != proven {
            eprintln!("xtask: the installed versions differ from the table in README.md:\n{proven}");
        }
    }
    Ok(())
}

/// Updates the README's tables from the last run.
pub(crate) fn write() -> Result<(), String> {
    let mut readme = read_readme()?;
    for table in TABLES {
        let (before, _, after) = table.split(&readme)?;
        readme = format!("{before}{}{after}", table.format(&table.read()?));
    }
    let path = readme_path();
    fs::write(&path, readme).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

fn readme_path() -> PathBuf {
    root().join("README.md")
}

fn read_readme() -> Result<String, String> {
    let path = readme_path();
    fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// Versions are not compared: another machine may have other versions and prove the same capabilities.
fn without_versions(table: &str) -> Vec<String> {
    let row = |line: &str| {
        let mut cells: Vec<&str> = line.split('|').collect();
        if cells.len() > 2 {
            cells.remove(2);
        }
        cells.join("|")
    };
    table.lines().map(row).collect()
}

impl Table {
    fn records_path(&self) -> Result<PathBuf, String> {
        Ok(target_directory()?.join("proven").join(self.records))
    }

    /// A text split in three; the table is the second part.
    fn split<'a>(&self, text: &'a str) -> Result<(&'a str, &'a str, &'a str), String> {
        let parts = || {
            let begin = text.find(self.begin)? + self.begin.len() + 1;
            let end = begin + text.get(begin..)?.find(END)?;
            Some((&text[..begin], &text[begin..end], &text[end..]))
        };
        parts().ok_or_else(|| format!("README.md has no line `{}`, or no end of it", self.begin))
    }

    fn read(&self) -> Result<Proven, String> {
        let path = self.records_path()?;
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}; run `cargo xtask test` first", path.display()))?;
        self.parse(&text)
    }

    fn parse(&self, text: &str) -> Result<Proven, String> {
        let mut proven = Proven::default();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let (Some(subject), Some(version), Some(capability)) = (fields.next(), fields.next(), fields.next()) else {
                return Err(format!("invalid test record: `{line}`"));
            };
            let is_column = self.columns.iter().any(|(name, _)| *name == capability);
            if !is_column && !self.partial.iter().any(|(name, ..)| *name == capability) {
                return Err(format!("the table has no column for {capability}"));
            }
            let versions = proven.0.entry(subject.to_owned()).or_default();
            let capabilities = versions.entry(version.to_owned()).or_default();
            capabilities.insert(capability.to_owned());
        }
        Ok(proven)
    }

    /// What a column says if its capability is not proven.
    fn part_of(&self, column: &str, versions: &BTreeMap<String, BTreeSet<String>>) -> &'static str {
        let mut partial = self.partial.iter().filter(|(_, whole, _)| *whole == column);
        let is_proven = |name: &str| versions.values().all(|proven| proven.contains(name));
        let found = partial.find(|(name, ..)| is_proven(name));
        found.map_or("–", |(.., text)| text)
    }

    fn format(&self, proven: &Proven) -> String {
        let mut table = format!("| {} | version |", self.subject);
        for (_, title) in self.columns {
            table.push_str(&format!(" {title} |"));
        }
        table.push_str("\n|---|---|");
        table.push_str(&"---|".repeat(self.columns.len()));
        table.push('\n');
        for (subject, versions) in &proven.0 {
            let all: Vec<&str> = versions.keys().map(String::as_str).collect();
            table.push_str(&format!("| {subject} | {} |", all.join(", ")));
            for (name, _) in self.columns {
                let proven: Vec<&str> = all
                    .iter()
                    .copied()
                    .filter(|version| versions[*version].contains(*name))
                    .collect();
                // Proven on some versions only: list them.
                match proven.len() {
                    0 => table.push_str(&format!(" {} |", self.part_of(name, versions))),
                    count if count == all.len() => table.push_str(" ✓ |"),
                    _ => table.push_str(&format!(" {} |", proven.join(", "))),
                }
            }
            table.push('\n');
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RECORDS: &str = "Vim\t9.0\tContext\nNeovim\t0.10.4\tHunk\nNeovim\t0.10.4\tHunk\nNeovim\t0.10.4\tInstall\n";

    #[test]
    fn table_has_exactly_the_proven_capabilities() {
        let table = EDITORS.format(&EDITORS.parse(RECORDS).unwrap());
        let wanted = "\
| Editor | version | context | review | hunks | edits | installer |
|---|---|---|---|---|---|---|
| Neovim | 0.10.4 | – | – | ✓ | – | ✓ |
| Vim | 9.0 | ✓ | – | – | – | – |
";
        assert_eq!(table, wanted);
    }

    #[test]
    fn capability_of_one_version_lists_that_version() {
        let records = "Emacs\t28.2\tContext\nEmacs\t30.1\tContext\nEmacs\t30.1\tEdit\n";
        let table = EDITORS.format(&EDITORS.parse(records).unwrap());
        assert!(
            table.ends_with("| Emacs | 28.2, 30.1 | ✓ | – | – | 30.1 | – |\n"),
            "{table}"
        );
    }

    #[test]
    fn part_of_a_capability_is_named() {
        let records = "Codex\t1\tFoundAfterIde\nGemini CLI\t1\tFound\nQwen Code\t1\tContext\n";
        let table = AGENTS.format(&AGENTS.parse(records).unwrap());
        let found: Vec<&str> = table
            .lines()
            .skip(2)
            .filter_map(|row| row.split(" | ").nth(2))
            .collect();
        assert_eq!(found, ["after `/ide`", "✓", "–"]);
    }

    #[test]
    fn other_versions_match_and_missing_proofs_do_not() {
        let table = |records: &str| without_versions(&EDITORS.format(&EDITORS.parse(records).unwrap()));
        assert_eq!(table(RECORDS), table(&RECORDS.replace("9.0", "9.1")));
        assert_ne!(table(RECORDS), table(&RECORDS.replace("Vim\t9.0\tContext\n", "")));
        assert_ne!(table(RECORDS), table(&RECORDS.replace("Context", "Edit")));
    }

    #[test]
    fn unknown_capability_is_an_error() {
        assert!(EDITORS.parse("Vim\t9.0\tMagic\n").is_err());
        assert!(EDITORS.parse("Vim 9.0 Context\n").is_err());
    }

    #[test]
    fn only_text_between_marks_is_replaced() {
        for own in TABLES {
            let text = format!("before\n{}\ntable\n{END}\nafter\n", own.begin);
            let (before, table, after) = own.split(&text).unwrap();
            assert_eq!(table, "table\n");
            assert_eq!(format!("{before}{table}{after}"), text);
            assert!(own.split("nothing").is_err());
        }
    }
}
