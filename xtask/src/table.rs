//! The README's editor table: what the tests have proven for each editor, and on which version.
//!
//! The editor tests record what they prove (`proves` in `e2e/src/proof.rs`). The table is generated from those records
//! alone, so it cannot claim more than a run has shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::{root, target_directory};

const BEGIN: &str = "<!-- generated from test results by `cargo xtask table --write` -->";
const END: &str = "<!-- end of generated table -->";

/// The columns: capability name in the tests, and title in the table.
const COLUMNS: [(&str, &str); 5] = [
    ("Context", "context"),
    ("Review", "review"),
    ("Hunk", "hunks"),
    ("Edit", "edits"),
    ("Install", "installer"),
];

/// Proven capabilities by editor and version.
#[derive(Debug, Default, PartialEq, Eq)]
struct Proven(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

/// Deletes the records of previous runs.
pub(crate) fn delete_records() -> Result<(), String> {
    let path = records_path()?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Checks that the README's table matches the last run.
pub(crate) fn check() -> Result<(), String> {
    let (_, table, _) = readme()?;
    let proven = Proven::read()?;
    if without_versions(&table) != without_versions(&proven.table()) {
        return Err(format!(
            "the editor table in README.md is out of date; expected\n\n{}\nRun `cargo xtask table --write` to update it",
            proven.table()
        ));
    }
    if table != proven.table() {
        eprintln!("xtask: the installed editor versions differ from the table in README.md");
    }
    Ok(())
}

/// Updates the README's table from the last run.
pub(crate) fn write() -> Result<(), String> {
    let (before, _, after) = readme()?;
    let table = Proven::read()?.table();
    let path = root().join("README.md");
    fs::write(&path, format!("{before}{table}{after}"))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// The file with the tests' records.
fn records_path() -> Result<PathBuf, String> {
    Ok(target_directory()?.join("proven/editors.tsv"))
}

/// The README split in three; the table is the second part.
fn readme() -> Result<(String, String, String), String> {
    let path = root().join("README.md");
    let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
    let parts = parts(&text).ok_or_else(|| format!("{} has no line `{BEGIN}`, or no end of it", path.display()))?;
    Ok((parts.0.to_owned(), parts.1.to_owned(), parts.2.to_owned()))
}

fn parts(text: &str) -> Option<(&str, &str, &str)> {
    let begin = text.find(BEGIN)? + BEGIN.len() + 1;
    let end = begin + text.get(begin..)?.find(END)?;
    Some((&text[..begin], &text[begin..end], &text[end..]))
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

impl Proven {
    fn read() -> Result<Self, String> {
        let path = records_path()?;
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("cannot read {}: {error}; run the editor tests first", path.display()))?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut proven = Self::default();
        for line in text.lines() {
            let mut fields = line.split('\t');
            let (Some(editor), Some(version), Some(capability)) = (fields.next(), fields.next(), fields.next()) else {
                return Err(format!("invalid test record: `{line}`"));
            };
            if !COLUMNS.iter().any(|(name, _)| *name == capability) {
                return Err(format!("the table has no column for {capability}"));
            }
            let versions = proven.0.entry(editor.to_owned()).or_default();
            let capabilities = versions.entry(version.to_owned()).or_default();
            capabilities.insert(capability.to_owned());
        }
        Ok(proven)
    }

    fn table(&self) -> String {
        let mut table = "| Editor | version |".to_owned();
        for (_, title) in COLUMNS {
            table.push_str(&format!(" {title} |"));
        }
        table.push_str("\n|---|---|");
        table.push_str(&"---|".repeat(COLUMNS.len()));
        table.push('\n');
        for (editor, versions) in &self.0 {
            let all: Vec<&str> = versions.keys().map(String::as_str).collect();
            table.push_str(&format!("| {editor} | {} |", all.join(", ")));
            for (name, _) in COLUMNS {
                let proven: Vec<&str> = all
                    .iter()
                    .copied()
                    .filter(|version| versions[*version].contains(name))
                    .collect();
                // Proven on some versions only: list them.
                match proven.len() {
                    0 => table.push_str(" – |"),
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
        let table = Proven::parse(RECORDS).unwrap().table();
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
        let table = Proven::parse(records).unwrap().table();
        assert!(
            table.ends_with("| Emacs | 28.2, 30.1 | ✓ | – | – | 30.1 | – |\n"),
            "{table}"
        );
    }

    #[test]
    fn other_versions_match_and_missing_proofs_do_not() {
        let table = |records: &str| without_versions(&Proven::parse(records).unwrap().table());
        assert_eq!(table(RECORDS), table(&RECORDS.replace("9.0", "9.1")));
        assert_ne!(table(RECORDS), table(&RECORDS.replace("Vim\t9.0\tContext\n", "")));
        assert_ne!(table(RECORDS), table(&RECORDS.replace("Context", "Edit")));
    }

    #[test]
    fn unknown_capability_is_an_error() {
        assert!(Proven::parse("Vim\t9.0\tMagic\n").is_err());
        assert!(Proven::parse("Vim 9.0 Context\n").is_err());
    }

    #[test]
    fn only_text_between_marks_is_replaced() {
        let text = format!("before\n{BEGIN}\ntable\n{END}\nafter\n");
        let (before, table, after) = parts(&text).unwrap();
        assert_eq!(table, "table\n");
        assert_eq!(format!("{before}{table}{after}"), text);
        assert_eq!(parts("nothing"), None);
    }
}
