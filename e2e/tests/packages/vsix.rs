//! The VS Code extensions, which are zip archives. The tests in `vscode` use the one that `alongside install` packs.

use std::path::Path;
use std::process::{Command, Stdio};

use crate::{VERSION, package, run, sandbox};

/// Runs Python's own reader of zip archives.
fn zip(arguments: &[&str], archive: &Path) -> Command {
    let mut command = Command::new("python3");
    command.args(["-m", "zipfile", arguments[0]]).arg(archive);
    command.args(&arguments[1..]).stdin(Stdio::null());
    command
}

#[test]
fn every_extension_has_the_licenses_of_what_is_inside() {
    for name in [
        "alongside.vsix",
        "alongside-linux-x64.vsix",
        "alongside-alpine-x64.vsix",
    ] {
        let listed = run(&mut zip(&["--list"], &package(name)));
        for file in ["LICENSE.txt", "LICENSE-APACHE.txt", "THIRD-PARTY.txt", "package.json"] {
            let file = format!("extension/{file} ");
            assert!(
                listed.lines().any(|line| line.starts_with(&file)),
                "{name}: {file}: {listed}"
            );
        }
    }
}

#[test]
fn extension_with_the_program_runs_and_lists_its_dependencies() {
    let sandbox = sandbox();
    let place = sandbox.path("extension");
    let to = place.to_string_lossy();
    run(&mut zip(&["--extract", &to], &package("alongside-linux-x64.vsix")));
    let program = place.join("extension/bin/alongside");
    // Python does not set the permissions that are in the archive.
    run(sandbox.command("chmod").arg("+x").arg(&program));
    let version = run(sandbox.command(&program).arg("--version"));
    assert_eq!(version.trim(), format!("alongside {VERSION}"));
    let licenses = std::fs::read_to_string(place.join("extension/THIRD-PARTY.txt")).expect("read the licenses");
    for dependency in [
        "tokio",
        "@codemirror/view",
        "in two-face",
        "Rust's standard library",
        "musl",
    ] {
        assert!(licenses.contains(dependency), "{dependency}");
    }
}
