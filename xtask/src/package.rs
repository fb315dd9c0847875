//! Packages the VS Code extension: with the program inside for each platform that can be built here, and without it for the rest.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::{cargo, npm, root, run, target_directory};

/// Rust's targets and the names that VS Code has for them.
const PLATFORMS: [(&str, &str); 9] = [
    ("x86_64-unknown-linux-gnu", "linux-x64"),
    ("aarch64-unknown-linux-gnu", "linux-arm64"),
    ("armv7-unknown-linux-gnueabihf", "linux-armhf"),
    ("x86_64-unknown-linux-musl", "alpine-x64"),
    ("aarch64-unknown-linux-musl", "alpine-arm64"),
    ("x86_64-apple-darwin", "darwin-x64"),
    ("aarch64-apple-darwin", "darwin-arm64"),
    ("x86_64-pc-windows-msvc", "win32-x64"),
    ("aarch64-pc-windows-msvc", "win32-arm64"),
];

pub(crate) fn vscode() -> Result<(), String> {
    let folder = target_directory()?.join("vscode");
    fs::create_dir_all(&folder).map_err(|error| format!("cannot create {}: {error}", folder.display()))?;
    pack(&folder.join("alongside.vsix"), None)?;
    for (target, platform) in PLATFORMS.into_iter().filter(|(target, _)| is_installed(target)) {
        match build(target) {
            Ok(program) => pack(
                &folder.join(format!("alongside-{platform}.vsix")),
                Some((&program, platform)),
            )?,
            // The standard library is there, but a linker may be missing.
            Err(reason) => eprintln!("xtask: no package for {platform}: {reason}"),
        }
    }
    eprintln!("xtask: the packages are in {}", folder.display());
    Ok(())
}

/// Whether the standard library for a target is installed.
fn is_installed(target: &str) -> bool {
    let output = Command::new("rustc")
        .args(["--print", "target-libdir", "--target", target])
        .stderr(Stdio::null())
        .output();
    output.is_ok_and(|output| Path::new(String::from_utf8_lossy(&output.stdout).trim()).is_dir())
}

fn build(target: &str) -> Result<PathBuf, String> {
    run(cargo(&[
        "build",
        "--release",
        "--locked",
        "--package",
        "alongside",
        "--target",
        target,
    ]))?;
    let name = if target.contains("windows") {
        "alongside.exe"
    } else {
        "alongside"
    };
    Ok(target_directory()?.join(target).join("release").join(name))
}

fn pack(package: &Path, program: Option<(&Path, &str)>) -> Result<(), String> {
    let mut command = Command::new(npm::node());
    command.arg(root().join("editors/vscode/package.mjs"));
    command.arg("--out").arg(package);
    if let Some((program, platform)) = program {
        command.arg("--program").arg(program).args(["--target", platform]);
    }
    run(command)
}
