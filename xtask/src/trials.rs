//! Long trials of the real program, in `trials/`.

use std::env;
use std::path::PathBuf;

use crate::{cargo, npm, release_binary, root, run, target_directory};

/// Runs a trial against `ALONGSIDE_BIN`, or a debug build.
pub(crate) fn run_trial(name: &str, arguments: &[String]) -> Result<(), String> {
    let binary = if let Some(binary) = env::var_os("ALONGSIDE_BIN") {
        PathBuf::from(binary)
    } else {
        run(cargo(&["build", "--locked", "--package", "alongside"]))?;
        target_directory()?.join("debug").join("alongside")
    };
    run_trial_with(binary, name, arguments)
}

/// Runs a trial against the release build.
pub(crate) fn run_with_release(name: &str, arguments: &[&str]) -> Result<(), String> {
    let arguments: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    run_trial_with(release_binary()?, name, &arguments)
}

fn run_trial_with(binary: PathBuf, name: &str, arguments: &[String]) -> Result<(), String> {
    let mut command = cargo(&["run", "--quiet", "--locked", "--package", "alongside-trials"]);
    command.args(["--bin", name, "--"]).args(arguments);
    command.env("ALONGSIDE_BIN", binary);
    command.env("ALONGSIDE_NODE", npm::node());
    command.env("ALONGSIDE_E2E", root().join("e2e"));
    run(command)
}
