//! `cargo xtask package`: everything that is published, from one stripped program for each platform.
//!
//! The version, the description and the addresses come from the workspace's Cargo.toml, the texts from `packaging/`. Archives and packages
//! have no times and no owners in them, so that the same program gives the same files.

mod formats;
mod manifests;
#[cfg(unix)]
#[cfg(test)]
mod npm_command;
mod permissions;
mod platform;
mod release;
mod workflow;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use self::formats::Share;
use self::platform::{PLATFORMS, Platform};
use self::release::Release;
use crate::machine::Need;
use crate::{cache, cargo, cargo_test, machine, npm, platforms, root, run, target_directory, toolchain};

/// What writes and installs the packages. Macs of the public CI have what is needed there.
const NEEDS: [Need; 4] = [
    Need {
        program: "node",
        check_arguments: "--version",
        package: "nodejs",
    },
    Need {
        program: "npm",
        check_arguments: "--version",
        package: "npm",
    },
    Need {
        program: "python3",
        check_arguments: "-m ensurepip --version",
        package: "python3-venv",
    },
    Need {
        program: "dpkg-deb",
        check_arguments: "--version",
        package: "dpkg",
    },
];

fn require_tools() -> Result<(), String> {
    if cfg!(target_os = "linux") {
        machine::require(&NEEDS)?;
    }
    check_node(machine::node_version(&npm::node()))
}

/// Fails before the long build if Node has no `crc32`, which packs the VS Code extension. Debian 12 has such a Node.
fn check_node(version: Option<(u32, u32)>) -> Result<(), String> {
    let there = match version {
        Some((20, 15..) | (22, 2..) | (23.., _)) => return Ok(()),
        Some((major, minor)) => format!("this is {major}.{minor}"),
        None => "none works here".to_owned(),
    };
    Err(format!(
        "cannot pack the VS Code extension: it needs Node 22.2 or newer, or of version 20 at least 20.15, and {there}; install a newer Node, or run \
         `npm ci --ignore-scripts` in e2e, which has one for Linux on x86-64"
    ))
}

/// What to package.
pub(crate) enum Choice {
    /// Every platform that can be built on this machine.
    All,
    Targets(Vec<String>),
    /// Nothing new: only the manifests, for all packages that are there.
    Manifests,
}

/// Builds and packages, and installs on this machine what it can install.
pub(crate) fn package(choice: &Choice) -> Result<(), String> {
    let platforms = chosen(choice)?;
    require_tools()?;
    let release = Release::read()?;
    let variable = |name| std::env::var(name).ok();
    release.check_tag(
        variable("GITHUB_REF_TYPE").as_deref(),
        variable("GITHUB_REF_NAME").as_deref(),
    )?;
    let out = directory()?;
    match choice {
        Choice::Manifests => {
            if let Some(foreign) = foreign_file(&release, &out) {
                return Err(format!(
                    "{} is not of version {}; remove the files of other versions and try again",
                    foreign.display(),
                    release.version
                ));
            }
        }
        Choice::All => {
            cache::remove(&out)?;
            add(&release, &out, &platforms)?;
        }
        Choice::Targets(_) => {
            // Not all names have the version: what is next to an older file may be as old.
            if let Some(foreign) = foreign_file(&release, &out) {
                eprintln!(
                    "xtask: removing {}: {} is not of version {}",
                    out.display(),
                    foreign.display(),
                    release.version
                );
                cache::remove(&out)?;
            }
            add(&release, &out, &platforms)?;
        }
    }
    manifests::write(&release, &out)?;
    for platform in PLATFORMS
        .iter()
        .filter(|platform| !release.archive(&out, platform).is_file())
    {
        eprintln!("xtask: no packages for {}: {}", platform.triple, platform.where_built());
    }
    if release.has_placeholders() {
        eprintln!("xtask: do not publish these: `repository` and `authors` in Cargo.toml are placeholders");
    }
    eprintln!("xtask: the packages are in {}", out.display());
    Ok(())
}

/// The platforms to build for, if this machine can do that.
fn chosen(choice: &Choice) -> Result<Vec<&'static Platform>, String> {
    match choice {
        Choice::Manifests => Ok(Vec::new()),
        Choice::All => {
            let platforms: Vec<&Platform> = PLATFORMS.iter().filter(|platform| platform.builds_here()).collect();
            if platforms.is_empty() {
                return Err("cannot build any packages on this machine; use Linux on x86-64, or a Mac".to_owned());
            }
            Ok(platforms)
        }
        Choice::Targets(triples) => triples
            .iter()
            .map(|triple| {
                let platform = platform::find(triple)?;
                if platform.builds_here() {
                    Ok(platform)
                } else {
                    Err(format!(
                        "cannot build packages for {triple} here; {}",
                        platform.where_built()
                    ))
                }
            })
            .collect(),
    }
}

/// A file in the directory that is not of this version.
fn foreign_file(release: &Release, out: &Path) -> Option<PathBuf> {
    let mut own: Vec<String> = ["SHA256SUMS", "alongside.vsix"].map(str::to_owned).into();
    own.push(release.npm_root());
    own.extend(PLATFORMS.iter().flat_map(|platform| release.files(platform)));
    let files = fs::read_dir(out).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    let mut foreign = files.filter(|path| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        path.is_file() && !own.iter().any(|own| *own == name)
    });
    foreign.next()
}

/// Where the packages are installed and used: the tests need a POSIX shell, `dpkg` and a program for that system.
pub(crate) const TESTS_RUN_HERE: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

/// What the tests of the packages need, before the long builds.
pub(crate) fn require_tests() -> Result<(), String> {
    platforms::require_qemu()
}

/// Installs, uses and removes the packages that are there.
pub(crate) fn test() -> Result<(), String> {
    test_in(&directory()?)
}

/// Runs the program that is shipped for Linux on ARM, in qemu.
pub(crate) fn test_arm() -> Result<(), String> {
    let program = target_directory()?
        .join(toolchain::LINUX_ARM_STATIC.triple)
        .join("dist/alongside");
    // It needs no C library.
    platforms::run_on_arm(&program, None)
}

/// The same with another program in place of the static one, which takes long to build.
pub(crate) fn check(program: &Path) -> Result<(), String> {
    require_tools()?;
    workflow::check()?;
    let release = Release::read()?;
    let out = target_directory()?.join("packages-check");
    cache::remove(&out)?;
    let platform = platform::find("x86_64-unknown-linux-musl")?;
    let share = Share::generate(&release, program)?;
    formats::write_all(&release, platform, program, &share, &out)?;
    manifests::write(&release, &out)?;
    test_in(&out)
}

fn directory() -> Result<PathBuf, String> {
    Ok(target_directory()?.join("packages"))
}

fn test_in(packages: &Path) -> Result<(), String> {
    let mut command = cargo_test();
    command.args(["--test", "packages"]).env("ALONGSIDE_PACKAGES", packages);
    run(command)
}

fn add(release: &Release, out: &Path, platforms: &[&Platform]) -> Result<(), String> {
    let programs: Result<Vec<PathBuf>, String> = platforms.iter().map(|platform| build(platform)).collect();
    let programs = programs?;
    let runs = |program: &&PathBuf| {
        let mut command = Command::new(program);
        command
            .arg("--version")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().is_ok_and(|status| status.success())
    };
    let generator = if let Some(program) = programs.iter().find(runs) {
        program.clone()
    } else {
        // Completions and pages are the same on all platforms.
        run(cargo(&["build", "--locked", "--package", "alongside"]))?;
        target_directory()?.join("debug/alongside")
    };
    let share = Share::generate(release, &generator)?;
    for (platform, program) in platforms.iter().zip(&programs) {
        formats::write_all(release, platform, program, &share, out)?;
    }
    Ok(())
}

/// Builds the program for a platform, with this machine's own toolchain or the one for other systems.
fn build(platform: &Platform) -> Result<PathBuf, String> {
    let target = target_directory()?;
    // Until the end of the build: nothing else may replace the compiler before.
    let toolchain = match platform.cross {
        Some(_) if cfg!(target_os = "linux") => Some(toolchain::prepare()?),
        _ => None,
    };
    let mut command = if let (Some(toolchain), Some(cross)) = (&toolchain, platform.cross) {
        toolchain.cargo("build", cross)
    } else {
        let mut command = cargo(&["build", "--locked", "--target"]);
        command.arg(platform.triple);
        command
    };
    command
        .args(["--package", "alongside", "--profile", "dist"])
        .env("CARGO_TARGET_DIR", &target);
    run(command)?;
    let program = target.join(platform.triple).join("dist").join(platform.program);
    if platform.triple.contains("linux") {
        check_static(&program)?;
    }
    if platform.is_mac() {
        // Stripping invalidates the linker's signature, and Macs with Apple's processors start nothing without one.
        let mut sign = Command::new("codesign");
        sign.args(["--force", "--sign", "-"]).arg(&program);
        run(sign)?;
    }
    Ok(program)
}

/// Fails if a program for Linux needs a loader, and with it the C library of some version.
fn check_static(program: &Path) -> Result<(), String> {
    let bytes = fs::read(program).map_err(|error| format!("cannot read {}: {error}", program.display()))?;
    match has_interpreter(&bytes) {
        Some(false) => Ok(()),
        Some(true) => Err(format!("{} is not linked statically", program.display())),
        None => Err(format!("{} is not a program for 64-bit Linux", program.display())),
    }
}

/// Whether an ELF file asks for a loader, in its program headers.
fn has_interpreter(elf: &[u8]) -> Option<bool> {
    const INTERPRETER: u32 = 3;
    let short = |at: usize| Some(usize::from(u16::from_le_bytes(elf.get(at..at + 2)?.try_into().ok()?)));
    let is_elf_64 = elf.starts_with(b"\x7fELF\x02");
    let start = usize::try_from(u64::from_le_bytes(elf.get(32..40)?.try_into().ok()?)).ok()?;
    let (size, count) = (short(54)?, short(56)?);
    let types = (0..count).map(|index| {
        let at = start + index * size;
        Some(u32::from_le_bytes(elf.get(at..at + 4)?.try_into().ok()?))
    });
    let types: Option<Vec<u32>> = types.collect();
    is_elf_64.then(|| types.map(|types| types.contains(&INTERPRETER)))?
}

/// Runs a script in `packaging/`.
fn python(arguments: &[&str]) -> Command {
    let mut command = Command::new("python3");
    command
        .arg(root().join("packaging").join(arguments[0]))
        .args(&arguments[1..]);
    command
}

/// What a command prints.
fn output(mut command: Command) -> Result<Vec<u8>, String> {
    let output = command
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        Ok(output.stdout)
    } else {
        Err(format!("{command:?} failed: {}", output.status))
    }
}

fn write(path: &Path, content: impl AsRef<[u8]>) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot write {}: {error}", path.display());
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    fs::write(path, content).map_err(failed)
}

fn copy(from: &Path, to: &Path) -> Result<(), String> {
    let failed = |error: std::io::Error| format!("cannot copy {} to {}: {error}", from.display(), to.display());
    if let Some(directory) = to.parent() {
        fs::create_dir_all(directory).map_err(failed)?;
    }
    fs::copy(from, to).map(|_| ()).map_err(failed)
}

/// An empty directory to assemble a package in.
fn stage(name: &str) -> Result<PathBuf, String> {
    let stage = target_directory()?.join("packages-stage").join(name);
    cache::remove(&stage)?;
    fs::create_dir_all(&stage).map_err(|error| format!("cannot create {}: {error}", stage.display()))?;
    Ok(stage)
}

/// The page's packages, whose licenses are part of every package.
fn install_page_packages() -> Result<(), String> {
    npm::install_in(&root().join("web"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Just the headers of a program.
    fn elf(kinds: &[u8]) -> Vec<u8> {
        let mut elf = vec![0; 64];
        elf[..5].copy_from_slice(b"\x7fELF\x02");
        (elf[32], elf[54], elf[56]) = (64, 56, u8::try_from(kinds.len()).unwrap());
        for kind in kinds {
            elf.push(*kind);
            elf.extend([0; 55]);
        }
        elf
    }

    #[test]
    fn node_without_crc32_is_refused_with_its_version() {
        for version in [(20, 15), (20, 20), (22, 2), (23, 0), (24, 0)] {
            assert_eq!(check_node(Some(version)), Ok(()), "{version:?}");
        }
        for version in [(18, 20), (20, 14), (21, 7), (22, 1)] {
            let reason = check_node(Some(version)).unwrap_err();
            let (major, minor) = version;
            assert!(
                reason.contains("20.15") && reason.contains(&format!("this is {major}.{minor};")),
                "{reason}"
            );
        }
        assert!(check_node(None).is_err());
    }

    #[test]
    fn target_of_another_system_is_refused_before_anything_is_built() {
        let targets = |triple: &str| chosen(&Choice::Targets(vec![triple.to_owned()])).map(|platforms| platforms.len());
        for platform in &PLATFORMS {
            if platform.builds_here() {
                assert_eq!(targets(platform.triple), Ok(1));
            } else {
                let reason = targets(platform.triple).unwrap_err();
                assert!(
                    reason.contains(&format!("for {} here; build them on", platform.triple)),
                    "{reason}"
                );
            }
        }
        assert!(targets("sparc").unwrap_err().starts_with("unknown target `sparc`"));
    }

    #[test]
    fn file_of_another_version_is_noticed() {
        let out = target_directory().unwrap().join("foreign-test");
        cache::remove(&out).unwrap();
        let release = Release::read().unwrap();
        assert_eq!(foreign_file(&release, &out), None);
        for platform in &PLATFORMS {
            for name in release.files(platform) {
                write(&out.join(name), "").unwrap();
            }
        }
        for name in [
            "alongside.vsix",
            "SHA256SUMS",
            "homebrew/alongside.rb",
            "scoop/alongside.json",
        ] {
            write(&out.join(name), "").unwrap();
        }
        write(&out.join(release.npm_root()), "").unwrap();
        assert_eq!(foreign_file(&release, &out), None);
        let old = out.join("alongside_0.0.9_amd64.deb");
        write(&old, "").unwrap();
        assert_eq!(foreign_file(&release, &out), Some(old));
        cache::remove(&out).unwrap();
    }

    #[test]
    fn only_programs_without_a_loader_are_static() {
        assert_eq!(has_interpreter(&elf(&[6, 1, 2])), Some(false));
        assert_eq!(has_interpreter(&elf(&[6, 3, 1])), Some(true));
        assert_eq!(has_interpreter(b"MZ"), None);
        assert_eq!(has_interpreter(&elf(&[1])[..66]), None);
        // This test, which is linked as usual.
        if cfg!(all(target_os = "linux", target_env = "gnu")) {
            let own = fs::read(std::env::current_exe().unwrap()).unwrap();
            assert_eq!(has_interpreter(&own), Some(true));
        }
    }
}
