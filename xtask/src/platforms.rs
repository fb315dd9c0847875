//! Other systems: the program is compiled for all of them, and runs where this machine can run it.

#[cfg(test)]
mod claims;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use crate::machine::Need;
use crate::plan::{Plan, Verdict};
use crate::toolchain::{self, LINUX_ARM, LINUX_STATIC, MAC_ARM, MAC_INTEL, Target, Toolchain, WINDOWS};
use crate::{cache, cargo_test, machine, run, second_attempt, target_directory, wine};

/// The oldest Debian whose C library the program for ARM runs with.
const OLD_SUITE: &str = "bullseye";

const QEMU: [Need; 1] = [Need {
    program: "qemu-aarch64-static",
    check_arguments: "--version",
    package: "qemu-user-static",
}];

const DEBOOTSTRAP: [Need; 1] = [Need {
    program: "which",
    check_arguments: "debootstrap",
    package: "debootstrap",
}];

/// How long a program may take to announce itself, and again to end. In qemu, on a busy machine.
const PROGRAM_TIMEOUT: Duration = Duration::from_mins(2);

const CHECKS: [(&str, Target); 5] = [
    ("check for Windows", WINDOWS),
    ("check for macOS on ARM", MAC_ARM),
    ("check for macOS on Intel", MAC_INTEL),
    ("check for Linux on ARM", LINUX_ARM),
    ("check for static Linux", LINUX_STATIC),
];

/// What is linked and not run. Everything else in the list above is run.
const LINKS: [(&str, Target); 2] = [
    ("link for macOS on ARM", MAC_ARM),
    ("link for macOS on Intel", MAC_INTEL),
];

/// The code that no other system compiles. One macOS stands for both.
const LINTS: [(&str, Target); 2] = [("lint for Windows", WINDOWS), ("lint for macOS", MAC_ARM)];

const XDG_DIRECTORIES: [&str; 4] = ["XDG_STATE_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_RUNTIME_DIR"];

/// Everything.
pub(crate) fn all(plan: &mut Plan) {
    // Before the long builds.
    plan.step("system programs", || {
        require_root()?;
        machine::require(&DEBOOTSTRAP)?;
        require_qemu()
    });
    plan.step("toolchain", || toolchain::prepare().map(drop));
    for (name, target) in CHECKS {
        plan.step(name, move || check(&toolchain::prepare()?, &target));
    }
    for (name, target) in LINTS {
        plan.step(name, move || lint(&toolchain::prepare()?, &target));
    }
    runs(plan);
    for (name, target) in LINKS {
        plan.step(name, move || link_mac(&toolchain::prepare()?, &target));
    }
    plan.step("run on ARM, in qemu", || run_arm(&toolchain::prepare()?));
}

/// What every change goes through: the systems that differ most, and what can be run quickly.
pub(crate) fn quick(plan: &mut Plan) {
    plan.step("root and debootstrap", || {
        require_root()?;
        machine::require(&DEBOOTSTRAP)
    });
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

fn require_root() -> Result<(), String> {
    if machine::is_root() {
        Ok(())
    } else {
        Err("the static program and wine run in a chroot, which needs root; run this task as root".to_owned())
    }
}

/// What runs a program for Linux on ARM.
pub(crate) fn require_qemu() -> Result<(), String> {
    machine::require(&QEMU)
}

/// Compiles the program, the crates and their tests, with warnings as errors.
fn check(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    check_tasks(toolchain, target)?;
    run(with_denied_warnings(
        toolchain.cargo("check", target),
        &["--all-targets"],
    ))
}

/// Runs Clippy on the crates and their tests, with warnings as errors.
fn lint(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    run(with_denied_warnings(toolchain.clippy(target)?, &["--all-targets"]))
}

/// Compiles the program alone.
fn check_program(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    check_tasks(toolchain, target)?;
    run(with_denied_warnings(
        toolchain.cargo("check", target),
        &["--package", "alongside"],
    ))
}

/// Compiles what the workspace's default leaves out: the tasks, because a Mac makes its own packages and Windows has those that need nothing
/// else, and on Linux the tests with real programs too.
fn check_tasks(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    let mut arguments = vec!["--package", "xtask", "--all-targets"];
    if target.triple.contains("linux") {
        arguments.extend(["--package", "alongside-e2e"]);
    }
    run(with_denied_warnings(toolchain.cargo("check", target), &arguments))
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
    require_root()?;
    let root = target_directory()?.join("empty-root");
    cache::remove(&root)?;
    let failed = |error: io::Error| format!("cannot fill {}: {error}", root.display());
    fs::create_dir_all(root.join("tmp")).map_err(failed)?;
    fs::copy(program, root.join("alongside")).map_err(failed)?;
    let in_root = || {
        let mut command = Command::new("chroot");
        command.arg(&root).arg("/alongside").env("HOME", "/");
        // What the program would look for its directories in.
        for name in ["TMPDIR", "TMP", "TEMP"].into_iter().chain(XDG_DIRECTORIES) {
            command.env_remove(name);
        }
        command
    };
    let mut version = in_root();
    version.arg("--version");
    run(version)?;
    announces_and_ends(in_root(), &root.join("tmp/gemini/ide"), PROGRAM_TIMEOUT)
}

/// Starts a companion, waits until it has announced itself, and ends it with Ctrl-C: it exits with 0, and its files are gone.
fn announces_and_ends(mut program: Command, files: &Path, timeout: Duration) -> Result<(), String> {
    program
        .args(["serve", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::piped());
    let mut child = program
        .spawn()
        .map_err(|error| format!("cannot start {program:?}: {error}"))?;
    let line = first_line(&mut child, timeout);
    let count = || fs::read_dir(files).map_or(0, Iterator::count);
    let announced = count();
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let status = wait_or_kill(&mut child, timeout).map_err(|reason| format!("{program:?} {reason}"))?;
    match (line, status.code(), announced, count()) {
        (Some(_), Some(0), 1.., 0) => Ok(()),
        (line, _, announced, left) => Err(format!(
            "{program:?} ended with {status}, wrote {announced} files to {} and left {left}; it printed: {}",
            files.display(),
            line.unwrap_or_else(|| format!("nothing within {} s", timeout.as_secs()))
        )),
    }
}

/// What it prints first; `None` if it takes too long.
fn first_line(child: &mut Child, timeout: Duration) -> Option<String> {
    use std::io::{BufRead, BufReader};

    let stdout = child.stdout.take()?;
    let (send, line) = mpsc::channel();
    // It ends with the program.
    std::thread::spawn(move || {
        let mut line = String::new();
        let _ = BufReader::new(stdout).read_line(&mut line);
        let _ = send.send(line);
    });
    line.recv_timeout(timeout).ok()
}

fn wait_or_kill(child: &mut Child, timeout: Duration) -> Result<ExitStatus, String> {
    let start = Instant::now();
    loop {
        let status = child
            .try_wait()
            .map_err(|error| format!("cannot be waited for: {error}"))?;
        if let Some(status) = status {
            return Ok(status);
        }
        if start.elapsed() > timeout {
            let _ = child.kill();
            let _ = child.wait();
            return Err(format!(
                "did not end within {} s after Ctrl-C and was killed",
                timeout.as_secs()
            ));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// Runs the program for ARM with the C library of an old Debian.
fn run_arm(toolchain: &Toolchain) -> Result<(), String> {
    machine::require(&DEBOOTSTRAP)?;
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
    run_on_arm(&build(toolchain, &LINUX_ARM)?, Some(&library))
}

/// Runs a program for ARM in qemu, with a root that has its C library if it needs one.
pub(crate) fn run_on_arm(program: &Path, library: Option<&Path>) -> Result<(), String> {
    require_qemu()?;
    let home = target_directory()?.join("arm64-home");
    cache::remove(&home)?;
    fs::create_dir_all(&home).map_err(|error| format!("cannot create {}: {error}", home.display()))?;
    let emulated = || {
        let mut command = Command::new("qemu-aarch64-static");
        if let Some(library) = library {
            command.arg("-L").arg(library);
        }
        command.arg(program);
        command.env("HOME", &home).env("TMPDIR", &home).current_dir(&home);
        for name in XDG_DIRECTORIES {
            command.env_remove(name);
        }
        command
    };
    let mut version = emulated();
    version.arg("--version");
    run(version)?;
    announces_and_ends(emulated(), &home.join("gemini/ide"), PROGRAM_TIMEOUT)
}

/// Links the program for macOS. Zig has the system's library but no frameworks: their stubs list what the program needs.
fn link_mac(toolchain: &Toolchain, target: &Target) -> Result<(), String> {
    let stubs = crate::root().join("e2e/platforms/frameworks");
    let name = target.triple.to_uppercase().replace('-', "_");
    let mut command = toolchain.cargo("build", target);
    command.args(["--package", "alongside"]).env(
        format!("CARGO_TARGET_{name}_RUSTFLAGS"),
        format!("-Lframework={}", stubs.display()),
    );
    run(command)
}

/// The Windows program with the agents' own code, in wine.
fn run_windows(toolchain: &Toolchain) -> Result<Verdict, String> {
    let (program, wine) = (build(toolchain, &WINDOWS)?, wine::prepare()?);
    let tests = || {
        let mut command = cargo_test();
        command.args(["--test", "windows"]);
        command.env("ALONGSIDE_WINE", &wine);
        command.env("ALONGSIDE_WINDOWS_BIN", &program);
        command
    };
    let mut command = tests();
    // Wine has one user.
    command.args(["--", "--test-threads=1"]);
    second_attempt::run(command, || Ok(tests()))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn program_that_hangs_is_killed() {
        let directory = target_directory().unwrap();
        for (script, complaint) in [
            ("trap '' INT; exec sleep 60", "did not end within 1 s"),
            // The tests may have been started with Ctrl-C ignored, and a shell cannot change that.
            (
                "exec perl -e '$SIG{INT} = \"DEFAULT\"; sleep 60'",
                "it printed: nothing within 1 s",
            ),
            ("echo '{}'; exit 3", "wrote"),
        ] {
            let mut program = Command::new("sh");
            program.args(["-c", script]);
            let reason = announces_and_ends(program, &directory.join("nothing"), Duration::from_secs(1)).unwrap_err();
            assert!(reason.contains(complaint), "{reason}");
        }
    }
}
