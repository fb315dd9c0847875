//! A toolchain that builds for other systems: this compiler with the sources of its standard library, and Zig as linker.
//!
//! No precompiled standard library is needed, so no target has to be installed. Everything is fetched once into the cache.

use std::ffi::OsString;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::machine::Need;
use crate::{cache, machine, root, run};

/// A target that can be built on Linux.
pub(crate) struct Target {
    pub(crate) triple: &'static str,
    linker: Linker,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Linker {
    Mingw,
    /// With the version of the C library to link against, where there is a choice.
    Zig(&'static str),
}

pub(crate) const WINDOWS: Target = Target {
    triple: "x86_64-pc-windows-gnu",
    linker: Linker::Mingw,
};
pub(crate) const MAC_ARM: Target = Target {
    triple: "aarch64-apple-darwin",
    linker: Linker::Zig(""),
};
pub(crate) const MAC_INTEL: Target = Target {
    triple: "x86_64-apple-darwin",
    linker: Linker::Zig(""),
};
pub(crate) const LINUX_ARM: Target = Target {
    triple: "aarch64-unknown-linux-gnu",
    // Debian 10, Ubuntu 20.04, RHEL 8 and newer.
    linker: Linker::Zig(".2.28"),
};
pub(crate) const LINUX_STATIC: Target = Target {
    triple: "x86_64-unknown-linux-musl",
    linker: Linker::Zig(""),
};

pub(crate) const LINUX_ARM_STATIC: Target = Target {
    triple: "aarch64-unknown-linux-musl",
    linker: Linker::Zig(""),
};

/// The Debian suite with the sources of several recent compilers.
const SUITE: &str = "trixie-backports";

const MINGW: [Need; 1] = [Need {
    program: "x86_64-w64-mingw32-gcc",
    check_arguments: "--version",
    package: "gcc-mingw-w64-x86-64-posix",
}];

/// For Zig, if it is not in the cache.
const PIP: [Need; 1] = [Need {
    program: "python3",
    check_arguments: "-m pip --version",
    package: "python3-pip",
}];

/// Each checkout adds its own crates to what all share; cargo removes nothing.
const MAX_TARGET_BYTES: u64 = 15 << 30;

/// What the program needs; a unit test needs `test` too, and the checks compile them.
const STD: &str = "-Zbuild-std=std,panic_unwind,test";

/// The toolchain in the cache. Only one checkout builds with it at a time, because all share one target directory: the
/// standard library and the dependencies are compiled once per machine.
pub(crate) struct Toolchain {
    rust: PathBuf,
    zig: PathBuf,
    target_directory: PathBuf,
    _lock: File,
}

/// Fetches what is missing.
pub(crate) fn prepare() -> Result<Toolchain, String> {
    cache::check_platform("the cross compilers are")?;
    machine::require(&MINGW)?;
    // First: another checkout may replace the compiler or Zig, and must not while this one builds with them.
    let lock = cache::lock("platforms")?;
    let rust = rust()?;
    let zig = zig()?;
    let target_directory = cache::directory()?.join("platforms-target");
    cache::limit(&target_directory, MAX_TARGET_BYTES)?;
    Ok(Toolchain {
        rust,
        zig,
        target_directory,
        _lock: lock,
    })
}

impl Toolchain {
    /// `cargo <task>` for a target, in the repository root; more arguments can be added.
    pub(crate) fn cargo(&self, task: &str, target: &Target) -> Command {
        let program = match target.linker {
            Linker::Mingw => self.rust.join("bin/cargo"),
            Linker::Zig(_) => self.zig.join("bin/cargo-zigbuild"),
        };
        let version = match target.linker {
            Linker::Mingw => "",
            Linker::Zig(version) => version,
        };
        let mut command = Command::new(program);
        command
            .args([task, "--locked", STD, "--target"])
            .arg(format!("{}{version}", target.triple))
            .current_dir(root())
            .env("PATH", path_with(&self.rust.join("bin")))
            .env("CARGO", self.rust.join("bin/cargo"))
            .env("CARGO_ZIGBUILD_ZIG_PATH", self.zig.join("ziglang/zig"))
            .env("CARGO_TARGET_DIR", &self.target_directory)
            // No debugger is used on these programs, and they are much smaller without.
            .env("CARGO_PROFILE_DEV_DEBUG", "0")
            // Checkouts cannot share it, and it would be most of the directory.
            .env("CARGO_INCREMENTAL", "0")
            // `-Z` with the compiler that everything else is built with.
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_X86_64_PC_WINDOWS_GNU_LINKER", MINGW[0].program)
            // Zig has the start-up files; this standard library was never installed with its own.
            .env(
                "CARGO_TARGET_X86_64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
                "-Clink-self-contained=no",
            )
            .env(
                "CARGO_TARGET_AARCH64_UNKNOWN_LINUX_MUSL_RUSTFLAGS",
                "-Clink-self-contained=no",
            )
            // Set by the cargo that runs us, for the toolchain without sources.
            .env_remove("LD_LIBRARY_PATH")
            .env_remove("RUSTUP_TOOLCHAIN")
            .env_remove("RUSTC")
            .env_remove("RUSTDOC");
        command
    }

    /// Clippy on the crates of the workspace, in the repository root. `cargo clippy` would be the first one on the PATH, often that of
    /// the toolchain without sources.
    pub(crate) fn clippy(&self, target: &Target) -> Result<Command, String> {
        let driver = self.rust.join(CLIPPY);
        if !driver.is_file() {
            return Err(format!(
                "{} is missing; run `rustup component add clippy`",
                driver.display()
            ));
        }
        let mut command = self.cargo("check", target);
        command.env("RUSTC_WORKSPACE_WRAPPER", driver);
        Ok(command)
    }

    /// Where `cargo build` leaves the program.
    pub(crate) fn program(&self, target: &Target, profile: &str) -> PathBuf {
        let name = if target.linker == Linker::Mingw {
            "alongside.exe"
        } else {
            "alongside"
        };
        self.target_directory.join(target.triple).join(profile).join(name)
    }
}

fn path_with(first: &Path) -> OsString {
    let mut path = first.as_os_str().to_owned();
    if let Some(rest) = std::env::var_os("PATH") {
        path.push(":");
        path.push(rest);
    }
    path
}

/// The directory of the compiler that everything is built with.
pub(crate) fn sysroot() -> Result<PathBuf, String> {
    ask("rustc", &["--print", "sysroot"]).map(PathBuf::from)
}

/// The compiler's own directory if it has the library's sources (`rustup component add rust-src`), otherwise a copy of it
/// with the sources that Debian has for the same version.
fn rust() -> Result<PathBuf, String> {
    let sysroot = sysroot()?;
    if sysroot.join(LIBRARY).join("std").is_dir() {
        return Ok(sysroot);
    }
    let version = ask("rustc", &["--version"])?;
    let number = number(&version)?;
    check_sysroot(&sysroot)?;
    // Checkouts with different compilers share the cache.
    let recipe = recipe(&version, &sysroot);
    cache::fill(&format!("rust-{number}"), recipe.as_bytes(), |directory| {
        // First, because it is what may be missing.
        let sources = directory.join("sources");
        unpack_sources(&sources, number)?;
        for part in ["bin", "lib", "libexec", "etc"] {
            if sysroot.join(part).exists() {
                copy(&sysroot.join(part), &directory.join(part))?;
            }
        }
        let library = directory.join(LIBRARY);
        let failed = |error: io::Error| format!("cannot put the library's sources into {}: {error}", library.display());
        fs::create_dir_all(library.parent().unwrap_or(&library)).map_err(failed)?;
        fs::rename(sources.join(format!("usr/src/rustc-{number}/library")), &library).map_err(failed)?;
        cache::remove(&sources)
    })
}

/// What the copy is made from: the compiler, and Clippy if it is installed.
fn recipe(version: &str, sysroot: &Path) -> String {
    let has_clippy = sysroot.join(CLIPPY).is_file();
    format!("{version}, {} Clippy", if has_clippy { "with" } else { "without" })
}

/// A compiler that the system's packages installed has no directory of its own that could be copied.
fn check_sysroot(sysroot: &Path) -> Result<(), String> {
    if [Path::new("/"), Path::new("/usr"), Path::new("/usr/local")].contains(&sysroot) {
        return Err(format!(
            "cannot use the compiler in {} without the sources of its standard library; install them (Debian: `apt-get install rust-src`), or \
             install the compiler with rustup",
            sysroot.display()
        ));
    }
    Ok(())
}

const LIBRARY: &str = "lib/rustlib/src/rust/library";

/// A component that can be added to an installed compiler.
const CLIPPY: &str = "bin/clippy-driver";

/// The number in `rustc 1.95.0 (59807616e 2026-04-14)`.
fn number(version: &str) -> Result<&str, String> {
    let number = version.split(' ').nth(1);
    number.ok_or_else(|| format!("cannot read the compiler's version from `{version}`"))
}

/// Downloads Debian's `rust-src` with an apt configuration of its own, so that nothing on the machine changes.
fn unpack_sources(directory: &Path, version: &str) -> Result<(), String> {
    let failed = |error: io::Error| format!("cannot write {}: {error}", directory.display());
    fs::create_dir_all(directory.join("lists/partial")).map_err(failed)?;
    fs::create_dir_all(directory.join("cache/archives/partial")).map_err(failed)?;
    let mirror = machine::mirror()?;
    fs::write(directory.join("sources.list"), format!("deb {mirror} {SUITE} main\n")).map_err(failed)?;
    let place = directory.display();
    let configuration = directory.join("apt.conf");
    let text = format!(
        "Dir::Etc::sourcelist \"{place}/sources.list\";\nDir::Etc::sourceparts \"-\";\n\
         Dir::State::Lists \"{place}/lists\";\nDir::Cache \"{place}/cache\";\n\
         APT::Sandbox::User \"root\";\n"
    );
    fs::write(&configuration, text).map_err(failed)?;
    let apt = |program: &str| {
        let mut command = Command::new(program);
        command
            .env("APT_CONFIG", &configuration)
            .current_dir(directory)
            .stdin(Stdio::null());
        command
    };
    let mut update = apt("apt-get");
    update.args(["update", "--quiet=2"]);
    run(update)?;
    let mut madison = apt("apt-cache");
    madison.args(["madison", "rust-src"]);
    let listed = output(madison)?;
    let package = package_of(&listed, version).ok_or_else(|| {
        format!(
            "{SUITE} has no rust-src {version}; run `rustup component add rust-src`, or use a compiler that it has:\n{listed}"
        )
    })?;
    let mut download = apt("apt-get");
    download
        .args(["download", "--quiet=2"])
        .arg(format!("rust-src={package}"));
    run(download)?;
    let archive = fs::read_dir(directory)
        .map_err(failed)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .find(|path| path.extension().is_some_and(|extension| extension == "deb"))
        .ok_or("apt-get downloaded no rust-src")?;
    let mut unpack = Command::new("dpkg-deb");
    unpack.arg("--extract").arg(archive).arg(directory);
    run(unpack)
}

/// Debian's version of a package in the list that `apt-cache madison` prints.
fn package_of<'a>(listed: &'a str, version: &str) -> Option<&'a str> {
    let versions = listed.lines().filter_map(|line| line.split('|').nth(1));
    versions.map(str::trim).find(|found| {
        found
            .strip_prefix(version)
            .is_some_and(|rest| rest.starts_with(['+', '-']))
    })
}

/// Zig and cargo-zigbuild, as wheels with their checksums.
fn zig() -> Result<PathBuf, String> {
    let requirements = root().join("e2e/platforms/requirements.txt");
    let recipe = fs::read(&requirements).map_err(|error| format!("cannot read {}: {error}", requirements.display()))?;
    cache::fill("zig", &recipe, |directory| {
        machine::require(&PIP)?;
        let mut pip = Command::new("python3");
        pip.args([
            "-m",
            "pip",
            "install",
            "--quiet",
            "--no-deps",
            "--only-binary=:all:",
            "--require-hashes",
        ])
        .arg("--target")
        .arg(directory)
        .arg("--requirement")
        .arg(&requirements)
        .stdin(Stdio::null());
        run(pip)
    })
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let mut command = Command::new("cp");
    command.args(["--archive", "--reflink=auto"]).arg(from).arg(to);
    run(command)
}

fn ask(program: &str, arguments: &[&str]) -> Result<String, String> {
    let mut command = Command::new(program);
    command.args(arguments).current_dir(root());
    output(command)
}

fn output(mut command: Command) -> Result<String, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command:?} failed: {}", output.status));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compiler_of_the_system_is_not_copied() {
        let reason = check_sysroot(Path::new("/usr")).unwrap_err();
        assert!(
            reason.contains("the compiler in /usr without") && reason.contains("rust-src"),
            "{reason}"
        );
        assert_eq!(check_sysroot(Path::new("/usr/local/rustup/toolchains/1.95.0")), Ok(()));
    }

    #[test]
    fn copy_without_clippy_is_replaced_once_clippy_is_installed() {
        let sysroot = crate::target_directory().unwrap().join("toolchain-recipe");
        cache::remove(&sysroot).unwrap();
        fs::create_dir_all(sysroot.join("bin")).unwrap();
        let without = recipe("rustc 1.95.0", &sysroot);
        assert_eq!(without, recipe("rustc 1.95.0", &sysroot));
        fs::write(sysroot.join(CLIPPY), "").unwrap();
        assert_ne!(without, recipe("rustc 1.95.0", &sysroot));
    }

    #[test]
    fn sources_are_those_of_the_compiler() {
        let listed = "  rust-src | 1.96.1+dfsg1-2~bpo13+1 | mirror suite/main amd64 Packages\n  \
                      rust-src | 1.95.0+dfsg1-2~bpo13+1 | mirror suite/main amd64 Packages";
        assert_eq!(number("rustc 1.95.0 (59807616e 2026-04-14)"), Ok("1.95.0"));
        assert_eq!(package_of(listed, "1.95.0"), Some("1.95.0+dfsg1-2~bpo13+1"));
        assert_eq!(package_of(listed, "1.9"), None);
        assert_eq!(package_of(listed, "1.97.0"), None);
    }
}
