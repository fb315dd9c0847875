//! Other systems: the program is compiled for all of them, and runs where this machine can run it.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use crate::toolchain::{self, LINUX_ARM, LINUX_STATIC, MAC_ARM, MAC_INTEL, Target, Toolchain, WINDOWS};
use crate::{run, target_directory};

const ALL: [&Target; 5] = [&WINDOWS, &MAC_ARM, &MAC_INTEL, &LINUX_ARM, &LINUX_STATIC];

pub(crate) fn check_all() -> Result<(), String> {
    let toolchain = toolchain::prepare()?;
    ALL.into_iter().try_for_each(|target| check(&toolchain, target))?;
    run_static(&toolchain)
}

/// Compiles the program, the crates and their tests, with warnings as errors.
fn check(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    eprintln!("xtask: checking for {}", target.triple);
    let mut command = toolchain.cargo("check", target);
    command
        .args(["--all-targets", "-Zwarnings"])
        .env("CARGO_BUILD_WARNINGS", "deny");
    run(command)
}

/// Builds the program, unoptimized to save time.
fn build(toolchain: &Toolchain, target: &Target) -> Result<PathBuf, String> {
    let mut command = toolchain.cargo("build", target);
    command.args(["--package", "alongside"]);
    run(command)?;
    Ok(toolchain.program(target, "debug"))
}

/// Runs the static program in a root that holds nothing else.
fn run_static(toolchain: &Toolchain) -> Result<(), String> {
    let program = build(toolchain, &LINUX_STATIC)?;
    let root = target_directory()?.join("empty-root");
    let failed = |error: std::io::Error| format!("cannot fill {}: {error}", root.display());
    fs::create_dir_all(&root).map_err(failed)?;
    fs::copy(program, root.join("alongside")).map_err(failed)?;
    let mut command = Command::new("chroot");
    command.arg(&root).args(["/alongside", "--version"]);
    run(command)
}
