//! The README's table of editors: what the tests have proven for each, and on which version.
//!
//! The tests of the editors note what they prove (`proves` in `e2e/src/proof.rs`). The table is made from those notes and
//! from nothing else, so that it cannot say more than a run has shown.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use crate::{root, target_directory};

const BEGIN: &str = "<!-- generated from test results by `cargo xtask table --write` -->";
const END: &str = "<!-- end of generated table -->";

/// The columns: what a test calls it, and what the table does.
const COLUMNS: [(&str, &str); 5] = [
    ("Context", "context"),
    ("Review", "review"),
    ("Hunk", "hunks"),
    ("Edit", "edits"),
    ("Install", "installer"),
];

/// By editor and by version: what was proven.
#[derive(Debug, Default, PartialEq, Eq)]
struct Proven(BTreeMap<String, BTreeMap<String, BTreeSet<String>>>);

/// Forgets what former runs have proven.
pub(crate) fn forget() -> Result<(), String> {
    let path = notes()?;
    match fs::remove_file(&path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(format!("cannot remove {}: {error}", path.display()))
        }
        _ => Ok(()),
    }
}

/// Says whether the README's table is what the last run has proven.
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

/// Writes what the last run has proven into the README.
pub(crate) fn write() -> Result<(), String> {
    let (before, _, after) = readme()?;
    let table = Proven::read()?.table();
    let path = root().join("README.md");
    fs::write(&path, format!("{before}{table}{after}"))
        .map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Where tests note what they prove.
fn notes() -> Result<PathBuf, String> {
    Ok(target_directory()?.join("proven/editors.tsv"))
}

/// The README in three parts; the table is the second.
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

/// Another machine may have other versions, and prove the same all the same.
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
        let path = notes()?;
        let text = fs::read_to_string(&path).map_err(|error| {
            format!(
                "cannot read {}: {error}; run the tests of the editors first",
                path.display()
            )
        })?;
        Self::parse(&text)
    }

    fn parse(text: &str) -> Result<Self, String> {
        let mut proven = Self::default();
        for line in text.lines() {
            let mut words = line.split('\t');
            let (Some(editor), Some(version), Some(capability)) = (words.next(), words.next(), words.next()) else {
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
                // What was seen on one version only is not said of the others.
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

    const NOTES: &str = "Vim\t9.0\tContext\nNeovim\t0.10.4\tHunk\nNeovim\t0.10.4\tHunk\nNeovim\t0.10.4\tInstall\n";

    #[test]
    fn the_table_has_what_was_proven_and_nothing_else() {
        let table = Proven::parse(NOTES).unwrap().table();
        let wanted = "\
| Editor | version | context | review | single hunks | edits | installer |
|---|---|---|---|---|---|---|
| Neovim | 0.10.4 | – | – | ✓ | – | ✓ |
| Vim | 9.0 | ✓ | – | – | – | – |
";
        assert_eq!(table, wanted);
    }

    #[test]
    fn what_was_seen_on_one_version_is_not_said_of_the_others() {
        let notes = "Emacs\t28.2\tContext\nEmacs\t30.1\tContext\nEmacs\t30.1\tEdit\n";
        let table = Proven::parse(notes).unwrap().table();
        assert!(
            table.ends_with("| Emacs | 28.2, 30.1 | ✓ | – | – | 30.1 | – |\n"),
            "{table}"
        );
    }

    #[test]
    fn another_version_proves_the_same_and_a_missing_proof_does_not() {
        let table = |notes: &str| without_versions(&Proven::parse(notes).unwrap().table());
        assert_eq!(table(NOTES), table(&NOTES.replace("9.0", "9.1")));
        assert_ne!(table(NOTES), table(&NOTES.replace("Vim\t9.0\tContext\n", "")));
        assert_ne!(table(NOTES), table(&NOTES.replace("Context", "Edit")));
    }

    #[test]
    fn what_has_no_column_is_an_error() {
        assert!(Proven::parse("Vim\t9.0\tMagic\n").is_err());
        assert!(Proven::parse("Vim 9.0 Context\n").is_err());
    }

    #[test]
    fn only_what_is_between_the_marks_is_replaced() {
        let text = format!("before\n{BEGIN}\ntable\n{END}\nafter\n");
        let (before, table, after) = parts(&text).unwrap();
        assert_eq!(table, "table\n");
        assert_eq!(format!("{before}{table}{after}"), text);
        assert_eq!(parts("nothing"), None);
    }
}
