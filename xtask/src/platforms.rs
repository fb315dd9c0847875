//! Other systems: the program is compiled for all of them, and runs where this machine can run it.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::machine::Need;
use crate::plan::Plan;
use crate::toolchain::{self, LINUX_ARM, LINUX_STATIC, MAC_ARM, MAC_INTEL, Target, Toolchain, WINDOWS};
use crate::{cache, cargo_test, machine, run, target_directory, wine};

/// The oldest Debian whose C library the program for ARM runs with.
const OLD_SUITE: &str = "bullseye";

const ARM: [Need; 2] = [
    Need {
        program: "qemu-aarch64-static",
        check_arguments: "--version",
        package: "qemu-user-static",
    },
    Need {
        program: "which",
        check_arguments: "debootstrap",
        package: "debootstrap",
    },
];

/// Everything.
pub(crate) fn all(plan: &mut Plan) {
    plan.step("toolchain", || toolchain::prepare().map(drop));
    for (name, target) in [
        ("check for Windows", WINDOWS),
        ("check for macOS on ARM", MAC_ARM),
        ("check for macOS on Intel", MAC_INTEL),
        ("check for Linux on ARM", LINUX_ARM),
        ("check for static Linux", LINUX_STATIC),
    ] {
        plan.step(name, move || check(&toolchain::prepare()?, &target));
    }
    runs(plan);
    plan.step("link for macOS", || link_mac(&toolchain::prepare()?));
    plan.step("run on ARM, in qemu", || run_arm(&toolchain::prepare()?));
}

/// What every change goes through: the systems that differ most, and what can be run quickly.
pub(crate) fn quick(plan: &mut Plan) {
    plan.step("toolchain", || toolchain::prepare().map(drop));
    runs(plan);
    plan.step("check for macOS on ARM", || {
        check_program(&toolchain::prepare()?, &MAC_ARM)
    });
}

fn runs(plan: &mut Plan) {
    plan.step("wine", || wine::prepare().map(drop));
    plan.step("Windows program in wine", || run_windows(&toolchain::prepare()?));
    plan.step("static program in an empty root", || run_static(&toolchain::prepare()?));
}

/// Compiles the program, the crates and their tests, with warnings as errors.
fn check(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    run(with_denied_warnings(
        toolchain.cargo("check", target),
        &["--all-targets"],
    ))
}

/// The same without the tests.
fn check_program(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    run(with_denied_warnings(
        toolchain.cargo("check", target),
        &["--package", "alongside"],
    ))
}

/// Not with a compiler flag, which would apply to the standard library too.
fn with_denied_warnings(mut command: Command, arguments: &[&str]) -> Command {
    command
        .args(arguments)
        .arg("-Zwarnings")
        .env("CARGO_BUILD_WARNINGS", "deny");
    command
}

/// Builds the program, unoptimized to save time.
fn build(toolchain: &Toolchain, target: &Target) -> Result<PathBuf, String> {
    run(with_denied_warnings(
        toolchain.cargo("build", target),
        &["--package", "alongside"],
    ))?;
    Ok(toolchain.program(target, "debug"))
}

/// Runs the static program in a root that holds nothing else.
fn run_static(toolchain: &Toolchain) -> Result<(), String> {
    let program = build(toolchain, &LINUX_STATIC)?;
    if !machine::is_root() {
        return Err("a chroot needs root; run this task as root".to_owned());
    }
    let root = target_directory()?.join("empty-root");
    cache::remove(&root)?;
    let failed = |error: io::Error| format!("cannot fill {}: {error}", root.display());
    fs::create_dir_all(root.join("tmp")).map_err(failed)?;
    fs::copy(program, root.join("alongside")).map_err(failed)?;
    let in_root = || {
        let mut command = Command::new("chroot");
        command
            .arg(&root)
            .arg("/alongside")
            .env("HOME", "/")
            .env_remove("TMPDIR");
        command
    };
    let mut version = in_root();
    version.arg("--version");
    run(version)?;
    announces_and_ends(in_root(), &root.join("tmp/gemini/ide"))
}

/// Starts a companion, waits until it has announced itself, and ends it with Ctrl-C: it exits with 0, and its files are gone.
fn announces_and_ends(mut program: Command, files: &Path) -> Result<(), String> {
    use std::io::{BufRead, BufReader};

    program
        .args(["serve", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = program
        .spawn()
        .map_err(|error| format!("cannot start {program:?}: {error}"))?;
    let mut line = String::new();
    if let Some(stdout) = child.stdout.take() {
        let _ = BufReader::new(stdout).read_line(&mut line);
    }
    let count = || fs::read_dir(files).map_or(0, Iterator::count);
    let announced = count();
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let status = child
        .wait()
        .map_err(|error| format!("cannot wait for {program:?}: {error}"))?;
    match (status.code(), announced, count()) {
        (Some(0), 1.., 0) => Ok(()),
        (_, announced, left) => Err(format!(
            "{program:?} ended with {status}, wrote {announced} files to {} and left {left}; it printed: {line}",
            files.display()
        )),
    }
}

/// Runs the program for ARM with the C library of an old Debian.
fn run_arm(toolchain: &Toolchain) -> Result<(), String> {
    machine::require(&ARM)?;
    let library = cache::fill("arm64", OLD_SUITE.as_bytes(), |directory| {
        let mut command = Command::new("debootstrap");
        // The first stage unpacks it; nothing of it has to run.
        command
            .args(["--arch=arm64", "--foreign", "--variant=minbase", OLD_SUITE])
            .arg(directory)
            .arg(machine::mirror()?)
            .stdin(Stdio::null());
        run(command)
    })?;
    let program = build(toolchain, &LINUX_ARM)?;
    let home = target_directory()?.join("arm64-home");
    cache::remove(&home)?;
    fs::create_dir_all(&home).map_err(|error| format!("cannot create {}: {error}", home.display()))?;
    let emulated = || {
        let mut command = Command::new("qemu-aarch64-static");
        command.arg("-L").arg(&library).arg(&program);
        command.env("HOME", &home).env("TMPDIR", &home).current_dir(&home);
        for name in ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"] {
            command.env_remove(name);
        }
        command
    };
    let mut version = emulated();
    version.arg("--version");
    run(version)?;
    announces_and_ends(emulated(), &home.join("gemini/ide"))
}

/// Links the program for macOS. Zig has the system's library but no frameworks: their stubs list what the program needs.
fn link_mac(toolchain: &Toolchain) -> Result<(), String> {
    let stubs = crate::root().join("e2e/platforms/frameworks");
    let mut command = toolchain.cargo("build", &MAC_ARM);
    command.args(["--package", "alongside"]).env(
        "CARGO_TARGET_AARCH64_APPLE_DARWIN_RUSTFLAGS",
        format!("-Lframework={}", stubs.display()),
    );
    run(command)
}

/// The Windows program with the agents' own code, in wine.
fn run_windows(toolchain: &Toolchain) -> Result<(), String> {
    let program = build(toolchain, &WINDOWS)?;
    let mut command = cargo_test();
    // Wine has one user.
    command.args(["--test", "windows", "--", "--test-threads=1"]);
    command.env("ALONGSIDE_WINE", wine::prepare()?);
    command.env("ALONGSIDE_WINDOWS_BIN", program);
    run(command)
}
