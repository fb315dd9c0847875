//! Records what a test has proven about an editor or an agent, for the tables in the README.
//!
//! Call it at the end of a test: a failing test never gets there and proves nothing.
//!
//! ```no_run
//! # use alongside_e2e::{Capability, editor, proves, version};
//! proves("Neovim", &version(&editor("nvim")), Capability::Context);
//! ```
//!
//! `cargo xtask test` deletes the files first and compares them with the tables afterwards.

use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;

use crate::programs;

/// What works in an editor; the columns of the table, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Capability {
    /// Open files, and the cursor or the selection, reach agents.
    Context,
    /// A proposed change is shown, accepted and rejected in the editor.
    Review,
    /// A single hunk can be accepted or rejected.
    Hunk,
    /// A change can be edited before it is accepted.
    Edit,
    /// `alongside install` is all that is needed.
    Install,
}

/// What works with an agent; the columns of the table, in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AgentCapability {
    /// It finds the companion in a plain terminal without a setting or a command.
    Found,
    /// It finds the companion in a plain terminal after its own `/ide`.
    FoundAfterIde,
    /// The model receives the open file, the cursor or the selection.
    Context,
    /// A change is accepted and rejected, and the agent writes what was accepted.
    Review,
    /// A hunk can be rejected.
    Hunk,
    /// A change can be edited before it is accepted.
    Edit,
    /// The model reads why a change was rejected.
    Reason,
    /// The model receives the editor's diagnostics.
    Diagnostics,
}

/// Records what the running test has proven about an editor, and on which version.
pub fn proves(editor: &str, version: &str, capability: Capability) {
    record("editors.tsv", &format!("{editor}\t{version}\t{capability:?}\n"));
}

/// Records what the running test has proven about an agent, and on which version.
pub fn agent_proves(agent: &str, version: &str, capability: AgentCapability) {
    record("agents.tsv", &format!("{agent}\t{version}\t{capability:?}\n"));
}

fn record(name: &str, line: &str) {
    let directory = programs::target_directory().join("proven");
    fs::create_dir_all(&directory).expect("create the directory for records");
    let file = OpenOptions::new().create(true).append(true).open(directory.join(name));
    // One write for the whole line, because tests run in parallel.
    file.and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("record what is proven");
}

/// The version of an editor: the first word starting with a number in its output.
pub fn version(program: &Path) -> String {
    let printed_version = |option: &str| {
        let mut command = Command::new(program);
        // Kate and Qt Creator print nothing without a screen.
        let output = command.arg(option).env("QT_QPA_PLATFORM", "offscreen").output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        version_in(&text)
    };
    // Kakoune and Qt Creator use the second.
    printed_version("--version")
        .or_else(|| printed_version("-version"))
        .unwrap_or_else(|| panic!("{} does not print its version", program.display()))
}

/// The first word starting with a number.
pub fn version_in(text: &str) -> Option<String> {
    text.split_whitespace().find_map(|word| {
        let word = word.strip_prefix('v').unwrap_or(word);
        let word = word.trim_end_matches([',', ';', '.']);
        let is_version = word.starts_with(|first: char| first.is_ascii_digit()) && word.contains('.');
        is_version.then(|| word.to_owned())
    })
}
