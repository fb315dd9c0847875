//! What a test has proven about an editor, written down for the table in the README.
//!
//! One line at the end of a test is all it takes: a test that fails never gets there, and so proves nothing.
//!
//! ```no_run
//! # use alongside_e2e::{Capability, editor, proves, version};
//! proves("Neovim", &version(&editor("nvim")), Capability::Context);
//! ```
//!
//! `cargo xtask test` empties the file before the tests of the editors and compares it with the table after them.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::programs;

/// What an editor can be good for; the columns of the table, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Open files, the cursor and the selection reach agents.
    Context,
    /// A proposed change is shown, accepted and rejected in the editor.
    Review,
    /// One hunk of a change is decided by itself.
    Hunk,
    /// A change is edited before it is accepted.
    Edit,
    /// `alongside install` makes it work, with nothing else to do.
    Install,
}

/// Notes what the running test has proven, and on which version.
pub fn proves(editor: &str, version: &str, capability: Capability) {
    let directory = programs::target_directory().join("proven");
    fs::create_dir_all(&directory).expect("create the directory for what is proven");
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .open(directory.join("editors.tsv"));
    // One write for the whole line: tests run side by side.
    let line = format!("{editor}\t{version}\t{capability:?}\n");
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("note what is proven");
}

/// The version that an editor says it is: the first word with a number in front, of what it prints about itself.
pub fn version(program: &Path) -> String {
    let said = |option: &str| {
        let output = Command::new(program).arg(option).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.split_whitespace().find_map(version_in)
    };
    // Kakoune has the second.
    said("--version")
        .or_else(|| said("-version"))
        .unwrap_or_else(|| panic!("{} does not say which version it is", program.display()))
}

fn version_in(word: &str) -> Option<String> {
    let word = word.strip_prefix('v').unwrap_or(word);
    let word = word.trim_end_matches([',', ';', '.']);
    let is_version = word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
    is_version.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_found_in_what_editors_print() {
        for (text, wanted) in [
            ("NVIM v0.10.4\nBuild type: RelWithDebInfo", "0.10.4"),
            ("VIM - Vi IMproved 9.0 (2022 Jun 28)", "9.0"),
            ("GNU Emacs 28.2\nCopyright (C) 2022", "28.2"),
            ("helix 25.01.1 (e7ac2fcd)", "25.01.1"),
            ("Kakoune v2024.05.18", "2024.05.18"),
        ] {
            assert_eq!(
                text.split_whitespace().find_map(version_in).as_deref(),
                Some(wanted),
                "{text}"
            );
        }
    }
}
